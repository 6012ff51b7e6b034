"""Parts of the engine by themselves: the automaton, both searches, conditions, skips, held clocks, snapshots of plans."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property.strategies_cep import plans
from support.search import examples
from whenabouts_cloud.cep import Pattern, engine
from whenabouts_cloud.cep.kernel.arguments import Event, Goal, Machine, Setting, Site, plain_of
from whenabouts_cloud.cep.kernel.compile_plans import compile_plans
from whenabouts_cloud.cep.kernel.conditions import of_columns
from whenabouts_cloud.cep.kernel.emit import EMIT
from whenabouts_cloud.cep.kernel.finality import take_pending
from whenabouts_cloud.cep.kernel.hts import home, insert, sweep
from whenabouts_cloud.cep.kernel.infa import Span, chain_completes
from whenabouts_cloud.cep.kernel.layout import CHAIN, CHAIN_WORDS, CHAINS, DONE, META, NEVER, NODE, PENDING
from whenabouts_cloud.cep.kernel.search import search
from whenabouts_cloud.cep.kernel.search_plain import search_plain
from whenabouts_cloud.cep.kernel.staged import begin_stage, sort_rows, undo
from whenabouts_cloud.cep.runtime import snapshot
from whenabouts_cloud.cep.runtime.deferred import CandidateDecisions
from whenabouts_cloud.cep.runtime.held_clocks import HeldClocks
from whenabouts_cloud.cep.runtime.skip import Skipper
from whenabouts_cloud.cep.runtime.store import new_results, new_scratch, new_state
from whenabouts_cloud.cep.uncertain.causal import Clocks
from whenabouts_cloud.pattern.plan import Alternative, EventClass, Plan
from whenabouts_cloud.research.experiments.cep_workload import TYPES as NAMES
from whenabouts_cloud.research.experiments.cep_workload import UNIT, table_1

times = st.lists(st.integers(0, 12), max_size=4)


def stored(chains):
    """Event list 0 with points in the chains of classes 0, 1, ..."""
    state = new_state(len(chains), len(chains), 0, 1)
    none, index = np.empty((1, 0)), 0
    for number, chain in enumerate(chains):
        for t in chain:
            assert insert(state, 0, number, Event(0, index, t, t, 0, 0), none, -100)
            index += 1
    return state


def chain_plan(count, window):
    """A chain of the types 0, 1, ... without a key."""
    kinds = tuple(EventClass(frozenset({code})) for code in range(count))
    one = Alternative(tuple(range(count)), tuple(range(count)), tuple((1 << i) - 1 for i in range(count)))
    return Plan(kinds, (one,), count, window, per_key=False)


@given(st.lists(times, min_size=1, max_size=4), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_the_automaton_fires_exactly_when_an_event_completes_something(chains, data):
    """Against all combinations; A A A completes no SEQ(A, B, C)."""
    window, position = data.draw(st.integers(0, 12)), data.draw(st.integers(0, len(chains) - 1))
    t = data.draw(st.integers(0, 12))
    combinations = product(*([t] if place == position else chain for place, chain in enumerate(chains)))
    expected = any(all(a < b for a, b in pairwise(c)) and c[-1] - c[0] <= window for c in combinations)
    state, program = stored(chains), compile_plans([chain_plan(len(chains), window)], len(chains)).program
    machine = Machine(program, state, new_results(len(chains), len(chains), 1), new_scratch(0, len(chains), 0))
    for likely in (False, True):
        span = Span(0, len(chains), window)
        assert chain_completes(plain_of(machine), Site(0, position, 0), span, t, likely) == expected


@given(st.lists(times, min_size=1, max_size=4), st.data())
@settings(max_examples=examples(150), deadline=None)
def test_both_searches_find_every_combination_once(chains, data):
    """The plain one and the general one, against all combinations."""
    window, position = data.draw(st.integers(0, 12)), data.draw(st.integers(0, len(chains) - 1))
    t, count = data.draw(st.integers(0, 12)), len(chains)
    numbered, index = [], 0
    for chain in chains:
        numbered.append([(when, index + n) for n, when in enumerate(chain)])
        index += len(chain)
    combinations = product(*([(t, index)] if place == position else chain for place, chain in enumerate(numbered)))
    expected = sorted(
        tuple(i for _, i in c)
        for c in combinations
        if all(a[0] < b[0] for a, b in pairwise(c)) and c[-1][0] - c[0][0] <= window
    )
    state, program = stored(chains), compile_plans([chain_plan(count, window)], count).program
    out = new_results(count, count, 1)
    machine, site = Machine(program, state, out, new_scratch(0, count, 0)), Site(0, position, 0)
    setting = Setting(hold=window, longest=0, k=0, on_arrival=False, by_source=False)
    assert search(machine, site, Event(0, index, t, t, 0, 1), Goal(int(EMIT), NEVER, -1), setting) == DONE
    assert sorted(map(tuple, out.emitted[: state.meta[META.emitted]].tolist())) == expected
    state.meta[META.emitted] = 0
    if chain_completes(plain_of(machine), site, Span(0, count, window), t, False):
        assert search_plain(plain_of(machine), site, t, index, 0, False) == DONE
    assert sorted(map(tuple, out.emitted[: state.meta[META.emitted]].tolist())) == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1)), max_size=60))
@settings(deadline=None)
def test_rows_are_sorted_by_column_then_by_pattern(drawn):
    """Few by insertion, many by Shell's way, in place."""
    rows = np.array(drawn, np.int64).reshape(-1, 3)
    emitted, which = rows[:, :2].copy(), rows[:, 2].copy()
    sort_rows(emitted, which, 0, len(rows), np.zeros(2, np.int64))
    assert [(*row, w) for row, w in zip(emitted.tolist(), which.tolist(), strict=True)] == sorted(drawn)


