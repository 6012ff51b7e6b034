"""Counting as machine code: events of one key in time order, simultaneous events together.

A dynamic programme over the live starts (`state`). Let c[p] be the number of partial matches of a start that have reached
place p. Each event for place p adds c[p - 1] as it was before this time, from the last place down. A negated event of the
gap from place i to place j sets c[i] .. c[j - 1] to zero, after place j has added the old c[j - 1]. Amounts that events of
this time add inside a gap that spans places stay unless another negated event has the same time. Measures change alike.

A negation before the first event gives each start the time from which its matches may end: the window after the latest such
event. A negation after the last place delays the matches until the start ends, since it may reset them until then.

Cost: an event touches the live starts of its key once for each place that it can take. Numbers above MOST become MOST.
"""

from typing import Any, NamedTuple

from whenabouts_cloud.cep.count.live_starts import add_start, free_chunk, new_slot, width_of
from whenabouts_cloud.cep.count.measures import add, carry, cell_of, clear, forget, join
from whenabouts_cloud.cep.count.state import (
    HELD,
    KINDS,
    META,
    QUEUE,
    RESULT,
    SLOT,
    KeyResults,
    Rows,
    State,
    find,
    leave,
    pop,
    push,
)
from whenabouts_cloud.cep.count.step import Effect, compute_effect
from whenabouts_cloud.cep.kernel.layout import FOREVER, NEVER
from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref
from whenabouts_cloud.pattern.countable import LIMIT, Tables

MOST = (1 << 62) - 1  # an emitted count of MOST means MOST or more
DONE, MORE_HELD, MORE_SLOTS, MORE_ROWS, MORE_QUEUE, MORE_EMITTED = range(6)


class Events(NamedTuple):
    """The events of a call in the order of arrival, each with the frontier after it."""

    t: Array
    key: Array
    mask: Array
    values: Array
    frontier: Array


class Machine(NamedTuple):
    """The tables and arrays of a counter, as arguments of the kernels."""

    tables: Tables
    state: State
    emitted: KeyResults
    step: Effect


class Place(NamedTuple):
    """A place of an alternative in a step; `column` and `guard` are the indices of its first numbers in `counts`."""

    number: int  # in the alternative
    of_all: int  # among the places of all alternatives
    column: int
    guard: int  # times from which rows may end, -1: all may
    adds: int
    zero: bool
    stored: bool  # False: matches are complete here, and emitted
    begins: bool  # True if a match can begin here at this time


@compiled_noref
def process_events(machine: Machine, events: Events, last: int) -> Any:
    """Processes events, each with the frontier after it, then the frontier `last`; returns DONE or the array that must grow.

    Called again with more room, it resumes where it stopped.
    """
    state = machine.state
    meta, held = state.meta, state.held
    i, wanted = meta[META.event], DONE
    while True:
        reached = last if i == len(events.t) else (events.frontier[i - 1] if i > 0 else NEVER)
        wanted = _count_passed(machine, reached)
        if wanted == DONE and i < len(events.t) and meta[META.held] == len(held):
            wanted = MORE_HELD
        if wanted != DONE or i == len(events.t):
            meta[META.event] = i
            return wanted
        push(held, state.held_values, meta[META.held], (events.t[i], events.key[i], events.mask[i]), events.values[i])
        meta[META.held] += 1
        i += 1


@compiled_inline
def _count_passed(machine: Machine, reached: int) -> Any:
    """Counts the events that the frontier has passed, by key and time; returns DONE or the array that must grow."""
    tables, state = machine.tables, machine.state
    meta, held, queue = state.meta, state.held, state.queue
    while True:
        first = held[0, HELD.t] if meta[META.held] > 0 else FOREVER
        until = min(first, reached)
        if meta[META.queue_size] > 0 and queue[meta[META.queue_head], QUEUE.t] + tables.limits[LIMIT.window] < until:
            wanted = _end_starts(machine, until)
            if wanted != DONE:
                return wanted
        if first >= reached:
            return DONE
        if meta[META.free_slot] < 0 and (
            meta[META.slots] == len(state.slots) or 2 * meta[META.slots] >= len(state.table)
        ):
            return MORE_SLOTS
        if meta[META.queue_size] == len(queue):
            return MORE_QUEUE
        if meta[META.emitted] == len(machine.emitted.rows):
            return MORE_EMITTED
        if (meta[META.rows] + 2 * meta[META.largest]) * width_of(tables) > len(state.counts):
            return MORE_ROWS
        _count_group(machine, first, held[0, HELD.key], _pop_group(state, machine.step))


