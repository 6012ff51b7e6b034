"""Ledger of the numbers of each gateway: finds repeats, and the number up to which everything has landed.

Per (gateway, boot) the numbers form a few disjoint ranges, usually one. A number is *pending* once admitted and *landed*
once durable; acknowledgements and frontiers use landed numbers only. Pure; O(log ranges) a run of numbers.

Memory is bounded for each gateway and in all. A gateway that starts again and again closes its earliest boots: of these the
ledger keeps the boot's number alone, and what still arrives of them is refused. What is refused is not acknowledged, so it
stays in the gateway's spool.
"""

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable
from heapq import nlargest

from whenabouts_cloud.landing.ranges import Boot, Range, Ranges, runs

MAX_RANGES = 4096  # of one boot: a gateway numbers without gaps, so more is an error or an attack
MAX_GATEWAY_RANGES = 16_384  # of all boots of one gateway; an ordinary boot is one range
MAX_ALL_RANGES = 250_000  # of all gateways; some 400 bytes each
MAX_CLOSED_BOOTS = 65_536  # of one gateway
MAX_ALL_CLOSED_BOOTS = 2_000_000  # of all gateways; 8 bytes each
LEAST_RANGES = 64  # a gateway keeps so many when all gateways together are at the limit
CLOSED_PART = 64  # of its ranges a gateway then gives a 64th at a time, so that it is not looked for again each time


class LedgerFull(Exception):
    """More gaps or boots than a correct gateway makes; the offered numbers are not admitted."""


