"""The definition of matches, against cases worked out by hand; and the checks, which pass no faulty engine."""

import json

import numpy as np
import pytest
from hypothesis import given, settings

from property.strategies_cep import cases
from reference.cep import Case, Event, emitted_behind_slack, emitted_sure, final, folds, late_effects, moments
from support.cep.checks import check_arrival, check_emitted, check_final, check_late, check_sure
from support.search import examples
from whenabouts_cloud.cep.runtime.output import Out
from whenabouts_cloud.pattern.plan import Alternative, EventClass, Negation, Plan, Step

A, B, C, D = range(4)
LETTERS = "ABCD"


def sequence(text, window, **given_plan):
    """A plan of SEQ from letters: "AB!CD"; the order is that of the letters."""
    positives, negations, banned = [], [], []
    for letter in text:
        if letter == "!":
            banned.append(True)
        elif banned:
            banned.clear()
            negations.append((LETTERS.index(letter), len(positives)))
        else:
            positives.append(LETTERS.index(letter))
    n = len(positives)
    gaps = [Negation(c, 1 << at - 1 if at else 0, 1 << at if at < n else 0) for c, at in negations]
    alternative = Alternative(tuple(positives), tuple(range(n)), tuple((1 << i) - 1 for i in range(n)), tuple(gaps))
    classes = tuple(EventClass(frozenset({code})) for code in range(4))
    return Plan(classes, (alternative,), n, window, **given_plan)


def at(text, key=0):
    """Events from "A1 B3 C4-6", in the order of arrival."""
    events = []
    for word in text.split():
        first, _, last = word[1:].partition("-")
        events.append(Event(LETTERS.index(word[0]), key, int(first), int(last or first)))
    return tuple(events)


@pytest.mark.parametrize(
    ("pattern", "window", "events", "expected"),
    [
        ("AB", 5, "A0 B5", {(0, 1)}),
        ("AB", 5, "A0 B6", set()),
        ("AB", 5, "A1 B1", set()),  # equal stamps are no sequence
        ("AB", 5, "B3 A1 A2", {(1, 0), (2, 0)}),
        ("AAB", 5, "A1 A2 A3 B4", {(0, 1, 3), (0, 2, 3), (1, 2, 3)}),
        ("A!CB", 5, "A1 B3 C1 C3", {(0, 1)}),  # the gap is open
        ("A!CB", 5, "A1 B3 C2", set()),
        ("!CAB", 3, "A2 B4 C1", set()),
        ("!CAB", 3, "A2 B4 C0", {(0, 1)}),  # before the window of the last
        ("!CAB", 3, "A2 B4 C2", {(0, 1)}),
        ("AB!C", 3, "A2 B4 C5", set()),  # the border belongs to it
        ("AB!C", 3, "A2 B4 C6 C4", {(0, 1)}),
        ("A!AB", 5, "A1 A2 B4", {(1, 2)}),
        ("A!CB", 9, "A1-2 B6 C0-1", {(0, 1)}),
        ("A!CB", 9, "A1-2 B6 C0-2", set()),  # it may have been between
        ("AB", 5, "A0-2 B2-5", set()),
        ("AB", 5, "A0-2 B3-6", set()),
        ("AB", 5, "A0-2 B3-5", {(0, 1)}),
    ],
)
def test_hand_worked_matches(pattern, window, events, expected):
    """The definition gives what a person finds on the time line."""
    assert final(Case(sequence(pattern, window), 4, at(events), k=100)) == expected


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("AB", "A0 B5", set()),
        ("AB", "A0 B4", {(0, 1)}),
        ("!CAB", "A3 B5 C0", {(0, 1)}),
        ("!CAB", "A3 B5 C1", set()),
        ("AB!C", "A2 B4 C7", {(0, 1)}),
        ("AB!C", "A2 B4 C6", set()),
    ],
)
def test_a_strict_window_excludes_its_border(pattern, events, expected):
    """Positives exactly the window apart do not match, negated events exactly the window away do no harm."""
    assert final(Case(sequence(pattern, 5, strict_window=True), 4, at(events), k=100)) == expected


def test_moments_of_emission_worked_out_by_hand():
    """Without a negation at completion; inner when f reaches the right time; trailing one tick after the window's end.

    arrivals   A1 B3 D9 D10 D11   K = 6      frontier   -5 -3  3   4   5
    """
    emitted = [emitted_sure(Case(sequence(p, 3), 4, at("A1 B3 D9 D10 D11"), k=6)) for p in ("AB", "A!CB", "AB!C")]
    assert emitted == [{(0, 1): 1}, {(0, 1): 2}, {(0, 1): 4}]
    assert emitted_behind_slack(Case(sequence("AB", 3), 4, at("A1 B3 D9 D10"), k=6)) == {(0, 1): 2}


