"""Rows emitted for a reading of side a, step by step: its mark decides, and each row is emitted once."""

import numpy as np
import pytest

from support.cloud.landing import EPOCH_US, reading, table
from whenabouts_cloud.correlation.pairs import READING
from whenabouts_cloud.correlation.stream.outer_join import CLOSED, KEPT, MATCHED, OPEN, UNSURE, Emission
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.rules import CorrelateRule, Stream

MS = 1000
NEAR = Condition("within", d=100 * MS, confidence=1)


def emission(kind="left", top_k=None):
    """For a rule with keys: dock and shelf within 100 ms."""
    dock, shelf = Stream("dock", "dock/tags", 0, None), Stream("shelf", "shelf/1", 0, None)
    return Emission(CorrelateRule("near", dock, shelf, NEAR, True, kind=kind, top_k=top_k), NEAR)


def readings(stream, *rows):
    """(seq, key, t_ms) as points in time."""
    made = [reading(stream[:4], n, stream, key, EPOCH_US + t * MS, EPOCH_US + t * MS) for n, key, t in rows]
    return table(made).select(READING.names).cast(READING)


def kept(rows, marks):
    return rows.append_column(KEPT.field("mark"), [np.array(marks, np.int8)])


def seqs(rows):
    return [(row["a_seq"], row["b_seq"]) for row in rows.to_pylist()]


def test_an_arriving_reading_is_open_unsure_or_closed():
    """Open; with matches of its time forgotten; without the key it needs. A join that emits only pairs needs no marks."""
    new = readings("dock/tags", (0, "k", 500), (1, "k", 50), (2, None, 500))
    #  shelf forgotten up to 300: a match of the reading at 50 (up to 150) may be among it
    horizon = EPOCH_US + 300 * MS
    assert emission().first_mark(new, horizon).tolist() == [OPEN, UNSURE, CLOSED]
    assert emission().first_mark(new, None).tolist() == [OPEN, OPEN, CLOSED]
    assert emission("inner").first_mark(new, horizon).tolist() == [OPEN, OPEN, OPEN]


@pytest.mark.parametrize(("kind", "emitted"), [("inner", []), ("left", [(2, None)]), ("anti", [(2, None)])])
def test_an_unmatchable_reading_is_emitted_at_arrival(kind, emitted):
    """Only for the kinds that emit readings in no pair."""
    new = readings("dock/tags", (0, "k", 500), (2, None, 500))
    tables = emission(kind).at_arrival(kept(new, [OPEN, CLOSED]))
    assert [pair for one in tables for pair in seqs(one)] == emitted


def test_a_reading_is_emitted_as_unmatched_once_and_only_when_it_is_certainly_in_no_pair():
    """Four readings before the bound, one of each mark, and an open one after it."""
    rows = readings("dock/tags", *((n, "k", 10 * n) for n in range(5)))
    one = emission()
    state, emitted = one.settle(kept(rows, [OPEN, MATCHED, UNSURE, CLOSED, OPEN]), EPOCH_US + 40 * MS)
    assert seqs(emitted) == [(0, None)]
    assert state["mark"].to_pylist() == [CLOSED, MATCHED, UNSURE, CLOSED, OPEN]
    state, emitted = one.settle(state, EPOCH_US + 40 * MS)
    assert emitted.num_rows == 0


@pytest.mark.parametrize(("kind", "emitted"), [("inner", [(0, 7)]), ("left", [(0, 7)]), ("anti", [])])
def test_a_pair_marks_its_reading_and_is_emitted_unless_only_unmatched_ones_are(kind, emitted):
    """A pair with a reading that was already emitted as unmatched is not emitted."""
    a, b = readings("dock/tags", (0, "k", 0), (1, "k", 5)), readings("shelf/1", (7, "k", 9))
    one = emission(kind)
    marks = [OPEN, OPEN] if kind == "inner" else [OPEN, CLOSED]
    places = np.array([0]) if kind == "inner" else np.array([0, 1])
    state, rows = one.note_pairs(kept(a, marks), 0, a, b, places, np.zeros(len(places), int), np.ones(len(places)))
    assert seqs(rows) == emitted
    assert state["mark"].to_pylist() == ([OPEN, OPEN] if kind == "inner" else [MATCHED, CLOSED])


def test_the_best_pairs_are_held_back_until_their_reading_is_settled():
    """Two pairs come, the nearer one second; one is emitted, at the end, and nothing stays behind."""
    a, b = readings("dock/tags", (0, "k", 0)), readings("shelf/1", (7, "k", 90), (8, "k", 20))
    one, first = emission("inner", top_k=1), np.array([0])
    state, rows = one.note_pairs(kept(a, [OPEN]), 0, a, b, first, np.array([0]), np.ones(1))
    assert rows.num_rows == 0
    assert seqs(one.best) == [(0, 7)]
    state, _ = one.note_pairs(state, 0, a, b, first, np.array([1]), np.ones(1))
    assert seqs(one.best) == [(0, 8)]
    state, rows = one.settle(state, EPOCH_US + 1)
    assert seqs(rows) == [(0, 8)]
    assert one.best.num_rows == 0
    assert state["mark"].to_pylist() == [CLOSED]
    assert one.take_best(a).num_rows == 0
