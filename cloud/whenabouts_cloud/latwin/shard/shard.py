"""Groups of a running rule: takes reports of states and watermarks of gateways, gives verdicts; the unit that drivers keep.

Verdicts are defined by what has landed, not by its arrival. The states of a view are processed in an order that depends
only on them (`processing_order`), each when the frontier of its group has passed it (`view`). DEFINITELY emits every
choice of runs in which each certainly began before the end of every other one (`run_choices`). Other rules emit
verdicts over the windows of a checker that processes the states in this order (`watch`). So a stream of small steps
emits what one batch of everything does, in whatever order files arrive, as long as nothing arrives later than DELAY;
later readings are counted as late.

The views of a group are independent. The newest stays open; an older one is closed when the frontier has passed all its
reports by DELAY, and its reports after that are only counted.

**Only members end a view.** A gateway that is no member can name any view in its readings, but cannot complete it: that
takes a gateway for each stream of the rule. Incomplete views give no verdict and close no complete one. At their limit
goes first a view of which no member of a complete view has reported, then one of the gateway with the most of them. What
waited there is counted as `foreign` if no member had reported, else as `forgotten`.

Stored per group: the ring of its windows or the runs that go on, and waiting reports; some 2 KB with 9 gateways and
windows of 4. Groups without waiting reports are not even unpacked.
"""

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from whenabouts_cloud.blobs import joined, parted
from whenabouts_cloud.frontier.boots import BootWatermarks
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.frontier.rule import frontiers_by_name
from whenabouts_cloud.frontier.times import NEVER_US
from whenabouts_cloud.latwin.shard.report import Report, Source, rows_of
from whenabouts_cloud.latwin.shard.results import table_of, verdict_row
from whenabouts_cloud.latwin.shard.view import View
from whenabouts_cloud.latwin.shard.watch import WatchPlan
from whenabouts_cloud.rules.model import LatwinRule
from whenabouts_cloud.shard import StepOutput

VERSION = 6
MAX_VIEWS = 4  # of a group at a time, complete and incomplete ones each; one is closed to make room
MAX_CLOSED = 16  # closed views that are remembered, so that their later reports are recognised


class LatwinShard:
    """Some groups under one rule, and the watermarks of all gateways."""

    def __init__(self, rule: LatwinRule) -> None:
        self._rule, self._plan = rule, WatchPlan(rule)
        self._groups: dict[str, _Group | bytes] = {}
        self._waits: dict[str, bool] = {}
        self._watermarks = BootWatermarks()
        self._mistakes: set[str] = set()
        self._silent: set[str] = set()
        self._unheard: set[str] = set()
        self._streams_us: dict[str, int] = {}  # the least of the groups of a step
        self.counts: Counter[str] = Counter()

    def step(
        self, tables: Mapping[str, pa.Table], watermarks: Sequence[Iterable[Watermark]], everything: bool = False
    ) -> StepOutput:
        """Returns the verdicts that the table "reports" (REPORT) and the watermarks of the previous step make certain.

        Watermarks are those of all gateways, as one list. A table "invalid" (INVALID) may hold the number of invalid
        states among the readings of the rule's streams. With `everything` no more will land: all watermarks take effect
        now, and nothing waits.
        """
        invalid = tables.get("invalid")
        self.counts["wrong"] += sum(invalid["readings"].to_pylist()) if invalid is not None else 0
        touched: dict[str, _Group] = {}
        for source, report in rows_of(self._rule, tables["reports"]):
            group = touched.get(source.group)
            if group is None:
                group = touched[source.group] = self._group(source.group)
            group.add(source, report)
        self._watermarks.take_effect()
        for some in watermarks:
            self._watermarks.note(some)
        if everything:
            self._watermarks.take_effect()
        for name in [name for name, waits in self._waits.items() if waits]:
            touched.setdefault(name, self._group(name))
        emitted = []
        self._silent, self._unheard, self._streams_us = set(), set(), {}
        for name, group in touched.items():
            emitted += group.step(name, self._watermarks, everything)
            self._waits[name] = group.waits
            self._account(name, group)
        self.counts["verdicts"] += sum(row["status"] == "emitted" for row in emitted)
        self.counts["retracted"] += sum(row["status"] == "retracted" for row in emitted)
        return StepOutput(table_of(emitted), self.state())

    def state(self) -> dict[str, Any]:
        """Returns the counters since the shard was made or restored, and its current state, as JSON values."""
        unpacked = [group for group in self._groups.values() if isinstance(group, _Group)]
        return {
            "readings": 0,
            "repeats": 0,
            **self.counts,
            "rows_kept": sum(group.waiting for group in unpacked),
            "groups": len(self._groups),
            "streams_us": self._streams_us,
            "silent": sorted(self._silent),
            "unheard": sorted(self._unheard),
            "mistakes": sorted(self._mistakes),
        }

    def snapshot(self) -> bytes:
        """Returns the whole state."""
        blobs = [group if isinstance(group, bytes) else group.snapshot() for group in self._groups.values()]
        waits = [[name, self._waits[name]] for name in self._groups]
        return joined([json.dumps([VERSION, waits, self._watermarks.snapshot()]).encode(), *blobs])

    def restore(self, snapshot: bytes) -> None:
        """Continues from a snapshot of the same rule.

        Raises:
            ValueError: another version wrote it.
        """
        head, *blobs = parted(snapshot)
        version, waits, watermarks = json.loads(head)
        if version != VERSION:
            raise ValueError(f"snapshot of a group: found version {version}, expected {VERSION}")
        self._watermarks.restore(watermarks)
        self._waits = dict(waits)
        self._groups = dict(zip(self._waits, blobs, strict=True))

    def _group(self, name: str) -> "_Group":
        group = self._groups.get(name)
        if not isinstance(group, _Group):
            packed, group = group, _Group(self._plan)
            if packed is not None:
                group.restore(packed)
            self._groups[name] = group
        return group

    def _account(self, name: str, group: "_Group") -> None:
        self.counts += group.take_counts()
        self._mistakes |= {f"group {name}: {text}" for text in group.mistakes}
        self._silent |= group.silent
        self._unheard |= {f"{name}: {stream}" for stream in group.streams_without_reports}
        for stream, us in group.streams_us.items():
            self._streams_us[stream] = min(us, self._streams_us.get(stream, us))


