"""The lanes of a landing: each reader (site, gateway, stream) with a number, and what is known of it.

Numbers are given in the order of discovery and stay. Beyond MAX_LANES readings are counted, but belong to no lane.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

MAX_LANES = 20_000
OTHERS = -1  # number of all lanes beyond the limit
MOST_COMBINED = 1_000_000  # combinations of site, gateway and stream in a block that a table in memory can hold

Name = tuple[str, str, str]


class Lane(NamedTuple):
    """A reader. number: stays the same; times are those of its stamps, us; None where nothing is known."""

    number: int
    site: str
    gateway: str
    stream: str
    readings: int
    first_us: int | None
    last_us: int | None
    frontier_us: int | None


class LaneTable:
    """Lanes by number. Memory: 0.5 kB a lane."""

    def __init__(self) -> None:
        self._numbers: dict[Name, int] = {}
        self._readings: list[int] = []
        self._first: list[int] = []
        self._last: list[int] = []
        self._sorted: list[tuple[Name, int]] | None = None
        self.others = 0  # readings of lanes beyond the limit

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, table: pa.Table) -> Any:
        """The lane of each row, int32; new ones are numbered."""
        if table.num_rows == 0:
            return np.zeros(0, np.int32)
        columns = [_codes(table[name]) for name in ("site", "gateway", "stream")]
        mixed = np.zeros(table.num_rows, np.int64)
        for codes, names in columns:
            mixed = mixed * (len(names) + 1) + codes
        most = int(np.prod([len(names) + 1 for _, names in columns]))
        found, place = _distinct(mixed, most)
        numbers = np.empty(len(found), np.int32)
        for at, value in enumerate(found.tolist()):
            name = []
            for _, names in reversed(columns):
                value, code = divmod(value, len(names) + 1)
                name.append(names[code] if code < len(names) else "")
            numbers[at] = self._number((name[2], name[1], name[0]))
        return numbers[place]

    def add(self, lanes: Any, t_min: Any, t_max: Any) -> None:
        """Count readings of these lanes."""
        inside = lanes >= 0
        self.others += int(len(lanes) - inside.sum())
        if not inside.all():
            lanes, t_min, t_max = lanes[inside], t_min[inside], t_max[inside]
        readings = np.bincount(lanes, minlength=len(self._readings))
        first, last = np.full(len(readings), 2**63 - 1), np.full(len(readings), -(2**63))
        np.minimum.at(first, lanes, t_min)
        np.maximum.at(last, lanes, t_max)
        for lane in np.flatnonzero(readings).tolist():
            self._readings[lane] += int(readings[lane])
            self._first[lane] = min(self._first[lane], int(first[lane]))
            self._last[lane] = max(self._last[lane], int(last[lane]))

    def shares(self) -> Any:
        """The part that each lane has of all readings that were counted, float64."""
        readings = np.array(self._readings, np.float64)
        return readings / max(1.0, float(readings.sum()))

    def chosen(self, search: str) -> list[tuple[Name, int]]:
        """Names and numbers of the lanes that contain a text, sorted by name; upper and lower case are the same."""
        if self._sorted is None:
            self._sorted = sorted(self._numbers.items())
        text = search.lower()
        return [one for one in self._sorted if text in "/".join(one[0]).lower()] if text else list(self._sorted)

    def lane(self, name: Name, number: int, frontier_us: int | None) -> Lane:
        """What is known of a lane."""
        readings = self._readings[number]
        first, last = (self._first[number], self._last[number]) if readings else (None, None)
        return Lane(number, *name, readings, first, last, frontier_us)

    def _number(self, name: Name) -> int:
        number = self._numbers.get(name)
        if number is None:
            if len(self._numbers) >= MAX_LANES:
                return OTHERS
            number = self._numbers[name] = len(self._numbers)
            self._readings.append(0)
            self._first.append(2**63 - 1)
            self._last.append(-(2**63))
            self._sorted = None
        return number


def _distinct(values: Any, most: int) -> tuple[Any, Any]:
    """The distinct values, sorted, and the place of each value among them. Values are below `most`."""
    if most > MOST_COMBINED:
        found, place = np.unique(values, return_inverse=True)
        return found, place
    found = np.flatnonzero(np.bincount(values, minlength=most))  # without sorting
    places = np.empty(most, np.int32)
    places[found] = np.arange(len(found))
    return found, places[values]


def _codes(column: pa.ChunkedArray) -> tuple[Any, list[str]]:
    """Codes of an encoded column and its texts; null has the code after the last."""
    array = column.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    names = ["" if name is None else name for name in array.dictionary.to_pylist()]
    return np.asarray(array.indices.fill_null(len(names)), np.int64), names
