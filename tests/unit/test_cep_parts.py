"""Parts of the engine of event patterns on their own; as a whole it is held against the definition in tests/property."""

import numpy as np
import pytest

from whenabouts_cloud.cep import Pattern, engine
from whenabouts_cloud.cep.conditions import of_columns
from whenabouts_cloud.cep.program import compile_plans
from whenabouts_cloud.cep.skip import Skipper
from whenabouts_cloud.cep.snapshot import dump, load


def plan_of(text, names="ABC"):
    return Pattern.parse(text, unit_us=1).plan(list(names))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((("attribute", 0, "v", 0.0), ("constant", 0, "", 2.0), (">", 0, "", 0.0)), [False, False, True, False]),
        ((("attribute", 0, "v", 0.0), ("constant", 0, "", 2.0), ("!=", 0, "", 0.0)), [True, False, True, False]),
        ((("constant", 0, "", 1.0), ("attribute", 0, "v", 0.0), ("/", 0, "", 0.0), ("constant", 0, "", 1.0),
          ("=", 0, "", 0.0)), [True, False, False, False]),
    ],
)  # fmt: skip
def test_a_condition_on_columns_is_false_where_a_value_is_missing(steps, expected):
    """Every comparison with nan is false, `!=` too."""
    columns = {"v": np.array([1.0, 2.0, 3.0, np.nan])}
    assert of_columns(steps, columns, np.arange(4)).tolist() == expected


def test_equal_classes_of_several_patterns_are_one():
    """Two patterns over A and B, and A and C, need three chains, not four."""
    compiled = compile_plans([plan_of("SEQ(A, B) WITHIN 5"), plan_of("SEQ(A, C) WITHIN 5")], 3)
    assert compiled.classes == 3


def test_past_last_keeps_what_begins_after_the_end():
    """Per key; decided once the frontier is past everything that could begin before.

    t      1   3   5   7
    kept   a---b
    not        c---d        begins at 3, not after 3
    kept           e---f
    """
    skipper = Skipper(plan_of("SEQ(A, B) WITHIN 4 SKIP PAST LAST"), 0)
    for first, last in ((1, 3), (3, 5), (5, 7)):
        skipper.add(((first, first), (last, last)), last, 0, (first, last))
    assert skipper.decided(5) == []
    assert [row for _, row in skipper.decided(100)] == [(1, 3), (5, 7)]


def test_a_snapshot_is_taken_up_where_it_was_made():
    """What was stored before it completes after it."""
    running = engine(Pattern.parse("SEQ(A, B) WITHIN 5", unit_us=1), ["A", "B"], k=1)
    running.feed([0], [7], [1])
    again = load(dump(running))
    assert again.feed([1], [7], [2]).matches.tolist() == [[0, 1]]
    assert dump(load(dump(running))) == dump(running)