@compiled_inline
def _pop_group(state: State, step: Effect) -> Any:
    """Moves the events of the first key and time from the heap into the step; returns their number."""
    held, held_values = state.held, state.held_values
    t, key, size, count = held[0, HELD.t], held[0, HELD.key], state.meta[META.held], 0
    while size > 0 and held[0, HELD.t] == t and held[0, HELD.key] == key:
        step.group[count] = held[0, HELD.mask]
        for column in range(held_values.shape[1]):
            step.values[count, column] = held_values[0, column]
        pop(held, held_values, size)
        size -= 1
        count += 1
    state.meta[META.held] = size
    return count


@compiled_noref
def _end_starts(machine: Machine, until: int) -> int:
    """Ends the starts whose window is over before `until`, and removes keys that have nothing left."""
    tables, state = machine.tables, machine.state
    meta, slots, queue = state.meta, state.slots, state.queue
    while meta[META.queue_size] > 0 and queue[meta[META.queue_head], QUEUE.t] + tables.limits[LIMIT.window] < until:
        t, slot = queue[meta[META.queue_head], QUEUE.t], queue[meta[META.queue_head], QUEUE.slot]
        if meta[META.emitted] == len(machine.emitted.rows):
            return MORE_EMITTED
        chunk, room, row = slots[slot, SLOT.chunk], slots[slot, SLOT.room], slots[slot, SLOT.head]
        if row < slots[slot, SLOT.tail] and state.counts[chunk * width_of(tables) + row] == t:
            _emit_trailing(machine, slot, row)
            slots[slot, SLOT.head] += 1
            meta[META.live] -= 1
        meta[META.queue_head] = (meta[META.queue_head] + 1) & (len(queue) - 1)
        meta[META.queue_size] -= 1
        if slots[slot, SLOT.last] == t:
            leave(state.table, slots, slots[slot, SLOT.key])
            if chunk >= 0:
                free_chunk(state, chunk, room, width_of(tables))
            slots[slot, SLOT.last] = meta[META.free_slot]
            meta[META.free_slot] = slot
            meta[META.keys] -= 1
    return DONE


@compiled_noref
def _emit_trailing(machine: Machine, slot: int, row: int) -> None:
    """Emits the matches that a trailing negation delayed until their start ended."""
    tables, state, emitted = machine.tables, machine.state, machine.emitted
    places, measures = len(tables.place_term), len(tables.reads)
    chunk, room = state.slots[slot, SLOT.chunk], state.slots[slot, SLOT.room]
    begin = chunk * width_of(tables)
    for alternative in range(len(tables.terms)):
        p = tables.place_start[alternative + 1] - 1
        count = state.counts[begin + (1 + p) * room + row]
        if tables.trails[alternative] and count > 0:
            out = _emitted(state, emitted, slot)
            emitted.rows[out, RESULT.matches] = min(emitted.rows[out, RESULT.matches] + count, MOST)
            for m in range(measures):
                if tables.first_read[m, alternative] <= p - tables.place_start[alternative]:
                    cell = cell_of(chunk, room, places, measures, m, p, row)
                    join(emitted.measured, out, m, state.measured, cell, room * places, 1)


@compiled_noref
def _emitted(state: State, emitted: KeyResults, slot: int) -> Any:
    """Row of the results of a slot's key, added if this call has none yet."""
    slots, meta, rows = state.slots, state.meta, emitted.rows
    if slots[slot, SLOT.call] != meta[META.calls]:
        out = meta[META.emitted]
        slots[slot, SLOT.call], slots[slot, SLOT.out] = meta[META.calls], out
        meta[META.emitted] += 1
        rows[out, RESULT.key], rows[out, RESULT.matches] = slots[slot, SLOT.key], 0
        for m in range(emitted.measured.shape[1]):
            clear(emitted.measured, out, m)
    return slots[slot, SLOT.out]


@compiled_noref
def _count_group(machine: Machine, now: int, key: int, size: int) -> None:
    """Counts the events of one key and time, `size` of them in the step."""
    tables, state, group = machine.tables, machine.state, machine.step.group
    meta, slots, terms = state.meta, state.slots, tables.terms
    starting, back = tables.limits[LIMIT.starting], tables.limits[LIMIT.back]
    everything = 0
    for x in range(size):
        everything |= group[x]
    slot = find(state.table, slots, key)
    if slot < 0:
        if not everything & (starting | back):
            return
        slot = new_slot(state, key)
    live = slots[slot, SLOT.tail] > slots[slot, SLOT.head]
    if everything & starting:
        add_start(tables, state, slot, now)
        live = True
    if live:
        for alternative in range(len(terms)):
            if everything & terms[alternative]:
                _count(machine, slot, now, alternative, size)
    if everything & (starting | back):
        if everything & back:
            for alternative in range(len(terms)):
                for n in range(tables.negation_start[alternative], tables.negation_start[alternative + 1]):
                    if tables.negation_left[n] < 0 and everything >> tables.negation_term[n] & 1:
                        state.back[slot, tables.lead[alternative]] = now
        slots[slot, SLOT.last] = now
        queue = state.queue
        last = (meta[META.queue_head] + meta[META.queue_size]) & (len(queue) - 1)
        queue[last, QUEUE.t], queue[last, QUEUE.slot] = now, slot
        meta[META.queue_size] += 1


