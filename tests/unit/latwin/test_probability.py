"""The probability that a predicate held or a global state was passed, on time lines that can be worked out by hand."""

import numpy as np
import pytest

from whenabouts_cloud.latwin.model.frame import frame
from whenabouts_cloud.latwin.probability import order_probability
from whenabouts_cloud.latwin.probability.order_probability import BEFORE, held, passed
from whenabouts_cloud.latwin.probability.spread import Draws, sample
from whenabouts_cloud.latwin.windows import walk

TWO = frame([0, 0], [[[0, 0], [1, 0]], [[0, 0], [0, 1]]])


def when(*bounds):
    """lo and hi (n, w) from one list of (lo, hi) per process."""
    return np.array([[b[0] for b in row] for row in bounds]), np.array([[b[1] for b in row] for row in bounds])


def is_state(*numbers):
    return walk.each(TWO, lambda g: g == numbers)


def test_the_state_between_two_uncertain_changes():
    """State (1, 0) was passed if P0 changed first: half of the quarter of cases in which both are in [10, 15].

    P0            10 |----------| 20
    P1        5 |----------| 15
    """
    lo, hi = when([(BEFORE, BEFORE), (10, 20)], [(BEFORE, BEFORE), (5, 15)])
    emitted = passed(TWO, lo, hi, seed=0)
    assert emitted.states.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert emitted.probability.tolist() == pytest.approx([1, 7 / 8, 1 / 8, 1])
    assert (emitted.exact, emitted.error.tolist()) == (True, [0] * 4)
    assert held(TWO, lo, hi, is_state(1, 0), seed=0).probability == pytest.approx(1 / 8)


def test_what_lies_between_two_changes_at_one_moment_was_never_true():
    """Both change at 7: (0, 1) and (1, 0) last no time."""
    lo, hi = when([(BEFORE, BEFORE), (7, 7)], [(BEFORE, BEFORE), (7, 7)])
    assert passed(TWO, lo, hi, seed=0).probability.tolist() == [1, 0, 0, 1]
    assert held(TWO, lo, hi, is_state(1, 0), seed=0).probability == 0


def test_times_since_1970_lose_nothing():
    """Microseconds beside 1.7e15 of them."""
    base = 1_700_000_000_000_000
    lo, hi = when([(BEFORE, BEFORE), (base + 1, base + 2)], [(BEFORE, BEFORE), (base, base + 3)])
    assert passed(TWO, lo, hi, seed=0).probability.tolist() == pytest.approx([1, 1 / 2, 1 / 2, 1], rel=1e-12)


def test_messages_are_taken_into_account():
    """P1 changed after P0, which it knows: whatever the stamps would allow, (0, 1) never was."""
    window = frame([0, 0], [[[0, 0], [1, 0]], [[0, 0], [1, 1]]])
    lo, hi = when([(BEFORE, BEFORE), (10, 20)], [(BEFORE, BEFORE), (10, 20)])
    emitted = passed(window, lo, hi, seed=0)
    assert (emitted.states.tolist(), emitted.probability.tolist()) == (
        [[0, 0], [1, 0], [1, 1]],
        pytest.approx([1, 1, 1]),
    )


def test_a_state_known_to_have_ended_leaves_the_window():
    """P1's change at [0, 30] knew of a second change of P0, which has not come: (1, 1) is no longer in the window.

    P0   0  |1 at 10|  2 ?           (1, 0) is passed in any case, since 2 came before the change of P1
    P1   0             |1: 0..30|
    """
    window = frame([0, 0], [[[0, 0], [1, 0]], [[0, 0], [2, 1]]])
    lo, hi = when([(BEFORE, BEFORE), (10, 10)], [(BEFORE, BEFORE), (0, 30)])
    emitted = passed(window, lo, hi, seed=0)
    assert (emitted.states.tolist(), emitted.probability.tolist()) == ([[0, 0], [1, 0]], pytest.approx([1, 1]))


