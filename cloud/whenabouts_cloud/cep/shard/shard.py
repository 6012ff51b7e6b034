"""The shard of a rule about events in an order (`shard.Shard`).

The frontier of the rule is the least of its streams' frontiers, each moved by its stream's OFFSET (`StreamFrontier`:
watermarks of the gateways, with DELAY as a cap). It moves only by watermarks, so a match that waits for the end of its
window is emitted even if no event comes. An event that ended before the frontier is late: it goes to the side output and has
no effect.

In order CAUSAL an event waits for the next step: the state reading that announces its view (`views`) landed before it, but
may be listed only then. It waits on while its view is unknown, at most until the frontier is about to pass it. By then all
earlier readings of its gateway have landed, so the view will not be announced: the event is fed without a place in a group.

At a limit of the engine (stored events, waiting matches), new events go to the side output with the reason "limit", and
results are those without them until the frontier makes room. More matches than one block may emit are emitted in parts.

Cost: the engine's, and sorting the identities of the stored events once a step.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from whenabouts_cloud.blobs import joined, of_bytes, parted, to_bytes
from whenabouts_cloud.cep.methods import engine
from whenabouts_cloud.cep.runtime.infa_hts import EngineLimitError
from whenabouts_cloud.cep.runtime.output import Out
from whenabouts_cloud.cep.shard.events import Floats, Ints, beyond_time, columns_of, moved, schema_of
from whenabouts_cloud.cep.shard.identities import Identities
from whenabouts_cloud.cep.shard.results import RESULT, match_rows
from whenabouts_cloud.cep.shard.views import RUN, Views
from whenabouts_cloud.frontier.gateways import Watermark, gateways_of
from whenabouts_cloud.frontier.rule import RuleFrontier
from whenabouts_cloud.rules.model import CepRule
from whenabouts_cloud.shard import StepOutput, late_rows

_COUNTED = {"match": "matches", "retracted": "retracted", "late added": "late_added", "late removed": "late_removed"}
NO_BOUND_US = 1 << 60  # as K: an event's own time sets no bound for later ones


class CepShard:
    """The engine of one rule and key shard, the identities of its events, and the frontiers of its streams."""

    def __init__(self, rule: CepRule) -> None:
        self._rule, self._plan = rule, rule.plan()
        self._engine = engine(
            self._plan, rule.type_names, emit=rule.pattern.emit, method="infa_hts", order="kbound", k=NO_BOUND_US
        )
        self._stored = Identities(rule)
        self._frontier = RuleFrontier(rule)
        self._views = Views() if self._plan.mode == "causal" else None
        self._waiting = schema_of(self._plan).empty_table()  # events that wait for their views
        self._ungrouped: set[str] = set()
        self._full = ""  # the limit that was reached
        self.counts: Counter[str] = Counter()

    def step(self, tables: Mapping[str, pa.Table], watermarks: Sequence[Iterable[Watermark]]) -> StepOutput:
        """Return the matches that the table "events" (`events.schema_of`) or the watermarks of the step before complete.

        For CAUSAL there may be a table "views" (`views.RUN`). `effects` are the matches that late events would have made
        ("late added") or prevented ("late removed") among stored events.
        """
        events = tables["events"]
        beyond = beyond_time(events)
        side_output = [with_reason(events.filter(pa.array(beyond)), "beyond time")] if beyond.any() else []
        if beyond.any():
            events = events.filter(pa.array(~beyond))
        before = self._frontier.value_us
        self._frontier.note_watermarks(events, watermarks)
        frontier = self._frontier.value_us
        if self._views is not None:
            events = self._decided(self._views, events, tables.get("views"), frontier)
        emitted, late, effects = self._feed(events, before)
        if frontier is not None:
            out = self._engine.advance(frontier)
            emitted += self._emitted(out)
            self._stored.keep_from(frontier - self._plan.longest - self._plan.window, self._engine.waiting_events())
        self.counts["beyond_time"] += int(beyond.sum())
        none = RESULT.empty_table()
        late = late_rows(self._rule.name, pa.concat_tables([*side_output, late]))
        return StepOutput(pa.concat_tables([none, *emitted]), self.state(), late, pa.concat_tables([none, *effects]))

    def state(self) -> dict[str, Any]:
        """Counts since the shard was created or restored, and its current state, as JSON values."""
        return {
            **self.counts,
            "rows_kept": len(self._stored) + self._waiting.num_rows,
            "keys_kept": self._engine.counters["keys"],
            "ungrouped_at": sorted(self._ungrouped),
            "full": self._full,
            **self._frontier.state(),
        }

    def snapshot(self) -> bytes:
        """The whole state: the engine's arrays, identities and views as Arrow IPC, frontiers as JSON."""
        views = [] if self._views is None else [to_bytes(self._views.table()), to_bytes(self._waiting)]
        return joined([self._engine.snapshot(), self._stored.snapshot(), self._frontier.snapshot(), *views])

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot of the same rule.

        Raises:
            ValueError: another version wrote the snapshot.
        """
        stored, identities, frontier, *views = parted(snapshot)
        self._engine = engine.restore(stored)
        self._stored.restore(identities)
        self._frontier.restore(frontier)
        if self._views is not None:
            self._views.add(of_bytes(views[0]))
            self._waiting = of_bytes(views[1])

    def _decided(self, views: Views, events: pa.Table, more: pa.Table | None, frontier: int | None) -> pa.Table:
        """Return the new and waiting events that need not wait for their view; the others wait on."""
        views.add(RUN.empty_table() if more is None else more)
        waited = self._waiting.num_rows
        events = pa.concat_tables([self._waiting, events]).unify_dictionaries().combine_chunks()
        known = views.known(events) & (np.arange(events.num_rows) < waited)
        if frontier is not None:
            known |= moved(self._rule, events["type"].to_numpy(), events["t_max"].to_numpy()) < frontier
        self._waiting = events.filter(pa.array(~known))
        return events if known.all() else events.filter(pa.array(known))

    def _feed(self, events: pa.Table, frontier: int | None) -> tuple[list[pa.Table], pa.Table, list[pa.Table]]:
        rows, keys = self._stored.add(events)
        self.counts["repeats"] += events.num_rows - len(rows)
        self.counts["readings"] += len(rows)
        if not len(rows):
            return [], with_reason(events.slice(0, 0), "late"), []
        if len(rows) < events.num_rows:
            events = events.take(pa.array(rows))
        types, t, t_max, attributes = columns_of(self._rule, self._plan, events)
        lengths = np.zeros(len(t), np.int64) if t_max is None else t_max - t
        self.counts["beyond_length"] += int((lengths > self._plan.longest).sum())
        clocks = None if self._views is None else self._views.clocks_of(events)
        if clocks is not None and (clocks.process < 0).any():
            ungrouped = events.filter(pa.array(clocks.process < 0))
            self.counts["ungrouped"] += ungrouped.num_rows
            self._ungrouped.update(gateways_of(ungrouped))
        emitted, effects = [], []
        first, taken = self._stored.next - len(rows), 0
        gone: list[Ints] = []
        while taken < len(rows) and not self._engine.full:
            part = slice(taken, None)
            try:
                out = self._engine.feed(
                    types[part], keys[part], t[part], t_max=None if t_max is None else t_max[part],
                    attributes={name: x[part] for name, x in attributes.items()},
                    clocks=None if clocks is None else clocks.take(part),
                )  # fmt: skip
                taken = len(rows)
            except EngineLimitError as met:  # too many matches in one block: continue; or the engine is full
                out = met.out
                taken += met.taken
            gone.append(out.late - first)
            emitted += self._emitted(out)
            effects += self._effects(out)
        self._full = self._full or self._engine.full
        at = np.concatenate([*gone, np.arange(taken, len(rows))])
        in_time = np.zeros(len(at), bool) if frontier is None else (t if t_max is None else t_max)[at] >= frontier
        reason = np.where(in_time, "beyond length", "late").astype(object)
        reason[at >= taken] = "limit"
        late = with_reason(events.take(pa.array(at)), reason)
        self.counts["limit"] += len(rows) - taken
        self.counts["late"] += int((reason == "late").sum())
        self._stored.drop_last(len(rows) - taken)
        return emitted, late, effects

    def _emitted(self, out: Out) -> list[pa.Table]:
        return self._rows(out.matches, "match", out.probability) + self._rows(out.retractions, "retracted")

    def _effects(self, out: Out) -> list[pa.Table]:
        """Matches of stored events that late events would have added or removed."""
        effects = [(out.late_added, "late added"), (out.late_removed, "late removed")]
        known = [(rows[self._stored.holds(rows).all(axis=1)], status) for rows, status in effects]
        return [table for rows, status in known for table in self._rows(rows, status)]

    def _rows(self, matches: Ints, status: str, probability: Floats | None = None) -> list[pa.Table]:
        """Rows of RESULT for matches, given as numbers of stored events."""
        if not len(matches):
            return []
        self.counts[_COUNTED[status]] += len(matches)
        events, at = self._stored.rows_of(matches)
        return [match_rows(self._rule, at, events, status, probability)]


def with_reason(events: pa.Table, reason: Any) -> pa.Table:
    return events.append_column("reason", pa.array(np.full(events.num_rows, reason, object), pa.string()))
