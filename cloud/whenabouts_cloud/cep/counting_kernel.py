"""The count as machine code: events of one key in the order of time, those of one time together.

A dynamic programme over the starts that live (`counting_state`). With c[p] the number of partial matches of a start that have
come to place p, each event for place p adds c[p - 1] as it was before this time, from the last place down; a negated event of
the gap from place i to place j sets c[i] .. c[j - 1] to zero, after place j has added what was there. What events of this
time add inside of a gap that spans places stays unless another negated event has the same time. Measures go along.

A negation before the first event gives each start the time from which its matches may end: the window after the latest such
event. One after the last place holds the matches back until the start ends, for it may set them to zero until then.

Cost: an event touches the live starts of its key once for each place that it can take. Numbers above MOST become MOST.
"""

from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep.compiled import Array, compiled
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

MOST = (1 << 62) - 1  # a count that is told as this is this or more
DONE, MORE_HELD, MORE_SLOTS, MORE_ROWS, MORE_QUEUE, MORE_TOLD = range(6)


class Step(NamedTuple):
    """What the events of one time do at each place of a variant: how many add, whether they zero, what is read of them."""

    adds: Array
    zero: Array
    read: Array


@compiled
def run(
    tables: Tables, s: State, told: Told, t: Array, key: Array, mask: Array, values: Array, frontier: Array, last: int
) -> int:
    """Takes in events, each with the frontier after it, then the frontier `last`; DONE, or what there must be more of first.

    Called again with more room it goes on where it was.
    """
    meta = s.meta
    group, group_values = np.empty(16, np.int64), np.empty((16, s.held_values.shape[1]))
    places = len(tables.place_term)
    step = Step(np.empty(places, np.int64), np.empty(places, np.bool_), np.empty((len(tables.reads), places, KINDS)))
    while True:
        at = meta[AT]
        reached = last if at == len(t) else (frontier[at - 1] if at > 0 else NEVER)
        while True:
            first = s.held[0, 0] if meta[HELD] > 0 else FOREVER
            wanted = _end(tables, s, told, min(first, reached))
            if wanted != DONE:
                return wanted
            if first >= reached:
                break
            wanted = _room(tables, s, told)
            if wanted != DONE:
                return wanted
            now, of, count = first, s.held[0, 1], 0
            while meta[HELD] > 0 and s.held[0, 0] == now and s.held[0, 1] == of:
                if count == len(group):
                    group = np.concatenate((group, group))
                    group_values = np.concatenate((group_values, group_values))
                group[count] = s.held[0, 2]
                group_values[count] = s.held_values[0]
                pop(s.held, s.held_values, meta[HELD])
                meta[HELD] -= 1
                count += 1
            _take(tables, s, told, now, of, group[:count], group_values, step)
        if at == len(t):
            return DONE
        if meta[HELD] == len(s.held):
            return MORE_HELD
        push(s.held, s.held_values, meta[HELD], t[at], key[at], mask[at], values[at])
        meta[HELD] += 1
        meta[AT] += 1


@compiled
def _room(tables: Tables, s: State, told: Told) -> int:
    """Whether there is room for whatever the next time of a key may need."""
    meta = s.meta
    if meta[FREE_SLOT] < 0 and (meta[SLOTS] == len(s.slots) or 2 * meta[SLOTS] >= len(s.table)):
        return MORE_SLOTS
    if meta[QUEUE_SIZE] == len(s.queue):
        return MORE_QUEUE
    if meta[TOLD] == len(told.rows):
        return MORE_TOLD
    slot = find(s.table, s.slots, s.held[0, 1])
    room = FIRST_ROOM if slot < 0 or s.slots[slot, CHUNK] < 0 else 2 * s.slots[slot, ROOM]
    if (meta[ROWS] + room) * _width(tables) > len(s.counts):
        return MORE_ROWS
    return DONE


@compiled
def _width(tables: Tables) -> int:
    return 1 + len(tables.place_term) + tables.limits[1]


