"""The engine against the definition: which matches, each once, at which moment, whatever the order, batches and restarts."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property.strategies_cep import cases, clocks_of, plans
from reference import cep as definition
from reference.cep import Case, Event
from support.cep.checks import check_arrival, check_late, check_sure, columns, run
from support.search import examples
from whenabouts_cloud.cep import detect, engine
from whenabouts_cloud.cep.kernel.compile_plans import compile_plans
from whenabouts_cloud.cep.kernel.program import CLASS
from whenabouts_cloud.cep.uncertain.causal import Clocks
from whenabouts_cloud.cep.uncertain.refine import Candidates, refine
from whenabouts_cloud.pattern.plan import Alternative, EventClass, Negation, Plan


def names(count):
    """Type names for so many codes."""
    return [chr(ord("A") + code) for code in range(count)]


def make(emit):
    """A fresh engine for a case."""
    return lambda case: engine(
        case.plan, names(case.type_count), emit=emit, k=case.k, order=case.order, sources=case.sources
    )


@given(st.one_of(cases(), cases(points=True), cases(points=True, chain=True)))
@settings(max_examples=examples(300), deadline=None)
def test_sure_matches_are_emitted_at_the_earliest_safe_moment(case):
    """All matches of the definition, once, at the moment when they are complete and final."""
    check_sure(make("sure"), engine.restore, case)


@given(st.one_of(cases(), cases(points=True, chain=True)))
@settings(max_examples=examples(200), deadline=None)
def test_on_arrival_the_changelog_folds_to_what_has_arrived(case):
    """Emitted at completion, retracted once if a negated event comes."""
    check_arrival(make("arrival"), engine.restore, case)


@given(cases(late=True))
@settings(max_examples=examples(150), deadline=None)
def test_late_events_are_left_out_and_named_with_what_they_would_change(case):
    """The matches are those of the rest."""
    check_sure(make("sure"), engine.restore, case)
    check_late(make("sure"), case)


@given(cases(skips=True))
@settings(max_examples=examples(150), deadline=None)
def test_after_match_skip_applies_to_the_final_matches(case):
    """Emitted when no earlier match can come any more."""
    check_sure(make("sure"), engine.restore, case)


@pytest.mark.parametrize("advances", [(9, 10, 11), (10, 11), (9, 11)])
def test_a_skip_waits_for_the_gap_behind_a_match_that_begins_earlier(advances):
    """The first begins before the second and ends behind it, so the gap behind it is known one tick later."""
    behind = Negation(2, left=0b10, right=0)
    classes = tuple(EventClass(frozenset({code})) for code in range(3))
    alternative = Alternative((0, 1), (0, 1), (0, 1), (behind,))
    plan = Plan(classes, (alternative,), 2, window=3, skip="past_last", longest=5)
    events = (Event(0, 0, 0, 2), Event(0, 0, 1, 1), Event(1, 0, 3, 3))
    case = Case(plan, 3, events, k=9, advances=tuple((len(events), at) for at in advances))
    assert definition.emitted_sure(case).keys() == {(0, 2)}
    check_sure(make("sure"), engine.restore, case)


@given(cases(), st.randoms(use_true_random=False))
@settings(max_examples=examples(150), deadline=None)
def test_detect_gives_the_same_in_any_order(case, random):
    """All matches of the set of events, in lexicographic order of their places."""
    order = list(range(len(case.events)))
    random.shuffle(order)
    shuffled = replace(case, events=tuple(case.events[i] for i in order), advances=())
    all_of = columns(shuffled, 0, len(order))
    all_of["t_max"] = all_of.pop("t_max")
    rows = detect(case.plan, names(case.type_count), **all_of)
    matches = definition.candidates(case.plan, shuffled.events, range(len(order)))
    assert [tuple(row) for row in rows.tolist()] == sorted(m.row for m in matches if not m.violators)


chains = st.tuples(
    st.lists(st.integers(0, 3), min_size=2, max_size=4), st.sampled_from([4, 8, 2, 12]),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=1),
)  # fmt: skip


def chain(codes, window, negated):
    """A sequence, AND of its ends if it has a negation at place 4."""
    count = len(codes)
    before = [(1 << i) - 1 for i in range(count)]
    negations = []
    for code, place in negated:
        if place == 4:
            before[-1] = (1 << count - 1) - 2
        elif place <= count:
            negations.append(Negation(code, 1 << place - 1 if place else 0, 1 << place if place < count else 0))
    one = Alternative(tuple(codes), tuple(range(count)), tuple(before), tuple(negations))
    return Plan(tuple(EventClass(frozenset({c})) for c in range(4)), (one,), count, window)


@given(st.lists(plans(points=True), min_size=2, max_size=4), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_several_patterns_at_once_emit_what_each_emits_separately(drawn, data):
    """Also when they share classes, differ in windows and widths, and one has no key."""
    check_together([plan for plan, _ in drawn], data)


@given(st.lists(chains, min_size=20, max_size=28), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_many_patterns_at_once_emit_what_each_emits_separately(drawn, data):
    """Also where a type is used so often that an event is compared with all of its uses at once."""
    many = [chain(*one) for one in drawn]
    assert compile_plans(many, 5).program.classes[:, CLASS.many].any()
    check_together(many, data)


def check_together(few, data):
    """Events late and in order, in one engine and in one for each."""
    events = data.draw(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 12), st.sampled_from([0.0, 1.0])),
            max_size=14,
        )
    )
    case = Case(
        few[0],
        4,
        tuple(Event(c, key, t + n, t + n, 0, (v, v)) for n, (c, key, t, v) in enumerate(events)),
        "kbound",
        12,
    )
    fed = columns(case, 0, len(events)) | {
        "attributes": {"v": np.array([e[3] for e in events]), "u": np.array([e[3] for e in events])}
    }
    for emit in ("sure", "arrival"):
        together, alone = set(), set()
        one = engine(few, names(5), emit=emit, k=12)
        width = max(plan.width for plan in few)
        for out in (one.feed(**fed), one.finish()):
            for row, at, pattern in zip(
                out.matches.tolist(), out.emitted_at.tolist(), out.pattern.tolist(), strict=True
            ):
                together.add((pattern, at, tuple(row)))
            together |= {
                (p, "back", tuple(row))
                for p, row in zip(out.retracted_pattern.tolist(), out.retractions.tolist(), strict=True)
            }
        for number, plan in enumerate(few):
            one = engine(plan, names(5), emit=emit, k=12)
            for out in (one.feed(**fed), one.finish()):
                pad = [-1] * (width - plan.width)
                for row, at in zip(out.matches.tolist(), out.emitted_at.tolist(), strict=True):
                    alone.add((number, at, (*row, *pad)))
                alone |= {(number, "back", (*row, *pad)) for row in out.retractions.tolist()}
        assert together == alone


CHAIN = (0, 1, 3)
UNCERTAIN = [
    Alternative((0, 1), (0, 1), (0, 1)),
    Alternative((0, 1), (0, 1), (0, 1), (Negation(2, 1, 2),)),
    Alternative((0, 1, 0), (0, 1, 2), CHAIN, (Negation(2, 3, 4),)),
    Alternative((0, 1), (0, 1), (0, 1), (Negation(2, 0, 3), Negation(2, 3, 0))),
    Alternative((0, 1), (1, 0), (0, 0), (Negation(2, 0, 0),)),
    Alternative((3, 3), (0, 1), (0, 1), (Negation(3, 1, 2),)),
]


def uncertain_plan(alternative, mode, window, strict):
    """A plan over types 0, 1, 2 and a class of them all."""
    kinds = tuple(EventClass(frozenset(types)) for types in ({0}, {1}, {2}, {0, 1, 2}))
    return Plan(
        kinds,
        (alternative,),
        len(alternative.classes),
        window,
        strict,
        mode,
        Fraction(1, 2) if mode == "over" else Fraction(1),
        longest=4,
    )


@st.composite
def uncertain_cases(draw):
    """Events with intervals and clocks that keep the disorder bound."""
    mode = draw(st.sampled_from(["possible", "over", "causal"]))
    plan = uncertain_plan(draw(st.sampled_from(UNCERTAIN)), mode, draw(st.integers(0, 9)), draw(st.booleans()))
    k = draw(st.sampled_from([0, 3, 8]))
    arriving = []
    for _ in range(draw(st.integers(1, 8))):
        t = draw(st.integers(0, 14))
        event = Event(draw(st.integers(0, 2)), draw(st.integers(0, 1)), t, t + draw(st.integers(0, 4)))
        arriving.append((event.t_max + draw(st.integers(0, k)), event))
    arriving.sort(key=lambda pair: pair[0])
    clocks = draw(clocks_of([event for _, event in arriving]))
    return Case(plan, 3, tuple(e for _, e in arriving), "kbound", k, cuts=(draw(st.integers(1, 5)),)), clocks


def kept(case, clocks, fed):
    """Rows of the first `fed` events that are matches, by testing every tuple with every negated event."""
    everyone = replace(case.plan, mode="certain", window=1 << 40, strict_window=False)
    alternative = case.plan.alternatives[0]
    free = replace(alternative, before=(0,) * len(alternative.before), negations=())
    everyone = replace(everyone, alternatives=(free,))
    rows = set()
    for match in definition.candidates(everyone, case.events, range(fed)):
        chosen = [case.events[i] for i in match.chosen]
        gaps = []
        for negation in alternative.negations:
            ids = [
                i for i in range(fed)
                if definition.is_of(case.plan, negation.event_class, case.events[i])
                and case.events[i].key == chosen[0].key and i not in match.chosen
            ]  # fmt: skip
            gaps.append((
                np.array([0, len(ids)]), np.array([case.events[i].t for i in ids], np.int64),
                np.array([case.events[i].t_max for i in ids], np.int64), np.array(ids, np.int64),
            ))  # fmt: skip
        t = np.array([[e.t for e in chosen]])
        t_max = np.array([[e.t_max for e in chosen]])
        keep, _ = refine(alternative, case.plan, Candidates(t, t_max, np.array([match.chosen]), gaps), clocks)
        if keep[0]:
            rows.add((match.row, match.chosen))
    return rows


def finalized(case, match, frontier):
    """As defined; in causal order, which two events of one time can have, a right neighbour's time must be past too."""
    if case.plan.mode == "causal" and frontier is not None and any(n.right for n in match.alternative.negations):
        inner = match._replace(
            alternative=replace(match.alternative, negations=tuple(n for n in match.alternative.negations if n.right))
        )
        if not definition.finalized(case.plan, inner, case.events, frontier - 1):
            return False
    return definition.finalized(case.plan, match, case.events, frontier)


