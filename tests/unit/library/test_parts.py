"""Parts of the functions on frames, each on values of its own."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from whenabouts.columns import within_probability
from whenabouts.frames.kinds import FrameError, given
from whenabouts.frames.numbers import numbers
from whenabouts.frames.rows import named_rows, once_each, suffix
from whenabouts.held import verdicts
from whenabouts.matches import detect
from whenabouts.sequences.matching import layout_of
from whenabouts.states.answer import layout_of as layout_of_states
from whenabouts.states.local_states import Question, States, scalars, states_of
from whenabouts.states.overlaps import bounds_of, certain, choices, each_state, runs_of
from whenabouts.states.together import probability
from whenabouts_cloud.language.pattern import Pattern
from whenabouts_cloud.rules.states import Verdict

STATES = pa.table({"stream": ["b", "a", "a", "b", "a"], "t_min": [2, 9, 0, 20, 30], "t_max": [8, 12, 4, 24, 31]})
QUESTION = Question("stream", None, ("a", "b"), ())


def states():
    """Of a: rows 2, 1, 4. Of b: rows 0, 3."""
    return states_of(
        given(STATES, "states"), QUESTION, STATES["t_min"].to_numpy().copy(), STATES["t_max"].to_numpy().copy()
    )


def test_rows_are_taken_with_nulls_where_there_is_none():
    frame = given(pd.DataFrame({"n": [1, 2], "s": ["x", "y"]}), "events").rows
    made = named_rows(frame, np.array([1, -1]), {"s": "s_a", "n": "n_a"}).to_native()
    assert made.columns.tolist() == ["s_a", "n_a"]
    assert made.n_a.tolist() == [2, pd.NA]
    assert suffix("b[2]") == "b_2"
    with pytest.raises(FrameError, match="states: found columns that would both be called 'x'; rename one"):
        once_each(["x", "y", "x"], "states", "rename one")


def test_columns_of_all_types_are_numbers_for_conditions():
    """Truth is 1 and 0, times are microseconds, texts are 1 for the word and 0 for another, null is nan."""
    frame = given(
        pa.table({
            "yes": [True, None], "at": pa.array([2, None], pa.timestamp("ms")), "lasts": pa.array([3, 4], pa.duration("ms")),
            "side": ["left", "right"], "n": pa.array([1.5, None]),
        }),
        "events",
    )  # fmt: skip
    found = {name: numbers(frame, name, None) for name in ("yes", "at", "lasts", "n")}
    wanted = {"yes": [1, np.nan], "at": [2000, np.nan], "lasts": [3000, 4000], "n": [1.5, np.nan]}
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values)
    assert numbers(frame, "side", "left").tolist() == [1, 0]
    assert numbers(frame, "n", "left")[0] == 0
    assert len(set(numbers(frame, "side", None))) == 2
    assert scalars(frame, "yes") == [1.0, None]
    assert scalars(frame, "side") == ["left", "right"]


def test_a_layout_says_what_the_columns_of_a_result_are():
    events = given(pa.table({"stream": ["x"], "key": ["k"], "ts": [5]}), "events")
    layout = layout_of(events, Pattern.parse("SEQ(x a, x{2} b) WITHIN 1 s", None), "stream")
    assert layout.columns[:3] == ["key", "stream_a", "ts_a"]
    assert layout.columns[-3:] == ["stream_b_2", "ts_b_2", "probability"]
    layout = layout_of_states(events, Verdict.parse("POSSIBLY a.ts AND b.ts"), "stream", "key", ())
    assert layout.columns == ["key", "t_min", "t_max", "until_min", "until_max", "ts_a", "ts_b", "probability"]
    assert layout.sources["until_max"] == layout.sources["ts_b"] == "ts"


def test_states_of_a_stream_follow_each_other_by_time_and_make_runs():
    one = states()
    assert isinstance(one, States)
    assert one.row.tolist() == [2, 1, 4, 0, 3]
    assert one.number.tolist() == [0, 1, 2, 0, 1]
    runs = runs_of(one, 0, np.array([True, True, False, True, True]))
    assert (runs.first.tolist(), runs.last.tolist(), runs.end.tolist()) == ([0], [1], [2])
    assert each_state(one, 1).end.tolist() == [4, -1]


def test_runs_hold_together_possibly_certainly_and_with_a_probability():
    """a holds from [0, 4] to [9, 12], b from [2, 8] to [20, 24]: certainly at once."""
    one = states()
    every = [runs_of(one, 0, np.array([True, False, False, False, False])), each_state(one, 1)]
    bounds = bounds_of(one, causal=False)
    found = choices(one, every, bounds, False, False)
    assert found.tolist() == [[0, 0]]
    assert certain(one, every, bounds, found, False).tolist() == [True]
    assert probability(one, every, found[0]) == 1.0
    narrow = one._replace(lo=np.array([0, 3, 30, 2, 20]), hi=np.array([1, 5, 31, 4, 24]))
    bounds = bounds_of(narrow, causal=False)
    found = choices(narrow, every, bounds, False, False)
    assert choices(narrow, every, bounds, True, False).tolist() == []
    assert probability(narrow, every, found[0]) == pytest.approx(
        1 - 1 / 8
    )  # b begins before a ends: not both in [3, 4]


def test_functions_of_modules_are_those_of_the_package():
    import whenabouts as wa

    assert (wa.detect, wa.verdicts, wa.within_probability) == (detect, verdicts, within_probability)
