"""Stream buffer of the tuple-by-tuple operators: parallel lists and a moving front, standard library only.

The papers' circular array with Front and Rear: dropping advances the front; the room before it is freed when it is
half of the list. `list.insert` near the end is a short move, and arrivals are nearly in order.
"""

from bisect import bisect_right

GIVE_BACK = 512  # dropped tuples before the lists are cut, so that cutting costs little per tuple


class TupleBuffer:
    """Tuples of one stream: maximum, doubled middle, length, index and place in the order of arrival are parallel."""

    __slots__ = ("front", "index", "length", "middle", "t_max")

    def __init__(self) -> None:
        self.t_max: list[int] = []
        self.middle: list[int] = []
        self.length: list[int] = []
        self.index: list[int] = []
        self.front = 0  # everything before is dropped

    def __len__(self) -> int:
        return len(self.t_max) - self.front

    def append(self, index: int, t_min: int, t_max: int) -> None:
        """Append at the end, ignoring its time."""
        self.t_max.append(t_max)
        self.middle.append(t_min + t_max)
        self.length.append(t_max - t_min)
        self.index.append(index)

    def insert(self, index: int, t_min: int, t_max: int) -> None:
        """Insert in the order of the maxima, equal ones in the order of arrival."""
        maxima = self.t_max
        if not maxima or t_max >= maxima[-1]:
            self.append(index, t_min, t_max)
            return
        at = bisect_right(maxima, t_max, self.front)
        maxima.insert(at, t_max)
        self.middle.insert(at, t_min + t_max)
        self.length.insert(at, t_max - t_min)
        self.index.insert(at, index)

    def drop_below(self, bound: int) -> int:
        """Advance the front over tuples with a maximum below the bound, up to the first that is not; return their number."""
        maxima, front, end = self.t_max, self.front, len(self.t_max)
        while front < end and maxima[front] < bound:
            front += 1
        dropped, self.front = front - self.front, front
        if front >= GIVE_BACK and 2 * front >= end:
            self._cut()
        return dropped

    def drop_first(self) -> None:
        """Drop the tuple at the front."""
        self.front += 1

    def _cut(self) -> None:
        for column in (self.t_max, self.middle, self.length, self.index):
            del column[: self.front]
        self.front = 0
