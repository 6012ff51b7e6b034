"""Decisions outside the machine code: uncertain order, and the after-match skip.

A candidate is a match except for these two checks. Candidates of uncertain order (POSSIBLE, OVER, CAUSAL) go to
`refine.refine`, many at once, with the negated events that may lie in their gaps. On arrival a candidate is checked again
whenever such an event arrives. It can only become less likely, so an emitted match is retracted at most once.
"""

from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep.kernel.compile_plans import Compiled
from whenabouts_cloud.cep.kernel.emit import AGAIN, FIRST, LATE_ADDED, LATE_REMOVED
from whenabouts_cloud.cep.kernel.layout import CANDIDATE, CANDIDATE_EVENTS, NEGATED_EVENT
from whenabouts_cloud.cep.runtime.skip import Skipper
from whenabouts_cloud.cep.uncertain.causal import Clocks
from whenabouts_cloud.cep.uncertain.refine import Candidates, refine
from whenabouts_cloud.jit import Array


class Rows(NamedTuple):
    """Matches: the indices, moment, pattern and probability of each."""

    ids: Array
    moment: Array
    pattern: Array
    probability: Array


class Decided(NamedTuple):
    """Decisions on the candidates of a call."""

    emitted: Rows
    retracted: Rows
    added: Rows
    removed: Rows


class CandidateDecisions:
    """Decides candidates; keeps the emitted ones that may still be retracted, and those that wait for a skip."""

    def __init__(self, compiled: Compiled) -> None:
        self.live: set[int] = set()  # serials of emitted matches that may still be retracted
        self.skippers: dict[int, Skipper] = {}
        self.set_plans(compiled)

    def set_plans(self, compiled: Compiled) -> None:
        """Decides for these patterns from now on; those that were there before keep their state."""
        self.compiled = compiled
        self.skippers = {
            n: self.skippers.get(n) or Skipper(plan, compiled.longest)
            for n, plan in compiled.plans.items()
            if plan.skip != "none"
        }

    def decide(
        self, candidates: Array, negated: Array, stamps: dict[int, tuple[int, int]], clocks: Clocks | None, base: int
    ) -> Decided:
        """Decides candidates; `stamps` are t and t_max of the late events, `clocks` those of the events from `base` on."""
        end = np.append(candidates[1:, CANDIDATE.negated], len(negated))
        decided: dict[int, list[Rows]] = {FIRST: [], AGAIN: [], LATE_ADDED: [], LATE_REMOVED: []}
        for alternative in np.unique(candidates[:, CANDIDATE.alternative]).tolist():
            at = np.flatnonzero(candidates[:, CANDIDATE.alternative] == alternative)
            mine = candidates[at]
            kind = mine[:, CANDIDATE.kind]
            events = _gather(negated, mine[:, CANDIDATE.negated], end[at])
            keep, probability = self._refine(alternative, mine, events, clocks, base, kind == FIRST)
            if (kind == LATE_REMOVED).any():
                late = np.flatnonzero((kind == LATE_REMOVED) & keep)
                events = _gather(negated, mine[late, CANDIDATE.negated], end[at[late]])
                events = _with_late(events, mine[late], stamps)
                still, _ = self._refine(alternative, mine[late], events, clocks, base, np.zeros(len(late), np.bool_))
                keep[late[still]] = False
            rows = self._rows(alternative, mine, probability)
            for which in (LATE_ADDED, LATE_REMOVED):
                decided[which].append(_pick(rows, keep & (kind == which)))
            emitted, back = self._emit_and_retract(mine, keep)
            number, _ = self.compiled.alternatives[alternative]
            if number in self.skippers:
                self._hold_back(number, alternative, mine[emitted], _pick(rows, emitted))
            else:
                decided[FIRST].append(_pick(rows, emitted))
            decided[AGAIN].append(_pick(rows, back))
        return Decided(*(self._joined(decided[which]) for which in (FIRST, AGAIN, LATE_ADDED, LATE_REMOVED)))

    def skipped(self, frontier: int, frontiers: Array, fed: int) -> Rows:
        """Matches that an after-match skip emits now; `frontiers` has the frontier after each event of the block."""
        parts = []
        for number, skipper in self.skippers.items():
            reached, rows, probability = skipper.decided(frontier)
            place = np.searchsorted(frontiers, reached)
            ids = np.full((len(rows), self.compiled.width), -1, np.int64)
            ids[:, : rows.shape[1]] = rows
            moments = np.where(place < len(frontiers), fed + place, -1)
            parts.append(Rows(ids, moments, np.full(len(rows), number, np.int64), probability))
        return self._joined(parts)

    def keep_live(self, waiting: Array) -> None:
        """Forgets matches that can no longer be retracted: all but those with these serials."""
        self.live &= set(waiting.tolist())

    def _refine(
        self,
        alternative: int,
        rows: Array,
        negated: tuple[Array, Array],
        clocks: Clocks | None,
        base: int,
        exact: Array,
    ) -> tuple[Array, Array]:
        """Masks the candidates that are matches, and gives their probability: exact where `exact`, nan without mode over."""
        number, place = self.compiled.alternatives[alternative]
        plan = self.compiled.plans[number]
        if plan.mode == "certain" or not len(rows):
            return np.ones(len(rows), np.bool_), np.ones(len(rows))
        one = plan.alternatives[place]
        t, t_max, ids = _stamps(rows, len(one.classes))
        lists, owner = negated
        gaps = []
        for n in range(len(one.negations)):
            own = lists[:, NEGATED_EVENT.negation] == n
            offsets = np.zeros(len(rows) + 1, np.int64)
            np.cumsum(np.bincount(owner[own], minlength=len(rows)), out=offsets[1:])
            stamps = (np.ascontiguousarray(lists[own, c]) for c in (NEGATED_EVENT.t, NEGATED_EVENT.t_max))
            gaps.append((offsets, *stamps, lists[own, NEGATED_EVENT.arrival] - base))
        keep, probability = refine(one, plan, Candidates(t, t_max, ids - base, gaps), clocks, exact=exact)
        return np.array(keep), probability if plan.mode == "over" else np.full(len(rows), np.nan)

    def _emit_and_retract(self, rows: Array, keep: Array) -> tuple[Array, Array]:
        """Masks of the candidates to emit and of those to retract."""
        emitted, back = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
        emitted[:] = keep & (rows[:, CANDIDATE.kind] == FIRST)
        self.live.update(rows[emitted & (rows[:, CANDIDATE.serial] != 0), CANDIDATE.serial].tolist())
        for n in np.flatnonzero((rows[:, CANDIDATE.kind] == AGAIN) & ~keep).tolist():
            serial = int(rows[n, CANDIDATE.serial])
            if serial in self.live:
                self.live.remove(serial)
                back[n] = True
        return emitted, back

    def _rows(self, alternative: int, rows: Array, probability: Array) -> Rows:
        number, place = self.compiled.alternatives[alternative]
        one = self.compiled.plans[number].alternatives[place]
        ids = np.full((len(rows), self.compiled.width), -1, np.int64)
        ids[:, list(one.columns)] = _stamps(rows, len(one.classes))[2]
        return Rows(ids, rows[:, CANDIDATE.moment], np.full(len(rows), number, np.int64), probability)

    def _hold_back(self, number: int, alternative: int, rows: Array, emitted: Rows) -> None:
        """Hands matches to the after-match skip."""
        plan = self.compiled.plans[number]
        one = plan.alternatives[self.compiled.alternatives[alternative][1]]
        places = np.argsort(one.columns)
        t, t_max, index = (x[:, places] for x in _stamps(rows, len(one.classes)))
        self.skippers[number].add(
            rows[:, CANDIDATE.key], t, t_max, index, emitted.ids[:, : plan.width], emitted.probability
        )

    def _joined(self, parts: list[Rows]) -> Rows:
        if parts:
            return Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        none = np.empty(0, np.int64)
        return Rows(np.empty((0, self.compiled.width), np.int64), none, none, np.empty(0))


