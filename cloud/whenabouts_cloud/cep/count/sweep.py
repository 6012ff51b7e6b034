"""The count as machine code: events of one key in the order of time, those of one time together.

A dynamic programme over the starts that live (`state`). With c[p] the number of partial matches of a start that
have come to place p, each event for place p adds c[p - 1] as it was before this time, from the last place down; a negated
event of the gap from place i to place j sets c[i] .. c[j - 1] to zero, after place j has added what was there. What events
of this time add inside of a gap that spans places stays unless another negated event has the same time. Measures go along.

A negation before the first event gives each start the time from which its matches may end: the window after the latest such
event. One after the last place holds the matches back until the start ends, for it may set them to zero until then.

Cost: an event touches the live starts of its key once for each place that it can take. Numbers above MOST become MOST.
"""

from typing import Any

from whenabouts_cloud.cep.count.live_starts import give_back, new_slot, start, width_of
from whenabouts_cloud.cep.count.measures import add, carry, cell_of, clear, forget, join
from whenabouts_cloud.cep.count.state import (  # fmt: skip
    AT,
    CALL,
    CALLS,
    CHUNK,
    FREE_SLOT,
    HEAD,
    HELD,
    KEY,
    KEYS,
    KINDS,
    LARGEST,
    LAST,
    LIVE,
    OUT,
    QUEUE_HEAD,
    QUEUE_SIZE,
    ROOM,
    ROWS,
    SLOTS,
    TAIL,
    TOLD,
    State,
    Told,
    find,
    leave,
    pop,
    push,
)
from whenabouts_cloud.cep.count.step import Step, look
from whenabouts_cloud.cep.kernel.layout import FOREVER, NEVER
from whenabouts_cloud.jit import Array, bare
from whenabouts_cloud.pattern.countable import Tables

MOST = (1 << 62) - 1  # a count that is told as this is this or more
DONE, MORE_HELD, MORE_SLOTS, MORE_ROWS, MORE_QUEUE, MORE_TOLD = range(6)


@bare
def run(
    tables: Tables, s: State, told: Told, step: Step, t: Array, key: Array, mask: Array, values: Array, frontier: Array,
    last: int,
) -> Any:  # fmt: skip
    """Takes in events, each with the frontier after it, then the frontier `last`; DONE, or what there must be more of first.

    Called again with more room it goes on where it was.
    """
    meta, held, held_values, queue = s.meta, s.held, s.held_values, s.queue
    window, width = tables.limits[0], width_of(tables)
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
def _end(tables: Tables, s: State, told: Told, until: int) -> int:
    """Ends the starts whose window is over before `until`, and forgets keys of which nothing is left."""
    meta, slots, counts, queue = s.meta, s.slots, s.counts, s.queue
    places, measures, last = len(tables.place_term), len(tables.reads), len(queue) - 1
    while meta[QUEUE_SIZE] > 0 and queue[meta[QUEUE_HEAD], 0] + tables.limits[0] < until:
        t, slot = queue[meta[QUEUE_HEAD], 0], queue[meta[QUEUE_HEAD], 1]
        if meta[TOLD] == len(told.rows):
            return MORE_TOLD
        chunk, room, row = slots[slot, CHUNK], slots[slot, ROOM], slots[slot, HEAD]
        begin = chunk * width_of(tables)
        if row < slots[slot, TAIL] and counts[begin + row] == t:
            for v in range(len(tables.terms)):
                p = tables.place_start[v + 1] - 1
                count = counts[begin + (1 + p) * room + row]
                if tables.trails[v] and count > 0:
                    out = _told(s, told, slot)
                    told.rows[out, 1] = min(told.rows[out, 1] + count, MOST)
                    for m in range(measures):
                        if tables.first_read[m, v] <= p - tables.place_start[v]:
                            cell = cell_of(chunk, room, places, measures, m, p, row)
                            join(told.measured, out, m, s.measured, cell, room * places, 1)
            slots[slot, HEAD] += 1
            meta[LIVE] -= 1
        meta[QUEUE_HEAD] = (meta[QUEUE_HEAD] + 1) & last
        meta[QUEUE_SIZE] -= 1
        if slots[slot, LAST] == t:
            leave(s.table, slots, slots[slot, KEY])
            if chunk >= 0:
                give_back(s, chunk, room, width_of(tables))
            slots[slot, LAST] = meta[FREE_SLOT]
            meta[FREE_SLOT] = slot
            meta[KEYS] -= 1
    return DONE


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
            clear(told.measured, out, m)
    return slots[slot, OUT]


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
        slot = new_slot(s, key)
    live = slots[slot, TAIL] > slots[slot, HEAD]
    if everything & starting:
        start(tables, s, slot, now)
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
    look(tables, v, group, size, values, n, step)
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
            cell, kind = cell_of(chunk, room, places, measures, m, first + p, 0), room * places
            if stored:
                if zero[p]:
                    forget(s.measured, cell, kind, head, end)
                if p > 0 and adds[p] > 0:
                    guard = may_end if held_back else -1
                    carry(s, cell, room, kind, head, end, a - room, guard, now, adds[p], step.read, m, p)
                if begins:
                    for k in range(KINDS):
                        s.measured[cell + k * kind + end] = step.read[m, p, k]
            elif begins:
                add(told.measured, out, m, 1, step.read, p)
            elif total > 0:
                for row in range(head, end):
                    d = counts[a - room + row]
                    if d > 0 and not (held_back and counts[may_end + row] > now):
                        add(told.measured, out, m, d, step.read, p)
                        join(told.measured, out, m, s.measured, cell - room + row, kind, adds[p])


@bare
def _plus(c: int, times: int, d: int) -> int:
    """c + times * d, at most MOST; no step of it can overflow."""
    if times == 1:
        return min(c + d, MOST)
    if times == 0 or d == 0:
        return c
    return MOST if d > (MOST - c) // times else c + times * d
