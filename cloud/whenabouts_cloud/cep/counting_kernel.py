"""The count as machine code: events of one key in the order of time, those of one time together.

A dynamic programme over the starts that live (`counting_state`). With c[p] the number of partial matches of a start that
have come to place p, each event for place p adds c[p - 1] as it was before this time, from the last place down; a negated
event of the gap from place i to place j sets c[i] .. c[j - 1] to zero, after place j has added what was there. What events
of this time add inside of a gap that spans places stays unless another negated event has the same time. Measures go along.

A negation before the first event gives each start the time from which its matches may end: the window after the latest such
event. One after the last place holds the matches back until the start ends, for it may set them to zero until then.

Cost: an event touches the live starts of its key once for each place that it can take. Numbers above MOST become MOST.
"""

from typing import Any, NamedTuple

import numpy as np

from whenabouts_cloud.cep.counting_plan import Tables
from whenabouts_cloud.cep.counting_state import (
    AT,
    CALL,
    CALLS,
    CHUNK,
    FIRST_ROOM,
    FREE_SLOT,
    GREATEST,
    HEAD,
    HELD,
    KEY,
    KEYS,
    KINDS,
    LARGEST,
    LAST,
    LEAST,
    LIVE,
    NUMBER,
    OUT,
    QUEUE_HEAD,
    QUEUE_SIZE,
    ROOM,
    ROWS,
    SLOTS,
    SUM,
    TAIL,
    TOLD,
    State,
    Told,
    enter,
    find,
    leave,
    pop,
    push,
)
from whenabouts_cloud.cep.layout import FOREVER, NEVER
from whenabouts_cloud.compiled import Array, bare

MOST = (1 << 62) - 1  # a count that is told as this is this or more
DONE, MORE_HELD, MORE_SLOTS, MORE_ROWS, MORE_QUEUE, MORE_TOLD = range(6)


class Step(NamedTuple):
    """Room for one step: the events of one key and time, their masks and values; and what they do at each place of a
    variant: how many add, whether they zero, what is read of them."""

    group: Array
    values: Array
    adds: Array
    zero: Array
    read: Array


def new_step(tables: Tables, state: State) -> Step:
    """For all events that are held: they may all have one key and time."""
    places, room = len(tables.place_term), len(state.held)
    return Step(
        np.empty(room, np.int64), np.empty((room, state.held_values.shape[1])), np.empty(places, np.int64),
        np.empty(places, np.bool_), np.empty((len(tables.reads), places, KINDS)),
    )  # fmt: skip


@bare
def run(
    tables: Tables, s: State, told: Told, step: Step, t: Array, key: Array, mask: Array, values: Array, frontier: Array,
    last: int,
) -> Any:  # fmt: skip
    """Takes in events, each with the frontier after it, then the frontier `last`; DONE, or what there must be more of first.

    Called again with more room it goes on where it was.
    """
    meta, held, held_values, queue = s.meta, s.held, s.held_values, s.queue
    window, width = tables.limits[0], _width(tables)
    group, group_values = step.group, step.values
    at, size, wanted = meta[AT], meta[HELD], DONE
    while True:
        reached = last if at == len(t) else (frontier[at - 1] if at > 0 else NEVER)
        while True:
            first = held[0, 0] if size > 0 else FOREVER
            until = min(first, reached)
            if meta[QUEUE_SIZE] > 0 and queue[meta[QUEUE_HEAD], 0] + window < until:
                wanted = _end(tables, s, told, until)
            if first >= reached or wanted != DONE:
                break
            if meta[FREE_SLOT] < 0 and (meta[SLOTS] == len(s.slots) or 2 * meta[SLOTS] >= len(s.table)):
                wanted = MORE_SLOTS
            elif meta[QUEUE_SIZE] == len(queue):
                wanted = MORE_QUEUE
            elif meta[TOLD] == len(told.rows):
                wanted = MORE_TOLD
            elif (meta[ROWS] + 2 * meta[LARGEST]) * width > len(s.counts):
                wanted = MORE_ROWS
            if wanted != DONE:
                break
            of, count = held[0, 1], 0
            while size > 0 and held[0, 0] == first and held[0, 1] == of:
                group[count] = held[0, 2]
                for column in range(held_values.shape[1]):
                    group_values[count, column] = held_values[0, column]
                pop(held, held_values, size)
                size -= 1
                count += 1
            _take(tables, s, told, first, of, group, count, group_values, step)
        if wanted == DONE and at < len(t) and size == len(held):
            wanted = MORE_HELD
        if wanted != DONE or at == len(t):
            meta[AT], meta[HELD] = at, size
            return wanted
        push(held, held_values, size, t[at], key[at], mask[at], values, at)
        size += 1
        at += 1