@compiled
def _end(tables: Tables, s: State, told: Told, until: int) -> int:
    """Ends the starts whose window is over before `until`, and forgets keys of which nothing is left."""
    meta, places, last = s.meta, len(tables.place_term), len(s.queue) - 1
    while meta[QUEUE_SIZE] > 0 and s.queue[meta[QUEUE_HEAD], 0] + tables.limits[0] < until:
        t, slot = s.queue[meta[QUEUE_HEAD], 0], s.queue[meta[QUEUE_HEAD], 1]
        if meta[TOLD] == len(told.rows):
            return MORE_TOLD
        one = s.slots[slot]
        begin = one[CHUNK] * _width(tables)
        if one[HEAD] < one[TAIL] and s.counts[begin + one[HEAD]] == t:
            row = one[HEAD]
            for v in range(len(tables.terms)):
                p = tables.place_start[v + 1] - 1
                count = s.counts[begin + (1 + p) * one[ROOM] + row]
                if tables.trails[v] and count > 0:
                    out = _told(s, told, slot)
                    told.rows[out, 1] = min(told.rows[out, 1] + count, MOST)
                    for m in range(len(tables.reads)):
                        if tables.first_read[m, v] <= p - tables.place_start[v]:
                            _join(told.measured[out, m], s.measured, _cell(one, places, len(tables.reads), m, p, row), one[ROOM] * places)
            one[HEAD] += 1
            meta[LIVE] -= 1
        meta[QUEUE_HEAD] = (meta[QUEUE_HEAD] + 1) & last
        meta[QUEUE_SIZE] -= 1
        if one[LAST] == t:
            leave(s.table, s.slots, one[KEY])
            if one[CHUNK] >= 0:
                _give_back(s, one[CHUNK], one[ROOM], _width(tables))
            one[LAST] = meta[FREE_SLOT]
            meta[FREE_SLOT] = slot
            meta[KEYS] -= 1
    return DONE


@compiled
def _cell(one: Array, places: int, measures: int, m: int, p: int, row: int) -> int:
    """Where the NUMBER of a measure at a place stands; the other kinds follow at distances of room * places."""
    return (one[CHUNK] * measures * KINDS * places) + ((m * KINDS) * places + p) * one[ROOM] + row


@compiled
def _join(into: Array, measured: Array, cell: int, step: int) -> None:
    """Adds a measure to one that is told."""
    number = measured[cell + NUMBER * step]
    if number > 0:
        into[NUMBER] += number
        into[SUM] += measured[cell + SUM * step]
        into[LEAST] = min(into[LEAST], measured[cell + LEAST * step])
        into[GREATEST] = max(into[GREATEST], measured[cell + GREATEST * step])


@compiled
def _give_back(s: State, chunk: int, room: int, width: int) -> None:
    size = 0
    while (1 << size) < room:
        size += 1
    s.counts[chunk * width] = s.free[size]
    s.free[size] = chunk


@compiled
def _told(s: State, told: Told, slot: int) -> int:
    """The row in which what a slot's key has is told, a new one if there is none in this call."""
    one = s.slots[slot]
    if one[CALL] != s.meta[CALLS]:
        one[CALL], one[OUT] = s.meta[CALLS], s.meta[TOLD]
        s.meta[TOLD] += 1
        told.rows[one[OUT], 0], told.rows[one[OUT], 1] = one[KEY], 0
        for m in range(told.measured.shape[1]):
            _clear(told.measured[one[OUT], m])
    return one[OUT]


@compiled
def _clear(measure: Array) -> None:
    measure[NUMBER], measure[SUM], measure[LEAST], measure[GREATEST] = 0.0, 0.0, np.inf, -np.inf


@compiled
def _slot(s: State, key: int) -> int:
    """A slot for a key that has none; there is room."""
    meta = s.meta
    slot = meta[FREE_SLOT]
    if slot >= 0:
        meta[FREE_SLOT] = s.slots[slot, LAST]
    else:
        slot = meta[SLOTS]
        meta[SLOTS] += 1
    one = s.slots[slot]
    one[KEY], one[LAST], one[CHUNK], one[ROOM], one[HEAD], one[TAIL], one[CALL], one[OUT] = key, NEVER, -1, 0, 0, 0, 0, -1
    s.back[slot] = NEVER
    enter(s.table, key, slot)
    meta[KEYS] += 1
    return slot


@compiled
def _take(tables: Tables, s: State, told: Told, now: int, key: int, group: Array, values: Array, step: Step) -> None:
    """The events of one key and time."""
    meta, limits = s.meta, tables.limits
    everything = 0
    for mask in group:
        everything |= mask
    slot = find(s.table, s.slots, key)
    if slot < 0:
        if not everything & (limits[2] | limits[3]):
            return
        slot = _slot(s, key)
    live = s.slots[slot, TAIL] - s.slots[slot, HEAD]
    if everything & limits[2]:
        _start(tables, s, slot, now)
    for v in range(len(tables.terms)):
        if everything & tables.terms[v] and (live > 0 or everything & limits[2]):
            _count(tables, s, told, slot, now, v, group, values, step)
    if everything & (limits[2] | limits[3]):
        for v in range(len(tables.terms)):
            for n in range(tables.negation_start[v], tables.negation_start[v + 1]):
                if tables.negation_left[n] < 0 and everything >> tables.negation_term[n] & 1:
                    s.back[slot, tables.lead[v]] = now
        s.slots[slot, LAST] = now
        at = (meta[QUEUE_HEAD] + meta[QUEUE_SIZE]) & (len(s.queue) - 1)
        s.queue[at, 0], s.queue[at, 1] = now, slot
        meta[QUEUE_SIZE] += 1


