"""The order in which the states of a group are taken: one that depends on the states alone, however they arrive.

e => f: e happened before f by the clocks, or the latest time of e is before the earliest of f, or transitively; CAUSAL
looks at clocks alone. The key of a report is the latest `hi` of all that is before it in => and of itself, and reports are
taken by key; of equal keys by the longest chain of that key before them, then by hi, lo, process and number. So

  - the order extends =>: a key is at least that of each predecessor, and of equal ones the longer chain comes later;
  - while nothing with hi < f is still to land, everything with a key below f is known and nothing else will get such a key:
    what is taken at a frontier f continues what was taken at any earlier one. A stream takes what one batch takes. This
    holds as long as a clock-only report does not land after a later report of its gateway: a state that is missing shows by
    its number, a clock-only report does not, and one with a hi above f can still raise the key of the state behind it.

A state that is missing although another report knows of it, or a later one of its gateway, is waited for: until DELAY of its
stream after the earliest `hi` of those that know it. Then it is given up, and its gateway begins a new epoch with the next.

Cost: about 10 us a report, more while many stamps overlap.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from whenabouts_cloud.frontier.times import FURTHEST_US
from whenabouts_cloud.latwin.shard.report import Report


class Gap(NamedTuple):
    """States of a process that are given up: first to last. They had begun at `begun_us`, and are waited for until
    `until_us`."""

    slot: int
    first: int
    last: int
    begun_us: int
    until_us: int


class Taken(NamedTuple):
    """What comes next in the order. `sure`: nothing before it is a gap that may still be filled."""

    key: int
    rank: int
    item: Report | Gap
    sure: bool


class _Place(NamedTuple):
    """What later reports must know of one that is before them."""

    hi: int
    key: int
    rank: int
    sure: bool


def in_order(
    waiting: Sequence[Sequence[Report]], following: Sequence[int], delays_us: Sequence[int], causal: bool
) -> list[Taken]:
    """All that waits, in the order in which it will be taken as far as is known.

    Args:
        waiting: for each process its reports by number, clock-only ones after the state they are of; clocks have an entry
            for each process.
        following: the number of the state of each process that comes next.
        delays_us: how long a missing state of each process is waited for.
        causal: whether stamps order nothing.
    """
    return _Order(_with_gaps(waiting, following, delays_us), following, causal).taken()


class _Order:
    """Goes through what waits in some order that extends =>, by lo among what is ready, and finds the keys."""

    def __init__(self, queues: list[list[Report | Gap]], following: Sequence[int], causal: bool) -> None:
        self._queues, self._causal = queues, causal
        self._at = [0] * len(queues)
        self._reached = [number - 1 for number in following]
        self._gone: list[list[_Place]] = [[] for _ in queues]
        self._states: list[dict[int, _Place]] = [{} for _ in queues]
        self._gaps: list[list[tuple[Gap, _Place]]] = [[] for _ in queues]
        self._any_gap = any(isinstance(item, Gap) for queue in queues for item in queue)
        self._peak = -FURTHEST_US - 1
        self._ready: list[tuple[int, int]] = []
        self._blocked: list[list[int]] = [[] for _ in queues]

    def taken(self) -> list[Taken]:
        """The order."""
        found: list[Taken] = []
        for slot in range(len(self._queues)):
            self._offer(slot)
        left = sum(map(len, self._queues))
        while left:
            slot = heapq.heappop(self._ready)[1] if self._ready else self._stuck()
            item = self._queues[slot][self._at[slot]]
            place = self._place(slot, item)
            found.append(Taken(place.key, place.rank, item, place.sure))
            self._note(slot, item, place)
            left -= 1
        found.sort(key=_by)
        return found

    def _offer(self, slot: int) -> None:
        """Puts the head of a queue among what is ready, or behind the process that it waits for."""
        if self._at[slot] == len(self._queues[slot]):
            return
        head = self._queues[slot][self._at[slot]]
        if isinstance(head, Gap):
            heapq.heappush(self._ready, (-FURTHEST_US - 1, slot))
            return
        for other, known in enumerate(head.clock):
            if known > self._reached[other] and known > 0 and other != slot:  # 0 says nothing: all begin there
                self._blocked[other].append(slot)
                return
        heapq.heappush(self._ready, (head.lo, slot))

    def _stuck(self) -> int:
        """Clocks that contradict each other: the head with the least lo goes on all the same."""
        heads = ((q[at], n) for n, (q, at) in enumerate(zip(self._queues, self._at, strict=True)) if at < len(q))
        slot = min((head.lo if isinstance(head, Report) else 0, n) for head, n in heads)[1]
        for waiting in self._blocked:
            if slot in waiting:
                waiting.remove(slot)
        return slot

    def _note(self, slot: int, item: Report | Gap, place: _Place) -> None:
        self._gone[slot].append(place)
        self._peak = max(self._peak, place.key)
        self._at[slot] += 1
        if isinstance(item, Gap):
            self._reached[slot] = item.last
            self._gaps[slot].append((item, place))
        elif not item.evidence:
            self._reached[slot] = item.number
            self._states[slot][item.number] = place
        self._offer(slot)
        freed, self._blocked[slot] = self._blocked[slot], []
        for other in freed:
            self._offer(other)

    def _place(self, slot: int, item: Report | Gap) -> _Place:
        own = self._gone[slot][-1] if self._gone[slot] else None
        if isinstance(item, Gap):
            key, rank = item.until_us, 0
            if own is not None and own.key >= key:
                key, rank = own.key, own.rank + 1
            return _Place(FURTHEST_US, key, rank, False)
        key = item.hi if item.timed else -FURTHEST_US
        if key > self._peak and not self._any_gap:
            return _Place(item.hi, key, 0, True)
        before = [] if own is None else [own]
        named = (self._named(other, known) for other, known in enumerate(item.clock) if other != slot)
        before += [place for place in named if place is not None]
        sure = all(place.sure for place in before)
        rank = 0
        if self._peak >= key:
            if not self._causal and item.timed:
                before += self._earlier(slot, item.lo, max([key, *(place.key for place in before)]))
            key = max([key, *(place.key for place in before)])
            rank = max((place.rank + 1 for place in before if place.key == key), default=0)
        return _Place(item.hi, key, rank, sure)

    def _named(self, slot: int, number: int) -> _Place | None:
        """The place of a state that a clock names, or of the gap that it lies in; None if it was taken before."""
        found = self._states[slot].get(number)
        if found is None and self._gaps[slot]:
            found = next((place for gap, place in self._gaps[slot] if gap.first <= number <= gap.last), None)
        return found

    def _earlier(self, slot: int, lo: int, key: int) -> list[_Place]:
        """Of each other process the latest that ended before lo, where its key matters."""
        found = []
        for other, places in enumerate(self._gone):
            if other == slot:
                continue
            for place in reversed(places):
                if place.key < key:
                    break
                if place.hi < lo:
                    found.append(place)
                    break
        return found


def _by(taken: Taken) -> tuple[int, ...]:
    item = taken.item
    if isinstance(item, Gap):
        return taken.key, taken.rank, FURTHEST_US, FURTHEST_US, item.slot, item.first, 0, 0
    return taken.key, taken.rank, item.hi, item.lo, item.slot, item.number, item.evidence, item.seq


def _with_gaps(
    waiting: Sequence[Sequence[Report]], following: Sequence[int], delays_us: Sequence[int]
) -> list[list[Report | Gap]]:
    """The queues with what is missing in its place."""
    reach = [number - 1 for number in following]
    for slot, queue in enumerate(waiting):
        if queue:
            known = map(max, zip(*(report.clock for report in queue), strict=True))
            reach = [max(a, b) if b else a for a, b in zip(reach, known, strict=True)]
            reach[slot] = max(reach[slot], queue[-1].number)
    found: list[list[Report | Gap]] = []
    for slot, queue in enumerate(waiting):
        numbers = [report.number for report in queue if not report.evidence]
        first, last = following[slot], reach[slot]
        if len(numbers) == last - first + 1:
            found.append(list(queue))
            continue
        pieces = _missing(slot, numbers, first, last, waiting, delays_us[slot])
        present = set(numbers)
        kept = [x for x in queue if not x.evidence or x.number in present or x.number == first - 1]
        found.append(sorted([*kept, *pieces], key=_in_queue))
    return found


def _missing(
    slot: int, numbers: list[int], first: int, last: int, waiting: Sequence[Sequence[Report]], delay_us: int
) -> list[Gap]:
    """Numbers from first to last that are not there, cut where the time changes up to which they are waited for."""
    knowing = sorted((r.clock[slot], r.hi) for queue in waiting for r in queue if r.clock[slot] or r.slot == slot)
    until, earliest = [], FURTHEST_US  # (number, the earliest hi of those that know it or a later one)
    for number, hi in reversed(knowing):
        earliest = min(earliest, hi)
        until.append((number, earliest))
    until.reverse()
    found = []
    present = iter([*sorted(numbers), last + 1])
    begin = first
    for number in present:
        while begin < number:
            reached, known_us = next((n, hi) for n, hi in until if n >= begin)
            end = min(number - 1, reached)
            found.append(Gap(slot, begin, end, known_us, min(known_us + delay_us, FURTHEST_US - 1)))
            begin = end + 1
        begin = number + 1
    return found


def _in_queue(item: Report | Gap) -> tuple[int, int, int]:
    return (item.first, 0, 0) if isinstance(item, Gap) else (item.number, int(item.evidence), item.seq)
