"""Parts of the definition of matches: what a pattern forbids where, and the order of two events."""

import pytest

from support.landed_readings import landed
from whenabouts_sim.chaos.checks.rules.gaps import Gap, alternatives, gaps_of, has_gap_at_end, has_gaps, positives
from whenabouts_sim.chaos.checks.rules.orders import Case, is_match, order_of
from whenabouts_sim.chaos.parts.job_rules import MATCHES, rule
from whenabouts_sim.chaos.parts.rule_form import Form

SHELF, TILL, EXIT = (frozenset({f"{name}/tags"}) for name in ("shelf", "till", "exit"))


def made(pattern, options="", **more):
    return rule(MATCHES, 10, 100, 1000, form=Form(pattern=pattern, options=options, **more))


@pytest.mark.parametrize(
    ("pattern", "options", "counts", "expected"),
    [
        ("SEQ(shelf a, !till c, exit e)", "", (1, 1), [Gap(TILL, 0, 1, "c")]),
        ("SEQ(!till c, shelf a, exit e)", "", (1, 1), [Gap(TILL, None, 0, "c")]),
        ("SEQ(shelf a, exit e, !till c)", "", (1, 2), [Gap(TILL, 2, None, "c")]),
        ("SEQ(shelf a, !(till | exit) c, exit e)", "", (1, 1), [Gap(TILL | EXIT, 0, 1, "c")]),
        ("SEQ(shelf{1,2} a, exit e)", "NEXT", (1, 1), [Gap(SHELF | EXIT, 0, 1)]),
        ("SEQ(shelf{1,2} a, exit e)", "NEXT", (2, 1), [Gap(SHELF | EXIT, 0, 1), Gap(EXIT, 1, 2)]),
        ("SEQ(shelf a, exit e)", "STRICT", (1, 1), [Gap(SHELF | EXIT, 0, 1)]),
        ("SEQ(shelf a, exit e)", "", (1, 1), []),
    ],
)
def test_a_pattern_forbids_events_between_these(pattern, options, counts, expected):
    one = made(pattern, options)
    [parts] = alternatives(one)
    assert list(gaps_of(one, parts, counts)) == expected
    assert has_gaps(one) == bool(expected)
    assert has_gap_at_end(one) == pattern.endswith("!till c)")


def test_each_choice_of_or_is_an_alternative_and_and_has_no_order():
    found = [list(positives(parts)) for parts in alternatives(made("SEQ(shelf a, OR(till c, exit e))"))]
    assert [[one.label for stage in stages for one in stage] for stages in found] == [["a", "c"], ["a", "e"]]
    [stages] = [list(positives(parts)) for parts in alternatives(made("SEQ(AND(shelf a, till c), exit e)"))]
    assert [[one.label for one in stage] for stage in stages] == [["a", "c"], ["e"]]


@pytest.mark.parametrize(("options", "expected"), [("", False), ("POSSIBLE", True)])
def test_stamps_that_overlap_are_in_an_order_that_is_only_possible(options, expected):
    one = made("SEQ(shelf a, exit e)", options)
    assert order_of(one, {})(landed("shelf/tags", 1, 0, 5), landed("exit/tags", 2, 4, 9)) == expected


@pytest.mark.parametrize("options", ["", "POSSIBLE", "CAUSAL"])
def test_a_window_that_no_match_may_fill_is_shorter(options):
    events = landed("shelf/tags", 1, 0, 0), landed("exit/tags", 2, 10_000, 10_000)
    one = made("SEQ(shelf a, exit e)", options)
    cases = [Case(events, [], 10_000, is_below, order_of(one, {})) for is_below in (False, True)]
    assert [is_match(one, case) for case in cases] == [True, False]