@compiled
def _start(tables: Tables, s: State, slot: int, now: int) -> None:
    """A row for a start, with nothing counted yet, behind the others of its key."""
    one, meta, width = s.slots[slot], s.meta, _width(tables)
    places, measures = len(tables.place_term), len(tables.reads)
    if one[CHUNK] < 0 or one[TAIL] == one[ROOM]:
        live = one[TAIL] - one[HEAD]
        old, old_room, head = one[CHUNK], one[ROOM], one[HEAD]
        if old < 0 or 2 * live > old_room:
            one[ROOM] = FIRST_ROOM if old < 0 else 2 * old_room
            size = 0
            while (1 << size) < one[ROOM]:
                size += 1
            one[CHUNK] = s.free[size]
            if one[CHUNK] >= 0:
                s.free[size] = s.counts[one[CHUNK] * width]
            else:
                one[CHUNK] = meta[ROWS]
                meta[ROWS] += one[ROOM]
        for column in range(width):
            a, b = (old * width + column * old_room) + head, one[CHUNK] * width + column * one[ROOM]
            for i in range(live):
                s.counts[b + i] = s.counts[a + i]
        for column in range(measures * KINDS * places):
            a = old * measures * KINDS * places + column * old_room + head
            b = one[CHUNK] * measures * KINDS * places + column * one[ROOM]
            for i in range(live):
                s.measured[b + i] = s.measured[a + i]
        if old >= 0 and old != one[CHUNK]:
            _give_back(s, old, old_room, width)
        one[HEAD], one[TAIL] = 0, live
    begin, row, room = one[CHUNK] * width, one[TAIL], one[ROOM]
    s.counts[begin + row] = now
    for p in range(places):
        s.counts[begin + (1 + p) * room + row] = 0
    for lead in range(tables.limits[1]):
        back = s.back[slot, lead]
        s.counts[begin + (1 + places + lead) * room + row] = NEVER if back == NEVER else back + tables.limits[0] + 1
    for m in range(measures):
        for p in range(places):
            cell = _cell(one, places, measures, m, p, row)
            s.measured[cell], s.measured[cell + room * places] = 0.0, 0.0
            s.measured[cell + LEAST * room * places], s.measured[cell + GREATEST * room * places] = np.inf, -np.inf
    one[TAIL] += 1
    meta[LIVE] += 1


@compiled
def _count(tables: Tables, s: State, told: Told, slot: int, now: int, v: int, group: Array, values: Array, step: Step) -> None:
    """One step of one variant: see the head of this file."""
    first, places, measures = tables.place_start[v], len(tables.place_term), len(tables.reads)
    n = tables.place_start[v + 1] - first
    one = s.slots[slot]
    begin, room = one[CHUNK] * _width(tables), one[ROOM]
    adds, zero, read = step.adds, step.zero, step.read
    _look(tables, v, group, values, n, adds, zero, read)
    started = one[TAIL] > one[HEAD] and s.counts[begin + one[TAIL] - 1] == now
    end = one[TAIL] - 1 if started else one[TAIL]
    may_end = begin + (1 + places + tables.lead[v]) * room
    for p in range(n - 1, -1, -1):
        if adds[p] == 0 and not zero[p]:
            continue
        stored = p < n - 1 or tables.trails[v]
        a = begin + (1 + first + p) * room
        if p > 0:
            total = 0
            for row in range(one[HEAD], end):
                d = s.counts[a - room + row] if adds[p] > 0 else 0
                if p == n - 1 and tables.lead[v] >= 0 and s.counts[may_end + row] > now:
                    d = 0
                if stored:
                    s.counts[a + row] = _plus(0 if zero[p] else s.counts[a + row], adds[p], d)
                else:
                    total = _plus(total, adds[p], d)
                if measures > 0:
                    _measure(tables, s, told, slot, v, p, row, adds[p], d, zero[p], read, stored)
            if total > 0:
                out = _told(s, told, slot)
                told.rows[out, 1] = min(told.rows[out, 1] + total, MOST)
            continue
        if zero[0]:
            for row in range(one[HEAD], end):
                s.counts[a + row] = 0
                for m in range(measures):
                    s.measured[_cell(one, places, measures, m, first, row)] = 0.0
        row = one[TAIL] - 1
        if adds[0] == 0 or (n == 1 and tables.lead[v] >= 0 and s.counts[may_end + row] > now):
            continue
        if stored:
            s.counts[a + row] = adds[0]
        else:
            out = _told(s, told, slot)
            told.rows[out, 1] = min(told.rows[out, 1] + adds[0], MOST)
        if measures > 0:
            _measure(tables, s, told, slot, v, 0, row, 0, 1, True, read, stored)