@given(uncertain_cases())
@settings(max_examples=examples(250), deadline=None)
def test_uncertain_order_is_emitted_when_final(drawn):
    """POSSIBLE, OVER and CAUSAL: the tuples that refinement keeps, once complete and final, through snapshots too."""
    case, clocks = drawn
    moments = definition.moments(case)
    expected = {}
    for row, chosen in kept(case, clocks, len(case.events)):
        match = definition.Match(row, chosen, frozenset(), case.plan.alternatives[0])
        expected[row] = next(
            moment.event for moment in moments
            if max(chosen) < moment.fed and finalized(case, match, moment.frontier)
        )  # fmt: skip
    assert emitted(case, clocks, "sure") == (expected, {})


@given(uncertain_cases())
@settings(max_examples=examples(150), deadline=None)
def test_uncertain_order_on_arrival_folds_to_what_has_arrived(drawn):
    """Emitted from the events so far, retracted once when a negated event makes it impossible or too unlikely."""
    case, clocks = drawn
    matches, back = emitted(case, clocks, "arrival")
    for fed in range(1, len(case.events) + 1):
        fold = {row for row, at in matches.items() if at < fed} - {row for row, at in back.items() if at < fed}
        assert fold == {row for row, _ in kept(case, clocks, fed)}, f"after {fed} events"


