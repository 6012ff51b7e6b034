"""K-slack, conservative and aggressive give exactly the definition's matches, each at the moment its method has it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property.strategies_cep import cases, plans
from reference.cep import Case, Event, emitted_behind_slack, emitted_by_punctuation, final
from support.cep.checks import check_arrival, check_emitted, check_final, columns
from support.search import SEED, examples
from whenabouts_cloud.pattern.plan import Alternative, EventClass, Negation, Plan, Step
from whenabouts_cloud.research.baselines.aggressive import Aggressive
from whenabouts_cloud.research.baselines.conservative import Conservative
from whenabouts_cloud.research.baselines.kslack import KSlack
from whenabouts_cloud.research.baselines.timer_heap import empty_held, hold, take

METHODS = {"kslack": KSlack, "conservative": Conservative, "aggressive": Aggressive}
points = {"chain": True, "points": True}


def make(method, pog_every=5):
    """A fresh engine of the method for a case."""
    return lambda case: METHODS[method](
        case.plan,
        case.type_count,
        k=case.k,
        order=case.order,
        sources=None if case.sources is None else list(case.sources),
        pog_every=pog_every,
    )


@given(cases(**points))
@settings(max_examples=examples(100))
def test_k_slack_emits_when_the_slack_has_passed(case):
    """Every match once, when the frontier reaches its last event, or has left the window of a trailing negation."""
    check_emitted(make("kslack"), KSlack.restore, case, emitted_behind_slack(case))


@given(cases(**points), st.sampled_from([1, 2, 5]))
@settings(max_examples=examples(100))
def test_conservative_emits_at_the_punctuation_that_makes_final(case, pog_every):
    """Without a negation at completion; otherwise at the first punctuation by which nothing can break the match."""
    check_emitted(make("conservative", pog_every), Conservative.restore, case, emitted_by_punctuation(case, pog_every))


@given(cases(**points))
@settings(max_examples=examples(100))
def test_aggressive_folds_to_what_has_arrived(case):
    """Emitted at completion, retracted once when a negated event comes late; checked after every call."""
    check_arrival(make("aggressive"), Aggressive.restore, case)


@given(cases(**points, late=True), st.sampled_from([1, 5]))
@settings(max_examples=examples(100))
def test_events_that_break_the_disorder_bound_are_left_out_and_reported(case, pog_every):
    """All three report the same late events, and give the matches of the rest."""
    check_emitted(make("kslack"), KSlack.restore, case, emitted_behind_slack(case))
    check_emitted(make("conservative", pog_every), Conservative.restore, case, emitted_by_punctuation(case, pog_every))
    check_arrival(make("aggressive"), Aggressive.restore, case)


def one_gap(window=6, **given_plan):
    """SEQ(A, !B, C) over the types A, B, C."""
    alternative = Alternative((0, 2), (0, 1), (0, 1), (Negation(1, 1, 2),))
    return Plan(tuple(EventClass(frozenset({c})) for c in range(3)), (alternative,), 2, window, **given_plan)


@pytest.mark.parametrize("method", METHODS)
def test_many_keys_and_growing_state(method):
    """Thousands of events over hundreds of short-lived keys: every array grows and is renewed, and nothing is lost."""
    rng = np.random.default_rng(5)
    n, k = 1500, 8
    t = np.sort(rng.integers(0, 600, n))
    key = t // 20 * 7 - 50 + rng.integers(0, 5, n)
    arrival = np.argsort(t + rng.integers(0, k + 1, n), kind="stable")
    code = rng.integers(0, 3, n)
    events = tuple(Event(int(code[i]), int(key[i]), int(t[i]), int(t[i])) for i in arrival)
    case = Case(one_gap(), 3, events, k=k)
    engine, emitted, back = make(method)(case), set(), set()
    for first in range(0, n, 400):
        out = engine.feed(**columns(case, first, first + 400))
        emitted |= set(map(tuple, out.matches.tolist()))
        back |= set(map(tuple, out.retractions.tolist()))
        engine = type(engine).restore(engine.snapshot())
    emitted |= set(map(tuple, engine.finish().matches.tolist()))
    assert len(emitted) > 200
    assert emitted - back == expected_of_one_gap(events, 6)
    assert engine.state_bytes < 200_000


def expected_of_one_gap(events, window):
    """Matches of SEQ(A, !B, C), key by key, from the definition."""
    rows = set()
    for key in {e.key for e in events}:
        index = [i for i, e in enumerate(events) if e.key == key]
        part = final(Case(one_gap(window), 3, tuple(events[i] for i in index), k=10**6))
        rows |= {tuple(index[i] for i in row) for row in part}
    return rows


@pytest.mark.parametrize("method", METHODS)
def test_keys_whose_hashes_collide_stay_apart(method):
    """Keys are compared, not only hashed: many keys in few buckets give no match across."""
    keys = [n << 48 for n in range(200 if SEED else 80)]
    events = tuple(Event(c, key, t, t) for c, t in ((0, 1), (2, 3)) for key in keys)
    case = Case(one_gap(), 3, events, k=5)
    check_final(make(method), METHODS[method].restore, case)


def test_rows_are_held_and_taken_in_the_order_of_time():
    """The heap behind buffers and pending matches, against sorting, while it grows and shrinks."""
    rng = np.random.default_rng(1)
    held, expected = empty_held(1), []
    for _ in range(40):
        for time in rng.integers(0, 50, 7):
            held = hold(held, time, np.array([time]))
            expected.append(int(time))
        expected.sort()
        for _ in range(5):
            assert int(held.order[0, 0]) == expected[0]
            assert int(held.rows[take(held)][0]) == expected.pop(0)


@given(plans(chain=True, points=True))
@settings(max_examples=examples(20))
def test_nothing_comes_from_nothing(plan):
    """Empty blocks and an end without events are ordinary."""
    for method in METHODS:
        case = Case(plan[0], plan[1], ())
        assert len(make(method)(case).feed(**columns(case, 0, 0)).matches) == 0
        check_final(make(method), METHODS[method].restore, case)


A_AND_B = Alternative((0, 1), (0, 1), (0, 0))
WIDE = Alternative((0, 1, 2), (0, 1, 2), (0, 1, 3), (Negation(1, 1, 4),))
CONDITIONED = Alternative((0, 1), (0, 1), (0, 1), conditions=((Step("constant", value=1.0),),))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"alternatives": (A_AND_B,)}, "without an order, expected one SEQ"),
        ({"alternatives": (A_AND_B, A_AND_B)}, "alternatives"),
        ({"alternatives": (WIDE,), "width": 3}, "more than one gap"),
        ({"alternatives": (CONDITIONED,)}, "condition"),
        ({"skip": "to_next"}, "skip to_next"),
        ({"mode": "possible"}, "mode possible"),
        ({"width": 3}, "3 places for 2 events"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_what_the_compared_methods_do_not_do_is_refused(method, change, text):
    """The error names the unsupported part and the engine that supports it."""
    plan = one_gap()
    fields = {f: getattr(plan, f) for f in ("classes", "alternatives", "width", "window")} | change
    with pytest.raises(ValueError, match=text) as error:
        METHODS[method](Plan(**fields), 3, k=1)
    assert "infa_hts" in str(error.value)


@pytest.mark.parametrize(
    ("given_columns", "text"),
    [
        ({"type_code": [0, 3]}, "found 0 .. 3, expected 0 .. 2"),
        ({"type_code": [-1, 0]}, "found -1 .. 0"),
        ({"t": [1]}, "type_code: found int64 of shape"),
        ({"t_max": [5, 9]}, "t_max"),
    ],
)
def test_bad_columns_are_refused_and_lose_nothing(given_columns, text):
    """After the error the engine goes on as if the block had not come."""
    engine = KSlack(one_gap(), 3, k=0)
    good = {"type_code": [0, 2], "key": [1, 1], "t": [5, 7]}
    with pytest.raises(ValueError, match=text):
        engine.feed(**(good | given_columns))
    assert engine.feed(**good).matches.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "k: found None"),
        ({"k": -1}, "k: found -1"),
        ({"k": 1, "order": "none"}, "order"),
        ({"k": 1, "pog_every": 0}, "pog"),
    ],
)
def test_an_incomplete_disorder_bound_is_refused(options, text):
    """A K-bound needs its K, punctuations a distance."""
    with pytest.raises(ValueError, match=text):
        Conservative(one_gap(), 3, **options)


def test_an_order_by_source_needs_sources():
    """The error names the missing column, and no event was taken in."""
    engine = Aggressive(one_gap(), 3, order="source")
    with pytest.raises(ValueError, match="source: found none"):
        engine.feed([0], [1], [5])
    assert engine.feed([2], [1], [5], source=[0]).matches.tolist() == []
