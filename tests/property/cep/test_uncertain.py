"""Uncertain stamps: every mode equals trying the placements one by one; the laws between the modes hold."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reference import cep_uncertain as reference
from reference.cep_uncertain import Case, Obstacle
from support.search import examples
from whenabouts_cloud.cep.uncertain.bounds import bounds
from whenabouts_cloud.cep.uncertain.chain_probability import ERROR, probability
from whenabouts_cloud.cep.uncertain.forbidden_events import obstacles
from whenabouts_cloud.cep.uncertain.order_ideals import ideals
from whenabouts_cloud.cep.uncertain.refine import Candidates, refine
from whenabouts_cloud.pattern.plan import Alternative, Mode, Negation, Plan

UNCERTAIN_MAX = 4  # stamps that are no points: the reference tries all orders of them

stamps = st.tuples(st.integers(0, 5), st.sampled_from([0, 0, 1, 2, 3])).map(lambda v: (v[0], v[0] + v[1]))


@st.composite
def alternatives(draw, chain=None):
    """Up to three positives in any order, up to two negations with any sides."""
    n = draw(st.integers(1, 3))
    everything = (1 << n) - 1
    in_line = draw(st.booleans()) if chain is None else chain
    before: list[int] = []
    for i in range(n):
        mask = (1 << i) - 1 if in_line else draw(st.integers(0, (1 << i) - 1))
        for j in range(i):
            mask |= before[j] if mask >> j & 1 else 0
        before.append(mask)
    negations = []
    for _ in range(draw(st.integers(0, 2))):
        left = draw(st.integers(0, everything))
        negations.append(Negation(1, left, draw(st.integers(0, everything)) & ~left))
    return Alternative((0,) * n, tuple(range(n)), tuple(before), tuple(negations))


@st.composite
def cases(draw, stamps=stamps):
    """A candidate with up to three negated events, each in one gap or in several."""
    alternative = draw(alternatives())
    places = range(len(alternative.negations))
    among = st.sets(st.sampled_from(places), min_size=1).map(lambda v: tuple(sorted(v))) if places else st.nothing()
    drawn = draw(st.lists(st.builds(Obstacle, stamps, among), max_size=3)) if places else []
    positives = tuple(draw(stamps) for _ in alternative.before)
    return Case(alternative, positives, tuple(drawn), draw(st.integers(0, 7)), draw(st.booleans()))


def columns(case: Case):
    """The case as one candidate of the kernel: t_min, t_max, negated, ids."""
    a, b = np.array(case.stamps, np.int64).T
    negated = []
    for k in range(len(case.alternative.negations)):
        rows = [(*o.stamp, 100 + i) for i, o in enumerate(case.obstacles) if k in o.negations]
        low, high, names = np.array(rows, np.int64).reshape(-1, 3).T
        negated.append((np.array([0, len(rows)]), low, high, names))
    return a[None], b[None], negated, np.arange(len(a))[None]


def candidate(case: Case) -> Candidates:
    a, b, negated, ids = columns(case)
    return Candidates(a, b, ids, negated)


def plan_of(case: Case, mode: Mode, p: Fraction = Fraction(1)) -> Plan:
    return Plan((), (case.alternative,), len(case.stamps), case.window, case.strict, mode, p)


def emitted(case: Case, mode: Mode, p: Fraction = Fraction(1), **options) -> tuple[bool, float]:
    keep, value = refine(case.alternative, plan_of(case, mode, p), candidate(case), **options)
    return bool(keep[0]), float(value[0])


def uncertain_events(case: Case) -> int:
    return sum(low < high for low, high in [*case.stamps, *(o.stamp for o in case.obstacles)])


@given(cases())
@settings(max_examples=examples(400), deadline=None)
def test_possible_is_what_some_placement_on_the_grid_satisfies(case):
    """Ties, zero lengths and borders that are not attained are decided exactly."""
    assert emitted(case, "possible")[0] == reference.possible(case)


@given(cases())
@settings(max_examples=examples(400), deadline=None)
def test_probability_equals_the_exact_rational(case):
    """Integration without bounds: order, window, gaps, several gaps of one event, unordered positives, ties of points."""
    assume(uncertain_events(case) <= UNCERTAIN_MAX)
    a, b, negated, ids = columns(case)
    negated_events = obstacles(case.alternative, plan_of(case, "over"), a, b, negated, ids)
    assume(case.window > 0 or not case.strict)  # a window of nothing is decided before
    args = (negated_events.t_min, negated_events.t_max, negated_events.gaps, case.window, case.strict)
    assert abs(probability(ideals(case.alternative), a[0], b[0], *args) - reference.probability(case)) < 1e-13


@pytest.mark.compiles
@given(cases())
@settings(max_examples=examples(300), deadline=None)
def test_bounds_hold_the_probability_between_them(case):
    """The bounds are equal if all stamps are points."""
    assume(uncertain_events(case) <= UNCERTAIN_MAX)
    a, b, negated, ids = columns(case)
    negated_events = obstacles(case.alternative, plan_of(case, "over"), a, b, negated, ids)
    (lower,), (upper,), _ = bounds(ideals(case.alternative), a, b, negated_events, case.window, case.strict)
    assert lower - 1e-13 <= reference.probability(case) <= upper + 1e-13
    if uncertain_events(case) == 0:
        assert lower == upper


@given(cases(), st.sampled_from([Fraction(1, 10), Fraction(1, 2), Fraction(4, 5), Fraction(1)]))
@settings(max_examples=examples(300), deadline=None)
def test_over_keeps_what_has_the_probability_and_a_tie_belongs_to_it(case, p):
    """By bounds and by integration, at the threshold itself, and just above it."""
    assume(uncertain_events(case) <= UNCERTAIN_MAX)
    exact = reference.probability(case)
    assert emitted(case, "over", p)[0] == (exact >= p)
    assert emitted(case, "over", exact)[0]
    assert not emitted(case, "over", exact + Fraction(1, 10**9))[0]
    keep, value = emitted(case, "over", min(p, exact), exact=True)
    assert keep
    assert exact == 0 or abs(value - exact) < ERROR


@given(cases())
@settings(max_examples=examples(300), deadline=None)
def test_certain_implies_probability_one_implies_possible(case):
    """Certain is a match of probability 1 without integration; what has any probability is possible."""
    assume(uncertain_events(case) <= UNCERTAIN_MAX)
    exact = reference.probability(case)
    if emitted(case, "certain")[0]:
        assert exact == 1
        assert emitted(case, "over", Fraction(1)) == (True, 1.0)
    if exact > 0:
        assert emitted(case, "possible")[0]


@given(cases())
@settings(max_examples=examples(300), deadline=None)
def test_possible_with_room_to_spare_has_a_probability(case):
    """Possible with each stamp a little shorter and a window a little smaller, each obstacle in one gap: P > 0.

    What is possible only by touching ends, or by an event that must coincide with another, may have probability 0.
    """
    assume(uncertain_events(case) <= UNCERTAIN_MAX)
    assume(all(len(o.negations) == 1 for o in case.obstacles))
    assume(
        all(n.left and n.right for n in case.alternative.negations)
    )  # a smaller window would shorten the others' gaps
    scale = 1000

    def shorter(stamp):
        low, high = stamp
        return (low * scale + (low < high), high * scale - (low < high))

    tighter = case._replace(
        stamps=tuple(shorter(s) for s in case.stamps),
        obstacles=tuple(o._replace(stamp=shorter(o.stamp)) for o in case.obstacles),
        window=case.window * scale - 1,
    )
    if tighter.window >= 0 and emitted(tighter, "possible")[0]:
        assert reference.probability(case) > 0


@given(cases(), st.data())
@settings(max_examples=examples(300), deadline=None)
def test_widening_a_stamp_keeps_the_possible_possible(case, data):
    """Of a positive or of a negated event alike: all placements of before are still there."""

    def wider(stamp):
        return (stamp[0] - data.draw(st.integers(0, 2)), stamp[1] + data.draw(st.integers(0, 2)))

    if emitted(case, "possible")[0]:
        obstacles_ = tuple(o._replace(stamp=wider(o.stamp)) for o in case.obstacles)
        assert emitted(case._replace(stamps=tuple(wider(s) for s in case.stamps), obstacles=obstacles_), "possible")[0]


@given(cases(st.integers(0, 5).map(lambda t: (t, t))))
@settings(max_examples=examples(300), deadline=None)
def test_points_reduce_every_mode_to_plain_order(case):
    """Certain, possible and over any p agree with the definition on times."""
    t = [low for low, _ in case.stamps]
    match = reference.in_order(case, t, case.window) and all(
        reference.is_harmless(case, o, t, o.stamp[0], case.window) for o in case.obstacles
    )
    modes: list[Mode] = ["certain", "possible", "over"]
    assert [emitted(case, mode, Fraction(1, 100))[0] for mode in modes] == [match] * 3


@given(cases(), st.integers(-(2**52), 2**52), st.sampled_from([1, 1000, 10**9]))
@settings(max_examples=examples(200), deadline=None)
def test_neither_epoch_nor_unit_matters(case, epoch, unit):
    """Stamps in another unit since another epoch give the same answers and probabilities, to the last digits."""

    def moved(stamp):
        return (stamp[0] * unit + epoch, stamp[1] * unit + epoch)

    other = case._replace(
        stamps=tuple(moved(s) for s in case.stamps),
        obstacles=tuple(o._replace(stamp=moved(o.stamp)) for o in case.obstacles),
        window=case.window * unit,
    )
    assert emitted(other, "possible")[0] == emitted(case, "possible")[0]
    assert (
        abs(emitted(other, "over", Fraction(0), exact=True)[1] - emitted(case, "over", Fraction(0), exact=True)[1])
        < 1e-13
    )


@given(st.lists(cases(), min_size=1, max_size=6), st.sampled_from(["certain", "possible", "over"]))
@settings(max_examples=examples(100), deadline=None)
def test_candidates_do_not_influence_each_other(many, mode):
    """Many candidates of one alternative in one call give the results of separate calls."""
    first = many[0]
    same = [
        c._replace(
            alternative=first.alternative, obstacles=first.obstacles[: i + 1], window=first.window, strict=first.strict
        )
        for i, c in enumerate(many)
        if len(c.stamps) == len(first.stamps)
    ]
    alone = [emitted(c, mode, Fraction(1, 2)) for c in same]
    parts = [columns(c) for c in same]
    negated = []
    for k in range(len(first.alternative.negations)):
        lists = [p[2][k] for p in parts]
        offsets = np.r_[0, np.cumsum([len(v[1]) for v in lists])]
        negated.append((offsets, *(np.concatenate([v[i] for v in lists]) for i in (1, 2, 3))))
    keep, value = refine(
        first.alternative,
        replace(plan_of(first, mode, Fraction(1, 2))),
        Candidates(*(np.concatenate([p[i] for p in parts]) for i in (0, 1, 3)), negated),
    )
    np.testing.assert_array_equal(keep, [k for k, _ in alone])
    np.testing.assert_array_equal(value, [v for _, v in alone])