@compiled_noref
def _count(machine: Machine, slot: int, now: int, alternative: int, size: int) -> None:
    """One step of an alternative, from its last place to its first: each place adds the count of the place before it."""
    tables, state, step = machine.tables, machine.state, machine.step
    slots, counts = state.slots, state.counts
    first, last = (
        tables.place_start[alternative],
        tables.place_start[alternative + 1] - tables.place_start[alternative] - 1,
    )
    chunk, room, head, tail = (
        slots[slot, SLOT.chunk], slots[slot, SLOT.room], slots[slot, SLOT.head], slots[slot, SLOT.tail],
    )  # fmt: skip
    begin = chunk * width_of(tables)
    end = tail - 1 if tail > head and counts[begin + tail - 1] == now else tail  # without the start of this time
    rows = Rows(slot, now, chunk, room, head, end)
    may_end = begin + (1 + len(tables.place_term) + tables.lead[alternative]) * room
    compute_effect(tables, alternative, size, step)
    for p in range(last, -1, -1):
        if step.adds[p] == 0 and not step.zero[p]:
            continue
        guard = may_end if tables.lead[alternative] >= 0 and p == last else -1
        begins = p == 0 and step.adds[0] > 0 and not (guard >= 0 and counts[guard + end] > now)
        stored = p < last or tables.trails[alternative]
        column = begin + (1 + first + p) * room
        place = Place(p, first + p, column, guard, step.adds[p], step.zero[p], stored, begins)
        _count_place(machine, rows, place, alternative)


@compiled_inline
def _count_place(machine: Machine, rows: Rows, place: Place, alternative: int) -> None:
    """The step at one place: updates counts of partial matches, or emits matches; with their measures."""
    tables, emitted = machine.tables, machine.emitted
    total, out = _add_partial_matches(machine.state.counts, rows, place), -1
    if total > 0:
        out = _emitted(machine.state, emitted, rows.slot)
        emitted.rows[out, RESULT.matches] = min(emitted.rows[out, RESULT.matches] + total, MOST)
    for m in range(len(tables.reads)):
        if place.number >= tables.first_read[m, alternative]:
            _measure(machine, rows, place, m, out)


@compiled_inline
def _add_partial_matches(counts: Array, rows: Rows, place: Place) -> Any:
    """Adds the count of the place before, times the events that add; returns the matches that are complete here."""
    before, grows = place.column - rows.room, place.number > 0 and place.adds > 0
    total = 0
    for row in range(rows.head, rows.end if place.number > 0 or place.zero else rows.head):
        amount = counts[before + row] if grows else 0
        if place.guard >= 0 and counts[place.guard + row] > rows.now:
            amount = 0
        if place.stored:
            counts[place.column + row] = _add_capped(
                0 if place.zero else counts[place.column + row], place.adds, amount
            )
        else:
            total = _add_capped(total, place.adds, amount)
    if place.begins:
        if place.stored:
            counts[place.column + rows.end] = place.adds
        else:
            total = place.adds
    return total


@compiled_inline
def _measure(machine: Machine, rows: Rows, place: Place, m: int, out: int) -> None:
    """The step of measure m at one place; `out` is the row of the emitted matches, -1 if there are none."""
    state, emitted, read = machine.state, machine.emitted, machine.step.read
    p, before, kind = place.number, place.column - rows.room, rows.room * len(machine.tables.place_term)
    places, measures = len(machine.tables.place_term), len(machine.tables.reads)
    cell = cell_of(rows.chunk, rows.room, places, measures, m, place.of_all, 0)
    if place.stored:
        if place.zero:
            forget(state.measured, cell, kind, rows.head, rows.end)
        if p > 0 and place.adds > 0:
            carry(state, cell, kind, rows, before, place.guard, read[m, p], place.adds)
        if place.begins:
            for k in range(KINDS):
                state.measured[cell + k * kind + rows.end] = read[m, p, k]
    elif place.begins:
        add(emitted.measured, out, m, 1, read, p)
    elif out >= 0:
        for row in range(rows.head, rows.end):
            amount = state.counts[before + row]
            if amount > 0 and not (place.guard >= 0 and state.counts[place.guard + row] > rows.now):
                add(emitted.measured, out, m, amount, read, p)
                join(emitted.measured, out, m, state.measured, cell - rows.room + row, kind, place.adds)


@compiled_noref
def _add_capped(c: int, times: int, amount: int) -> int:
    """c + times * amount, at most MOST, without overflow."""
    if times == 1:
        return min(c + amount, MOST)
    if times == 0 or amount == 0:
        return c
    return MOST if amount > (MOST - c) // times else c + times * amount