class _Group:
    """The views of one group."""

    def __init__(self, plan: WatchPlan) -> None:
        self._plan = plan
        self._views: dict[int, View] = {}
        self._closed: list[int] = []
        self._counts: Counter[str] = Counter()
        self.silent: set[str] = set()
        self.streams_without_reports: list[str] = []
        self.streams_us: dict[str, int] = {}
        self.mistakes: set[str] = set()

    def add(self, source: Source, report: Report) -> None:
        view = self._views.get(source.view)
        if view is None:
            if source.view in self._closed:
                self._counts["old_view"] += 1
                return
            view = self._views[source.view] = View(self._plan)
        view.add(source, report)
        self._limit_incomplete()
        if len(self._views) > 1:
            for other in self._views.values():
                if other is not view:
                    other.note_other_view(source, report, view)

    def step(self, name: str, watermarks: BootWatermarks, everything: bool) -> list[dict[str, Any]]:
        emitted = []
        for number, view in self._views.items():
            for verdict, status in view.step(watermarks, everything):
                emitted.append(verdict_row(self._plan.rule, name, number, view.names, verdict, status))
            self.mistakes |= view.mistakes
        self._close()
        newest = self._newest()
        self.silent = set(newest.silent(watermarks)) if newest else set()
        self.streams_without_reports = newest.streams_without_reports if newest else []
        frontiers_us = newest.frontiers_us(watermarks) if newest else [None] * len(self._plan.rule.streams)
        self.streams_us = frontiers_by_name(self._plan.rule.streams, frontiers_us)
        return emitted

    @property
    def waits(self) -> bool:
        return any(view.waits for view in self._views.values())

    @property
    def waiting(self) -> int:
        return sum(view.waiting for view in self._views.values())

    def take_counts(self) -> Counter[str]:
        counts, self._counts = self._counts, Counter()
        for view in self._views.values():
            counts += view.take_counts()
        return counts

    def snapshot(self) -> bytes:
        views = {str(number): view.snapshot() for number, view in self._views.items()}
        return zlib.compress(json.dumps([views, self._closed], separators=(",", ":")).encode(), 1)

    def restore(self, packed: bytes) -> None:
        views, self._closed = json.loads(zlib.decompress(packed))
        for number, state in views.items():
            self._views[int(number)] = View(self._plan)
            self._views[int(number)].restore(state)

    def _newest(self) -> View | None:
        views = self._views.values()
        return max(views, key=lambda view: (view.complete, view.began_us), default=None)

    def _close(self) -> None:
        """Close views that are over, and the oldest complete ones beyond MAX_VIEWS."""
        by_age = sorted(self._views, key=lambda number: self._views[number].began_us)
        complete = [number for number in by_age if self._views[number].complete]
        for number in complete[:-MAX_VIEWS]:
            self._end(number)
            self._closed.append(number)
        newest = complete[-1:]
        older = by_age[: by_age.index(newest[0])] if newest else []
        for number in older:
            view = self._views.get(number)
            if view is not None and view.is_over() and view.newest_us > NEVER_US:
                self._end(number)
                self._closed += [number] if view.complete or view.gateways & self._members() else []
        del self._closed[:-MAX_CLOSED]

    def _limit_incomplete(self) -> None:
        """Drop incomplete views beyond MAX_VIEWS, those of gateways that are no members and of the busiest gateway first."""
        if len(self._views) <= MAX_VIEWS:
            return
        incomplete = {number: view for number, view in self._views.items() if not view.complete}
        if len(incomplete) <= MAX_VIEWS:
            return
        members, begun = self._members(), Counter(name for view in incomplete.values() for name in view.gateways)

        def worth(number: int) -> tuple[bool, int, int]:
            gateways = incomplete[number].gateways
            return bool(gateways & members), -max((begun[name] for name in gateways), default=0), len(gateways)

        number = min(incomplete, key=worth)
        self._end(number)  # not remembered as closed: if it is a new view of members, further reports begin it anew

    def _members(self) -> set[str]:
        """The gateways of complete views."""
        return {name for view in self._views.values() if view.complete for name in view.gateways}

    def _end(self, number: int) -> None:
        view = self._views.pop(number)
        members = self._members()
        foreign = not view.complete and bool(members) and not view.gateways & members
        self._counts += view.take_counts()
        self._counts["foreign" if foreign else "forgotten"] += view.waiting
        self._counts["views_closed"] += not foreign
