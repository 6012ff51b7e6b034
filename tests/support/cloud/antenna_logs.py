"""Results from logs of antenna readers, by the slow definitions without code of the project, and by the project's engine.

Times are milliseconds since 1970, as if UTC; the logs print tenths of a second.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reference.predicates import probability
from whenabouts_cloud.cep import Pattern, detect

UNREFERENCED = 60_000  # possible error of a clock without reference, after it had one
WITHIN = 3_000  # of the rules `heard` and `echo`
APART = 180_000  # of the rule `both`
SURE = Fraction(4, 5)


class Row(NamedTuple):
    """A row of a log; `line` is counted from 1, `t_min` and `t_max` allow for the tenths and the clock's error."""

    reader: str
    line: int
    tag: str
    kind: str
    arrived: int
    departed: int
    t_min: int
    t_max: int


Pair = tuple[Row, Row]


def rows(folder: Path, reader: str) -> list[Row]:
    """The rows of a log that consists of one table, in the order in which they are written."""
    parsed = []
    for line, text in enumerate((folder / f"{reader}.txt").read_text().splitlines(), 1):
        record, stamp, reference, stayed, kind, tag, *_ = text.split("\t")
        if record == "DTY":
            continue
        assert (record, reference in "GU") == ("S", True)
        arrived = _milliseconds(datetime.fromisoformat(stamp) - datetime(1970, 1, 1))
        clock = datetime.strptime(stayed, "%H:%M:%S.%f")
        departed = arrived + _milliseconds(clock - datetime(1900, 1, 1))
        wide = UNREFERENCED if reference == "U" else 0
        # A tenth before, a tenth for each of the two numbers after.
        parsed.append(Row(reader, line, tag, kind, arrived, departed, arrived - 100 - wide, departed + 200 + wide))
    return parsed


def _milliseconds(span: timedelta) -> int:
    return round(span.total_seconds() * 1000)


def of_kind(log: Iterable[Row], kinds: str) -> list[Row]:
    """The rows whose type of tag is one of `kinds`: A (animal), W (marker), P (phantom)."""
    return [row for row in log if row.kind in kinds]


def _near(a: Iterable[Row], b: Iterable[Row], reach: int) -> Iterator[Pair]:
    """Pairs whose arrivals are at most `reach` apart: the others need no look."""
    ordered = sorted(b, key=_arrived)
    for x in a:
        begin = bisect_left(ordered, x.arrived - reach, key=_arrived)
        yield from ((x, y) for y in ordered[begin : bisect_right(ordered, x.arrived + reach, key=_arrived)])


def _arrived(row: Row) -> int:
    return row.arrived


def joined(a: Iterable[Row], b: Iterable[Row], apart: int) -> set[Pair]:
    """Pairs of equal tags whose arrivals are at most `apart` apart: a range join on the column ARR."""
    return {(x, y) for x, y in _near(a, b, apart) if x.tag == y.tag}


def sure(a: Sequence[Row], b: Sequence[Row], apart: int) -> set[Pair]:
    """Pairs of equal tags that are at most `apart` apart with a probability of 80 %."""
    longest = max(row.t_max - row.t_min for row in (*a, *b))
    near = ((x, y) for x, y in _near(a, b, apart + longest) if x.tag == y.tag)
    return {(x, y) for x, y in near if probability(x[-2:], y[-2:], -apart, apart) >= SURE}


def passages(log: Iterable[Row]) -> set[Pair]:
    """Successive rows of a tag at different readers, in the order given."""
    last: dict[str, Row] = {}
    emitted = set()
    for row in log:
        before = last.get(row.tag)
        if before and before.reader != row.reader:
            emitted.add((before, row))
        last[row.tag] = row
    return emitted


def in_order(a: Row, b: Row) -> Fraction:
    """P(0 < Y - X <= WITHIN), X and Y uniform in two stamps, by areas."""
    width, height = a.t_max - a.t_min, b.t_max - b.t_min

    def below(z: int) -> Fraction:
        """The area where y <= x + z, integrated over x."""

        def integral(x: int) -> Fraction:
            over = max(0, x + z - b.t_min)
            return Fraction(min(over, height) ** 2, 2) + height * max(0, over - height)

        return integral(a.t_max) - integral(a.t_min)

    return (below(WITHIN) - below(0)) / (width * height)


WAYS: dict[str, Callable[[Row, Row], bool]] = {
    "heard, CERTAIN": lambda m, f: m.t_max < f.t_min and f.t_max - m.t_min <= WITHIN,
    "heard, OVER 90 %": lambda m, f: in_order(m, f) >= Fraction(9, 10),
    "heard, POSSIBLE": lambda m, f: m.t_min < f.t_max and f.t_min - m.t_max <= WITHIN,
    "heard, ARR as a point": lambda m, f: 0 < f.arrived - m.arrived <= WITHIN,
    "heard, ARR in the order of rows": lambda m, f: m.line < f.line and f.arrived - m.arrived <= WITHIN,
}
"""Tests, by name, of whether a fish was heard within three seconds after a marker."""

WITH_PHANTOMS = "heard, the same with phantoms taken for markers"


def heard(log: Sequence[Row], markers: str, way: Callable[[Row, Row], bool]) -> set[Pair]:
    """(marker, fish) rows of one log that satisfy the test; rows more than a minute apart are never a pair."""
    near = _near(of_kind(log, markers), of_kind(log, "A"), 60_000)
    return {pair for pair in near if way(*pair)}


def heard_in_every_way(log: Sequence[Row]) -> dict[str, set[Pair]]:
    """The pairs of each test, by its name in the lesson's table."""
    emitted = {name: heard(log, "W", way) for name, way in WAYS.items()}
    return {**emitted, WITH_PHANTOMS: heard(log, "WP", WAYS["heard, ARR in the order of rows"])}


def engine_heard(arrival: Sequence[Row], mode: str) -> list[Pair]:
    """(marker, fish) that the project's engine emits for rows in this order of arrival, only markers and fish."""
    pattern = Pattern.parse(f"SEQ(marker, fish) WITHIN {WITHIN} ACROSS KEYS {mode}", unit_us=1000)
    types = np.array([int(row.kind == "A") for row in arrival])
    t, t_max = (np.array([at * 1000 for at in column]) for column in zip(*(row[-2:] for row in arrival), strict=True))
    matches = detect(pattern, ["marker", "fish"], types, np.zeros(len(t), np.int64), t, t_max=t_max)
    return [(arrival[m], arrival[f]) for m, f in matches]
