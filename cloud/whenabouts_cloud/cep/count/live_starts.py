"""Rows of a key's live starts: their places and their allocation (`state` describes their contents)."""

from typing import Any

import numpy as np

from whenabouts_cloud.cep.count.measures import cell_of
from whenabouts_cloud.cep.count.state import FIRST_ROOM, GREATEST, KINDS, LEAST, META, SLOT, SUM, State, enter
from whenabouts_cloud.cep.kernel.layout import NEVER
from whenabouts_cloud.jit import Array, compiled_noref
from whenabouts_cloud.pattern.countable import LIMIT, Tables


@compiled_noref
def width_of(tables: Tables) -> Any:
    """Number of columns of a row."""
    return 1 + len(tables.place_term) + tables.limits[LIMIT.leads]


@compiled_noref
def free_chunk(s: State, chunk: int, room: int, width: int) -> None:
    """Frees a chunk for the next allocation of its size."""
    size = 0
    while (1 << size) < room:
        size += 1
    s.counts[chunk * width] = s.free[size]
    s.free[size] = chunk


@compiled_noref
def new_slot(s: State, key: int) -> Any:
    """Adds a slot for a key that has none; the arrays must have room."""
    meta, slots = s.meta, s.slots
    slot = meta[META.free_slot]
    if slot >= 0:
        meta[META.free_slot] = slots[slot, SLOT.last]
    else:
        slot = meta[META.slots]
        meta[META.slots] += 1
    slots[slot, SLOT.key], slots[slot, SLOT.last], slots[slot, SLOT.chunk] = key, NEVER, -1
    slots[slot, SLOT.room], slots[slot, SLOT.head], slots[slot, SLOT.tail], slots[slot, SLOT.call] = 0, 0, 0, 0
    for lead in range(s.back.shape[1]):
        s.back[slot, lead] = NEVER
    enter(s.table, key, slot)
    meta[META.keys] += 1
    return slot


@compiled_noref
def add_start(tables: Tables, s: State, slot: int, now: int) -> None:
    """Appends a row for a start to those of its key, with all counts zero."""
    slots, counts, measured, width = s.slots, s.counts, s.measured, width_of(tables)
    places, measures = len(tables.place_term), len(tables.reads)
    if slots[slot, SLOT.chunk] < 0 or slots[slot, SLOT.tail] == slots[slot, SLOT.room]:
        _make_room(s, slot, width, measures * KINDS * places)
    chunk, row, room = slots[slot, SLOT.chunk], slots[slot, SLOT.tail], slots[slot, SLOT.room]
    begin = chunk * width
    counts[begin + row] = now
    for p in range(places):
        counts[begin + (1 + p) * room + row] = 0
    for lead in range(tables.limits[LIMIT.leads]):
        back = s.back[slot, lead]
        counts[begin + (1 + places + lead) * room + row] = (
            NEVER if back == NEVER else back + tables.limits[LIMIT.window] + 1
        )
    step = room * places
    for m in range(measures):
        for p in range(places):
            cell = cell_of(chunk, room, places, measures, m, p, row)
            measured[cell], measured[cell + SUM * step] = 0.0, 0.0
            measured[cell + LEAST * step], measured[cell + GREATEST * step] = np.inf, -np.inf
    slots[slot, SLOT.tail] += 1
    s.meta[META.live] += 1


@compiled_noref
def _make_room(s: State, slot: int, width: int, measured_width: int) -> None:
    """Moves the live rows of a key to the begin of its chunk; if they fill more than half, of one twice as large."""
    slots, meta = s.slots, s.meta
    old, old_room, head = slots[slot, SLOT.chunk], slots[slot, SLOT.room], slots[slot, SLOT.head]
    live = slots[slot, SLOT.tail] - head
    chunk, room = old, old_room
    if old < 0 or 2 * live > old_room:
        room = FIRST_ROOM if old < 0 else 2 * old_room
        size = 0
        while (1 << size) < room:
            size += 1
        chunk = s.free[size]
        if chunk >= 0:
            s.free[size] = s.counts[chunk * width]
        else:
            chunk = meta[META.rows]
            meta[META.rows] += room
        meta[META.largest] = max(meta[META.largest], room)
    _move(s.counts, old * width + head, old_room, chunk * width, room, width, live)
    _move(s.measured, old * measured_width + head, old_room, chunk * measured_width, room, measured_width, live)
    if old >= 0 and old != chunk:
        free_chunk(s, old, old_room, width)
    slots[slot, SLOT.chunk], slots[slot, SLOT.room], slots[slot, SLOT.head], slots[slot, SLOT.tail] = (
        chunk,
        room,
        0,
        live,
    )


@compiled_noref
def _move(array: Array, a: int, a_room: int, b: int, b_room: int, columns: int, live: int) -> None:
    for column in range(columns):
        for i in range(live):
            array[b + column * b_room + i] = array[a + column * a_room + i]
