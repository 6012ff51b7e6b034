"""Rates of one pattern of every kind, and of a thousand at once, for `bench_cep`.

Kinds run on 64 keys with 20 % late events; the window is chosen so that matches stay below two an event, since
beyond that writing them out dominates the cost. They are measured only after a check: on short streams
they emit exactly the matches of the definition.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from reference import cep as definition
from whenabouts_cloud.cep import Pattern, engine
from whenabouts_cloud.research.experiments.cep_workload import TABLE_1, TYPES, UNIT, Stream, table_1

EVENTS, SEVERAL_KEYS, LATE = 300_000, 64, 0.2
LENGTH = 3 * UNIT  # of the longest stamp of those patterns that are fed with intervals
ROUNDS = 3
# text, whether events are intervals
PATTERNS = (
    ("AND(A, B, C) WITHIN 10", False),
    ("AND(A, !C, B) WITHIN 5", False),
    ("SEQ(A, AND(B, C), D) WITHIN 20", False),
    ("SEQ(A, OR(B, SEQ(C, D)), E) WITHIN 20", False),
    ("SEQ((A | B) x, C, !D, (E | F) y) WITHIN 20", False),
    ("SEQ(A, B{2,4} b, C) WITHIN 20", False),
    ("SEQ(A, B+, C) WITHIN 20", False),
    ("SEQ(A a, B b, C c) WITHIN 40 WHERE b.value > a.value AND c.value - a.value < 10", False),
    ("SEQ(A a, !C c, B b) WITHIN 40 WHERE c.value > a.value AND a.value > 50", False),
    ("SEQ(A, B, !C, D) WITHIN 40 NEXT", False),
    ("SEQ(A, B, C) WITHIN 40 STRICT", False),
    ("SEQ(!C, A, B) WITHIN 10", False),
    ("SEQ(A, B, !C) WITHIN 10", False),
    ("SEQ(A, !C, !D, A, !A, B) WITHIN 40", False),
    ("SEQ(A, B, !C, D) WITHIN 40 ON ARRIVAL", False),
    ("SEQ(A, B, C) WITHIN 20 SKIP TO NEXT", False),
    ("SEQ(A, B, C) WITHIN 20 SKIP PAST LAST", False),
    ("SEQ(A, B, !C, D) WITHIN 20", True),
    ("SEQ(A, B, C) WITHIN 20 POSSIBLE", True),
    ("SEQ(A, B, !C, D) WITHIN 20 OVER 80 %", True),
    ("AND(A a, B b) WITHIN 20 WHERE a OVERLAPS b", True),
)
MANY = 1000
# types, positives of each pattern, window: few patterns for each event, or so many that it may complete hundreds
THOUSANDS = {"three of 300 types": (300, 3, 40), "six of ten types": (10, 6, 10)}


def events(number: int, keys: int, seed: int) -> dict[str, Any]:
    """Columns of Table 1's stream with a value in 0 .. 100 and stamps up to LENGTH long."""
    stream = table_1(number, keys, LATE, seed=seed)
    rng = np.random.default_rng([seed, number])
    return {
        "type_code": stream.type_code, "key": stream.key, "t": stream.t,
        "t_max": stream.t + rng.integers(0, LENGTH + 1, number), "value": rng.random(number) * 100,
    }  # fmt: skip


def emitted(text: str, intervals: bool, columns: dict[str, Any]) -> tuple[float, Any, Any]:
    """CPU seconds, matches and retractions. The slack covers how long stamps are, since delays count from their "
    "begin."""
    pattern = Pattern.parse(text, unit_us=UNIT)
    plan = pattern.plan(list(TYPES), longest=LENGTH if intervals else 0)
    t_max = columns["t_max"] if intervals else None
    one = engine(plan, list(TYPES), pattern.emit, k=(10 * UNIT + LENGTH), longest=LENGTH if intervals else 0)
    began = time.process_time()
    out = one.feed(columns["type_code"], columns["key"], columns["t"], None, t_max, {"value": columns["value"]})
    last = one.finish()
    took = time.process_time() - began
    if len(out.late):
        raise AssertionError(f"{text}: found {len(out.late)} late events, expected none")
    rows = [np.concatenate([getattr(out, x), getattr(last, x)]) for x in ("matches", "retractions")]
    return took, rows[0], rows[1]


def measured() -> Iterator[tuple[str, bool, float, float]]:
    """Text, whether of intervals, matches an event, events a CPU second; the fastest of some rounds, after a small "
    "one."""
    columns = events(EVENTS, SEVERAL_KEYS, 1)
    small = {name: column[:2000] for name, column in columns.items()}
    for text, intervals in PATTERNS:
        emitted(text, intervals, small)
        runs = [emitted(text, intervals, columns) for _ in range(ROUNDS)]
        yield text, intervals, len(runs[0][1]) / EVENTS, EVENTS / min(run[0] for run in runs)