def _stamps(rows: Array, count: int) -> tuple[Array, Array, Array]:
    """t, t_max and index of the positives of candidates, (m, n) each."""
    events = rows[:, CANDIDATE_EVENTS : CANDIDATE_EVENTS + 3 * count]
    t, t_max, index = (np.ascontiguousarray(events[:, n::3]) for n in range(3))
    return t, t_max, index


def _gather(negated: Array, first: Array, last: Array) -> tuple[Array, Array]:
    """The negated events of some candidates, and for each event the place of its candidate among these."""
    count = last - first
    owner = np.repeat(np.arange(len(first)), count)
    at = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count) + first[owner]
    return negated[at], owner


def _with_late(events: tuple[Array, Array], rows: Array, stamps: dict[int, tuple[int, int]]) -> tuple[Array, Array]:
    """Adds the late event of each candidate to its negated events, for the negations in its serial."""
    lists, owner = events
    more = [
        (n, *stamps[int(row[CANDIDATE.moment])], int(row[CANDIDATE.moment]), place)
        for place, row in enumerate(rows)
        for n in range(62)
        if int(row[CANDIDATE.serial]) >> n & 1
    ]
    added = np.array(more, np.int64).reshape(-1, len(NEGATED_EVENT) + 1)
    owner = np.concatenate([owner, added[:, len(NEGATED_EVENT)]])
    order = np.argsort(owner, kind="stable")
    return np.concatenate([lists, added[:, : len(NEGATED_EVENT)]])[order], owner[order]


def _pick(rows: Rows, mask: Array) -> Rows:
    return Rows(*(column[mask] for column in rows))
