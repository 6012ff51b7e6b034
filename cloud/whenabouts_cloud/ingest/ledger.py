"""Which numbers of which gateway have come: finds repeats, and says up to where everything has landed.

Per (gateway, boot) the numbers form a few disjoint ranges, one as a rule. A number is *seen* when it was admitted and
*landed* when it is durable; acknowledgements and frontiers speak of landed ones only. Pure; O(log ranges) a run of numbers.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

Boot = tuple[str, int]  # (gateway, boot)
Range = tuple[str, int, int, int]  # gateway, boot, first, last

MAX_RANGES = 4096  # of one boot: a gateway numbers without gaps, so more is an error or an attack
MAX_BOOTS = 1_000_000  # a range of an ordinary boot takes some 300 bytes


class LedgerFull(Exception):
    """More gaps or boots than any honest gateway makes; what was offered is not admitted."""


class Ranges:
    """A set of non-negative integers as sorted, disjoint, non-adjacent closed ranges."""

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.lasts: list[int] = []

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.firsts, number) - 1
        return at >= 0 and number <= self.lasts[at]

    def overlaps(self, first: int, last: int) -> bool:
        """Whether any number from first to last is in the set."""
        at = bisect_right(self.firsts, last) - 1
        return at >= 0 and self.lasts[at] >= first

    def add(self, first: int, last: int) -> None:
        """Add every number from first to last."""
        low = bisect_right(self.lasts, first - 2)  # first range that touches or follows [first, last]
        high = bisect_right(self.firsts, last + 1)
        if low < high:
            first, last = min(first, self.firsts[low]), max(last, self.lasts[high - 1])
        self.firsts[low:high] = [first]
        self.lasts[low:high] = [last]

    def reach(self, start: int = 0) -> int:
        """The highest n so that all of start..n are in the set; start - 1 if start is not."""
        at = bisect_right(self.firsts, start) - 1
        return self.lasts[at] if at >= 0 and start <= self.lasts[at] else start - 1

    def __len__(self) -> int:
        return len(self.firsts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self.firsts, self.lasts, strict=True))


class Ledger:
    """Seen and landed numbers of all gateways."""

    def __init__(self) -> None:
        self._seen: dict[Boot, Ranges] = {}
        self._landed: dict[Boot, Ranges] = {}

    def admit(self, gateway: str, boot: int, numbers: list[int]) -> list[bool]:
        """For each number of a message, at least one, whether it is new; new ones are seen from now on.

        Raises:
            LedgerFull: the gateway leaves more gaps than MAX_RANGES, or there are MAX_BOOTS boots. Nothing is admitted.
        """
        seen = self._seen.get((gateway, boot))
        if seen is None:
            if len(self._seen) >= MAX_BOOTS:
                raise LedgerFull(
                    f"found boot number {len(self._seen) + 1} of all gateways, expected at most {MAX_BOOTS}"
                )
            seen = self._seen[gateway, boot] = Ranges()
        if len(seen) + len(numbers) > MAX_RANGES and len(seen) > MAX_RANGES // 2:
            raise LedgerFull(f"found {len(seen)} gaps in the numbers of {gateway} boot {boot}, expected nearly none")
        if numbers == list(range(numbers[0], numbers[0] + len(numbers))) and not seen.overlaps(numbers[0], numbers[-1]):
            seen.add(numbers[0], numbers[-1])
            return [True] * len(numbers)
        new = []
        for number in numbers:
            fresh = number not in seen
            new.append(fresh)
            if fresh:
                seen.add(number, number)
        return new

    def land(self, ranges: Iterable[Range]) -> None:
        """These numbers are durable."""
        for gateway, boot, first, last in ranges:
            for table in (self._seen, self._landed):
                table.setdefault((gateway, boot), Ranges()).add(first, last)

    def forget_before(self, gateway: str, boot: int, first: int) -> None:
        """The gateway no longer keeps numbers below first: they landed, here or in an earlier landing."""
        if first > 0:
            self.land([(gateway, boot, 0, first - 1)])

    def reach(self, gateway: str, boot: int) -> int:
        """Highest number up to which all have landed, -1 for none."""
        landed = self._landed.get((gateway, boot))
        return -1 if landed is None else landed.reach()

    def landed_ranges(self) -> list[Range]:
        """Everything that has landed, for a snapshot."""
        return [(g, b, first, last) for (g, b), ranges in self._landed.items() for first, last in ranges]


def as_ranges(identities: Iterable[tuple[str, int, int]]) -> list[Range]:
    """The fewest ranges that hold these (gateway, boot, seq)."""
    sets: dict[Boot, Ranges] = {}
    for gateway, boot, seq in identities:
        sets.setdefault((gateway, boot), Ranges()).add(seq, seq)
    return [(g, b, first, last) for (g, b), ranges in sets.items() for first, last in ranges]