def test_a_sweep_keeps_what_is_not_past():
    """Heads of chains go, later events stay, an empty chain gives its block back."""
    state = stored([[1, 5, 9], [2, 3]])
    sweep(state, 5)
    assert state.meta[META.stored] == 2
    assert state.nodes[0, NODE.minimum] == 5
    blocks = state.nodes[0, CHAINS + CHAIN.block :: CHAIN_WORDS]
    assert (blocks != 0).tolist() == [True, False]


def test_conditions_over_columns_are_false_where_a_value_is_missing():
    """Every comparison with nan, `!=` too; `not` of it is true. Division by zero is IEEE's."""
    columns = {"v": np.array([1.0, np.nan, 0.0]), "u": np.array([2.0, 2.0, 0.0])}
    v, u = ("attribute", 0, "v", 0.0), ("attribute", 0, "u", 0.0)
    rows = np.arange(3)
    assert of_columns((v, u, ("!=", 0, None, 0.0)), columns, rows).tolist() == [True, False, False]
    assert of_columns((v, u, ("=", 0, None, 0.0), ("not", 0, None, 0.0)), columns, rows).tolist() == [True, True, False]
    one = ("constant", 0, None, 1.0)
    big = ("constant", 0, None, 1e300)
    quotient = (one, v, ("/", 0, None, 0.0), big, (">", 0, None, 0.0))
    assert of_columns(quotient, columns, rows).tolist() == [False, False, True]


