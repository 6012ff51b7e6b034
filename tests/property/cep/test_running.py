"""Patterns added and removed while events come: each gives the results of a separate engine started when it was added."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property.strategies_cep import ATTRIBUTES, plans, values
from support.search import examples
from whenabouts_cloud.cep import Pattern, engine
from whenabouts_cloud.cep.kernel.compile_plans import compile_plans
from whenabouts_cloud.cep.kernel.layout import CHAIN_WORDS, CHAINS, META, PENDING
from whenabouts_cloud.cep.runtime.active_patterns import Running
from whenabouts_cloud.cep.runtime.resize_for_patterns import changed

NAMES = "ABCDE"
LONGEST, WIDEST, SOURCES = 5, 8, (0, 1)


def pattern(text):
    """The pattern of a text, its windows in ticks."""
    return Pattern.parse(text, unit_us=1)


class Alone:
    """A separate engine for one pattern; `first` is its first index in the common stream."""

    def __init__(self, plan, course, together):
        emit, order, k = course["emit"], course["order"], course["k"]
        sources = SOURCES if order == "source" else None
        self.first = together.fed
        self.engine = engine(plan, NAMES, emit, k=k, order=order, sources=sources, longest=LONGEST)
        if order == "source" and course["reached"]:
            self.engine.advance(course["reached"])
        if together.frontier is not None:
            self.engine.advance(together.frontier)


def emitted(out, first, number=None):
    """Results of a call as (kind, pattern, indices of row and moment), retractions included; indices count from `first`."""
    results = set()
    for rows, moments, which in (
        (out.matches, out.emitted_at, out.pattern),
        (out.retractions, out.retracted_by, out.retracted_pattern),
    ):
        kind = "emitted" if rows is out.matches else "back"
        for row, moment, pattern in zip(rows.tolist(), moments.tolist(), which.tolist(), strict=True):
            moved = [i if i < 0 else i + first for i in [*row, *[-1] * (WIDEST - len(row)), moment]]
            results.add((kind, pattern if number is None else number, tuple(moved)))
    return results


def columns(events):
    """Events as the columns of `feed`."""
    number = [[e[n] for e in events] for n in range(5)]
    kinds, keys, t, length, source = (np.array(n, np.int64) for n in number)
    attributes = {name: np.array([e[5][n] for e in events], float) for n, name in enumerate(ATTRIBUTES)}
    return {
        "type_code": kinds, "key": keys, "t": t, "t_max": t + length, "source": source, "attributes": attributes,
    }  # fmt: skip


@st.composite
def some_plans(draw, emit):
    """Patterns of every kind over the same few types."""
    kind = draw(st.sampled_from(["any", "any", "points", "skips", "possible"]))
    plan, _ = draw(plans(points=kind == "points", chain=kind == "points", skips=kind == "skips" and emit == "sure"))
    if kind == "possible" and not plan.attributes:
        plan = replace(plan, mode="possible")
    return plan


@st.composite
def courses(draw):
    """Steps: events, watermarks, added and removed patterns, and restarts."""
    emit, order = draw(st.sampled_from(["sure", "sure", "arrival"])), draw(st.sampled_from(["kbound", "source"]))
    lengths = st.integers(0, LONGEST) if draw(st.booleans()) else st.just(0)
    steps, now = [], 0
    for _ in range(draw(st.integers(2, 9))):
        kind = draw(st.sampled_from(["feed", "feed", "feed", "add", "remove", "advance", "restart"]))
        if kind == "feed":
            events = []
            for _ in range(draw(st.integers(1, 5))):
                now += draw(st.integers(0, 3))
                event = (
                    draw(st.integers(0, 4)), draw(st.integers(0, 1)), now - draw(st.integers(0, 6)), draw(lengths),
                    draw(st.sampled_from(SOURCES)), (draw(values), draw(values)),
                )  # fmt: skip
                events.append(event)
            steps.append((kind, events))
        elif kind == "add":
            steps.append((kind, draw(some_plans(emit))))
        elif kind == "advance":
            jump = draw(st.sampled_from([-3, 0, 30]))
            steps.append((kind, {draw(st.sampled_from(SOURCES)): now + jump} if order == "source" else now + jump))
            now += max(jump, 0)
        else:
            steps.append((kind, draw(st.integers(0, 3))))
    first = draw(st.lists(some_plans(emit), min_size=1, max_size=2))
    return {"emit": emit, "order": order, "k": draw(st.integers(0, 8)), "first": first, "steps": steps, "reached": {}}


@pytest.mark.compiles
@given(courses())
@settings(max_examples=examples(200), deadline=None)
def test_a_pattern_gives_the_results_of_a_separate_engine_started_when_it_was_added(course):
    """Matches, moments, retractions, late events and waiting matches, after every step; nothing after its removal."""
    sources = SOURCES if course["order"] == "source" else None
    together = engine(
        course["first"], NAMES, course["emit"], k=course["k"], order=course["order"], sources=sources, longest=LONGEST
    )
    alone = {n: Alone(plan, course, together) for n, plan in enumerate(course["first"])}
    for kind, what in [*course["steps"], ("finish", None)]:
        if kind == "add":
            number = together.add(what)
            assert number not in alone
            alone[number] = Alone(what, course, together)
        elif kind == "remove":
            running = sorted(together.plans)
            if running:
                together.remove(running[what % len(running)])
                del alone[running[what % len(running)]]
        elif kind == "restart":
            together = engine.restore(together.snapshot())
        else:
            if kind == "feed":
                fed = columns(what)
                for source, t_max in zip(fed["source"].tolist(), fed["t_max"].tolist(), strict=True):
                    course["reached"][source] = max(course["reached"].get(source, t_max), t_max)
            elif kind == "advance" and course["order"] == "source":
                for source, frontier in what.items():
                    course["reached"][source] = max(course["reached"].get(source, frontier), frontier)

            def step(one, kind=kind, what=what):
                return (
                    one.feed(**columns(what))
                    if kind == "feed"
                    else one.finish()
                    if kind == "finish"
                    else one.advance(what)
                )

            out = step(together)
            expected = set()
            for number, one in alone.items():
                own = step(one.engine)
                expected |= emitted(own, one.first, number)
                assert (own.late + one.first).tolist() == out.late.tolist()
                assert one.engine.frontier == together.frontier
            results = emitted(out, 0)
            assert results == expected
            assert len(results) == len(out.matches) + len(out.retractions)
        assert together.counters["waiting_matches"] == sum(o.engine.counters["waiting_matches"] for o in alone.values())
        assert together.counters["patterns"] == len(alone)
    if not alone:
        assert together.counters["stored_events"] == together.counters["keys"] == 0


def test_chains_of_an_added_pattern_become_those_of_the_others_once_older_events_are_past():
    """
    t      0 .. 9        A is fed; then the second SEQ(A, B) comes
    f      10            it stores its events beside those of the first
    f      > 9 + 5       nothing older is held: one chain again, and every event is stored once
    """
    one = engine(pattern("SEQ(A, B) WITHIN 5"), NAMES, k=0)
    zeros = np.zeros(10, np.int64)
    one.feed(zeros, zeros, np.arange(10))
    assert one.add(pattern("SEQ(A, B) WITHIN 5")) == 1
    one.feed(zeros[:1], zeros[:1], [10])
    assert one.compiled.classes == 4
    one.feed(zeros[:1], zeros[:1], [30])
    out = one.feed([1], [0], [31])
    assert out.matches.tolist() == [[11, 12], [11, 12]]
    assert out.pattern.tolist() == [0, 1]
    one.feed(zeros[:1], zeros[:1], [32])
    assert one.compiled.classes == 2
    one.remove(0)
    one.remove(1)
    assert one.counters["stored_events"] == one.counters["keys"] == 0
    assert one.feed([0, 1], [0, 0], [33, 34]).matches.shape == (0, 0)
    assert one.add(pattern("SEQ(A, B) WITHIN 5")) == 2
    assert one.feed([0, 1], [0, 0], [35, 36]).pattern.tolist() == [2]


def test_what_cannot_run_is_refused_and_changes_nothing():
    """A number that is none, a skip on arrival, a type that is none, longer stamps than the engine was made for."""
    one = engine(pattern("SEQ(A, B) WITHIN 5"), NAMES, "arrival", k=0)
    with pytest.raises(ValueError, match="pattern: found 7, expected one of those that run: 0"):
        one.remove(7)
    with pytest.raises(ValueError, match="after-match skip"):
        one.add(pattern("SEQ(A, B) WITHIN 5 SKIP TO NEXT"))
    with pytest.raises(ValueError, match="found the type Z"):
        one.add(pattern("SEQ(A, Z) WITHIN 5"))
    with pytest.raises(ValueError, match="longest stamp: found 3 ticks, expected at most 0"):
        one.add(pattern("SEQ(A, B) WITHIN 5").plan(NAMES, longest=3))
    assert list(one.plans) == [0]


def test_a_number_is_never_given_again():
    """Not even that of the last one, and what is held for a pattern is forgotten with its time."""
    plan = pattern("SEQ(A, B) WITHIN 5").plan(NAMES)
    running = Running([plan])
    assert running.add(plan, 9, 30) == 1
    running.remove(1)
    assert running.add(plan, 9, 30) == 2
    assert running.settle(30) == set()
    assert running.since[2] == 9
    assert running.settle(31) == {9}
    assert (running.since, running.held) == ({0: 0, 2: 0}, {})


def test_waiting_matches_of_other_patterns_survive_a_removal():
    """
    t      0   1        5
           A   B        no C till here: both wait; then the first pattern goes
    """
    texts = "SEQ(A, B, !C) WITHIN 5", "SEQ(A, B, !D) WITHIN 5"
    few = {n: pattern(text).plan(NAMES) for n, text in enumerate(texts)}
    one = engine(list(few.values()), NAMES, k=9)
    one.feed([0, 1], [0, 0], [0, 1])
    left = compile_plans({1: few[1]}, len(NAMES))
    state = changed(one.state, one.compiled, left, ())
    assert state.meta[META.pending] == state.meta[META.heap] == state.meta[META.pending_top] == 1
    assert state.pending[0, PENDING.alternative] == 0
    assert state.nodes.shape[1] == CHAINS + 3 * CHAIN_WORDS
    assert state.meta[META.stored] == 2