def emitted(case, clocks, emit):
    """({row: emitted at}, {row: retracted by}) through a snapshot between two batches."""
    one = engine(case.plan, names(case.type_count), emit=emit, k=case.k)
    outs, at = [], 0
    for end in (min(case.cuts[0], len(case.events)), len(case.events)):
        part = Clocks(clocks.vectors[at:end], clocks.process[at:end], clocks.seq[at:end])
        outs.append(one.feed(**columns(case, at, end), clocks=part))
        one, at = engine.restore(one.snapshot()), end
    outs.append(one.finish())
    matches = [(tuple(r), a) for o in outs for r, a in zip(o.matches.tolist(), o.emitted_at.tolist(), strict=True)]
    back = [(tuple(r), a) for o in outs for r, a in zip(o.retractions.tolist(), o.retracted_by.tolist(), strict=True)]
    assert len(dict(matches)) == len(matches)
    assert len(dict(back)) == len(back)
    return dict(matches), dict(back)


@pytest.mark.parametrize("method", ["kslack", "conservative", "aggressive"])
@given(case=cases(points=True, chain=True))
@settings(max_examples=examples(25), deadline=None)
def test_the_compared_methods_end_with_the_same_matches(method, case):
    """By their names, through snapshots."""

    def build(case):
        return engine(
            case.plan, names(case.type_count), method=method, k=case.k, order=case.order, sources=case.sources
        )

    course = run(build, case, set(case.cuts), engine.restore)
    assert set(course.emitted) - course.retracted == definition.final(case)
