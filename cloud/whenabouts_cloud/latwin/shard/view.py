"""One view of one group under a rule: its processes, its waiting reports and its emitted verdicts.

Reports wait until the frontier has passed them and are then processed in `processing_order`, so verdicts depend
only on the set of states and watermarks (`frontier.processes`). With EAGER the waiting reports are examined as well, in
the order as far as it is known, and only those before which nothing can be missing: verdicts found there are emitted
early. An early DEFINITELY is never retracted; another verdict is, if a later step finds it neither among the waiting
reports nor at its final place.

A process is bound to the gateway whose report comes first. Another gateway of the view whose readings the same stream
covers, and a gateway that two streams cover, are mistakes in the rule: ignored, counted and reported. A view is complete
when each process is bound, each to another gateway. No gateway can complete a view alone.

Limit: MAX_WAITING reports wait. Beyond, those from the future are dropped, as they would keep others from waiting; then
the first of the order are processed at once. In an incomplete view the oldest are dropped.
"""

import operator
from collections import Counter
from typing import Any

from whenabouts_cloud.frontier.boots import BootWatermarks
from whenabouts_cloud.frontier.processes import group_frontier, process_frontiers, silent_processes
from whenabouts_cloud.frontier.times import AHEAD_US, FURTHEST_US, NEVER_US
from whenabouts_cloud.latwin.shard.occurrence import Occurrence
from whenabouts_cloud.latwin.shard.processing_order import MissingStates, OrderedItem, in_order
from whenabouts_cloud.latwin.shard.report import Report, Source
from whenabouts_cloud.latwin.shard.watch import WatchPlan, report_of

MAX_WAITING = 1024  # reports of a view that wait after a step; beyond, the first of the order are processed at once
MAX_GAPS = 8  # gaps of a process that are remembered, so that their states are recognised as late
MAX_EARLY = 256  # verdicts emitted early that wait for their final place; beyond, verdicts come at that place only

VerdictChange = tuple[Occurrence, str]
"""A verdict, and "emitted" or "retracted"."""

_BY_NUMBER = operator.attrgetter("number", "is_heartbeat", "place")