def test_long_chains_in_one_interval_are_exact():
    """Three processes, four changes each somewhere in the same second: each of the 34650 orders alike."""
    window = frame([0] * 3, [[[k if i == j else 0 for i in range(3)] for k in range(5)] for j in range(3)])
    lo, hi = when(*[[(BEFORE, BEFORE), *[(0, 10**6)] * 4]] * 3)
    emitted = passed(window, lo, hi, seed=0)
    probability = dict(zip(map(tuple, emitted.states.tolist()), emitted.probability.tolist(), strict=True))
    assert emitted.exact
    assert probability[4, 4, 0] == pytest.approx(1 / 495, rel=1e-12)  # 8! 4! / 12!
    for level in range(13):
        assert sum(p for state, p in probability.items() if sum(state) == level) == pytest.approx(1)


def test_beyond_the_limit_it_is_sampled_and_marked_as_not_exact():
    """Sixteen processes change within the same time: that the first four are among the first eight, C(12, 4) / C(16, 8)."""
    window = frame([0] * 16, [[[0] * 16, [int(i == j) for i in range(16)]] for j in range(16)])
    lo, hi = when(*[[(BEFORE, BEFORE), (0, 1000)]] * 16)
    emitted = held(
        window, lo, hi, lambda rows: rows[:, :4].all(axis=1) & (rows.sum(axis=1) == 8), seed=5, samples=20_000
    )
    exact = 495 / 12870  # C(12, 4) / C(16, 8)
    assert not emitted.exact
    assert emitted.samples == pytest.approx(20_000)  # all weights alike
    assert 0 < emitted.error < 0.002
    assert abs(emitted.probability - exact) < 5 * emitted.error
    never = held(window, lo, hi, lambda rows: rows[:, 0] > 5, seed=5, samples=1000)
    assert (never.probability, never.error) == (0, pytest.approx(1 / 1000))
    again = held(window, lo, hi, lambda rows: rows[:, 0] > 5, seed=5, samples=1000)
    assert again == never


def test_drawn_begins_of_a_chain_have_equal_weights():
    """Four begins of one process in one interval are drawn as four sorted uniform ones: nothing is thrown away."""
    lo, hi, weights = np.zeros((1, 4)), np.ones((1, 4)), np.empty(500)
    need, order = np.arange(4).reshape(1, 4, 1), np.array([(0, k) for k in range(4)])
    rows, lasts = np.empty((500, 5, 1), np.uint16), np.empty((500, 5), np.bool_)
    chance = np.random.default_rng(1).random((500, 4))
    sample(order, lo, hi, need, np.array([[3.0, 2.0, 1.0, 0.0]]), chance, Draws(weights, rows, lasts))
    assert weights == pytest.approx(1 / 24)
    assert (rows[:, :, 0] == np.arange(5)).all()


def test_an_empty_window_has_no_states():
    """Nothing held of a process: no global state is within the window."""
    window = frame([0, 0], [[[0, 0]], []])
    lo, hi = when([(0, 1)], [(0, 0)])
    assert held(window, lo, hi, lambda rows: rows[:, 0] >= 0, seed=0).probability == 0
    assert len(passed(window, lo, hi, seed=0).states) == 0


def test_contradictions_and_missing_bounds_are_reported():
    """With the state and what to do."""
    with pytest.raises(ValueError, match="state 0 of process 0 to begin before 3 and after 5"):
        held(TWO, *when([(5, 5), (1, 3)], [(0, 0), (1, 2)]), is_state(1, 0), seed=0)
    with pytest.raises(ValueError, match="as bounds of the start of state 1 of process 1, expected both"):
        held(TWO, *when([(0, 0), (1, 3)], [(0, 0), (1, order_probability.AFTER)]), is_state(1, 0), seed=0)
    with pytest.raises(ValueError, match="expected \\(2, 2\\)"):
        held(TWO, np.zeros((2, 1)), np.zeros((2, 1)), is_state(1, 0), seed=0)
    crossed = frame([0, 0], [[[0, 0], [1, 1]], [[0, 0], [1, 1]]])
    with pytest.raises(ValueError, match="name each other"):
        held(crossed, *when([(0, 0), (1, 3)], [(0, 0), (1, 2)]), is_state(1, 0), seed=0)
