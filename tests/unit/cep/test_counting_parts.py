"""Parts of the count by themselves: what is read of events of one time, what is measured, and the rows of starts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_cloud.cep import Pattern
from whenabouts_cloud.cep.count.live_starts import add_start, free_chunk, new_slot, width_of
from whenabouts_cloud.cep.count.measures import clear, forget, join, take_in
from whenabouts_cloud.cep.count.state import FIRST_ROOM, GREATEST, KINDS, LEAST, NUMBER, SLOT, SUM, more_rows, new_state
from whenabouts_cloud.cep.count.step import compute_effect, new_step
from whenabouts_cloud.pattern.countable import countable

NAMES = ["A", "B", "C", "D"]


def tables_of(text):
    """The tables of a pattern, and the bit of each of its types."""
    counted = countable(Pattern.parse(text, unit_us=1).plan(NAMES), len(NAMES), [], {})
    return counted.tables, [int(mask) for mask in counted.type_mask]


@given(st.lists(st.lists(st.floats(-100, 100), max_size=5), max_size=4))
@settings(max_examples=examples(100), deadline=None)
def test_what_is_read_in_parts_and_joined_is_what_all_values_give(parts):
    """Number, sum, least and greatest of all, each part counted twice, as for two events that have it."""
    emitted, read = np.zeros((1, 1, KINDS)), np.zeros((1, 1, KINDS))
    clear(emitted, 0, 0)
    for values in parts:
        clear(read, 0, 0)
        for value in values:
            take_in(read, 0, 0, value)
        join(emitted, 0, 0, read.ravel(), 0, 1, 2)
    every = [value for values in parts for value in values]
    assert emitted[0, 0, NUMBER] == 2 * len(every)
    assert emitted[0, 0, SUM] == pytest.approx(2 * sum(every))
    assert emitted[0, 0, LEAST] == min(every, default=np.inf)
    assert emitted[0, 0, GREATEST] == max(every, default=-np.inf)
    held = np.concatenate([emitted[0, 0]])
    forget(held, 0, 1, 0, 1)
    assert held.tolist() == [0.0, 0.0, np.inf, -np.inf]


def test_events_of_one_time_add_at_their_places_and_zero_those_of_their_gaps():
    """
    SEQ(A, B, !C, D): two B and one C at one time: B adds twice, what waited behind B for D is gone
    """
    tables, bits = tables_of("SEQ(A, B, !C, D) WITHIN 10")
    state = new_state(0, 0, width_of(tables), 0)
    step = new_step(tables, state)
    step.group[:3] = [bits[1], bits[1], bits[2]]
    compute_effect(tables, 0, 3, step)
    assert step.adds[:3].tolist() == [0, 2, 0]
    assert step.zero[:3].tolist() == [False, True, False]


def test_the_rows_of_a_key_move_to_a_larger_chunk_and_leave_theirs_to_the_next():
    """A fifth start needs room for eight; the chunk of four is the next key's."""
    tables, _ = tables_of("SEQ(A, B) WITHIN 10")
    state = new_state(0, 0, width_of(tables), 0)
    state = more_rows(state)
    slot = new_slot(state, 7)
    for now in range(FIRST_ROOM):
        add_start(tables, state, slot, now)
    first = state.slots[slot, SLOT.chunk]
    add_start(tables, state, slot, FIRST_ROOM)
    chunk, room, head, tail = (state.slots[slot, column] for column in (SLOT.chunk, SLOT.room, SLOT.head, SLOT.tail))
    assert (room, tail - head) == (2 * FIRST_ROOM, FIRST_ROOM + 1)
    begun = state.counts[chunk * width_of(tables) + head :][: tail - head]
    assert begun.tolist() == list(range(FIRST_ROOM + 1)), "the times of the starts, in order"
    other = new_slot(state, 8)
    add_start(tables, state, other, 20)
    assert state.slots[other, SLOT.chunk] == first != chunk
    free_chunk(state, chunk, room, width_of(tables))
    third = new_slot(state, 9)
    for now in range(FIRST_ROOM + 1):
        add_start(tables, state, third, now)
    assert state.slots[third, SLOT.chunk] == chunk
