"""The local states of an eager frame as arrays, in the order in which each stream had them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts.frames.arrow import array_of, check_exact, codes_of
from whenabouts.frames.kinds import FrameError, Given
from whenabouts_cloud.rules.state_predicate import Predicate, Scalar, Value, test, values_of

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
VCLOCK = "vclock"


class Question(NamedTuple):
    """Which columns hold what. group: that of the group, None if all states are of one. members: the streams of the entries
    of vector clocks, empty without clocks.
    """

    stream: str
    group: str | None
    streams: tuple[str, ...]
    members: tuple[str, ...]


class States(NamedTuple):
    """States by group, stream and number; row: their rows in the frame. clock: an entry for each stream, or None."""

    row: Ints
    group: Ints
    slot: Ints
    number: Ints
    lo: Ints
    hi: Ints
    clock: Ints | None

    @property
    def is_first(self) -> Bools:
        """True for the first state of each stream of a group."""
        first = np.ones(len(self.row), np.bool_)
        first[1:] = (self.group[1:] != self.group[:-1]) | (self.slot[1:] != self.slot[:-1])
        return first


def states_of(side: Given, question: Question, lo: Ints, hi: Ints) -> States:
    """The states of the streams of a question, of all groups.

    Raises:
        FrameError: a stream had two states at the same times, or clocks do not number its states.
    """
    rows = side.rows
    assert rows is not None
    names = rows[question.stream].cast(nw.String).to_list()
    places = {name: n for n, name in enumerate(question.streams)}
    slot = np.array([places.get(name, -1) for name in names], np.int64)
    group = np.zeros(len(rows), np.int64)
    if question.group is not None:
        [group] = codes_of([array_of(rows, question.group, side.name)], question.group, side.name)
    at = np.flatnonzero((slot >= 0) & (group >= 0))
    clocks = _clocks(rows, question, at, slot) if question.members else None
    own = None if clocks is None else clocks[np.arange(len(at)), slot[at]]
    by = (own,) if own is not None else (hi[at], lo[at])
    order = np.lexsort((*by, slot[at], group[at]))
    at = at[order]
    states = States(at, group[at], slot[at], np.empty(0, np.int64), lo[at], hi[at], None)
    first = states.is_first
    if clocks is not None and own is not None:
        states = states._replace(number=own[order], clock=_growing(clocks[order], first))
    else:
        begins = np.flatnonzero(first)
        states = states._replace(number=np.arange(len(at)) - np.repeat(begins, np.diff(np.append(begins, len(at)))))
    _check_order(states, first, question)
    return states


def _check_order(states: States, first: Bools, question: Question) -> None:
    follows = ~first[1:]
    if states.clock is None:
        wrong = follows & (states.lo[1:] == states.lo[:-1]) & (states.hi[1:] == states.hi[:-1])
        text = "states of {} with the same times, rows {} and {}; expected times that tell which was first"
    else:
        wrong = follows & (np.diff(states.number) != 1)
        text = "states of {} whose own entries in vclock do not follow each other, rows {} and {}; expected all of them"
    for n in np.flatnonzero(wrong)[:1]:
        name = question.streams[states.slot[n]]
        raise FrameError(f"states: found {text.format(name, *sorted((states.row[n], states.row[n + 1])))}")


def holding(side: Given, states: States, question: Question, parts: Sequence[tuple[int, Predicate]]) -> list[Bools]:
    """For each local predicate, with the stream that it is about, the states in which it is known to hold."""
    read = {slot: [v for v in _read(parts) if v.stream == name] for slot, name in enumerate(question.streams)}
    columns = {v.name: scalars(side, v.name) for v in _read(parts)}
    found = []
    for slot, predicate in parts:
        holds, known = test(predicate), dict[tuple[Scalar, ...], bool]()
        mine = np.zeros(len(states.row), np.bool_)
        for n in np.flatnonzero(states.slot == slot):
            values = tuple(columns[v.name][states.row[n]] for v in read[slot])
            if values not in known:
                known[values] = holds(dict(zip(read[slot], values, strict=True)))
            mine[n] = known[values]
        found.append(mine)
    return found


def scalars(side: Given, name: str) -> list[Scalar]:
    """A column as values that predicates compare: truth is 1 and 0, null and nan are no value.

    Raises:
        FrameError: the column is missing, or has neither numbers nor truth values nor texts.
    """
    assert side.rows is not None
    if name not in side.columns:
        raise FrameError(
            f"verdict: found the value {name!r}, expected a column of states: {', '.join(side.columns[:20])}"
        )
    array = array_of(side.rows, name, side.name)
    kind = array.type
    check_exact(array, name, side.name)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        texts: list[Scalar] = array.to_pylist()
        return texts
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (is_number or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise FrameError(f"states: found {kind} in {name}, expected numbers, truth values or texts")
    return [None if one is None or one != one else float(one) for one in array.to_pylist()]


def _read(parts: Sequence[tuple[int, Predicate]]) -> list[Value]:
    return list(dict.fromkeys(value for _, predicate in parts for value in values_of(predicate)))


def _clocks(rows: "nw.DataFrame[Any]", question: Question, at: Ints, slot: Ints) -> Ints:
    """The clocks of these rows, with an entry for each stream of the question."""
    clocks = array_of(rows, VCLOCK, "states")
    is_list = pa.types.is_list(clocks.type) or pa.types.is_large_list(clocks.type)
    if not is_list or not pa.types.is_integer(clocks.type.value_type):
        raise FrameError(f"states: found {clocks.type} in {VCLOCK}, expected lists of whole numbers")
    column = clocks.take(pa.array(at)).to_pylist()
    size = len(question.members)
    for n, clock in zip(at, column, strict=True):
        if clock is None or len(clock) != size or any(one is None or one < 0 for one in clock):
            raise FrameError(
                f"states: found the vector clock {clock} in row {n}, expected {size} whole numbers from 0, one a member"
            )
    places = [question.members.index(name) for name in question.streams]
    return np.array(column, np.int64).reshape(len(at), size)[:, places]


def _growing(clocks: Ints, first: Bools) -> Ints:
    """Clocks in which a state knows what the states of its stream before it knew."""
    begins = [*np.flatnonzero(first).tolist(), len(clocks)]
    for begin, end in pairwise(begins):
        np.maximum.accumulate(clocks[begin:end], axis=0, out=clocks[begin:end])
    return clocks
