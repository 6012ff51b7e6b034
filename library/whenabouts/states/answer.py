"""The verdicts of an eager frame of states, as a frame."""

from itertools import pairwise
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt

from whenabouts.frames.kinds import FrameError, Given
from whenabouts.frames.rows import PROBABILITY, named_rows, once_each
from whenabouts.frames.taking import beside
from whenabouts.frames.times import columns_of
from whenabouts.states.local_states import VCLOCK, Ints, Question, States, holding, scalars, states_of
from whenabouts.states.overlaps import (
    FOREVER,
    NEVER,
    Bounds,
    Runs,
    bounds_of,
    certain,
    choices,
    each_state,
    runs_of,
)
from whenabouts.states.together import probability
from whenabouts_cloud.pattern.plan import TIME_LIMIT
from whenabouts_cloud.rules.state_predicate import alternatives, streams_of, test, values_of
from whenabouts_cloud.rules.states import Verdict

SPANS = ("t_min", "t_max", "until_min", "until_max")


class Layout(NamedTuple):
    """Which columns of the states are what, and what each stream's columns are called in the result."""

    question: Question
    times: tuple[str, str]
    names: tuple[dict[str, str], ...]

    @property
    def sources(self) -> dict[str, str]:
        """The column of the states from which each column of the result is taken, except `probability`."""
        begin, end = self.times
        own = {self.question.group: self.question.group} if self.question.group else {}
        spans = dict(zip(SPANS, (begin, end, begin, end), strict=True))
        return {**own, **spans, **{new: old for names in self.names for old, new in names.items()}}

    @property
    def columns(self) -> list[str]:
        """The columns of the result."""
        group = [self.question.group] if self.question.group else []
        return [*group, *SPANS, *(new for names in self.names for new in names.values()), PROBABILITY]


def layout_of(side: Given, verdict: Verdict, stream: str, group: str | None, members: tuple[str, ...]) -> Layout:
    """Where the frame has what a verdict asks for.

    Raises:
        FrameError: a column or a member is missing, or two columns of the result would have one name.
    """
    streams = streams_of(verdict.predicate)
    read = [value.name for value in values_of(verdict.predicate)]
    wanted = [
        (stream, "stream"),
        (group, "group"),
        (VCLOCK if members else None, "members"),
        *((name, "verdict") for name in read),
    ]
    for name, what in wanted:
        if name is not None and name not in side.columns:
            raise FrameError(f"{what}: found {name!r}, expected a column of states: {', '.join(side.columns[:20])}")
    if verdict.causal and not members:
        raise FrameError("verdict: found CAUSAL, expected it with members, the streams of the entries of vector clocks")
    missing = [name for name in streams if members and name not in members]
    if missing or len(set(members)) < len(members):
        raise FrameError(
            f"members: found {', '.join(members)}; expected each stream once, {', '.join(streams)} among them"
        )
    own = [name for name in side.columns if name not in (stream, group)]
    names = tuple({name: f"{name}_{place}" for name in own} for place in streams)
    layout = Layout(Question(stream, group, streams, members), columns_of(side.columns, side.name), names)
    once_each(layout.columns, "states", "rename one of them")
    return layout


def answered(side: Given, verdict: Verdict, layout: Layout, lo: Ints, hi: Ints) -> "nw.DataFrame[Any]":
    """The verdicts as a frame with the columns of the layout; lo and hi are the times of all rows."""
    question = layout.question
    furthest = max((int(np.abs(one).max(initial=0)) for one in (lo, hi)), default=0)
    if furthest >= TIME_LIMIT:
        raise FrameError(f"states: found a time {furthest} us from 1970, expected less than 2^60")
    every = alternatives(verdict.predicate) or []
    parts = [[(question.streams.index(name), local) for name, local in one.items()] for one in every]
    states = states_of(side, question, lo, hi)
    truths = [holding(side, states, question, part) for part in parts]
    combined = None if parts else _Combined(side, verdict, question)
    made = [_none(len(question.streams))]
    begins = np.flatnonzero(np.diff(states.group, prepend=-1))
    for begin, end in pairwise([*begins.tolist(), len(states.row)]):
        group = States(*(None if one is None else one[begin:end] for one in states))  # type: ignore[arg-type]
        bounds = bounds_of(group, verdict.causal)
        if combined is not None:
            made.append(_of_states(group, bounds, verdict, combined, len(question.streams)))
        for part, truth in zip(parts, truths, strict=True):
            runs = [runs_of(group, slot, holds[begin:end]) for (slot, _), holds in zip(part, truth, strict=True)]
            made.append(_of_runs(group, bounds, verdict, runs, len(question.streams)))
    first, last, chance = (np.concatenate(column) for column in zip(*made, strict=True))
    order = np.lexsort(first.T[::-1])
    return _frame(side, layout, lo, hi, _Found(first[order], last[order], chance[order]))