@bare
def _width(tables: Tables) -> Any:
    return 1 + len(tables.place_term) + tables.limits[1]


@bare
def _end(tables: Tables, s: State, told: Told, until: int) -> int:
    """Ends the starts whose window is over before `until`, and forgets keys of which nothing is left."""
    meta, slots, counts, queue = s.meta, s.slots, s.counts, s.queue
    places, measures, last = len(tables.place_term), len(tables.reads), len(queue) - 1
    while meta[QUEUE_SIZE] > 0 and queue[meta[QUEUE_HEAD], 0] + tables.limits[0] < until:
        t, slot = queue[meta[QUEUE_HEAD], 0], queue[meta[QUEUE_HEAD], 1]
        if meta[TOLD] == len(told.rows):
            return MORE_TOLD
        chunk, room, row = slots[slot, CHUNK], slots[slot, ROOM], slots[slot, HEAD]
        begin = chunk * _width(tables)
        if row < slots[slot, TAIL] and counts[begin + row] == t:
            for v in range(len(tables.terms)):
                p = tables.place_start[v + 1] - 1
                count = counts[begin + (1 + p) * room + row]
                if tables.trails[v] and count > 0:
                    out = _told(s, told, slot)
                    told.rows[out, 1] = min(told.rows[out, 1] + count, MOST)
                    for m in range(measures):
                        if tables.first_read[m, v] <= p - tables.place_start[v]:
                            cell = _cell(chunk, room, places, measures, m, p, row)
                            _join(told.measured, out, m, s.measured, cell, room * places, 1)
            slots[slot, HEAD] += 1
            meta[LIVE] -= 1
        meta[QUEUE_HEAD] = (meta[QUEUE_HEAD] + 1) & last
        meta[QUEUE_SIZE] -= 1
        if slots[slot, LAST] == t:
            leave(s.table, slots, slots[slot, KEY])
            if chunk >= 0:
                _give_back(s, chunk, room, _width(tables))
            slots[slot, LAST] = meta[FREE_SLOT]
            meta[FREE_SLOT] = slot
            meta[KEYS] -= 1
    return DONE


@bare
def _cell(chunk: int, room: int, places: int, measures: int, m: int, p: int, row: int) -> int:
    """Where the NUMBER of a measure at a place stands; the other kinds follow at distances of room * places."""
    return chunk * measures * KINDS * places + (m * KINDS * places + p) * room + row


@bare
def _join(into: Array, out: int, m: int, measured: Array, cell: int, step: int, times: int) -> None:
    """Adds a measure to one that is told, for each of so many events."""
    number = measured[cell + NUMBER * step]
    if number > 0:
        into[out, m, NUMBER] += times * number
        into[out, m, SUM] += times * measured[cell + SUM * step]
        into[out, m, LEAST] = min(into[out, m, LEAST], measured[cell + LEAST * step])
        into[out, m, GREATEST] = max(into[out, m, GREATEST], measured[cell + GREATEST * step])


@bare
def _give_back(s: State, chunk: int, room: int, width: int) -> None:
    size = 0
    while (1 << size) < room:
        size += 1
    s.counts[chunk * width] = s.free[size]
    s.free[size] = chunk