def test_what_cannot_be_a_plan_is_refused():
    """Windows, types and orders out of range, each with what was found."""
    good = chain_plan(2, 5)
    late_first = Alternative((0, 1), (0, 1), (2, 0))
    for plan, types, text in (
        (replace(good, window=-1), 2, "found -1 ticks"),
        (good, 1, "type code of a class: found 1"),
        (replace(good, alternatives=(late_first,)), 2, "listed after it"),
        (
            replace(good, alternatives=(Alternative((0,) * 49, tuple(range(49)), (0,) * 49),), width=49),
            2,
            "found 49 positives",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            compile_plans([plan], types)


def test_equal_classes_of_several_patterns_are_one():
    """An event is stored once, however many patterns ask for its type; without a key it has a separate list."""
    texts = "SEQ(A, B) WITHIN 40", "SEQ(B, A) WITHIN 40", "SEQ(A, B) WITHIN 40 ACROSS KEYS"
    few = [Pattern.parse(text, unit_us=UNIT).plan(NAMES) for text in texts]
    assert compile_plans(few[:2], len(NAMES)).classes == 2
    assert compile_plans(few, len(NAMES)).classes == 4
    events = table_1(1000, seed=1)
    stored_events = [engine(some, NAMES, k=0) for some in (few[0], few[:2])]
    for one in stored_events:
        one.feed(events.type_code, events.key, events.t)
    assert stored_events[0].counters["stored_events"] == stored_events[1].counters["stored_events"]


def test_past_last_goes_by_the_end_of_the_match_that_remained():
    """
    t    0  1  2  3
         a--------b        remains
            c--d           begins inside
                  e        begins at its end: not after it
    """
    plan = replace(chain_plan(2, 5), skip="past_last")
    skipper = Skipper(plan, 0)
    rows = np.array([(1, 2), (0, 4), (4, 5), (6, 7)])
    t = np.array([(1, 2), (0, 3), (3, 4), (4, 5)])
    skipper.add(np.zeros(4, np.int64), t, t, rows, rows, np.array([0.1, 0.2, 0.3, 0.4]))
    assert [part.tolist() for part in skipper.decided(6)] == [[6], [[0, 4]], [0.2]]
    assert [part.tolist() for part in skipper.decided(100)] == [[10], [[6, 7]], [0.4]]


def test_candidates_without_a_skip_or_doubt_are_emitted_unchanged():
    """An empty call gives empty rows of the right width."""
    offered = CandidateDecisions(compile_plans([chain_plan(2, 5)], 2))
    decided = offered.decide(np.empty((0, 12), np.int64), np.empty((0, 4), np.int64), {}, None, 0)
    assert [part.ids.shape for part in decided] == [(0, 2)] * 4


@pytest.mark.parametrize("step", [1, 1000, 1 << 32, 1 << 52])
def test_keys_that_differ_anywhere_are_spread_over_a_table(step):
    """A thousand keys, alike but for low or for high bits, take at least 400 of 1024 places (at random: 647)."""
    places = [home(np.int64(n * step), 1024) for n in range(1024)]
    assert min(places) >= 0
    assert max(places) < 1024
    assert len(set(places)) >= 400


def clocks(first, count):
    """Clocks that are all different."""
    numbers = np.arange(first, first + count)
    return Clocks(numbers[:, None], np.zeros(count, np.int64), numbers)


def test_clocks_are_held_until_their_events_are_past():
    """Up to the first that is not; an index is counted from the base."""
    held = HeldClocks(True)
    held.add(clocks(0, 3), np.array([1, 9, 2]), -100)
    held.add(clocks(3, 1), np.array([10]), 5)
    assert held.base == 1
    assert held.known.vectors[:, 0].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="clocks: found none"):
        held.add(None, np.array([11]), 5)
    with pytest.raises(ValueError, match="expected 2 of them"):
        held.add(clocks(4, 1), np.array([11, 12]), 5)
    held.add(clocks(4, 3), np.array([11, 12, 13]), 5)
    held.cut(5)
    assert held.known.vectors[:, 0].tolist() == [1, 2, 3, 4], "5 and 6 were not taken in"
    unasked = HeldClocks(False)
    unasked.add(None, np.array([1]), 0)
    assert unasked.known is None


@given(plans(), plans(skips=True))
@settings(max_examples=examples(50), deadline=None)
def test_plans_come_back_from_a_snapshot_as_they_were(first, second):
    """Conditions bit by bit, and what a skip holds back."""
    few = [first[0], second[0]]
    one = engine(few, NAMES, k=3)
    assert snapshot.load(one.snapshot()).running.plans == dict(enumerate(few))
    again = engine.restore(one.snapshot())
    assert again.plans == dict(enumerate(few))
    assert (again.emit, again.order, again.k, again.fed) == (one.emit, one.order, one.k, one.fed)


def test_a_search_that_is_undone_leaves_nothing_behind():
    """Its matches are not emitted, and the places of its pending matches are free again, each once."""
    state = new_state(1, 1, 0, 1)
    meta = state.meta
    meta[META.emitted], meta[META.retracted], meta[META.candidates], meta[META.negated_events] = 5, 2, 3, 4
    begin_stage(meta)
    places = [take_pending(meta, state.pending) for _ in range(3)]
    for place in places:
        state.pending[place, PENDING.next], meta[META.staged] = meta[META.staged], place
    meta[META.emitted], meta[META.retracted], meta[META.candidates], meta[META.negated_events] = 9, 9, 9, 9
    undo(state)
    assert meta[[META.emitted, META.retracted, META.candidates, META.negated_events, META.staged]].tolist() == [
        5,
        2,
        3,
        4,
        -1,
    ]
    assert sorted(take_pending(meta, state.pending) for _ in range(3)) == sorted(places)


def test_a_search_that_needs_more_room_emits_each_match_once():
    """
    SEQ(A, B, !C, D)   A x 40, B x 40 | D: 1600 matches at once, more than there is room for, all waiting for a C
    """
    types = ["A"] * 40 + ["B"] * 40 + ["D"]
    one = engine(Pattern.parse("SEQ(A, B, !C, D) WITHIN 100", unit_us=1), ["A", "B", "C", "D"], k=30)
    codes = np.array([["A", "B", "C", "D"].index(name) for name in types])
    out = one.feed(codes, np.zeros(81, np.int64), np.arange(81))
    matches = np.concatenate([out.matches, one.finish().matches])
    assert matches.tolist() == [[a, b, 80] for a in range(40) for b in range(40, 80)]
