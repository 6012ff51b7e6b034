"""The walk over order ideals (`cep.uncertain.chain_walk`) on two events whose probabilities are known by hand."""

import numpy as np
import pytest

from whenabouts_cloud.cep.uncertain.chain_probability import rules
from whenabouts_cloud.cep.uncertain.chain_walk import Order, Rule, Stamps, Start, terms_of, walk

IN_ORDER = [[1, -1], [-1, 2], [-1, -1]]  # no event, the first, both: the first event, then the second


def order(gaps=(), blocked=(0, 0, 0)):
    """The order of two events, with negations that forbid obstacles while an order ideal is in `blocked`."""
    columns = [0, 1, 3], IN_ORDER, blocked, [0, 1], gaps
    return Order(*(np.array(x, np.int64) for x in columns))


def probability(a, b, obstacles=(), **given):
    """Probability of the order, and of no obstacle in it, for stamps [a, b] of events and [x, y] of obstacles."""
    x_min, x_max = (np.array([stamp[end] for stamp in obstacles], float) for end in (0, 1))
    off = np.zeros(len(obstacles), bool)
    a, b = np.array(a, float), np.array(b, float)
    stamps = Stamps(a, b, x_min, x_max, off, off.copy(), 100.0, False)
    q = 6
    nodes, weights, upto = rules()
    ends = np.unique(np.concatenate([a, b, x_min, x_max]))
    ends = ends[(ends >= a.min()) & (ends <= b.max())]
    found = order(**given)
    start, gauss = Start(-1.0, 0.0, False, 0), Rule(nodes[q, :q], weights[q, :q], upto[q, :q, :q])
    return walk(start, np.inf, ends, stamps, found, terms_of(found, 0, stamps.leads), gauss)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([0, 0], [2, 2], 1 / 2),
        ([0, 1], [2, 3], 7 / 8),
        ([0, 2], [2, 4], 1),
        ([2, 0], [4, 2], 0),
        ([0, 1], [4, 1], 1 / 4),
    ],
)
def test_the_probability_of_an_order(a, b, expected):
    """Uniform stamps that are equal, overlap, are apart, or are a point."""
    assert probability(a, b) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("obstacle", "expected"), [((1, 1), 0), ((5, 5), 1), ((0, 4), 1 / 2), ((1, 9), 7 / 8)])
def test_no_obstacle_is_between_the_events(obstacle, expected):
    """Events at 0 and at 2: the part of the obstacle's stamp outside of them counts."""
    got = probability([0, 2], [0, 2], [obstacle], gaps=[1], blocked=[0, 1, 0])
    assert got == pytest.approx(expected, abs=1e-12)


def test_bits_are_needed_only_between_the_change_of_a_sum():
    """Two obstacles that the gap between the events forbids: their sums are open in one order ideal, 4 states."""
    two = order(gaps=[1, 1], blocked=[0, 1, 0])
    terms = terms_of(two, 0, np.zeros(2, bool))
    assert np.diff(terms.place).tolist() == [1, 4, 1]
    assert terms.free.tolist() == [[1, 1], [0, 0], [1, 1]]