@bare
def _told(s: State, told: Told, slot: int) -> Any:
    """The row in which what a slot's key has is told, a new one if there is none in this call."""
    slots, meta, rows = s.slots, s.meta, told.rows
    if slots[slot, CALL] != meta[CALLS]:
        out = meta[TOLD]
        slots[slot, CALL], slots[slot, OUT] = meta[CALLS], out
        meta[TOLD] += 1
        rows[out, 0], rows[out, 1] = slots[slot, KEY], 0
        for m in range(told.measured.shape[1]):
            _clear(told.measured, out, m)
    return slots[slot, OUT]


@bare
def _clear(measures: Array, a: int, b: int) -> None:
    measures[a, b, NUMBER], measures[a, b, SUM], measures[a, b, LEAST], measures[a, b, GREATEST] = (
        0.0,
        0.0,
        np.inf,
        -np.inf,
    )


@bare
def _slot(s: State, key: int) -> Any:
    """A slot for a key that has none; there is room."""
    meta, slots = s.meta, s.slots
    slot = meta[FREE_SLOT]
    if slot >= 0:
        meta[FREE_SLOT] = slots[slot, LAST]
    else:
        slot = meta[SLOTS]
        meta[SLOTS] += 1
    slots[slot, KEY], slots[slot, LAST], slots[slot, CHUNK] = key, NEVER, -1
    slots[slot, ROOM], slots[slot, HEAD], slots[slot, TAIL], slots[slot, CALL] = 0, 0, 0, 0
    for lead in range(s.back.shape[1]):
        s.back[slot, lead] = NEVER
    enter(s.table, key, slot)
    meta[KEYS] += 1
    return slot


@bare
def _take(
    tables: Tables, s: State, told: Told, now: int, key: int, group: Array, size: int, values: Array, step: Step
) -> None:
    """The events of one key and time."""
    meta, slots, terms = s.meta, s.slots, tables.terms
    starting, back = tables.limits[2], tables.limits[3]
    everything = 0
    for x in range(size):
        everything |= group[x]
    slot = find(s.table, slots, key)
    if slot < 0:
        if not everything & (starting | back):
            return
        slot = _slot(s, key)
    live = slots[slot, TAIL] > slots[slot, HEAD]
    if everything & starting:
        _start(tables, s, slot, now)
        live = True
    if live:
        for v in range(len(terms)):
            if everything & terms[v]:
                _count(tables, s, told, slot, now, v, group, size, values, step)
    if everything & (starting | back):
        if everything & back:
            for v in range(len(terms)):
                for n in range(tables.negation_start[v], tables.negation_start[v + 1]):
                    if tables.negation_left[n] < 0 and everything >> tables.negation_term[n] & 1:
                        s.back[slot, tables.lead[v]] = now
        slots[slot, LAST] = now
        queue = s.queue
        at = (meta[QUEUE_HEAD] + meta[QUEUE_SIZE]) & (len(queue) - 1)
        queue[at, 0], queue[at, 1] = now, slot
        meta[QUEUE_SIZE] += 1


@bare
def _start(tables: Tables, s: State, slot: int, now: int) -> None:
    """A row for a start, with nothing counted yet, behind the others of its key."""
    slots, counts, measured, width = s.slots, s.counts, s.measured, _width(tables)
    places, measures = len(tables.place_term), len(tables.reads)
    if slots[slot, CHUNK] < 0 or slots[slot, TAIL] == slots[slot, ROOM]:
        _make_room(s, slot, width, measures * KINDS * places)
    chunk, row, room = slots[slot, CHUNK], slots[slot, TAIL], slots[slot, ROOM]
    begin = chunk * width
    counts[begin + row] = now
    for p in range(places):
        counts[begin + (1 + p) * room + row] = 0
    for lead in range(tables.limits[1]):
        back = s.back[slot, lead]
        counts[begin + (1 + places + lead) * room + row] = NEVER if back == NEVER else back + tables.limits[0] + 1
    step = room * places
    for m in range(measures):
        for p in range(places):
            cell = _cell(chunk, room, places, measures, m, p, row)
            measured[cell], measured[cell + SUM * step] = 0.0, 0.0
            measured[cell + LEAST * step], measured[cell + GREATEST * step] = np.inf, -np.inf
    slots[slot, TAIL] += 1
    s.meta[LIVE] += 1