@compiled
def _plus(c: int, times: int, d: int) -> int:
    """c + times * d, at most MOST; no step of it can overflow."""
    if times == 1:
        return min(c + d, MOST)
    if times == 0 or d == 0:
        return c
    return MOST if d > (MOST - c) // times else c + times * d


@compiled
def _look(
    tables: Tables, v: int, group: Array, values: Array, n: int, adds: Array, zero: Array, read: Array
) -> None:
    """How many events of a time count at each place, which counts they set to zero, and what measures read of them."""
    first = tables.place_start[v]
    adds[:n] = 0
    zero[:n] = False
    for m in range(len(read)):
        for p in range(n):
            _clear(read[m, p])
    for k in range(tables.negation_start[v], tables.negation_start[v + 1]):
        found = False
        for mask in group:
            found = found or mask >> tables.negation_term[k] & 1 == 1
        if found:
            for p in range(max(tables.negation_left[k], 0), min(tables.negation_right[k], n)):
                zero[p] = True
    for x in range(len(group)):
        for p in range(n):
            if not group[x] >> tables.place_term[first + p] & 1:
                continue
            if len(group) > 1 and _forbidden(tables, v, group, x, p):
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


@compiled
def _forbidden(tables: Tables, v: int, group: Array, x: int, p: int) -> bool:
    """Whether an event at a place inside of a gap has another one of its time that the gap forbids."""
    for k in range(tables.negation_start[v], tables.negation_start[v + 1]):
        if tables.negation_left[k] < p < tables.negation_right[k]:
            for y in range(len(group)):
                if y != x and group[y] >> tables.negation_term[k] & 1:
                    return True
    return False


@compiled
def _measure(
    tables: Tables, s: State, told: Told, slot: int, v: int, p: int, row: int, times: int, d: int, zero: bool, read: Array,
    stored: bool,
) -> None:  # fmt: skip
    """The step of a count for what is measured: d partial matches of the place before, each with `times` events of this place.

    At place 0 there is none before: `times` is 0, d is 1, and only what is read of the events counts.
    """
    one, places, measures = s.slots[slot], len(tables.place_term), len(tables.reads)
    step, place = one[ROOM] * places, tables.place_start[v] + p
    for m in range(measures):
        if p < tables.first_read[m, v]:
            continue
        cell = _cell(one, places, measures, m, place, row)
        if stored and zero:
            s.measured[cell], s.measured[cell + SUM * step] = 0.0, 0.0
            s.measured[cell + LEAST * step], s.measured[cell + GREATEST * step] = np.inf, -np.inf
        if d == 0:
            continue
        number, total, least, greatest = 0.0, 0.0, np.inf, -np.inf
        if read[m, p, NUMBER] > 0:
            number, total = read[m, p, NUMBER] * d, read[m, p, SUM] * d
            least, greatest = read[m, p, LEAST], read[m, p, GREATEST]
        before = cell - one[ROOM]
        if times > 0 and s.measured[before] > 0:
            number += times * s.measured[before]
            total += times * s.measured[before + SUM * step]
            least = min(least, s.measured[before + LEAST * step])
            greatest = max(greatest, s.measured[before + GREATEST * step])
        if number > 0 and stored:
            s.measured[cell] += number
            s.measured[cell + SUM * step] += total
            s.measured[cell + LEAST * step] = min(s.measured[cell + LEAST * step], least)
            s.measured[cell + GREATEST * step] = max(s.measured[cell + GREATEST * step], greatest)
        elif number > 0:
            into = told.measured[_told(s, told, slot), m]
            into[NUMBER] += number
            into[SUM] += total
            into[LEAST] = min(into[LEAST], least)
            into[GREATEST] = max(into[GREATEST], greatest)
