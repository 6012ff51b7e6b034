"""Numbers of readings as ranges: a set of them, the fewest that hold given readings, and what some leave of others."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

Boot = tuple[str, int]  # (name of the gateway in the ledger, boot)
Range = tuple[str, int, int, int]  # site/gateway, boot, first, last


class Ranges:
    """A set of non-negative integers as sorted, disjoint, non-adjacent closed ranges."""

    __slots__ = ("firsts", "lasts")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.lasts: list[int] = []

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.firsts, number) - 1
        return at >= 0 and number <= self.lasts[at]

    def overlaps(self, first: int, last: int) -> bool:
        """True if any number from first to last is in the set."""
        at = bisect_right(self.firsts, last) - 1
        return at >= 0 and self.lasts[at] >= first

    def covers(self, first: int, last: int) -> bool:
        """True if every number from first to last is in the set."""
        at = bisect_right(self.firsts, first) - 1
        return at >= 0 and self.lasts[at] >= last

    def add(self, first: int, last: int) -> None:
        """Add every number from first to last."""
        low = bisect_right(self.lasts, first - 2)  # first range that touches or follows [first, last]
        high = bisect_right(self.firsts, last + 1)
        if low < high:
            first, last = min(first, self.firsts[low]), max(last, self.lasts[high - 1])
        self.firsts[low:high] = [first]
        self.lasts[low:high] = [last]

    def reach(self, start: int = 0) -> int:
        """The highest n such that all of start..n are in the set; start - 1 if start is not in it."""
        at = bisect_right(self.firsts, start) - 1
        return self.lasts[at] if at >= 0 and start <= self.lasts[at] else start - 1

    def __len__(self) -> int:
        return len(self.firsts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self.firsts, self.lasts, strict=True))


def runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Split numbers, in their order, into runs (first, last) that count up by one."""
    if numbers == list(range(numbers[0], numbers[0] + len(numbers))):  # nearly always
        return [(numbers[0], numbers[-1])]
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def as_ranges(identities: Iterable[tuple[str, int, int]]) -> list[Range]:
    """The fewest ranges that hold these (gateway, boot, seq)."""
    numbers: dict[Boot, list[int]] = {}
    for gateway, boot, seq in identities:
        numbers.setdefault((gateway, boot), []).append(seq)
    return [(g, b, first, last) for (g, b), of_boot in numbers.items() for first, last in runs(sorted(set(of_boot)))]


def without(ranges: Iterable[Range], taken: Iterable[Range]) -> list[Range]:
    """The numbers of some ranges that are in no other range, sorted."""
    rest: list[Range] = []
    others: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for gateway, boot, low, high in sorted(taken):
        others.setdefault((gateway, boot), []).append((low, high))
    for gateway, boot, begin, last in sorted(ranges):
        first: int = begin
        for low, high in others.get((gateway, boot), ()):
            if first <= last and low > first:
                rest.append((gateway, boot, first, min(low - 1, last)))
            first = max(first, high + 1)
        if first <= last:
            rest.append((gateway, boot, first, last))
    return rest


def range_of(entry: Any) -> Range:
    """A range as it stands in a file's metadata. Raises ValueError or TypeError for anything else."""
    gateway, boot, first, last = entry
    return str(gateway), int(boot), int(first), int(last)
