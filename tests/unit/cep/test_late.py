"""Late events (`whenabouts_cloud.cep.kernel.late_events`): left out, and reported with their certain changes."""

from dataclasses import replace

import numpy as np

from whenabouts_cloud.cep import Pattern, engine
from whenabouts_cloud.cep.kernel.compile_plans import compile_plans
from whenabouts_cloud.cep.kernel.emit import negates
from whenabouts_cloud.pattern.plan import plan_of

A, B, C, D = range(4)


def feed(one, *events):
    """Events as (type, key, t)."""
    return one.feed(*np.array(events, np.int64).reshape(-1, 3).T)


def test_a_late_event_is_reported_with_what_it_would_change():
    """
    t      1   2   3   5          20
           A   B   C   D          A, and f = 20: then C and another B come
    """
    one = engine(Pattern.parse("SEQ(A, B, !C, D) WITHIN 40"), "ABCD", k=0)
    out = feed(one, (A, 1, 1), (B, 1, 2), (D, 1, 5), (A, 2, 20), (C, 1, 3), (B, 1, 4))
    assert out.matches.tolist() == [[0, 1, 2]]
    assert out.late.tolist() == [4, 5]
    assert (out.late_removed.tolist(), out.late_removed_by.tolist()) == ([[0, 1, 2]], [4])
    assert (out.late_added.tolist(), out.late_added_by.tolist()) == ([[0, 5, 2]], [5])
    assert one.counters["late_events"] == 2


def test_a_late_event_removes_nothing_that_a_forgotten_event_had_forbidden():
    """
    t      7   7 (late)    11   14
           A   A           D    A, and f = 13: the A of 7 is dropped, D was forbidden by it all along
    """
    one = engine(Pattern.parse("SEQ(!A, D) WITHIN 4"), "ABCD", k=1)
    out = feed(one, (A, 1, 7), (D, 1, 11), (A, 1, 14), (A, 1, 7))
    assert out.late.tolist() == [3]
    assert out.late_removed.tolist() == []


def test_a_leading_negation_is_held_for_another_window_so_that_late_matches_are_known():
    """
    t      3   9 .. 12    14
           A   D (late)   D, and f = 13: nothing was in [5, 9), something in [3, 7]
    """
    late = [(D, 1, 9), (D, 1, 7)]
    one = engine(Pattern.parse("SEQ(!A, D) WITHIN 4"), "ABCD", k=1)
    out = feed(one, (A, 1, 3), (D, 1, 14), *late)
    assert out.late.tolist() == [2, 3]
    assert (out.late_added.tolist(), out.late_added_by.tolist()) == ([[2]], [2])


def test_a_wider_pattern_brings_nothing_back_that_was_dropped_before_it_came():
    """
    t      8   9 (late)    12       f = 20
           A   A           D        the A of 8, dropped when f came to 20, forbade D; a window of 100 is added then
    """
    one = engine(Pattern.parse("SEQ(!A, D) WITHIN 4"), "ABCD", k=0)
    feed(one, (A, 1, 8), (D, 1, 12))
    one.advance(20)
    one.add(Pattern.parse("SEQ(B, C) WITHIN 100"))
    assert feed(one, (A, 1, 9)).late_removed.tolist() == []


def test_a_window_that_nothing_is_shorter_than_has_no_matches_for_a_late_event_to_remove():
    """
    t      7 ... 9 (late)
             8             10, and f = 10
    """
    plan = replace(plan_of(Pattern.parse("SEQ(A, !A) WITHIN 0"), "ABCD"), strict_window=True)
    one = engine(plan, "ABCD", k=0, longest=2)
    out = one.feed(np.array([A, A, A]), np.ones(3, np.int64), np.array([8, 10, 7]), t_max=np.array([8, 10, 9]))
    assert out.late.tolist() == [2]
    assert out.late_removed.tolist() == []


def test_a_late_event_removes_matches_only_of_patterns_that_forbid_its_class():
    """Of two patterns the one with a negation, and of its classes the negated one."""
    plans = [plan_of(Pattern.parse(text), "ABC") for text in ("SEQ(A, B) WITHIN 9", "SEQ(A, !C, B) WITHIN 9")]
    compiled = compile_plans(plans, 3)
    of_type = [next(c for c, kind in enumerate(compiled.kinds) if kind.types == {code}) for code in range(3)]
    asked = [[negates(compiled.program, alternative, c) for c in of_type] for alternative in range(2)]
    assert asked == [[False, False, False], [False, False, True]]