class _Found(NamedTuple):
    """Verdicts: for each stream the first state of its run and the state after it, as rows of the frame, -1 for none."""

    first: Ints
    end: Ints
    probability: npt.NDArray[np.float64]


class _Combined:
    """A predicate that compares streams with each other, for combinations of their states."""

    def __init__(self, side: Given, verdict: Verdict, question: Question) -> None:
        self._values = values_of(verdict.predicate)
        self._columns = [scalars(side, value.name) for value in self._values]
        self._slots = [question.streams.index(value.stream) for value in self._values]
        self._holds = test(verdict.predicate)

    def holds(self, rows: Ints) -> bool:
        """True if the predicate is known to hold with these rows, one for each stream."""
        known = [column[rows[slot]] for column, slot in zip(self._columns, self._slots, strict=True)]
        return self._holds(dict(zip(self._values, known, strict=True)))


def _none(streams: int) -> _Found:
    return _Found(np.empty((0, streams), np.int64), np.empty((0, streams), np.int64), np.empty(0))


def _of_states(group: States, bounds: Bounds, verdict: Verdict, combined: _Combined, streams: int) -> _Found:
    every = [each_state(group, slot) for slot in range(streams)]
    chosen = choices(group, every, bounds, False, verdict.causal)
    at = np.column_stack([group.row[runs.first[chosen[:, n]]] for n, runs in enumerate(every)])
    met = np.array([combined.holds(rows) for rows in at], np.bool_)
    return _found(group, bounds, verdict, every, chosen[met], streams)


def _of_runs(group: States, bounds: Bounds, verdict: Verdict, runs: list[Runs], streams: int) -> _Found:
    if not all(len(one.first) for one in runs):
        return _none(streams)
    chosen = choices(group, runs, bounds, verdict.modality == "definitely", verdict.causal)
    return _found(group, bounds, verdict, runs, chosen, streams)


def _found(group: States, bounds: Bounds, verdict: Verdict, runs: list[Runs], chosen: Ints, streams: int) -> _Found:
    first, end = np.full((2, len(chosen), streams), -1, np.int64)
    for n, one in enumerate(runs):
        after = one.end[chosen[:, n]]
        first[:, one.slot] = group.row[one.first[chosen[:, n]]]
        end[:, one.slot] = np.where(after >= 0, group.row[after], -1)
    sure = certain(group, runs, bounds, chosen, verdict.causal)
    chance = np.where(sure, 1.0, np.nan)
    if not verdict.causal:
        for n in np.flatnonzero(~sure).tolist():
            chance[n] = probability(group, runs, chosen[n])
    return _Found(first, end, chance)


def _frame(side: Given, layout: Layout, lo: Ints, hi: Ints, found: _Found) -> "nw.DataFrame[Any]":
    rows = _with_ends(side, layout)
    # One more, for states that are not there: before all others for begins, after them for ends.
    latest = [np.append(times, NEVER)[found.first] for times in (lo, hi)]
    earliest = [np.append(times, FOREVER)[found.end] for times in (lo, hi)]
    spans = [_at(found.first, one.argmax(axis=1)) for one in latest] + [
        _at(found.end, one.argmin(axis=1)) for one in earliest
    ]
    begin, end = layout.times
    parts = []
    if layout.question.group is not None:
        parts.append(named_rows(rows, spans[0], {layout.question.group: layout.question.group}))
    sources = (begin, end, begin, end)
    parts += [named_rows(rows, at, {own: name}) for at, own, name in zip(spans, sources, SPANS, strict=True)]
    parts += [named_rows(rows, found.first[:, n], names) for n, names in enumerate(layout.names)]
    values = [None if np.isnan(one) else one for one in found.probability.tolist()]
    series = nw.new_series(PROBABILITY, values, nw.Float64(), backend=rows.implementation)
    return beside([*parts, series.to_frame()])


def _with_ends(side: Given, layout: Layout) -> "nw.DataFrame[Any]":
    """The rows, where those without an end have their begin there."""
    rows = side.rows
    assert rows is not None
    begin, end = layout.times
    if begin == end or not rows[end].is_null().any():
        return rows
    return rows.with_columns(nw.coalesce(nw.col(end), nw.col(begin)).alias(end))


def _at(rows: Ints, place: Ints) -> Ints:
    return rows[np.arange(len(rows)), place]
