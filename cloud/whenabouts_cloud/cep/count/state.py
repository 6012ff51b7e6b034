"""State of a counter: events that the frontier has not passed, and for each key the live starts with their counts.

A *start* is a time at which a match of the key may begin; it lives for the window. For each start and place of a chain, the
state holds the number of partial matches that begin at the start and have reached the place. The starts of a key are the
rows of one chunk of `counts`:

    chunk of `room` rows    time of the start | count at each place | earliest end, by alternative with a leading negation

Each column of `room` numbers is contiguous, so that a step of the count is a loop over neighbours. `measured` has, for each
row of `counts`, also in columns, number of values, sum, least and greatest for each measure and place. The rows of a chunk
are a power of two; freed chunks are reused by size. A queue of (time, key's slot) gives the times at which starts end and
at which a key can be forgotten.
"""

from typing import Any, NamedTuple

import numpy as np

from whenabouts_cloud.cep.kernel.hts import home
from whenabouts_cloud.cep.kernel.layout import NEVER
from whenabouts_cloud.jit import Array, columns, compiled_noref


class Slot(NamedTuple):
    """State of a key."""

    key: int
    last: int  # time of its latest event in the queue; in a free slot: the next free slot
    chunk: int  # of its starts, -1: none
    room: int  # rows of the chunk
    head: int  # its live starts are the rows [head, tail)
    tail: int
    call: int  # the latest call with results for the key
    out: int  # row of the key in these results


class HeldEvent(NamedTuple):
    """An event that the frontier has not passed."""

    t: int
    key: int
    mask: int  # bits of the terms that it satisfies


class QueueEntry(NamedTuple):
    """A time at which a start of a key begins."""

    t: int
    slot: int


class KeyResult(NamedTuple):
    """Number of the matches of a key that a call emits."""

    key: int
    matches: int


class Meta(NamedTuple):
    """Numbers of a counter."""

    held: int
    slots: int
    free_slot: int  # head of the list of free slots
    rows: int
    queue_head: int
    queue_size: int
    calls: int
    emitted: int
    event: int  # next event of the call
    live: int  # starts
    keys: int
    largest: int  # rows of the largest chunk


SLOT, META, HELD = columns(Slot), columns(Meta), columns(HeldEvent)
QUEUE, RESULT = columns(QueueEntry), columns(KeyResult)
# Kinds of numbers of a measure.
NUMBER, SUM, LEAST, GREATEST = range(4)
KINDS = 4
SIZES = 48  # sizes of chunks: powers of two
FIRST_ROOM = 4  # rows of a key's first chunk


class State(NamedTuple):
    """The arrays. `held` is a heap of `HeldEvent` by time and key; `held_values` has their values."""

    held: Array
    held_values: Array
    table: Array  # hash of a key -> slot, -1: none
    slots: Array
    back: Array  # by slot and alternative with a leading negation: time of its latest event
    counts: Array
    measured: Array
    free: Array  # by size: first free chunk, -1: none; the first number of each is the next
    queue: Array  # rows of `QueueEntry`, a ring
    meta: Array


class Rows(NamedTuple):
    """The live starts of a key in `counts`, except a start at the current time `now`."""

    slot: int
    now: int
    chunk: int
    room: int
    head: int
    end: int  # the starts are the rows [head, end)


class KeyResults(NamedTuple):
    """Results of a call by key: rows of `KeyResult`, and the measures."""

    rows: Array
    measured: Array


def new_state(values: int, leads: int, row: int, measured: int) -> State:
    """An empty state for events with `values` values, and starts with `row` counts and `measured` numbers of measures."""
    return State(
        np.empty((64, len(HELD)), np.int64), np.empty((64, values)), np.full(64, -1, np.int64),
        np.empty((16, len(SLOT)), np.int64),
        np.full((16, leads), NEVER, np.int64), np.empty(64 * row, np.int64), np.empty(64 * measured),
        np.full(SIZES, -1, np.int64), np.empty((64, len(QUEUE)), np.int64), _meta(),
    )  # fmt: skip


def _meta() -> Array:
    meta = np.zeros(len(META), np.int64)
    meta[META.free_slot], meta[META.largest] = -1, FIRST_ROOM
    return meta


