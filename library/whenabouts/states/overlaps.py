"""Choices of runs, one of each stream, that certainly held at one moment, or possibly did.

A run is a block of consecutive states of a stream in which its condition holds. With b its first state and e the state after
it, a choice of runs

    certainly held together    if each b certainly began before the e of every other one
    possibly held together     if no e certainly began before the b of another one

Then there is an order of all states that agrees with what is known in which all b come before all e. x certainly began
before y if the latest time of x is before the earliest of y, or the clock of y knows x (and what follows from both). The
last run of a stream goes on for ever. For certainty the latest time of b is that of its own stamp, as for rules
(`latwin.shard.run_choices`); for possibility also those of all states known to be later count.

Cost: sorting, and a search for each run in each other stream; memory of some 100 bytes for each choice.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from whenabouts.frames.kinds import FrameError
from whenabouts.states.local_states import Bools, Ints, States

NEVER, FOREVER = -(1 << 62), 1 << 62
MAX_CHOICES = 10_000_000


class Runs(NamedTuple):
    """Runs of one stream, in order, as places among the states; end: -1 if a run goes on."""

    slot: int
    first: Ints
    last: Ints
    end: Ints


class Bounds(NamedTuple):
    """What is known of the begin of each state: `surely_lo` by its stream, `lo` and `hi` by all that is known."""

    surely_lo: Ints
    lo: Ints
    hi: Ints


def runs_of(states: States, slot: int, holds: Bools) -> Runs:
    """The runs of a stream of one group; holds: for all states, whether the condition does."""
    mine = np.flatnonzero(states.slot == slot)
    true = np.concatenate(([False], holds[mine], [False]))
    first, after = np.flatnonzero(~true[:-1] & true[1:]), np.flatnonzero(true[:-1] & ~true[1:])
    end = np.where(after < len(mine), mine[np.minimum(after, max(len(mine) - 1, 0))] if len(mine) else after, -1)
    return Runs(slot, mine[first], mine[after - 1] if len(after) else after, end)


def each_state(states: States, slot: int) -> Runs:
    """Each state of a stream of one group as a run of its own."""
    mine = np.flatnonzero(states.slot == slot)
    return Runs(slot, mine, mine, np.append(mine[1:], -1)[: len(mine)])


def bounds_of(states: States, causal: bool) -> Bounds:
    """Bounds of the begins of the states of one group."""
    if causal:
        none = np.full(len(states.row), NEVER), np.full(len(states.row), FOREVER)
        return Bounds(none[0], *none)
    lo, hi = states.lo.copy(), states.hi.copy()
    for part in _streams(states):
        np.maximum.accumulate(lo[part], out=lo[part])
        hi[part] = np.minimum.accumulate(hi[part][::-1])[::-1]
    surely_lo = lo.copy()
    if states.clock is not None:
        _spread(states, lo, hi)
    return Bounds(surely_lo, lo, hi)


def choices(states: States, every: list[Runs], bounds: Bounds, definitely: bool, causal: bool) -> Ints:
    """The choices (m, len(every)), as numbers of runs.

    Raises:
        FrameError: there are more than MAX_CHOICES.
    """
    found = np.zeros((1, 0), np.int64)
    for n, runs in enumerate(every):
        least, most = np.zeros(len(found), np.int64), np.full(len(found), len(runs.first), np.int64)
        begin, end = bounds.lo[runs.first], _end_hi(runs, bounds)
        for k, other in enumerate(every[:n]):
            chosen = found[:, k]
            least = np.maximum(least, np.searchsorted(end, bounds.lo[other.first[chosen]], "left"))
            most = np.minimum(most, np.searchsorted(begin, _end_hi(other, bounds)[chosen], "right"))
        count = np.maximum(most - least, 0)
        if count.sum() > MAX_CHOICES:
            raise FrameError(
                f"verdict: found more than {MAX_CHOICES} combinations of runs in one group, expected fewer: ask for fewer "
                "streams or for groups that are smaller"
            )
        which = np.repeat(np.arange(len(found)), count)
        mine = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + least[which]
        fits = np.ones(len(which), np.bool_)
        for k, other in enumerate(every[:n]):
            fits &= _fit(states, bounds, (other, found[which, k]), (runs, mine), definitely, causal)
        found = np.column_stack([found[which[fits]], mine[fits]])
    return found


def certain(states: States, every: list[Runs], bounds: Bounds, chosen: Ints, causal: bool) -> Bools:
    """True for the choices of runs that certainly held together."""
    sure = np.ones(len(chosen), np.bool_)
    for n, runs in enumerate(every):
        for k, other in enumerate(every[:n]):
            sure &= _fit(states, bounds, (other, chosen[:, k]), (runs, chosen[:, n]), True, causal)
    return sure


def _fit(
    states: States, bounds: Bounds, one: tuple[Runs, Ints], other: tuple[Runs, Ints], definitely: bool, causal: bool
) -> Bools:
    """True where a run of one stream and a run of another one held together, certainly or (by clocks) possibly."""
    if definitely:
        return _surely_before_end(states, bounds, *one, *other, causal) & _surely_before_end(
            states, bounds, *other, *one, causal
        )
    if states.clock is None:
        return np.ones(len(one[1]), np.bool_)
    return ~(_ended_before(states, *one, *other) | _ended_before(states, *other, *one))


def _streams(states: States) -> Iterator[slice]:
    begins = [*np.flatnonzero(states.is_first).tolist(), len(states.row)]
    return (slice(begin, end) for begin, end in pairwise(begins))


def _end_hi(runs: Runs, bounds: Bounds) -> Ints:
    ends: Ints = np.where(runs.end >= 0, bounds.hi[runs.end] if len(bounds.hi) else runs.end, FOREVER)
    return ends


def _surely_before_end(states: States, bounds: Bounds, a: Runs, i: Ints, b: Runs, j: Ints, causal: bool) -> Bools:
    """True where run i of a certainly began before run j of b ended."""
    begin, end = a.first[i], b.end[j]
    proof = np.where(end >= 0, end, b.last[j])
    if causal:
        sure = np.zeros(len(i), np.bool_)
    else:
        sure = (end < 0) | (states.hi[begin] < bounds.surely_lo[proof])
    if states.clock is not None:
        sure |= states.clock[proof, a.slot] >= np.maximum(states.number[begin], 1)
    return sure


def _ended_before(states: States, a: Runs, i: Ints, b: Runs, j: Ints) -> Bools:
    """True where the clock of the begin of run j of b knows that run i of a had ended."""
    assert states.clock is not None
    known: Bools = states.clock[b.first[j], a.slot] > states.number[a.last[i]]
    return known


def _spread(states: States, lo: Ints, hi: Ints) -> None:
    """Raises lo to that of every state that a clock knows, and lowers hi to that of every state whose clock knows it."""
    assert states.clock is not None
    places = {int(states.slot[part.start]): part for part in _streams(states)}
    known = []  # (states, the latest state of another stream that each knows)
    for slot, part in places.items():
        entries = states.clock[:, slot]
        knows = np.flatnonzero((states.slot != slot) & (entries > 0) & (entries >= states.number[part.start]))
        at = part.start + np.minimum(entries[knows] - states.number[part.start], part.stop - part.start - 1)
        known.append((knows, at))
    before = lo[:0], hi[:0]
    while not all(map(np.array_equal, before, (lo, hi))):
        before = lo.copy(), hi.copy()
        for knows, at in known:
            np.maximum.at(lo, knows, lo[at])
            np.minimum.at(hi, at, hi[knows])
        for part in places.values():
            np.maximum.accumulate(lo[part], out=lo[part])
            hi[part] = np.minimum.accumulate(hi[part][::-1])[::-1]
