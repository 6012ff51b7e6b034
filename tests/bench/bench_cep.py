"""Events a second of the engine of event patterns, columns in and indices of all matches out, by CPU time of one core.

The workload of Table 1 by keys and disorder, then other patterns. Prints; asserts nothing.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1])]

from support.cep_workload import NAMES, SLACK, TABLE_1, UNIT, sequence, workload  # noqa: E402
from whenabouts_cloud.cep import engine  # noqa: E402
from whenabouts_cloud.cep.plan import Plan, Step, Variant  # noqa: E402

EVENTS = 1_000_000
REPEATS = 3


def measure(name, plan, events, emit="sure", **columns):
    """The best of some runs."""
    best = float("inf")
    for _ in range(REPEATS):
        one = engine(plan, NAMES, emit=emit, k=SLACK)
        begun = time.process_time()
        out = one.feed(*events, **columns)
        best = min(best, time.process_time() - begun)
    count = len(events.t)
    held = one.counters
    each = held["state_bytes"] / max(1, held["stored_events"])
    rate = f"{count / best / 1e6:7.2f} M events/s {best / count * 1e9:7.1f} ns an event"
    print(f"{name:34} {rate} {len(out.matches) / count:6.2f} matches an event {each:8.1f} bytes stored", flush=True)


def main():
    """All rows."""
    engine(TABLE_1, NAMES, k=SLACK).feed(*workload(100, 1, 0.2))  # loads the machine code
    for keys in (1, 64, 1024):
        for late in (0.0, 0.2, 0.5):
            measure(f"Table 1, {keys} keys, {late:.0%} late", TABLE_1, workload(EVENTS, keys, late))
    events = workload(EVENTS, 1, 0.2)
    for text in ("AB!CD", "ABDEF!CG", "AB!C", "!CAB"):
        measure(f"{text}, 1 key", sequence(text), events)
        measure(f"{text}, 1 key, on arrival", sequence(text), events, emit="arrival")
    classes = TABLE_1.classes
    both = Plan(classes, (Variant((0, 1, 3), (0, 1, 2), (0, 0, 0)),), 3, 20 * UNIT)
    measure("AND(A, B, D) within 20, 1 key", both, events)
    repeated = tuple(
        Variant((0, *[1] * n, 3), (0, *range(1, n + 1), 9), tuple((1 << i) - 1 for i in range(n + 2)))
        for n in range(1, 9)
    )
    measure("SEQ(A, B+, D) within 20, 1 key", Plan(classes, repeated, 10, 20 * UNIT), events)
    rising = (
        (Step("attribute", 0), Step("attribute", 1), Step("<")),
        (Step("attribute", 1), Step("attribute", 2), Step("<")),
    )
    four = sequence("AB!CDE")
    asked = replace(four, variants=(replace(four.variants[0], conditions=rising),), attributes=("v",))
    values = np.random.default_rng(0).random(len(events.t))
    measure("AB!CDE, a.v < b.v < d.v, 1 key", asked, events, attributes={"v": values})
    measure("Table 1, intervals of 0.1 unit", replace(TABLE_1, longest=100), events, t_max=events.t + 100)


if __name__ == "__main__":
    main()