def test_a_changelog_worked_out_by_hand():
    """Emitted at completion, retracted when the late negated event comes."""
    case = Case(sequence("A!CB", 5), 4, at("A1 B4 C2 C9"), k=10)
    assert folds(case) == [set(), {(0, 1)}, set(), set(), set()]


def test_a_late_event_is_left_out_and_its_effect_named():
    """With K = 0 the C comes too late: A B stays emitted, and the C would have removed it."""
    case = Case(sequence("A!CB", 5), 4, at("A1 B4 C2"))
    assert final(case) == {(0, 1)}
    assert [m.late for m in moments(case)] == [False, False, True, False]
    assert late_effects(case, 2) == {"added": set(), "removed": {(0, 1)}}


def test_each_source_has_its_own_watermark():
    """The frontier is the least of the sources; one that is silent holds it, a heartbeat moves it, and it never falls."""
    events = tuple(e._replace(source=s) for e, s in zip(at("A5 A9 A7"), (0, 0, 1), strict=True))
    case = Case(sequence("A", 1), 4, events, order="source", sources=(0, 1), advances=((1, {1: 3}), (3, 8)))
    assert [m.frontier for m in moments(case)][:-1] == [None, 3, 3, 7, 8]


def test_skips_keep_the_first_of_each_start_or_those_after_the_last():
    """A1 A2 B3 B4 A5 B6: to_next one for each A, past_last those that begin after the kept one before has ended."""
    events = at("A1 A2 B3 B4 A5 B6")
    cases = {skip: Case(sequence("AB", 3, skip=skip), 4, events, k=9) for skip in ("none", "to_next", "past_last")}
    assert final(cases["none"]) == {(0, 2), (0, 3), (1, 2), (1, 3), (4, 5)}
    assert final(cases["to_next"]) == {(0, 2), (1, 2), (4, 5)}
    assert final(cases["past_last"]) == {(0, 2), (4, 5)}


def test_a_condition_with_a_missing_value_is_false():
    """v != v of another event fails where either is nan; its negation then holds."""
    unequal = (Step("attribute", 0, 0), Step("attribute", 1, 0), Step("!="))
    events = tuple(e._replace(attributes=(v,)) for e, v in zip(at("A1 B2 B3"), (1.0, 2.0, float("nan")), strict=True))
    for program, expected in ((unequal, {(0, 1)}), ((*unequal, Step("not")), {(0, 2)})):
        plan = sequence("AB", 5, attributes=("v",))
        alternative = Alternative(
            *(getattr(plan.alternatives[0], f) for f in ("classes", "columns", "before")), conditions=(program,)
        )
        plan = Plan(plan.classes, (alternative,), 2, 5, attributes=("v",))
        assert final(Case(plan, 4, events, k=9)) == expected


