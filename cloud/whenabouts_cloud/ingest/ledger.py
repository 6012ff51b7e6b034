"""Ledger of the numbers of each gateway: finds repeats, and the number up to which everything has landed.

Per (gateway, boot) the numbers form a few disjoint ranges, usually one. A number is *seen* once admitted and *landed* once
durable; acknowledgements and frontiers use landed numbers only. Pure; O(log ranges) a run of numbers.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator

Boot = tuple[str, int]  # (name of the gateway in the ledger, boot)
Range = tuple[str, int, int, int]  # gateway, boot, first, last

MAX_RANGES = 4096  # of one boot: a gateway numbers without gaps, so more is an error or an attack
MAX_BOOTS = 1_000_000  # of all gateways; an ordinary boot takes some 800 bytes
MAX_GATEWAY_BOOTS = 65536  # of one gateway, so that none can use up what all share


class LedgerFull(Exception):
    """More gaps or boots than a correct gateway makes; the offered numbers are not admitted."""


class Ranges:
    """A set of non-negative integers as sorted, disjoint, non-adjacent closed ranges."""

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


class Ledger:
    """Seen and landed numbers of all gateways."""

    def __init__(self) -> None:
        self._seen: dict[Boot, Ranges] = {}
        self._landed: dict[Boot, Ranges] = {}
        self._boots: Counter[str] = Counter()  # number of boots of each gateway

    def admit(self, gateway: str, boot: int, numbers: list[int]) -> list[bool]:
        """Mark the numbers of a message, at least one, as seen; return for each number True if it is new.

        Numbers that close a gap or extend a range are always taken: a gateway at its limit can still recover.

        Raises:
            LedgerFull: more gaps than MAX_RANGES, or more boots than MAX_GATEWAY_BOOTS or MAX_BOOTS. Nothing is admitted.
        """
        seen = self._seen.get((gateway, boot))
        if seen is None:
            self._check_room(gateway)
            seen = Ranges()
        runs = _runs(numbers)
        if len(seen) + sum(not seen.overlaps(first - 1, last + 1) for first, last in runs) > MAX_RANGES:
            raise LedgerFull(f"found {len(seen)} gaps in the numbers of {gateway} boot {boot}, expected nearly none")
        if (gateway, boot) not in self._seen:
            self._open(gateway, boot, seen)
        new: list[bool] = []
        for first, last in runs:
            if not seen.overlaps(first, last):
                new.extend([True] * (last + 1 - first))
            elif seen.covers(first, last):
                new.extend([False] * (last + 1 - first))
            else:
                new.extend([number not in seen for number in range(first, last + 1)])
            seen.add(first, last)
        return new

    def land(self, ranges: Iterable[Range]) -> None:
        """Mark these numbers as landed. Limits do not apply to numbers on disk."""
        for gateway, boot, first, last in ranges:
            if (gateway, boot) not in self._seen:
                self._open(gateway, boot, Ranges())
            self._seen[gateway, boot].add(first, last)
            self._landed.setdefault((gateway, boot), Ranges()).add(first, last)

    def forget_before(self, gateway: str, boot: int, first: int) -> None:
        """Mark numbers below first as landed: the gateway no longer keeps them, they landed here or in an earlier landing.

        Raises:
            LedgerFull: as for `admit`.
        """
        if first <= 0:
            return
        if (gateway, boot) not in self._seen:
            self._check_room(gateway)
        self.land([(gateway, boot, 0, first - 1)])

    def reach(self, gateway: str, boot: int) -> int:
        """Highest number up to which all have landed, -1 for none."""
        landed = self._landed.get((gateway, boot))
        return -1 if landed is None else landed.reach()

    def landed_ranges(self) -> list[Range]:
        """Everything that has landed, for a snapshot."""
        return [(g, b, first, last) for (g, b), ranges in self._landed.items() for first, last in ranges]

    def _check_room(self, gateway: str) -> None:
        if self._boots[gateway] >= MAX_GATEWAY_BOOTS:
            raise LedgerFull(
                f"found more than {MAX_GATEWAY_BOOTS} boots of {gateway}, expected one for each start of its agent"
            )
        if len(self._seen) >= MAX_BOOTS:
            raise LedgerFull(f"found more than {MAX_BOOTS} boots of all gateways; start a new landing")

    def _open(self, gateway: str, boot: int, ranges: Ranges) -> None:
        self._seen[gateway, boot] = ranges
        self._boots[gateway] += 1


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Split numbers, in their order, into runs (first, last) that count up by one."""
    if numbers == list(range(numbers[0], numbers[0] + len(numbers))):  # nearly always
        return [(numbers[0], numbers[-1])]
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def as_ranges(identities: Iterable[tuple[str, int, int]]) -> list[Range]:
    """The fewest ranges that hold these (gateway, boot, seq)."""
    numbers: dict[Boot, list[int]] = {}
    for gateway, boot, seq in identities:
        numbers.setdefault((gateway, boot), []).append(seq)
    return [(g, b, first, last) for (g, b), of_boot in numbers.items() for first, last in _runs(sorted(set(of_boot)))]


def ledger_name(site: str, gateway: str) -> str:
    """Name of a gateway in the ledger; with the site, as names are unique only in a group and a landing may hold several."""
    return f"{site}/{gateway}"