def larger(array: Array) -> Array:
    """A copy of the array with twice the room."""
    grown = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def more_held(state: State) -> State:
    """Room for more events."""
    return state._replace(held=larger(state.held), held_values=larger(state.held_values))


def more_slots(state: State) -> State:
    """Room for more keys."""
    grown = state._replace(
        slots=larger(state.slots), back=larger(state.back), table=np.full(2 * len(state.table), -1, np.int64)
    )
    for place in np.flatnonzero(state.table >= 0):
        slot = state.table[place]
        enter(grown.table, int(state.slots[slot, SLOT.key]), int(slot))
    return grown


def more_rows(state: State) -> State:
    """Room for more starts."""
    return state._replace(counts=larger(state.counts), measured=larger(state.measured))


def more_queue(state: State) -> State:
    """A ring of twice the length, with its head at index 0."""
    head, length = int(state.meta[META.queue_head]), len(state.queue)
    queue = larger(np.roll(state.queue, -head, axis=0))
    assert len(queue) == 2 * length
    state.meta[META.queue_head] = 0
    return state._replace(queue=queue)


@compiled_noref
def find(table: Array, slots: Array, key: int) -> Any:
    """The slot of a key, -1 if it has none."""
    last = len(table) - 1
    at = home(key, len(table))
    while table[at] >= 0:
        if slots[table[at], SLOT.key] == key:
            return table[at]
        at = (at + 1) & last
    return -1


@compiled_noref
def enter(table: Array, key: int, slot: int) -> None:
    """Enters the slot of a key that is not in the table."""
    last = len(table) - 1
    at = home(key, len(table))
    while table[at] >= 0:
        at = (at + 1) & last
    table[at] = slot


@compiled_noref
def leave(table: Array, slots: Array, key: int) -> None:
    """Removes a key; moves up those behind it that a search would no longer reach (Knuth, vol. 3, 6.4, algorithm R)."""
    last = len(table) - 1
    hole = home(key, len(table))
    while slots[table[hole], SLOT.key] != key:
        hole = (hole + 1) & last
    at = hole
    while True:
        at = (at + 1) & last
        if table[at] < 0:
            break
        wanted = home(slots[table[at], SLOT.key], len(table))
        if ((at - wanted) & last) >= ((at - hole) & last):
            table[hole] = table[at]
            hole = at
    table[hole] = -1


@compiled_noref
def push(held: Array, held_values: Array, size: int, event: tuple[int, int, int], values: Array) -> None:
    """Adds an event (t, key, mask), with its values, to the heap of `size` events, which must have room."""
    t, key, mask = event
    at = size
    while at > 0:
        up = (at - 1) >> 1
        if held[up, HELD.t] < t or (held[up, HELD.t] == t and held[up, HELD.key] <= key):
            break
        _copy(held, held_values, up, at)
        at = up
    held[at, HELD.t], held[at, HELD.key], held[at, HELD.mask] = t, key, mask
    for column in range(len(values)):
        held_values[at, column] = values[column]


@compiled_noref
def pop(held: Array, held_values: Array, size: int) -> None:
    """Removes the first event from the heap of `size` events; place size - 1 is free then."""
    last = size - 1
    t, key = held[last, HELD.t], held[last, HELD.key]
    at = 0
    while True:
        down = 2 * at + 1
        if down >= last:
            break
        if down + 1 < last:
            a, b = held[down, HELD.t], held[down + 1, HELD.t]
            if b < a or (b == a and held[down + 1, HELD.key] < held[down, HELD.key]):
                down += 1
        if t < held[down, HELD.t] or (t == held[down, HELD.t] and key <= held[down, HELD.key]):
            break
        _copy(held, held_values, down, at)
        at = down
    _copy(held, held_values, last, at)


@compiled_noref
def _copy(held: Array, held_values: Array, a: int, b: int) -> None:
    held[b, HELD.t], held[b, HELD.key], held[b, HELD.mask] = held[a, HELD.t], held[a, HELD.key], held[a, HELD.mask]
    for column in range(held_values.shape[1]):
        held_values[b, column] = held_values[a, column]
