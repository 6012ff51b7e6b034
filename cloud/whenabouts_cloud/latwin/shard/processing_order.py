"""The order in which the states of a group are processed: it depends only on the states, not on their arrival.

e => f: e happened before f by the clocks, or the latest time of e is before the earliest of f, or transitively; CAUSAL
uses clocks only. The key of a report is the latest `hi` of itself and of all reports before it in =>. Reports are
processed by key; of equal keys by the longest chain of that key before them, then by hi, lo, process and number. So

  - the order extends =>: a key is at least that of each predecessor, and of equal ones the longer chain comes later;
  - while nothing with hi < f is still to land, every report with a key below f is known and no other will get such a key:
    the reports processed at a frontier f continue those of any earlier frontier. A stream processes what one batch does.
    This holds unless a clock heartbeat lands after a later report of its gateway: a missing state shows by its number,
    a missing clock heartbeat does not, and one with a hi above f can still raise the key of the state behind it.

A missing state that another report, or a later one of its gateway, knows of is waited for: until DELAY of its stream
after the earliest `hi` of the reports that know it. Then it is given up, and its gateway begins a new epoch with the
next state.

Cost: about 10 us per report, more while many stamps overlap.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from whenabouts_cloud.frontier.times import FURTHEST_US
from whenabouts_cloud.latwin.shard.report import Report


class MissingStates(NamedTuple):
    """States `first` to `last` of a process, which have not landed: begun by `begun_us`, given up at `until_us`."""

    slot: int
    first: int
    last: int
    begun_us: int
    until_us: int


class OrderedItem(NamedTuple):
    """A report, or missing states, with its place in the order; `sure`: no missing state before it can still land."""

    key: int
    rank: int
    item: Report | MissingStates
    sure: bool


class _Place(NamedTuple):
    """The data of an ordered item that the items after it need."""

    hi: int
    key: int
    rank: int
    sure: bool


def in_order(
    waiting: Sequence[Sequence[Report]], following: Sequence[int], delays_us: Sequence[int], causal: bool
) -> list[OrderedItem]:
    """Returns all waiting reports in the order in which they will be processed, as far as it is known.

    Args:
        waiting: for each process its reports by number, clock heartbeats after their state; clocks have an entry for
            each process.
        following: for each process the number of its next state.
        delays_us: how long a missing state of each process is waited for.
        causal: True if stamps order nothing.
    """
    return _Order(_with_gaps(waiting, following, delays_us), following, causal).ordered()


class _Order:
    """Goes through the queues in some order that extends =>, by lo among the items that are ready, and finds the keys."""

    def __init__(self, queues: list[list[Report | MissingStates]], following: Sequence[int], causal: bool) -> None:
        self._queues, self._causal = queues, causal
        self._heads = [0] * len(queues)
        self._reached = [number - 1 for number in following]
        self._ordered: list[list[_Place]] = [[] for _ in queues]
        self._states: list[dict[int, _Place]] = [{} for _ in queues]
        self._gaps: list[list[tuple[MissingStates, _Place]]] = [[] for _ in queues]
        self._any_gap = any(isinstance(item, MissingStates) for queue in queues for item in queue)
        self._peak = -FURTHEST_US - 1
        self._ready: list[tuple[int, int]] = []
        self._blocked: list[list[int]] = [[] for _ in queues]

    def ordered(self) -> list[OrderedItem]:
        """Returns the items in order."""
        order: list[OrderedItem] = []
        for slot in range(len(self._queues)):
            self._enqueue(slot)
        left = sum(map(len, self._queues))
        while left:
            slot = heapq.heappop(self._ready)[1] if self._ready else self._break_cycle()
            item = self._queues[slot][self._heads[slot]]
            place = self._place(slot, item)
            order.append(OrderedItem(place.key, place.rank, item, place.sure))
            self._processed(slot, item, place)
            left -= 1
        order.sort(key=_sort_key)
        return order

    def _enqueue(self, slot: int) -> None:
        """Puts the head of a queue among the ready ones, or behind the process that it waits for."""
        if self._heads[slot] == len(self._queues[slot]):
            return
        head = self._queues[slot][self._heads[slot]]
        if isinstance(head, MissingStates):
            heapq.heappush(self._ready, (-FURTHEST_US - 1, slot))
            return
        for other, known in enumerate(head.clock):
            if known > self._reached[other] and known > 0 and other != slot:  # 0 proves nothing: all begin there
                self._blocked[other].append(slot)
                return
        heapq.heappush(self._ready, (head.lo, slot))

    def _break_cycle(self) -> int:
        """Resolves clocks that contradict each other: returns the process whose head has the least lo, to go on with."""
        queues = enumerate(zip(self._queues, self._heads, strict=True))
        heads = ((queue[head], slot) for slot, (queue, head) in queues if head < len(queue))
        slot = min((item.lo if isinstance(item, Report) else 0, slot) for item, slot in heads)[1]
        for waiting in self._blocked:
            if slot in waiting:
                waiting.remove(slot)
        return slot

    def _processed(self, slot: int, item: Report | MissingStates, place: _Place) -> None:
        """Notes that the head of a queue has its place in the order; enqueues the heads that waited for it."""
        self._ordered[slot].append(place)
        self._peak = max(self._peak, place.key)
        self._heads[slot] += 1
        if isinstance(item, MissingStates):
            self._reached[slot] = item.last
            self._gaps[slot].append((item, place))
        elif not item.is_heartbeat:
            self._reached[slot] = item.number
            self._states[slot][item.number] = place
        self._enqueue(slot)
        freed, self._blocked[slot] = self._blocked[slot], []
        for other in freed:
            self._enqueue(other)

    def _place(self, slot: int, item: Report | MissingStates) -> _Place:
        own = self._ordered[slot][-1] if self._ordered[slot] else None
        if isinstance(item, MissingStates):
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
        """The place of a state that a clock names, or of the gap around it; None if it was processed in an earlier step."""
        named = self._states[slot].get(number)
        if named is None and self._gaps[slot]:
            named = next((place for gap, place in self._gaps[slot] if gap.first <= number <= gap.last), None)
        return named

    def _earlier(self, slot: int, lo: int, key: int) -> list[_Place]:
        """For each other process the latest item whose hi is before lo, where its key matters."""
        latest = []
        for other, places in enumerate(self._ordered):
            if other == slot:
                continue
            for place in reversed(places):
                if place.key < key:
                    break
                if place.hi < lo:
                    latest.append(place)
                    break
        return latest


def _sort_key(ordered: OrderedItem) -> tuple[int, ...]:
    item = ordered.item
    if isinstance(item, MissingStates):
        return ordered.key, ordered.rank, FURTHEST_US, FURTHEST_US, item.slot, item.first, 0, 0, 0
    return ordered.key, ordered.rank, item.hi, item.lo, item.slot, item.number, item.is_heartbeat, *item.place


def _with_gaps(
    waiting: Sequence[Sequence[Report]], following: Sequence[int], delays_us: Sequence[int]
) -> list[list[Report | MissingStates]]:
    """The queues, with gaps in place of missing states."""
    reach = [number - 1 for number in following]
    for slot, queue in enumerate(waiting):
        if queue:
            known = map(max, zip(*(report.clock for report in queue), strict=True))
            reach = [max(a, b) if b else a for a, b in zip(reach, known, strict=True)]
            reach[slot] = max(reach[slot], queue[-1].number)
    queues: list[list[Report | MissingStates]] = []
    for slot, queue in enumerate(waiting):
        numbers = [report.number for report in queue if not report.is_heartbeat]
        first, last = following[slot], reach[slot]
        if len(numbers) == last - first + 1:
            queues.append(list(queue))
            continue
        pieces = _missing(slot, numbers, first, last, waiting, delays_us[slot])
        present = set(numbers)
        kept = [x for x in queue if not x.is_heartbeat or x.number in present or x.number == first - 1]
        queues.append(sorted([*kept, *pieces], key=_queue_key))
    return queues


def _missing(
    slot: int, numbers: list[int], first: int, last: int, waiting: Sequence[Sequence[Report]], delay_us: int
) -> list[MissingStates]:
    """The missing numbers from first to last as gaps, split where the times differ until which they are waited for."""
    knowing = sorted((r.clock[slot], r.hi) for queue in waiting for r in queue if r.clock[slot] or r.slot == slot)
    until, earliest = [], FURTHEST_US  # (number, the earliest hi of the reports that know it or a later one)
    for number, hi in reversed(knowing):
        earliest = min(earliest, hi)
        until.append((number, earliest))
    until.reverse()
    gaps = []
    present = iter([*sorted(numbers), last + 1])
    begin = first
    for number in present:
        while begin < number:
            reached, known_us = next((n, hi) for n, hi in until if n >= begin)
            end = min(number - 1, reached)
            gaps.append(MissingStates(slot, begin, end, known_us, min(known_us + delay_us, FURTHEST_US - 1)))
            begin = end + 1
        begin = number + 1
    return gaps


def _queue_key(item: Report | MissingStates) -> tuple[int, ...]:
    if isinstance(item, MissingStates):
        return item.first, 0, 0, 0
    return item.number, int(item.is_heartbeat), *item.place
