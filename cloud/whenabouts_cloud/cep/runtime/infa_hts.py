"""The engine: takes events as columns, in any order that the disorder bound admits, and returns matches as indices.

A pattern is compiled to tables (`program`). Events are stored by key and class (`hts`). An arriving event starts a search
only where it completes something (`infa`, `search`). A match is emitted as soon as it is final, that is, no event still to
come can invalidate it (`finality`); or at once, and retracted if need be. The loop over the events is machine code
(`kernel`).

Disorder bounds: with `kbound`, no event with t_max < M - k arrives after one with t_max = M; with `source`, the t_max of a
source never falls below the time that the source has reached, by event or heartbeat. Events that violate the bound, or begin
before the frontier by more than the longest stamp, are not stored but reported as late, with the matches of stored events
that they would have added or removed.

Patterns can be added and removed between events. The results for an added pattern are those of an engine with only this
pattern, started at that moment with the frontier and the longest stamp of this engine.

Cost: about 0.1 us an event and core with a match to every second event; 20 to 40 bytes a stored event. With a thousand
patterns over ten types, each event in two thirds of them and a match to every fourth: 0.2 us, and 520 bytes a key more.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from whenabouts_cloud.cep.kernel.arguments import Machine, Setting
from whenabouts_cloud.cep.kernel.block import MANY_USES, advance, feed_block
from whenabouts_cloud.cep.kernel.compile_plans import compile_plans, hold_of
from whenabouts_cloud.cep.kernel.conditions import of_columns
from whenabouts_cloud.cep.kernel.finality import raise_source
from whenabouts_cloud.cep.kernel.layout import (
    CHANGE,
    CHANGE_INDICES,
    DONE,
    FOREVER,
    INTERVAL_WIDTH,
    META,
    MORE_ADDED,
    MORE_CANDIDATES,
    MORE_EMITTED,
    MORE_LATE,
    MORE_NEGATED,
    MORE_NODES,
    MORE_PENDING,
    MORE_POOL,
    MORE_REMOVED,
    MORE_RETRACTED,
    NEVER,
    NODE,
    PENDING,
    PENDING_EVENTS,
    PER_FEED,
    POINT_WIDTH,
    STOPPED,
    Block,
    Results,
)
from whenabouts_cloud.cep.kernel.program import ALTERNATIVE
from whenabouts_cloud.cep.runtime import snapshot, store
from whenabouts_cloud.cep.runtime.active_patterns import Running
from whenabouts_cloud.cep.runtime.deferred import CandidateDecisions
from whenabouts_cloud.cep.runtime.held_clocks import HeldClocks
from whenabouts_cloud.cep.runtime.output import Out
from whenabouts_cloud.cep.runtime.resize_for_patterns import changed
from whenabouts_cloud.cep.runtime.validate import codes, column, moment, times, whole
from whenabouts_cloud.cep.uncertain.causal import Clocks
from whenabouts_cloud.jit import Array
from whenabouts_cloud.pattern.plan import Compilable, Plan, plan_of

Index = np.typing.NDArray[np.int64]
Emit = Literal["sure", "arrival"]
Order = Literal["kbound", "source"]

# Limits are checked when an array must grow. feed then finishes the current event and raises EngineLimitError.
STORED_EVENTS = 1 << 28  # most entries of chains: 8 GB
WAITING_MATCHES = 1 << 24  # most complete matches that are not final: 4 GB
BLOCK_MATCHES = 1 << 26  # most matches that one feed emits: 4 GB
SOURCES = 1 << 16  # most sources
LIVE = 1 << 10  # matches kept for retraction beyond twice the pending ones, before final ones are forgotten


class EngineLimitError(RuntimeError):
    """A limit is reached. `out` has the results of the first `taken` events of the block; the rest was not processed."""

    def __init__(self, what: str, taken: int, out: Out) -> None:
        super().__init__(
            f"{what}; {taken} events of the block are taken in: advance the frontier or narrow the window, feed the rest"
        )
        self.taken, self.out = taken, out


class Engine:
    """Patterns over one stream of events; see the module docstring. Not thread-safe."""

    def __init__(
        self, running: Running, type_names: Sequence[str], emit: Emit, order: Order, k: int,
        sources: Sequence[int] | None, longest: int | None,
    ) -> None:  # fmt: skip
        if order not in ("kbound", "source"):
            raise ValueError(f"order: found {order!r}, expected kbound or source")
        self.type_names, self.emit, self.order, self.k = tuple(type_names), emit, order, k
        for plan in running.plans.values():
            self._check(plan)
        self.running, self._fits = running, True
        self.compiled = c = compile_plans(running.plans, len(self.type_names), longest, running.since)
        self.state = store.new_state(c.classes, c.most, len(c.attributes), 1, c.recent)
        self.scratch = store.new_scratch(len(c.attributes), c.width, len(c.program.uses))
        self.codes: dict[int, int] = {}  # leaf of each source in the tree
        self.candidates = CandidateDecisions(c)
        self.offers = bool(c.program.alternatives[:, ALTERNATIVE.decided_outside].any())
        self.clocks = HeldClocks(running.causal)
        for source in sources or ():
            self._add_source(source, NEVER)

    @property
    def plans(self) -> dict[int, Plan]:
        """The running plans, by the numbers in `Out.pattern`."""
        return dict(self.running.plans)

    @property
    def fed(self) -> int:
        """Number of events fed so far: the index of the next one."""
        return int(self.state.meta[META.fed])

    @property
    def frontier(self) -> int | None:
        """Time before which all events have arrived, None before the first event or frontier."""
        reached = int(self.state.meta[META.frontier])
        return None if reached == NEVER else reached

    @property
    def full(self) -> str:
        """The limit of the state that is reached, "" for none; if one is, only a higher frontier makes room."""
        stored, waiting = int(self.state.meta[META.stored]), int(self.state.meta[META.pending])
        if stored >= STORED_EVENTS:
            return f"stored events: found {stored}, expected at most {STORED_EVENTS}"
        if waiting >= WAITING_MATCHES:
            return f"waiting matches: found {waiting}, expected at most {WAITING_MATCHES}"
        return ""

    def waiting_events(self) -> Array:
        """Indices of the events of all complete matches that may still be emitted or retracted, and -1 for empty places."""
        c, rows = self.compiled, self.state.pending[: int(self.state.meta[META.pending_top])]
        widths = np.array([len(c.plans[number].alternatives[place].classes) for number, place in c.alternatives])
        filled = np.where(rows[:, PENDING.node] >= 0, widths[rows[:, PENDING.alternative]], 0)
        held = rows[:, PENDING_EVENTS + 2 :: 3][np.arange(c.most) < filled[:, None]]
        skips = (one.waiting[:, one.rows_from :].ravel() for one in self.candidates.skippers.values())
        return np.concatenate([held, *skips])

    @property
    def counters(self) -> dict[str, int]:
        """Sizes of the state, and numbers of events fed and late."""
        self._fit()
        return (
            store.counters(self.state)
            | {"patterns": len(self.running.plans)}
            | {"late_events": int(self.state.meta[META.late_total]), "fed_events": self.fed}
        )

    def add(self, pattern: Compilable | Plan) -> int:
        """Add a pattern, which sees the events fed from now on; return its number, which is never reused.

        Rows of matches are as wide as the widest running pattern. Until all events that are stored now are past, the pattern
        shares no chains with those before it.

        Raises:
            ValueError: the pattern cannot run on this engine, or it expects longer stamps than the engine was created for;
                nothing is changed.
        """
        plan = plan_of(pattern, self.type_names)
        self._check(plan)
        compile_plans([plan], len(self.type_names))
        if plan.longest > self.compiled.longest:
            raise ValueError(
                f"longest stamp: found {plan.longest} ticks, expected at most {self.compiled.longest}, for which the engine "
                "was made: lateness and finality depend on it; make the engine with `longest`"
            )
        nodes = self.state.nodes[: int(self.state.meta[META.node_top])]
        latest = int(nodes[nodes[:, NODE.events] > 0, NODE.maximum].max(initial=NEVER))
        self._fits = False
        return self.running.add(plan, self.fed, latest)

    def remove(self, number: int) -> None:
        """Remove a pattern: it emits nothing more, its pending matches are dropped, the state that only it needs is freed.

        Raises:
            ValueError: there is no pattern of this number.
        """
        self.running.remove(number)
        self._fits = False

    def feed(
        self, type_code: Any, key: Any, t: Any, source: Any = None, t_max: Any = None,
        attributes: Mapping[str, Any] | None = None, clocks: Clocks | None = None,
    ) -> Out:  # fmt: skip
        """Feed events in the order of their arrival and return the results.

        Columns of equal length: type codes, keys, t (and t_max) in ticks, sources for order `source`, attributes by name,
        and vector clocks for mode causal.

        Raises:
            ValueError: a column is missing, or has another length, kind or range than expected; no event is stored.
            EngineLimitError: a limit is reached; the events before that point were processed.
        """
        self._fit()
        block = self._block(type_code, key, t, source, t_max, attributes)
        self.clocks.add(clocks, block.t_max if len(block.t_max) else block.t, self._past(self.compiled.hold))
        many = MANY_USES if self.compiled.recent else ()
        return self._run(block, lambda machine, setting: feed_block(machine, block, setting, many))

    def advance(self, frontier: int | Mapping[int, int]) -> Out:
        """Raise the frontier, for all or by source, and return the matches that are final then. It never falls.

        Raises:
            ValueError: a frontier is not a whole number, or by source in order `kbound`; nothing is changed.
        """
        self._fit()
        meta = self.state.meta
        if isinstance(frontier, Mapping):
            if self.order != "source":
                raise ValueError("frontier by source: found order kbound, expected source, or one number for all")
            by_source = {whole("source", source): moment("frontier", at) for source, at in frontier.items()}
            for source, watermark in by_source.items():
                self._add_source(source, FOREVER)
                reached = raise_source(self.state.tree, self.codes[source], min(watermark, FOREVER - 1))
                meta = self.state.meta
            if by_source:
                meta[META.frontier] = max(int(meta[META.frontier]), reached)
        else:
            meta[META.frontier] = max(int(meta[META.frontier]), moment("frontier", frontier))
        return self._run(None, advance)

    def finish(self) -> Out:
        """Return the remaining matches; no more events may be fed."""
        return self.advance(FOREVER)

    def snapshot(self) -> bytes:
        """The state as bytes, for `engine.restore`."""
        self._fit()
        return snapshot.dump(snapshot.Saved(
            self.running, self.type_names, self.emit, self.order, self.k, self.compiled.longest, list(self.codes),
            self.candidates.live, self.candidates.skippers, self.clocks, self.state,
        ))  # fmt: skip

    @classmethod
    def restore(cls, blob: bytes) -> "Engine":
        """Restore an engine from a snapshot.

        Raises:
            ValueError: the bytes are no snapshot, damaged, or one of another version.
        """
        saved = snapshot.load(blob)
        engine = cls(saved.running, saved.type_names, saved.emit, saved.order, saved.k, None, saved.longest)
        engine.state, engine.clocks = saved.state, saved.clocks
        engine.codes = {source: leaf for leaf, source in enumerate(saved.sources)}
        engine.candidates.live, engine.candidates.skippers = saved.live, saved.skippers
        return engine

    def _check(self, plan: Plan) -> None:
        if self.emit == "arrival" and plan.skip != "none":
            raise ValueError(
                "emit: found arrival with an after-match skip, expected sure: skips are known only for final matches"
            )

    def _fit(self) -> None:
        """Adapt tables and arrays to patterns added or removed, and to chains that have become equal."""
        hold = hold_of(self.running.plans.values(), self.compiled.longest)
        settled = self.running.settle(self._past(hold)) if self.running.held else set()
        if self._fits and not settled:
            return
        old, running = self.compiled, self.running
        c = compile_plans(running.plans, len(self.type_names), old.longest, running.since)
        if c.hold > old.hold:
            self.state.meta[META.forgotten] = max(int(self.state.meta[META.forgotten]), self._past(old.hold))
        self.state = changed(self.state, old, c, settled)
        self.scratch = store.new_scratch(len(c.attributes), c.width, len(c.program.uses))
        self.candidates.set_plans(c)
        self.offers = bool(c.program.alternatives[:, ALTERNATIVE.decided_outside].any())
        if running.causal != self.clocks.wanted:
            self.clocks = HeldClocks(running.causal, self.fed)
        self.compiled, self._fits = c, True

    def _block(
        self, type_code: Any, key: Any, t: Any, source: Any, t_max: Any, attributes: Mapping[str, Any] | None
    ) -> Block:
        """Check the columns and make a block of them."""
        begin = times("t", t, None)
        count = len(begin)
        kinds, keys = codes(type_code, count, len(self.type_names)), column("key", key, count)
        end = np.empty(0, np.int64) if t_max is None else times("t_max", t_max, count)
        if len(end):
            if (end < begin).any():
                row = int(np.argmax(end < begin))
                raise ValueError(f"t_max of event {row}: found {end[row]}, expected {begin[row]} or later, its t")
            if self.state.pool.shape[1] == POINT_WIDTH and (end > begin).any():
                self.state = store.more_pool(self.state, INTERVAL_WIDTH)
            elif self.state.pool.shape[1] == POINT_WIDTH:
                end = np.empty(0, np.int64)
        leaves = np.empty(0, np.int64)
        if self.order == "source":
            if source is None:
                raise ValueError("source: found none, expected a column of sources for order source")
            leaves = self._source_places(column("source", source, count))
        columns = self._attributes(attributes or {}, count)
        columns["t_min"], columns["t_max"] = begin, end if len(end) else begin
        stored = np.empty((count, len(self.compiled.attributes)))
        for place, name in enumerate(self.compiled.attributes):
            stored[:, place] = columns[name]
        true = np.zeros((len(self.compiled.conditions), count), np.bool_)
        for row, (types, steps) in enumerate(self.compiled.conditions):
            rows = np.flatnonzero(np.isin(kinds, types))
            true[row, rows] = of_columns(steps, columns, rows)
        frontiers = np.empty(count if self.candidates.skippers else 0, np.int64)
        return Block(kinds, keys, begin, end, leaves, stored, true, frontiers)

    def _attributes(self, attributes: Mapping[str, Any], count: int) -> dict[str, Array]:
        columns: dict[str, Array] = {}
        for name in self.compiled.needed:
            if name not in attributes:
                raise ValueError(
                    f"attributes: found {', '.join(attributes) or 'none'}, expected {name} too, which a condition reads"
                )
            columns[name] = np.ascontiguousarray(attributes[name], np.float64)
            if columns[name].shape != (count,):
                raise ValueError(f"attribute {name}: found shape {columns[name].shape}, expected ({count},)")
        return columns

    def _add_source(self, source: int, watermark: int) -> None:
        """Add a source to the tournament tree; at FOREVER it does not count until its first event or heartbeat."""
        if source in self.codes:
            return
        if len(self.codes) >= SOURCES:
            raise ValueError(f"source {source}: found more than {SOURCES} sources")
        self.codes[source] = len(self.codes)
        self.state = store.more_sources(self.state, len(self.codes))
        if watermark != FOREVER:
            raise_source(self.state.tree, self.codes[source], watermark)

    def _source_places(self, source: Array) -> Array:
        known, inverse = np.unique(source, return_inverse=True)
        for code in known.tolist():
            self._add_source(code, FOREVER)
        return np.array([self.codes[code] for code in known.tolist()], np.int64)[inverse] if len(known) else source

    def _run(self, block: Block | None, step: Callable[[Machine, Setting], Any]) -> Out:
        """Run a kernel until it is done; after each call, enlarge the array that it reports as full."""
        c, meta = self.compiled, self.state.meta
        count = 0 if block is None else len(block.t)
        out = store.new_results(c.width, c.most, len(c.plans), max(store.ROWS, count // 2))
        meta[PER_FEED] = 0
        setting = Setting(c.hold, c.longest, self.k, self.emit == "arrival", self.order == "source")
        limit = ""
        while (wanted := step(Machine(c.program, self.state, out, self.scratch), setting)) not in (DONE, STOPPED):
            limit = limit or self._limit(wanted, out)
            meta[META.stop] = block is not None and limit != ""
            out = self._grow(wanted, out)
        taken = int(meta[META.event])
        emitted = self._out(out, block, taken)
        meta[META.stop] = 0
        if limit and taken < count:
            self.clocks.cut(self.fed)
            raise EngineLimitError(limit, taken, emitted)
        return emitted

    def _limit(self, wanted: int, out: Results) -> str:
        """The limit that is reached, if any."""
        meta = self.state.meta
        if wanted in (MORE_POOL, MORE_PENDING) and self.full:
            return self.full
        rows = int(max(meta[META.emitted], meta[META.candidates]))
        if wanted in (MORE_EMITTED, MORE_CANDIDATES) and rows >= BLOCK_MATCHES:
            return f"matches of one block: found {rows}, expected at most {BLOCK_MATCHES}"
        return ""

    def _past(self, hold: int) -> int:
        """Time before which events can be evicted: an event with t_max below it can be in no later match."""
        return int(self.state.meta[META.frontier]) - 2 * self.compiled.longest - hold

    def _grow(self, wanted: int, out: Results) -> Results:
        if wanted == MORE_NODES:
            self.state = store.more_nodes(self.state)
        elif wanted == MORE_POOL:
            self.state = store.more_pool(self.state)
        elif wanted == MORE_PENDING:
            self.state = store.more_pending(self.state)
        else:
            names = {
                MORE_EMITTED: ("emitted", "emitted_at", "emitted_which"), MORE_LATE: ("late",), MORE_ADDED: ("added",),
                MORE_RETRACTED: ("retracted", "retracted_at", "retracted_which"), MORE_REMOVED: ("removed",),
                MORE_CANDIDATES: ("candidates",), MORE_NEGATED: ("negated",),
            }[wanted]  # fmt: skip
            grown = {name: store.larger(getattr(out, name)) for name in names}
            if len(self.compiled.plans) == 1:
                grown.pop("emitted_which", None)
            out = out._replace(**grown)
        return out

    def _out(self, out: Results, block: Block | None, taken: int) -> Out:
        meta = self.state.meta
        emitted, back, late, added, removed = (
            int(meta[n]) for n in (META.emitted, META.retracted, META.late, META.added, META.removed)
        )
        plans = self.compiled.plans
        which = _cut(out.emitted_which, emitted) if len(plans) > 1 else np.full(emitted, min(plans, default=0))
        parts: list[tuple[Array, ...]] = [
            (_cut(out.emitted, emitted), _cut(out.emitted_at, emitted), which, np.ones(emitted)),
            (_cut(out.retracted, back), _cut(out.retracted_at, back), _cut(out.retracted_which, back), np.ones(back)),
            *(
                (rows[:, CHANGE_INDICES:], rows[:, CHANGE.moment], rows[:, CHANGE.pattern], np.ones(len(rows)))
                for rows in (out.added[:added], out.removed[:removed])
            ),
        ]
        late_ones = _cut(out.late, late)
        if self.offers:
            self._decide(out, block, taken, late_ones, parts)
            parts[:2] = [_sorted(*part) for part in parts[:2]]
        emitted_part, back_part, plus, minus = parts[0], parts[1], _sorted(*parts[2]), _sorted(*parts[3])
        meta[META.fed] += taken
        return Out(
            emitted_part[0], back_part[0], late_ones, emitted_part[1], emitted_part[2], plus[0], minus[0], emitted_part[3],
            back_part[1], back_part[2], plus[1], plus[2], minus[1], minus[2],
        )  # fmt: skip

    def _decide(
        self, out: Results, block: Block | None, taken: int, late: Index, parts: list[tuple[Array, ...]]
    ) -> None:
        """Add the matches decided outside the machine code to those emitted, retracted, added and removed."""
        meta, fed = self.state.meta, self.fed
        stamps = {}
        if block is not None:
            end = block.t_max if len(block.t_max) else block.t
            stamps = {i: (int(block.t[i - fed]), int(end[i - fed])) for i in late.tolist()}
        decided = self.candidates.decide(
            out.candidates[: int(meta[META.candidates])], out.negated[: int(meta[META.negated_events])], stamps,
            self.clocks.known, self.clocks.base,
        )  # fmt: skip
        frontiers = np.empty(0, np.int64) if block is None else block.frontier[:taken]
        skipped = self.candidates.skipped(int(meta[META.frontier]), frontiers, fed)
        for n, more in enumerate((decided.emitted, decided.retracted, decided.added, decided.removed)):
            parts[n] = tuple(np.concatenate([a, b]) for a, b in zip(parts[n], more, strict=True))
        parts[0] = tuple(np.concatenate([a, b]) for a, b in zip(parts[0], skipped, strict=True))
        if len(self.candidates.live) > 2 * int(meta[META.pending]) + LIVE:
            waiting = self.state.pending[: int(meta[META.pending_top])]
            self.candidates.keep_live(waiting[waiting[:, PENDING.node] >= 0, PENDING.serial])


def _cut(rows: Array, count: int) -> Array:
    """The filled rows, copied if at least half of the array is unused."""
    return rows[:count] if count * 2 > len(rows) else rows[:count].copy()


def _sorted(rows: Array, moment: Array, pattern: Array, probability: Array) -> tuple[Array, ...]:
    """Sort by moment, then lexicographically, then by pattern."""
    order = np.lexsort((pattern, *rows.T[::-1], moment))
    return rows[order], moment[order], pattern[order], probability[order]