def checked(text: str, intervals: bool) -> int:
    """The matches of some short streams, which are those of the definition.

    Raises:
        AssertionError: they are not, or there are none.
    """
    plan = Pattern.parse(text, unit_us=UNIT).plan(list(TYPES), longest=LENGTH if intervals else 0)
    needed = sorted({code for one in plan.classes for code in one.types})[:7]
    total, number = 0, 20 if plan.width <= 6 else 8  # the definition tries every tuple
    for seed in range(12):
        columns = events(number, 1, seed)
        columns["type_code"] = np.array(needed)[columns["type_code"] % len(needed)]
        values = {"value": columns["value"], "t_min": columns["t"], "t_max": columns["t_max"]}
        ends = columns["t_max"] if intervals else columns["t"]
        attributes = np.array(
            [values[name] if intervals or name != "t_max" else columns["t"] for name in plan.attributes]
        ).T
        rows = [
            definition.Event(int(code), 0, int(begin), int(end), 0, tuple(attributes[n]) if len(attributes) else ())
            for n, (code, begin, end) in enumerate(zip(columns["type_code"], columns["t"], ends, strict=True))
        ]
        if plan.mode == "certain":
            expected = definition.final(definition.Case(plan, len(TYPES), tuple(rows), k=10 * UNIT + LENGTH))
            _, matches, retracted = emitted(text, intervals, columns)
            standing = {tuple(row) for row in matches.tolist()} - {tuple(row) for row in retracted.tolist()}
            if standing != expected:
                raise AssertionError(f"{text}, seed {seed}: found {sorted(standing)}, expected {sorted(expected)}")
            total += len(standing)
    if plan.mode == "certain" and not total:
        raise AssertionError(f"{text}: found no match on any short stream, expected some")
    return total


def thousand() -> dict[str, float]:
    """The rate of a thousand patterns in one engine over that of Table 1's pattern alone, by kind of pattern; together
    they emit what each emits in a separate engine."""
    table = table_1(EVENTS, SEVERAL_KEYS, LATE, seed=3)
    single, _ = _rate(Pattern.parse(TABLE_1, unit_us=UNIT), list(TYPES), table.type_code, table)
    print(f"\n{MANY} patterns in one engine, {SEVERAL_KEYS} keys; Table 1 by itself {single / 1e6:.2f} M/s")
    return {said: _together(said, *shape) / single for said, shape in THOUSANDS.items()}


def _rate(some: Any, names: list[str], codes: Any, stream: Stream) -> tuple[float, Any]:
    """Events a CPU second, and rows of pattern and match."""
    best = float("inf")
    for _ in range(ROUNDS):
        one = engine(some, names, k=stream.k)
        began = time.process_time()
        outs = one.feed(codes, stream.key, stream.t), one.finish()
        best = min(best, time.process_time() - began)
    rows = np.concatenate([out.matches for out in outs])
    return EVENTS / best, np.column_stack([np.concatenate([out.pattern for out in outs]), rows])


def _together(said: str, types: int, length: int, window: int) -> float:
    """The rate of many patterns over so many types; every third has no negation."""
    rng = np.random.default_rng(5)
    names = [f"T{n}" for n in range(types)]
    texts = []
    for n in range(MANY):
        *elements, negated = (names[x] for x in rng.choice(types, length + 1, replace=False))
        if n % 3:
            elements.insert(1 + n % (length - 1), f"!{negated}")
        texts.append(f"SEQ({', '.join(elements)}) WITHIN {window}")
    patterns = [Pattern.parse(text, unit_us=UNIT) for text in texts]
    stream = table_1(EVENTS, SEVERAL_KEYS, LATE, seed=3)
    codes = rng.integers(0, types, EVENTS)
    together, rows = _rate(patterns, names, codes, stream)
    alone = []
    for n in range(0, MANY, MANY // 20 + 1):
        speed, matches = _rate(patterns[n], names, codes, stream)
        alone.append(speed)
        if sorted(map(tuple, rows[rows[:, 0] == n, 1:].tolist())) != sorted(map(tuple, matches[:, 1:].tolist())):
            raise AssertionError(
                f"{texts[n]}: found other matches together than {len(matches)} singly, expected equal ones"
            )
    one = len(alone) / sum(1 / speed for speed in alone)
    print(
        f"{said}: {together / 1e6:.2f} M/s, {len(rows) / EVENTS:.2f} matches an event, each event in "
        f"{sum(len(p.types) for p in patterns) / types:.0f} patterns; {one / MANY / 1e6:.4f} M/s in {MANY} engines (one of "
        f"them {one / 1e6:.0f} M/s); {len(alone)} of them compared, same matches"
    )  # fmt: skip
    return together
