"""The best pairs of a reading (`correlation.nearest`)."""

import numpy as np
import pyarrow as pa
import pytest

from whenabouts_cloud.correlation.nearest import nearest
from whenabouts_cloud.correlation.pairs import RESULT
from whenabouts_cloud.pattern.condition import Condition

WITHIN = Condition("within", d=100, confidence="0.2")
A = (0, 100)


def pairs(*partners):
    """Pairs of the reading A with (t_min, t_max, probability, seq)."""
    rows = [
        {"a_t_min": A[0], "a_t_max": A[1], "b_t_min": t_min, "b_t_max": t_max, "probability": probability,
         "b_site": "hall", "b_gateway": "g", "b_boot": 1, "b_seq": seq}
        for t_min, t_max, probability, seq in partners
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=RESULT)


def kept(table, k, shift_us=0):
    return nearest(table, np.zeros(table.num_rows, np.int64), k, WITHIN, shift_us).tolist()


def test_the_most_likely_pair_stays():
    """Also if another partner is nearer."""
    assert kept(pairs((-200, 300, 0.4, 1), (150, 150, 0.5, 2)), 1) == [False, True]


def test_among_certain_pairs_the_nearest_middle_stays():
    """Middles are compared with b moved by the difference of the offsets."""
    table = pairs((0, 0, 1.0, 1), (60, 60, 1.0, 2), (100, 100, 1.0, 3))
    assert kept(table, 1) == [False, True, False]
    assert kept(table, 2) == [True, True, False]
    assert kept(table, 1, shift_us=50) == [True, False, False]


def test_equal_pairs_are_decided_by_the_identity_of_b():
    """So every run keeps the same pair."""
    assert kept(pairs((50, 50, 1.0, 9), (50, 50, 1.0, 3)), 1) == [False, True]


def test_probabilities_closer_than_their_error_are_compared_exactly():
    """P is 0.5 and 0.51 for these stamps; the doubles given say otherwise by less than the guard."""
    wrong = pairs((150, 150, 0.5, 1), (149, 149, 0.5 - 1e-12, 2))
    assert kept(wrong, 1) == [False, True]


@pytest.mark.parametrize("k", [1, 2])
def test_each_reading_has_its_own_best_pairs(k):
    """The number of partners of one does not reduce those of another."""
    table = pairs((50, 50, 1.0, 1), (60, 60, 1.0, 2), (70, 70, 1.0, 3))
    mask = nearest(table, np.array([0, 0, 1]), k, WITHIN, 0)
    assert mask.tolist() == [True, k == 2, True]