@bare
def _make_room(s: State, slot: int, width: int, measured_width: int) -> None:
    """Moves the live rows of a key to the begin of its chunk, or of one twice as large if they fill more than half."""
    slots, meta = s.slots, s.meta
    old, old_room, head = slots[slot, CHUNK], slots[slot, ROOM], slots[slot, HEAD]
    live = slots[slot, TAIL] - head
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
            chunk = meta[ROWS]
            meta[ROWS] += room
        meta[LARGEST] = max(meta[LARGEST], room)
    _move(s.counts, old * width + head, old_room, chunk * width, room, width, live)
    _move(s.measured, old * measured_width + head, old_room, chunk * measured_width, room, measured_width, live)
    if old >= 0 and old != chunk:
        _give_back(s, old, old_room, width)
    slots[slot, CHUNK], slots[slot, ROOM], slots[slot, HEAD], slots[slot, TAIL] = chunk, room, 0, live


@bare
def _move(array: Array, a: int, a_room: int, b: int, b_room: int, columns: int, live: int) -> None:
    for column in range(columns):
        for i in range(live):
            array[b + column * b_room + i] = array[a + column * a_room + i]


@bare
def _count(
    tables: Tables,
    s: State,
    told: Told,
    slot: int,
    now: int,
    v: int,
    group: Array,
    size: int,
    values: Array,
    step: Step,
) -> None:
    """One step of one variant: see the head of this file."""
    slots, counts = s.slots, s.counts
    first, places, measures = tables.place_start[v], len(tables.place_term), len(tables.reads)
    n, lead, trails = tables.place_start[v + 1] - first, tables.lead[v], tables.trails[v]
    chunk, room, head, tail = slots[slot, CHUNK], slots[slot, ROOM], slots[slot, HEAD], slots[slot, TAIL]
    begin = chunk * (1 + places + tables.limits[1])
    adds, zero = step.adds, step.zero
    _look(tables, v, group, size, values, n, step)
    end = tail - 1 if tail > head and counts[begin + tail - 1] == now else tail  # but for the start of this time
    may_end = begin + (1 + places + lead) * room
    for p in range(n - 1, -1, -1):
        if adds[p] == 0 and not zero[p]:
            continue
        stored = p < n - 1 or trails
        a, held_back = begin + (1 + first + p) * room, lead >= 0 and p == n - 1
        total = 0
        for row in range(head, end if p > 0 or zero[0] else head):
            d = counts[a - room + row] if p > 0 and adds[p] > 0 else 0
            if held_back and counts[may_end + row] > now:
                d = 0
            if stored:
                counts[a + row] = _plus(0 if zero[p] else counts[a + row], adds[p], d)
            else:
                total = _plus(total, adds[p], d)
        begins = p == 0 and adds[0] > 0 and not (held_back and counts[may_end + end] > now)
        if begins:
            if stored:
                counts[a + end] = adds[0]
            else:
                total = adds[0]
        out = _told(s, told, slot) if total > 0 else -1
        if total > 0:
            told.rows[out, 1] = min(told.rows[out, 1] + total, MOST)
        for m in range(measures):
            if p < tables.first_read[m, v]:
                continue
            cell, kind = _cell(chunk, room, places, measures, m, first + p, 0), room * places
            if stored:
                if zero[p]:
                    _forget(s.measured, cell, kind, head, end)
                if p > 0 and adds[p] > 0:
                    guard = may_end if held_back else -1
                    _carry(s, cell, room, kind, head, end, a - room, guard, now, adds[p], step.read, m, p)
                if begins:
                    for k in range(KINDS):
                        s.measured[cell + k * kind + end] = step.read[m, p, k]
            elif begins:
                _add(told.measured, out, m, 1, step.read, p)
            elif total > 0:
                for row in range(head, end):
                    d = counts[a - room + row]
                    if d > 0 and not (held_back and counts[may_end + row] > now):
                        _add(told.measured, out, m, d, step.read, p)
                        _join(told.measured, out, m, s.measured, cell - room + row, kind, adds[p])