class Naive:
    """Asks the definition for the whole course after every event; `fault` spoils it in one way."""

    def __init__(self, case, emit, fault=None, events=(), advances=()):
        self.case, self.emit, self.fault = case, emit, fault
        self.events, self.advances = list(events), list(advances)

    def _so_far(self):
        case = self.case
        return Case(
            case.plan, case.type_count, tuple(self.events), case.order, case.k, case.sources, tuple(self.advances)
        )

    def _state(self, end=False):
        """(emitted so far, retracted so far) at the last moment."""
        case = self._so_far()
        last = len(moments(case)) - (1 if end else 2)
        if self.emit == "sure":
            # Only the events so far can decide a match; a match emitted from them stays emitted.
            emitted = {row for row, place in emitted_sure(case).items() if place <= last}
            return emitted, set()
        if last < 0:
            return set(), set()
        ever = folds(case)[: last + 1]
        emitted = set().union(*ever)
        return emitted, emitted - ever[-1]

    def feed(self, type_code, key, t, source=None, t_max=None, attributes=None):
        emitted, at_, late, retracted = [], [], [], []
        for n in range(len(t)):
            before = self._state()
            values = tuple(float(a[n]) for a in attributes.values())
            self.events.append(Event(*(int(a[n]) for a in (type_code, key, t, t_max, source)), values))
            index = len(self.events) - 1
            if moments(self._so_far())[-2].late:
                late.append(index)
            after = self._state()
            new = after[0] - before[0]
            emitted += new
            at_ += [index] * len(new)
            retracted += after[1] - before[1]
        if self.fault == "emitted a block late" and emitted:
            at_ = [len(self.events) - 1] * len(emitted)
        if self.fault == "retractions lost":
            retracted = []
        if self.fault == "late unseen":
            late = []
        return self._out(emitted, at_, late, retracted)

    def advance(self, frontier):
        before = self._state()
        self.advances.append((len(self.events), frontier))
        after = self._state()
        return self._out(after[0] - before[0], [-1] * len(after[0] - before[0]), [], after[1] - before[1])

    def finish(self):
        before, after = self._state(), self._state(end=True)
        return self._out(after[0] - before[0], [-1] * len(after[0] - before[0]), [], [])

    def _out(self, emitted, at_, late, retracted):
        emitted, width = list(emitted), self.case.plan.width
        if self.fault == "one match lost" and len(emitted) > 1:
            emitted, at_ = emitted[:-1], at_[:-1]
        if self.fault == "emitted twice" and emitted:
            emitted, at_ = [*emitted, emitted[0]], [*at_, at_[0]]
        shape = [np.array(list(rows), np.int64).reshape(-1, width) for rows in (emitted, retracted)]
        return Out.of(shape[0], at_, late, shape[1])

    def snapshot(self):
        return json.dumps([self.events if self.fault != "restart forgets" else [], self.advances]).encode()

    def restored(self, blob):
        events, advances = json.loads(blob)
        back = [(n, {int(s): t for s, t in f.items()} if isinstance(f, dict) else f) for n, f in advances]
        return Naive(self.case, self.emit, self.fault, [Event(*e[:5], tuple(e[5])) for e in events], back)


def ways(case, emit, fault=None):
    """make and restore for the checks."""
    return lambda c: Naive(c, emit, fault), Naive(case, emit, fault).restored


@given(cases())
@settings(max_examples=examples(25))
def test_a_naive_engine_emits_everything_when_sure(case):
    """Each prefix emits only matches of the whole course: the definition never retracts a sure match."""
    check_sure(*ways(case, "sure"), case)
    check_final(*ways(case, "sure"), case)


@given(cases(late=True))
@settings(max_examples=examples(25))
def test_a_naive_engine_is_right_when_watermarks_are_broken(case):
    """Late events are left out and change no emitted match."""
    check_sure(*ways(case, "sure"), case)
    check_arrival(*ways(case, "arrival"), case)


@given(cases(skips=True, points=True))
@settings(max_examples=examples(25))
def test_a_naive_engine_with_skips_never_retracts(case):
    """A match is emitted only when no match that starts earlier can still displace it."""
    check_sure(*ways(case, "sure"), case)


@given(cases())
@settings(max_examples=examples(25))
def test_a_naive_engine_folds_to_what_has_arrived(case):
    """The changelog of an engine that emits at once."""
    check_arrival(*ways(case, "arrival"), case)


FAULTS = {
    "emitted a block late": ("AB", "A1 B2 B3 B4", "sure"),
    "one match lost": ("AB", "A1 A2 B3", "sure"),
    "emitted twice": ("AB", "A1 B2", "sure"),
    "restart forgets": ("AB", "A1 B2 B3", "sure"),
    "late unseen": ("AB", "A3 B1", "sure"),
    "retractions lost": ("A!CB", "A1 B4 C2", "arrival"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_checks_see_a_faulty_engine(fault):
    """Each fault is found, and the same case passes without it."""
    pattern, events, emit = FAULTS[fault]
    case = Case(sequence(pattern, 5), 4, at(events), k=0 if "late unseen" in fault else 9, cuts=(1,))
    check = check_sure if emit == "sure" else check_arrival
    check(*ways(case, emit), case)
    with pytest.raises(AssertionError):
        check(*ways(case, emit, fault), case)


def test_the_checks_see_a_match_emitted_too_late():
    """The right set at other moments is not enough."""
    case = Case(sequence("AB", 5), 4, at("A1 B2 D9"), k=3)
    make, restore = ways(case, "sure")
    check_final(make, restore, case)
    with pytest.raises(AssertionError):
        check_emitted(make, restore, case, emitted_behind_slack(case))


def test_the_check_of_late_effects_sees_one_that_is_missing():
    """A B would have been added by the late A; an engine that does not report it fails the check."""
    case = Case(sequence("AB", 5), 4, at("B4 A2"))
    with pytest.raises(AssertionError):
        check_late(lambda c: Naive(c, "sure"), case)
