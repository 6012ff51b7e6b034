"""Patterns mean what they say: plans held against the patterns themselves, on small sets of events."""

from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.cloud.pattern_meaning import by_pattern, by_plan
from support.cloud.patterns import TYPES, conditions, roots
from support.search import examples
from whenabouts_cloud.language.pattern import Pattern
from whenabouts_cloud.pattern.compile import alternative_shapes
from whenabouts_cloud.pattern.expressions import conjuncts

attributes = st.fixed_dictionaries(
    {},
    optional={
        "value": st.sampled_from([0.0, 1.0, 2.0]),
        "rssi": st.just(3.0),
        "antenna": st.sampled_from(["left", ""]),
    },
)
events = st.lists(st.tuples(st.sampled_from(TYPES), st.integers(0, 6), attributes), min_size=1, max_size=6)
windows = st.integers(0, 7)


def agree(pattern, readings):
    """Both ways to find the matches of a pattern."""
    try:
        if max(len(shape.positives) for shape, _ in alternative_shapes(pattern)) > 5:
            return False
    except ValueError:
        return False
    assert by_plan(pattern.plan(TYPES), TYPES, readings) == by_pattern(pattern, readings)
    return True


@given(roots(), windows, st.booleans(), events)
@settings(max_examples=examples(200), deadline=None)
def test_groups_gaps_alternatives_and_repetitions(root, window_us, strict, readings):
    """SEQ, AND and OR in each other, with negation and repetition anywhere: the alternatives match as the pattern."""
    assume(agree(Pattern(root, window_us, strict_window=strict), readings))


@given(st.data(), roots(), windows, events)
@settings(max_examples=examples(200), deadline=None)
def test_conditions_reach_the_events_that_they_name(data, root, window_us, readings):
    """On one event, on several, on negated ones, on repetitions; missing attributes."""
    where = tuple(one for _ in range(2) for one in conjuncts(data.draw(conditions(root))))
    assume(agree(Pattern(root, window_us, where=where), readings))


@given(st.data(), roots(), windows, st.sampled_from(["next", "strict"]), st.booleans(), events)
@settings(max_examples=examples(200), deadline=None)
def test_neighbours_have_nothing_between_them_that_could_have_been_taken(
    data, root, window_us, select, conditional, readings
):
    """NEXT and STRICT: walking through a match in time, no event was passed over that could have come next."""
    where = tuple(conjuncts(data.draw(conditions(root, indices=False)))) if conditional else ()
    assume(agree(Pattern(root, window_us, select=select, where=where), readings))


NEIGHBOURS = [
    "SEQ(A, B{1,3} b, C)",
    "SEQ(B{1,3} b)",
    "SEQ(A, B{2,3} b)",
    "SEQ(B{1,2} b, (A | B) x)",
    "SEQ(A a, (A | B){2,3} b, C)",
    "SEQ(A, AND(B{1,2}, C), B d)",
    "AND(B{1,2} b, SEQ(A, C))",
    "SEQ(A, B{1,2} b, OR(C, B d))",
    "SEQ(A, B{1,2} b, C{1,2} c, A d)",
    "SEQ(A, B{1,2} b, AND(A d, C))",
    "SEQ(A, !C, B{2,3} b, !C, A d)",
]


@pytest.mark.parametrize("text", NEIGHBOURS)
@pytest.mark.parametrize("select", ["NEXT", "STRICT"])
def test_neighbours_of_repetitions_in_every_order_of_events(text, select):
    """All words of four or five letters: no event is passed over that could be taken."""
    matches = 0
    for where in ("", " WHERE b.value < 2", " WHERE b[PREV].value <= b.value", " WHERE b.value != d.value"):
        if ("b." in where and " b" not in text) or ("d." in where and " d" not in text):
            continue
        pattern = Pattern.parse(f"{text} WITHIN 9 {select}{where}")
        assert max(len(shape.positives) for shape, _ in alternative_shapes(pattern)) <= 6
        plan = pattern.plan(TYPES)
        for n, word in enumerate(product(TYPES, repeat=4 if "value <" in where or "d." in where else 5)):
            values = (0, 1, 0, 1, 1) if n % 2 == 0 else [(n + t * 5) % 3 for t in range(5)]
            readings = [(name, t, {"value": float(values[t])}) for t, name in enumerate(word)]
            meant = by_pattern(pattern, readings)
            assert by_plan(plan, TYPES, readings) == meant
            matches += len(meant)
    assert matches > 0