@bare
def _forget(measured: Array, cell: int, kind: int, head: int, end: int) -> None:
    """Nothing is measured at a place."""
    for row in range(head, end):
        measured[cell + row], measured[cell + SUM * kind + row] = 0.0, 0.0
        measured[cell + LEAST * kind + row], measured[cell + GREATEST * kind + row] = np.inf, -np.inf


@bare
def _carry(
    s: State, cell: int, room: int, kind: int, head: int, end: int, before: int, guard: int, now: int, times: int,
    read: Array, m: int, p: int,
) -> None:  # fmt: skip
    """The step of a count for what is measured: of d partial matches of the place before, each with `times` events here.

    Without a branch, for the rows lie side by side. Those that may not end yet, by `guard`, count for nothing.
    """
    measured, counts = s.measured, s.counts
    number, total, least, greatest = read[m, p, NUMBER], read[m, p, SUM], read[m, p, LEAST], read[m, p, GREATEST]
    for row in range(head, end):
        d = counts[before + row]
        if guard >= 0:
            d = 0 if counts[guard + row] > now else d
        at, had = cell + row, measured[cell + row - room]
        some = d > 0
        more = some and had > 0.0
        measured[at] += (number * d if some else 0.0) + (times * had if more else 0.0)
        at += kind
        measured[at] += (total * d if some else 0.0) + (times * measured[at - room] if more else 0.0)
        at += kind
        measured[at] = min(measured[at], least if some else np.inf, measured[at - room] if more else np.inf)
        at += kind
        measured[at] = max(measured[at], greatest if some else -np.inf, measured[at - room] if more else -np.inf)


@bare
def _add(into: Array, out: int, m: int, d: int, read: Array, p: int) -> None:
    """Adds what is read at a place of d matches that are told."""
    if read[m, p, NUMBER] > 0:
        into[out, m, NUMBER] += read[m, p, NUMBER] * d
        into[out, m, SUM] += read[m, p, SUM] * d
        into[out, m, LEAST] = min(into[out, m, LEAST], read[m, p, LEAST])
        into[out, m, GREATEST] = max(into[out, m, GREATEST], read[m, p, GREATEST])


@bare
def _plus(c: int, times: int, d: int) -> int:
    """c + times * d, at most MOST; no step of it can overflow."""
    if times == 1:
        return min(c + d, MOST)
    if times == 0 or d == 0:
        return c
    return MOST if d > (MOST - c) // times else c + times * d


@bare
def _look(tables: Tables, v: int, group: Array, size: int, values: Array, n: int, step: Step) -> None:
    """How many events of a time count at each place, which counts they set to zero, and what measures read of them."""
    adds, zero, read, place_term = step.adds, step.zero, step.read, tables.place_term
    first = tables.place_start[v]
    for p in range(n):
        adds[p] = 0
        zero[p] = False
        for m in range(len(read)):
            _clear(read, m, p)
    for k in range(tables.negation_start[v], tables.negation_start[v + 1]):
        for x in range(size):
            if group[x] >> tables.negation_term[k] & 1:
                for p in range(max(tables.negation_left[k], 0), min(tables.negation_right[k], n)):
                    zero[p] = True
    for x in range(size):
        for p in range(n):
            if not group[x] >> place_term[first + p] & 1 or (size > 1 and _forbidden(tables, v, group, size, x, p)):
                continue
            adds[p] += 1
            for m in range(len(read)):
                column = tables.reads[m, first + p]
                if column >= 0 and not np.isnan(values[x, column]):
                    value = values[x, column]
                    read[m, p, NUMBER] += 1.0
                    read[m, p, SUM] += value
                    read[m, p, LEAST] = min(read[m, p, LEAST], value)
                    read[m, p, GREATEST] = max(read[m, p, GREATEST], value)


@bare
def _forbidden(tables: Tables, v: int, group: Array, size: int, x: int, p: int) -> bool:
    """Whether an event at a place inside of a gap has another one of its time that the gap forbids."""
    for k in range(tables.negation_start[v], tables.negation_start[v + 1]):
        if tables.negation_left[k] < p < tables.negation_right[k]:
            for y in range(size):
                if y != x and group[y] >> tables.negation_term[k] & 1:
                    return True
    return False
