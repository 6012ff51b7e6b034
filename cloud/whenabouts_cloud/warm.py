"""Prepares quick starts: `python -m whenabouts_cloud.warm`, which takes two minutes once.

The engines are compiled ahead of their first use; the machine code is kept beside the sources or in the user's cache folder,
and without it the first job compiles what it needs. Meanwhile Java writes its archive of classes (`spark.shared_classes`).
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from whenabouts_cloud.cep import Pattern, engine
from whenabouts_cloud.cep.counting import counter
from whenabouts_cloud.correlation import Condition, correlate, count_pairs
from whenabouts_cloud.latwin import All, ConjunctionDetector, LatWin, Local
from whenabouts_cloud.spark.shared_classes import make_archive

NAMES = ("A", "B", "C")
PATTERNS = (
    "SEQ(A, !B, C) WITHIN 9",
    "AND(A a, C c) WITHIN 9 WHERE a.value < c.value",
    "SEQ(A, !B, C) WITHIN 9 OVER 50 %",
    "SEQ(A, !B, C) WITHIN 9 POSSIBLE",
    "SEQ(A, C) WITHIN 9 PER key SKIP PAST LAST",
)
SURE_ALONE = ("OVER", "POSSIBLE", "SKIP")
MANY_KEYS = 5000  # more than an engine has room for at first


def warm() -> None:
    """Runs every engine on a handful of events."""
    kinds, keys, t = np.array([0, 1, 2]), np.zeros(3, np.int64), np.array([1, 5, 8])
    values = {"value": np.zeros(3)}
    for text in PATTERNS:
        for emit in ("sure", "arrival"):
            if emit == "arrival" and any(word in text for word in SURE_ALONE):
                continue
            running = engine(Pattern.parse(text, unit_us=1), NAMES, emit=emit, k=5, longest=3)
            running.feed(kinds, keys, t, t_max=t + 3, attributes=values)
            running.finish()
    crowded = engine(Pattern.parse("SEQ(A, C) WITHIN 9 PER key", unit_us=1), NAMES, k=5)
    crowded.feed(np.zeros(MANY_KEYS, np.int64), np.arange(MANY_KEYS), np.arange(MANY_KEYS))
    crowded.finish()
    counting = counter(Pattern.parse(PATTERNS[0], unit_us=1), NAMES, k=5)
    counting.feed(kinds, keys, t)
    counting.finish()
    both = All(Local(0, {0}), Local(1, {0}))
    for order in ("causal", "hybrid"):
        window, detector = LatWin(2, 2, order), ConjunctionDetector(2, 2, order)
        for process in (0, 1):
            window.push(process, 0, [0, 0], 0, 1)
            detector.push(process, 0, [0, 0], True, 0, 1)
            detector.evidence(process, [0, 0], 2)
        window.possibly(both)
        window.definitely_in_window(both)
        len(window.states())
    condition = Condition("within", d=3, confidence="0.8")
    for probability in (False, True):
        correlate(t, t + 3, t, t + 3, condition, engine="numba", probability=probability)
    count_pairs(t, t + 3, t, t + 3, condition, engine="numba")


if __name__ == "__main__":
    with ThreadPoolExecutor(1) as aside:
        archive = aside.submit(make_archive)
        warm()
        archive.result()