class View:
    """Takes the states of one view, and gives verdicts."""

    def __init__(self, plan: WatchPlan) -> None:
        self._plan, self._rule = plan, plan.rule
        self._watch = plan.watch()
        n = len(self._rule.streams)
        self._delays_us = [stream.delay_us for stream in self._rule.streams]
        self._offsets_us = [stream.offset_us for stream in self._rule.streams]
        self.names: list[str] = [""] * n
        self._process = [-1] * n
        self._width = -1
        self._waiting: list[dict[tuple[int, int], Report]] = [{} for _ in range(n)]
        self._following = [0] * n
        self._taken: list[list[int]] = [[-1, -1] for _ in range(n)]  # boot and seq of the latest that was processed
        self._given_up: list[list[list[int]]] = [[] for _ in range(n)]  # the latest gaps: first and last state
        # Boot and seq of the first report, when its view began at the earliest, its hi; boot and seq of the last, 1 if that
        # is of an earlier start.
        self._ends: list[list[int]] = [[] for _ in range(n)]
        self._left_us = [FURTHEST_US] * n  # the least hi of reports in later views
        # Boot and seq of the first report in later views, and when that view began at the earliest.
        self._next: list[list[int]] = [[FURTHEST_US, 0, FURTHEST_US] for _ in range(n)]
        self._now_us = NEVER_US
        self._early: dict[Occurrence, None] = {}
        self.newest_us = NEVER_US
        self.mistakes: set[str] = set()
        self.counts: Counter[str] = Counter()

    def add(self, source: Source, report: Report) -> None:
        """Takes a report; repeated and late ones, and those of wrong gateways, are counted."""
        slot = report.slot
        if not self._bound(source, report):
            return
        if [*report.place] <= self._taken[slot] or report.place in self._waiting[slot]:
            given_up = any(first <= report.number <= last for first, last in self._given_up[slot])
            self.counts["late" if given_up and not report.is_heartbeat else "repeats"] += 1
            return
        if report.number < self._following[slot] - report.is_heartbeat:
            self.counts["late"] += 1
            return
        if report.timed and report.hi < self._now_us:
            self.counts["late"] += 1
        self.counts["beyond_time"] += not report.timed
        self.counts["readings"] += 1
        self._waiting[slot][report.place] = report
        self.newest_us = max(self.newest_us, report.hi if report.timed else NEVER_US)
        place, ends = [*report.place], self._ends[slot]
        last = [*place, int(report.is_earlier)]
        first = [*place, _since_us(report), report.hi]
        self._ends[slot] = [*min(ends[:4], first), *max(ends[4:], last)] if ends else [*first, *last]

    def note_other_view(self, source: Source, report: Report, other: "View") -> None:
        """Notes a gateway's report in another view: it left this view for that one, or that one for this."""
        for slot, name in enumerate(self.names):
            ends = self._ends[slot]
            if name != source.name or not ends:
                continue
            if ends[4:6] < [*report.place]:
                self._leaves(slot, [*report.place, _since_us(report), report.hi])
            elif ends[:2] > [*report.place] and other.names[report.slot] == name:
                other._leaves(report.slot, ends[:4])

    def _leaves(self, slot: int, report: list[int]) -> None:
        """Notes a report of a gateway in a later view: boot, seq, when that view began at the earliest, hi."""
        self._left_us[slot] = min(self._left_us[slot], report[3])
        self._next[slot] = min(self._next[slot], report[:3])

    def step(self, watermarks: BootWatermarks, everything: bool) -> list[VerdictChange]:
        """The verdicts that can be emitted now; `everything`: nothing more will land, so nothing waits."""
        watermarks_us = self._watermarks_us(watermarks)
        frontier_us = group_frontier(watermarks_us, self._delays_us, self._offsets_us)
        self._now_us = max(self._now_us, frontier_us)
        if not self.complete:
            self._drop_oldest()
            return []
        order = self._order()
        if len(order) > MAX_WAITING and self._drop_ahead(len(order) - MAX_WAITING, watermarks_us):
            order = self._order()
        count = self._due_now(order, everything)
        emitted = [
            (verdict, "emitted") for verdict in self._take(order, count, watermarks) if not self._was_emitted(verdict)
        ]
        rest = order[count:]
        if self._rule.emit == "eager" or self._early:
            emitted += self._look_ahead(rest)
        return emitted

    def queues(self) -> list[list[Report]]:
        """The waiting reports, by process and number, with clocks of the rule's processes; each process has reported."""
        process = self._process
        queues = [sorted(one.values(), key=_BY_NUMBER) for one in self._waiting]
        if process == list(range(self._width)):
            return queues
        return [[r._replace(clock=tuple([r.clock[p] for p in process])) for r in queue] for queue in queues]

    @property
    def complete(self) -> bool:
        """True if each stream of the rule has a gateway in this view."""
        return -1 not in self._process

    @property
    def gateways(self) -> set[str]:
        """The gateways that processes are bound to."""
        return {name for name in self.names if name}

    @property
    def began_us(self) -> int:
        """The median of the times at which its gateways began it, so that no wrong clock alone decides; or NEVER_US."""
        first = sorted(ends[3] if ends[3] < FURTHEST_US else NEVER_US for ends in self._ends if ends)
        return first[(len(first) - 1) // 2] if first else NEVER_US

    @property
    def waits(self) -> bool:
        """True if time may change something without further reports."""
        return self.waiting > 0 or self._watch.waits

    @property
    def waiting(self) -> int:
        """Number of waiting reports."""
        return sum(map(len, self._waiting))

    @property
    def streams_without_reports(self) -> list[str]:
        """The streams of which no gateway has reported."""
        return [s.name for s, process in zip(self._rule.streams, self._process, strict=True) if process < 0]

    def silent(self, watermarks: BootWatermarks) -> list[str]:
        """Gateways that are no longer waited for."""
        silent = silent_processes(self._watermarks_us(watermarks), self._offsets_us, self._now_us)
        return [name for name, is_silent in zip(self.names, silent, strict=True) if is_silent]

    def frontiers_us(self, watermarks: BootWatermarks) -> list[int | None]:
        """For each stream the time before which everything of it has landed; None while no gateway has a watermark."""
        return process_frontiers(self._watermarks_us(watermarks), self._delays_us)

    def is_over(self) -> bool:
        """True if the frontier has passed all reports, and DELAY after them."""
        return self._now_us > self.newest_us + max(self._delays_us)

    def take_counts(self) -> Counter[str]:
        """The counts since the last call."""
        counts, self.counts = self.counts, Counter()
        return counts + self._watch.take_counts()

    def snapshot(self) -> list[Any]:
        """Returns the state as JSON values."""
        waiting = [list(one.values()) for one in self._waiting]
        times = [self._left_us, self._next, self._now_us, self.newest_us]
        known = [self.names, self._process, self._width, self._following, self._taken, self._given_up, self._ends]
        return [known, times, waiting, list(self._early), self._watch.snapshot()]

    def restore(self, state: list[Any]) -> None:
        """Continues from a snapshot of a view of the same rule."""
        known, times, waiting, early, watched = state
        self.names, self._process, self._width, self._following, self._taken, self._given_up, self._ends = known
        self._left_us, self._next, self._now_us, self.newest_us = times
        self._waiting = [{one.place: one for one in map(report_of, rows)} for rows in waiting]
        self._early = dict.fromkeys(map(Occurrence.restored, early))
        self._watch.restore(watched)

    def _bound(self, source: Source, report: Report) -> bool:
        """True if the report is from the gateway that its process is bound to; the first report binds it."""
        slot, width = report.slot, len(report.clock)
        if self._width not in (-1, width):
            self.counts["wrong"] += 1
            return False
        if self._process[slot] < 0 and source.process not in self._process and source.name not in self.names:
            self._process[slot], self.names[slot], self._width = source.process, source.name, width
        if (self._process[slot], self.names[slot]) == (source.process, source.name):
            return True
        stream = self._rule.streams[slot].name
        if self._process[slot] < 0:
            taken = source.name in self.names
            bound = self.names.index(source.name) if taken else self._process.index(source.process)
            other = self._rule.streams[bound].name
            self.mistakes.add(f"streams {other} and {stream} both cover {source.name}, expected one gateway for each")
        else:
            self.mistakes.add(f"stream {stream} covers {self.names[slot]} and {source.name}, expected one gateway")
        self.counts["ambiguous"] += 1
        return False

    def _watermarks_us(self, watermarks: BootWatermarks) -> list[int | None]:
        return [watermarks.latest_us(name) if name else None for name in self.names]

    def _drop_ahead(self, surplus: int, watermarks_us: list[int | None]) -> bool:
        """Drop reports beyond what true stamps can be by the watermarks, the furthest first; True if there were any."""
        pairs = zip(watermarks_us, self._offsets_us, strict=True)
        latest_us = max((us + offset_us for us, offset_us in pairs if us is not None), default=FURTHEST_US)
        end_us = latest_us + max(self._delays_us) + AHEAD_US
        ahead = [x for one in self._waiting for x in one.values() if x.timed and x.hi > end_us]
        ahead.sort(key=operator.attrgetter("hi"), reverse=True)
        self._drop(ahead[:surplus], "ahead")
        return bool(ahead)

    def _drop_oldest(self) -> None:
        """Drop the oldest reports beyond MAX_WAITING, while no order is known."""
        surplus = self.waiting - MAX_WAITING
        if surplus > 0:
            reports = sorted((x for one in self._waiting for x in one.values()), key=operator.attrgetter("hi"))
            self._drop(reports[:surplus], "forgotten")

    def _drop(self, reports: list[Report], reason: str) -> None:
        for report in reports:
            del self._waiting[report.slot][report.place]
        self.counts[reason] += len(reports)

    def _order(self) -> list[OrderedItem]:
        return in_order(self.queues(), self._following, self._delays_us, self._rule.causal)

    def _due_now(self, order: list[OrderedItem], everything: bool) -> int:
        """Number of items of the order that are processed in this step."""
        if everything:
            return len(order)
        count = next((n for n, ordered in enumerate(order) if ordered.key >= self._now_us), len(order))
        if len(order) - count > MAX_WAITING:
            self.counts["forced"] += len(order) - MAX_WAITING - count
            return len(order) - MAX_WAITING
        return count

    def _take(self, order: list[OrderedItem], count: int, watermarks: BootWatermarks) -> list[Occurrence]:
        """Processes the first `count` items of the order, with the decisions of time in between."""
        verdicts: list[Occurrence] = []
        if not count and not self._watch.waits:
            return verdicts
        ahead = _EarliestPending(order, len(self.names))

        def lasted(slot: int, us: int, start_us: int) -> bool:
            boot, _, is_earlier = self._ends[slot][4:]
            watermark = None if is_earlier else watermarks.boot_us(self.names[slot], boot)
            if watermark is None or watermark + self._offsets_us[slot] < us:
                return False
            lo, hi = ahead.least(slot)
            return min(self._left_us[slot], hi) >= us and min(self._next[slot][2], lo) > start_us

        passed = NEVER_US
        for ordered in order[:count]:
            if ordered.key > passed:
                if self._watch.due_us(passed) <= ordered.key:
                    verdicts += self._watch.pass_time(ordered.key, lasted)
                passed = ordered.key
            item = ordered.item
            ahead.passed(item.slot)
            if isinstance(item, MissingStates):
                self._watch.cut(item.slot, item.last + 1)
                self._following[item.slot] = item.last + 1
                self._given_up[item.slot] = [*self._given_up[item.slot], [item.first, item.last]][-MAX_GAPS:]
                self.counts["given_up"] += item.last - item.first + 1
                continue
            if not item.is_heartbeat:
                self._following[item.slot] = item.number + 1
            self._taken[item.slot] = max(self._taken[item.slot], [*item.place])
            del self._waiting[item.slot][item.place]
            verdicts += self._watch.take(item)
        if self._watch.waits:
            verdicts += self._watch.pass_time(self._now_us, lasted)
        return verdicts

    def _was_emitted(self, verdict: Occurrence) -> bool:
        """True if the verdict was emitted early; it is then settled."""
        known = verdict in self._early
        self._early.pop(verdict, None)
        return known

    def _look_ahead(self, rest: list[OrderedItem]) -> list[VerdictChange]:
        """Verdicts of waiting reports that can be emitted early, and retractions of earlier ones that do not stand."""
        verdicts: dict[Occurrence, None] = {}
        items = [ordered.item for ordered in rest if ordered.sure]
        if items:
            ahead = self._plan.watch()
            ahead.restore(self._watch.snapshot())
            for item in items:
                assert isinstance(item, Report)  # a gap is never sure
                verdicts |= dict.fromkeys(ahead.take(item))
        retracted = [] if self._rule.by_runs else [verdict for verdict in self._early if verdict not in verdicts]
        for verdict in retracted:
            del self._early[verdict]
        new = [verdict for verdict in verdicts if verdict not in self._early]
        emitted = new[: MAX_EARLY - len(self._early)]  # each is remembered, so that none is emitted twice
        self.counts["early_full"] += len(emitted) < len(new)
        self._early |= dict.fromkeys(emitted)
        return [(verdict, "emitted") for verdict in emitted] + [(verdict, "retracted") for verdict in retracted]


def _since_us(report: Report) -> int:
    """When its gateway began this view at the earliest. Only the first state of the view, with a time, tells it."""
    return report.lo if report.number == 0 and not report.is_heartbeat else NEVER_US


class _EarliestPending:
    """For each process the least lo and hi of the items still to be processed. Clock heartbeats begin no state, and what has
    no stamp that is a time has no lo; missing states may have begun right after the item before them: what a full spool
    refused never lands, and the watermark goes on.
    """

    def __init__(self, order: list[OrderedItem], processes: int) -> None:
        self._least: list[list[tuple[int, int]]] = [[(FURTHEST_US, FURTHEST_US)] for _ in range(processes)]
        before = [NEVER_US] * processes
        spans = []
        for ordered in order:
            item, earlier = ordered.item, before[ordered.item.slot]
            if isinstance(item, Report):
                begins = item.timed and not item.is_heartbeat
                spans.append((item.lo if begins else FURTHEST_US, item.hi))
                before[item.slot] = max(earlier, item.lo)
            else:
                spans.append((earlier, earlier))
        for ordered, (lo, hi) in zip(reversed(order), reversed(spans), strict=True):
            least = self._least[ordered.item.slot]
            least.append((min(lo, least[-1][0]), min(hi, least[-1][1])))

    def passed(self, slot: int) -> None:
        """Removes the next item of a process: it has been processed."""
        self._least[slot].pop()

    def least(self, slot: int) -> tuple[int, int]:
        """The least lo and the least hi of the remaining items of a process."""
        return self._least[slot][-1]