class Ledger:
    """Pending and landed numbers of all gateways."""

    def __init__(self) -> None:
        self._landed: dict[str, dict[int, Ranges]] = {}  # boots in the order in which they came
        self._pending: dict[Boot, Ranges] = {}
        self._closed: dict[str, array[int]] = {}  # sorted
        self._sizes: dict[str, int] = {}  # ranges of each gateway, at least one a boot
        self._size = self._all_closed = 0

    def admit(self, gateway: str, boot: int, numbers: list[int]) -> list[bool]:
        """Mark the numbers of a message, at least one, as pending; return for each number True if it is new.

        Numbers that close a gap or extend a range are always taken: a gateway at its limit can still recover.

        Raises:
            LedgerFull: more gaps, or more boots, than the limits above. Nothing is admitted.
        """
        landed = self._boot(gateway, boot)
        pending = self._pending.get((gateway, boot)) or Ranges()
        found = runs(numbers)
        gaps = sum(not landed.overlaps(f - 1, n + 1) and not pending.overlaps(f - 1, n + 1) for f, n in found)
        if gaps:
            self._make_room(gateway, boot, len(landed) + len(pending), gaps)
        new = [one for first, last in found for one in self._admit_run(gateway, landed, pending, first, last)]
        if pending:
            self._pending[gateway, boot] = pending
        return new

    def land(self, ranges: Iterable[Range]) -> None:
        """Mark these numbers as landed. Limits do not apply to numbers on disk; see `trim`."""
        touched = set()
        for gateway, boot, first, last in ranges:
            if self._is_closed(gateway, boot):
                continue
            landed = self._landed.setdefault(gateway, {}).setdefault(boot, Ranges())
            before = len(landed)
            landed.add(first, last)
            self._grow(gateway, len(landed) - before)
            touched.add((gateway, boot))
        for gateway, boot in touched & self._pending.keys():
            pending, landed = self._pending[gateway, boot], self._landed[gateway][boot]
            if all(landed.covers(*run) for run in pending):
                self._grow(gateway, -len(pending))
                del self._pending[gateway, boot]

    def reach(self, gateway: str, boot: int, start: int = 0) -> int:
        """The highest number such that it and all from start on have landed; start - 1 for none."""
        landed = self._landed.get(gateway, {}).get(boot)
        return start - 1 if landed is None else landed.reach(start)

    def landed_ranges(self) -> Iterable[Range]:
        """Everything that has landed, for a snapshot."""
        for gateway, boots in self._landed.items():
            for boot, ranges in boots.items():
                for first, last in ranges:
                    yield gateway, boot, first, last

    def closed_boots(self) -> dict[str, list[int]]:
        """The closed boots of each gateway, for a snapshot."""
        return {gateway: boots.tolist() for gateway, boots in self._closed.items()}

    def close_boots(self, gateway: str, boots: Iterable[int]) -> None:
        """Close these boots: their ranges are forgotten, and what still arrives of them is refused."""
        for boot in boots:
            if self._is_closed(gateway, boot):
                continue
            forgotten = self._landed.get(gateway, {}).pop(boot, None)
            self._grow(gateway, -len(forgotten or ()))
            insort(self._closed.setdefault(gateway, array("q")), boot)
            self._all_closed += 1

    def trim(self) -> None:
        """Close the earliest boots of each gateway that holds more than its share, after numbers on disk were read."""
        for gateway in list(self._landed):
            while self._sizes.get(gateway, 0) > MAX_GATEWAY_RANGES and self._can_close(gateway):
                self._close_earliest(gateway)

    def _boot(self, gateway: str, boot: int) -> Ranges:
        """The landed numbers of a boot.

        Raises:
            LedgerFull: the boot is closed.
        """
        if self._is_closed(gateway, boot):
            raise LedgerFull(f"found boot {boot} of {gateway}, which is closed: too many boots came after it")
        return self._landed.get(gateway, {}).get(boot) or Ranges()

    def _admit_run(self, gateway: str, landed: Ranges, pending: Ranges, first: int, last: int) -> list[bool]:
        size = last + 1 - first
        if landed.covers(first, last):
            return [False] * size
        known = landed.overlaps(first, last) or pending.overlaps(first, last)
        new = [n not in landed and n not in pending for n in range(first, last + 1)] if known else [True] * size
        before = len(pending)
        pending.add(first, last)
        self._grow(gateway, len(pending) - before)
        return new

    def _make_room(self, gateway: str, boot: int, ranges: int, gaps: int) -> None:
        """Make room for so many new ranges of a boot, if there is, or if earlier boots can be closed.

        Raises:
            LedgerFull: there is none.
        """
        if ranges + gaps > MAX_RANGES:
            raise LedgerFull(f"found {ranges} gaps in the numbers of {gateway} boot {boot}, expected nearly none")
        while self._sizes.get(gateway, 0) + gaps > MAX_GATEWAY_RANGES:
            if not self._can_close(gateway, boot):
                raise LedgerFull(
                    f"found more than {MAX_GATEWAY_RANGES} gaps in the numbers of all boots of {gateway}, "
                    "expected nearly none"
                )
            self._close_earliest(gateway)
        while self._size + gaps > MAX_ALL_RANGES:
            largest = self._largest(gateway, boot)
            if largest is None:
                raise LedgerFull(
                    f"found more than {MAX_ALL_RANGES} boots and gaps of all gateways; start a new landing"
                )
            least = max(self._sizes[largest] - self._sizes[largest] // CLOSED_PART - 1, LEAST_RANGES)
            while self._sizes[largest] > least and self._can_close(largest, boot if largest == gateway else None):
                self._close_earliest(largest)

    def _largest(self, gateway: str, boot: int) -> str | None:
        """The gateway with the most ranges, of those that can give some; None if there is none. boot: stays open."""
        for one in nlargest(8, self._sizes, key=self._sizes.__getitem__):
            if self._sizes[one] > LEAST_RANGES and self._can_close(one, boot if one == gateway else None):
                return one
        return None

    def _can_close(self, gateway: str, boot: int | None = None) -> bool:
        """True if the earliest boot is another one, has nothing pending, and may be remembered as closed."""
        earliest = next(iter(self._landed.get(gateway, ())), None)
        return (
            earliest not in (boot, None)
            and (gateway, earliest) not in self._pending
            and len(self._closed.get(gateway, ())) < MAX_CLOSED_BOOTS
            and self._all_closed < MAX_ALL_CLOSED_BOOTS
        )

    def _close_earliest(self, gateway: str) -> None:
        self.close_boots(gateway, [next(iter(self._landed[gateway]))])

    def _is_closed(self, gateway: str, boot: int) -> bool:
        closed = self._closed.get(gateway)
        if closed is None:
            return False
        at = bisect_left(closed, boot)
        return at < len(closed) and closed[at] == boot

    def _grow(self, gateway: str, ranges: int) -> None:
        self._sizes[gateway] = self._sizes.get(gateway, 0) + ranges
        self._size += ranges


def ledger_name(site: str, gateway: str) -> str:
    """Name of a gateway in the ledger; with the site, as names are unique only in a group and a landing may hold several."""
    return f"{site}/{gateway}"
