"""Probabilities of global states agree with going through every way in which the begins can fall."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from property.strategies_latwin_frames import computations
from reference import latwin_probability as reference
from support.search import examples
from whenabouts_cloud.latwin.model.frame import frame
from whenabouts_cloud.latwin.probability import order_probability
from whenabouts_cloud.latwin.windows import walk


@st.composite
def stamped(draw):
    """The last states of a small computation with bounds of their begins, which share ends and may be points."""
    pasts = draw(computations((2, 3), 4))
    n, first, clocks, lo, hi = len(pasts), [], [], {}, {}
    for j, own in enumerate(pasts):
        begin = max(0, len(own) - draw(st.integers(1, 3)))
        first.append(begin)
        clocks.append([[max((k for p, k in past if p == i), default=0) for i in range(n)] for past in own[begin:]])
        for k in range(begin, len(own)):
            low = draw(st.integers(0, 5))
            lo[j, k], hi[j, k] = low, low + draw(st.sampled_from([0, 0, 1, 2, 4]))
    before = {(a, b) for a in lo for b in lo if a != b and a in pasts[b[0]][b[1]] and (a[1] > 0 or a[0] == b[0])}
    assume(len(lo) <= 6)
    window = frame(first, clocks)
    lows, highs = np.zeros(window.clocks.shape[:2], np.int64), np.zeros(window.clocks.shape[:2], np.int64)
    for (j, k), low in lo.items():
        lows[j, k - first[j]], highs[j, k - first[j]] = low, hi[j, k]
    ways = reference.passed(first, window.count.tolist(), lo, hi, before)
    assume(ways is not None)
    return window, lows, highs, ways


@pytest.mark.compiles
@settings(max_examples=examples(150), deadline=None)
@given(stamped(), st.integers(0, 3))
def test_exact_probabilities_are_those_of_all_ways(case, residue):
    """Of each global state and of a predicate; points coincide, bounds are shared, begins overlap or not."""
    window, lo, hi, ways = case
    emitted = order_probability.passed(window, lo, hi, seed=0)
    assert emitted.exact
    expected = {}
    for share, states in ways:
        for state in set(states):
            expected[state] = expected.get(state, Fraction(0)) + share
    probabilities = dict(zip(map(tuple, emitted.states.tolist()), emitted.probability.tolist(), strict=True))
    assert set(expected) <= set(probabilities)
    for state, value in probabilities.items():
        assert value == pytest.approx(float(expected.get(state, 0)), rel=1e-12, abs=0)
    held = order_probability.held(window, lo, hi, walk.each(window, lambda g: sum(g) % 4 == residue), seed=0)
    value = sum((share for share, states in ways if any(sum(g) % 4 == residue for g in states)), Fraction(0))
    assert held.probability == pytest.approx(float(value), rel=1e-12, abs=0)


@pytest.mark.compiles
@settings(max_examples=examples(40), deadline=None)
@given(stamped())
def test_sampled_probabilities_are_within_their_stated_error(case):
    """Within six standard errors of the exact ones, for every global state and for a predicate; marked as sampled."""
    window, lo, hi, ways = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_probability, "EXACT_WORK", 0)
        emitted = order_probability.passed(window, lo, hi, seed=3, samples=4000)
        held = order_probability.held(
            window, lo, hi, walk.each(window, lambda g: sum(g) % 2 == 0), seed=3, samples=4000
        )
    assert not emitted.exact
    assert not held.exact
    probabilities = dict(
        zip(map(tuple, emitted.states.tolist()), zip(emitted.probability, emitted.error, strict=True), strict=True)
    )
    for state in {state for _, states in ways for state in states}:
        expected = float(sum(share for share, states in ways if state in states))
        value, error = probabilities.get(state, (0.0, 1 / emitted.samples))
        assert abs(value - expected) <= 6 * error
    expected = float(sum(share for share, states in ways if any(sum(g) % 2 == 0 for g in states)))
    assert abs(held.probability - expected) <= 6 * held.error
