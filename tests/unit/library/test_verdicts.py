"""`wa.verdicts` on frames of every kind: the choices of runs of the definition, as a frame of that kind."""

import datetime as dt
import itertools
from random import Random

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whenabouts as wa
from reference.latwin import clocks_of, consistent, simulate
from reference.latwin_probability import passed
from support.latwin.states import choices, states_of
from support.library.kinds import KINDS, rows
from support.search import examples
from whenabouts_cloud.language.errors import RuleError

NAMES = ("dock", "door", "exit")
EVERY = " AND ".join(NAMES)


def computation(seed):
    """States of three streams, each reported, in true order."""
    return simulate(Random(seed), 3, 18, error=3, receives="state", delay=0, duplicates=False)


def begins(course):
    return [event for event in course.events if event.begins]


def table(events, clocks=True):
    """Begins of states as an Arrow table, `row` the position."""
    columns = {
        "stream": pa.array([NAMES[event.process] for event in events], pa.string()),
        "t_min": pa.array([event.lo for event in events], pa.int64()),
        "t_max": pa.array([event.hi for event in events], pa.int64()),
        "value": pa.array([event.holds for event in events], pa.bool_()),
        "row": pa.array(range(len(events)), pa.int64()),
    }
    if clocks:
        columns["vclock"] = pa.array([list(event.clock) for event in events], pa.list_(pa.int64()))
    return pa.table(columns)


def states_in(found, events):
    """The numbers of the first states of each row of a result."""
    return [tuple(events[one[f"row_{name}"]].state for name in NAMES) for one in rows(found)]


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10**6), causal=st.booleans())
def test_definite_choices_of_runs_are_those_of_the_definition_in_every_kind(seed, causal):
    """With vector clocks, beside stamps and alone."""
    course = computation(seed)
    events = begins(course)
    wanted = sorted(choices(states_of(course), 3, causal))
    for name, made in KINDS.items():
        frame = made(table(events))
        found = wa.verdicts(frame, f"DEFINITELY {EVERY}{' CAUSAL' * causal}", members=NAMES)
        assert type(found) is type(frame), name
        assert sorted(states_in(found, events)) == wanted, name
        assert {one["probability"] for one in rows(found)} <= {1.0}


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_possible_choices_of_runs_are_those_with_a_consistent_global_state(seed):
    """Of all tuples of states, those in which no state had certainly ended when another one began."""
    course = computation(seed)
    events = begins(course)
    order = clocks_of(course, course.begins())
    runs = [course.runs(process) for process in range(3)]
    wanted = sorted(
        tuple(first for first, _ in chosen)
        for chosen in itertools.product(*runs)
        if any(consistent(order, one) for one in itertools.product(*(range(a, b + 1) for a, b in chosen)))
    )
    found = wa.verdicts(table(events), f"POSSIBLY {EVERY}", members=NAMES)
    assert sorted(states_in(found, events)) == wanted


def stamps(seed, streams=3, most=4):
    """Without clocks: some states of each stream, one after the other, with stamps that overlap those of other streams."""
    rng = Random(seed)
    made = []
    for name in NAMES[:streams]:
        ends = sorted(rng.sample(range(30), 2 * rng.randint(1, most)))
        made += [(name, ends[n], ends[n + 1], rng.random() < 0.6) for n in range(0, len(ends), 2)]
    rng.shuffle(made)
    return made


def stamped(made):
    return pa.table({
        "stream": pa.array([one[0] for one in made], pa.string()),
        "t_min": pa.array([one[1] for one in made], pa.int64()),
        "t_max": pa.array([one[2] for one in made], pa.int64()),
        "value": pa.array([float(one[3]) for one in made], pa.float64()),
        "row": pa.array(range(len(made)), pa.int64()),
    })  # fmt: skip


def by_hand(made, certain):
    """Choices of runs by stamps alone, as (rows of the first states, span of begin, span of end)."""
    every = []
    for name in NAMES:
        own = sorted((one for one in enumerate(made) if one[1][0] == name), key=lambda one: one[1][1:3])
        runs, n = [], 0
        for holds, block in itertools.groupby(own, key=lambda one: one[1][3]):
            size = len(list(block))
            runs += [(own[n], own[n + size] if n + size < len(own) else None)] if holds else []
            n += size
        every.append(runs)
    for chosen in itertools.product(*every):
        pairs = list(itertools.permutations(chosen, 2))
        if certain:
            fits = all(end is None or begin[1][2] < end[1][1] for (begin, _), (_, end) in pairs)
        else:
            fits = all(end is None or end[1][2] >= begin[1][1] for (begin, _), (_, end) in pairs)
        if fits:
            ends = [end for _, end in chosen if end]
            span = [min(end[1][n] for end in ends) if ends else None for n in (1, 2)]
            first = [begin for begin, _ in chosen]
            yield tuple(n for n, _ in first), (max(b[1] for _, b in first), max(b[2] for _, b in first), *span)


@settings(max_examples=examples(80), deadline=None)
@given(seed=st.integers(0, 10**6), certain=st.booleans())
def test_stamps_alone_decide_without_clocks(seed, certain):
    """With the spans in which the runs began and ended to hold together."""
    made = stamps(seed)
    wanted = sorted(by_hand(made, certain))
    for name, kind in KINDS.items():
        found = rows(wa.verdicts(kind(stamped(made)), f"{'DEFINITELY' if certain else 'POSSIBLY'} {EVERY}"))
        spans = [tuple(one[x] for x in ("t_min", "t_max", "until_min", "until_max")) for one in found]
        firsts = [tuple(one[f"row_{x}"] for x in NAMES) for one in found]
        assert sorted(zip(firsts, spans, strict=True)) == wanted, name


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_probability_is_that_of_all_ways_in_which_begins_and_ends_fall(seed):
    """By enumeration of all orders; DEFINITELY is 1."""
    made = stamps(seed, streams=2, most=2)
    for one in rows(wa.verdicts(stamped(made), "POSSIBLY dock AND door")):
        lo, hi, before = {}, {}, set()
        for process, name in enumerate(NAMES[:2]):
            own = sorted((x[1], x[2], n) for n, x in enumerate(made) if x[0] == name)
            at = [n for _, _, n in own].index(one[f"row_{name}"])
            after = next((n for n in range(at, len(own)) if not made[own[n][2]][3]), None)
            for number, place in ((1, at), *(((2, after),) if after else ())):
                lo[process, number], hi[process, number] = own[place][:2]
            before |= {((process, 1), (process, 2))} if after else set()
        courses = passed((0, 0), (3, 3), lo, hi, before)
        wanted = sum(share for share, states in courses if (1, 1) in states)
        assert one["probability"] == pytest.approx(float(wanted), abs=1e-12)


def test_groups_are_not_compared_and_rows_without_one_are_left_out():
    states = pa.table({
        "room": ["x", "x", "y", None, "y"], "stream": ["dock", "door", "dock", "door", "exit"], "ts": [0, 1, 2, 3, 4],
        "anybody": [True] * 5,
    })  # fmt: skip
    for name, kind in KINDS.items():
        found = rows(wa.verdicts(kind(states), "DEFINITELY dock.anybody AND door.anybody", group="room"))
        assert [(one["room"], one["ts_dock"], one["ts_door"], one["until_min"]) for one in found] == [
            ("x", 0, 1, None)
        ], name
    assert len(rows(wa.verdicts(states, "DEFINITELY dock.anybody AND door.anybody"))) == 1


def test_predicates_are_those_of_rules():
    """Texts, numbers, unknown values, several alternatives, and comparisons of streams, state by state."""
    states = pa.table({
        "stream": ["dock", "door", "dock", "door"], "ts": [0, 1, 5, 8], "room": ["meeting", None, "hall", None],
        "level": [1.5, 2.0, None, 3.0],
    })  # fmt: skip

    def found(text):
        return [(one["ts_dock"], one["ts_door"], one["probability"]) for one in rows(wa.verdicts(states, text))]

    assert found('DEFINITELY dock.room = "meeting" AND door.level < 2.5') == [(0, 1, 1.0)]
    assert found("DEFINITELY dock.level > 9 OR NOT door.level < 2.5") == [(None, 8, 1.0)]
    assert found("DEFINITELY NOT dock.level = 1.5 AND door.level > 0") == []  # the level of the dock is unknown then
    assert found("POSSIBLY dock.level < door.level") == [(0, 1, 1.0)]


def test_times_are_those_of_correlate_and_keep_their_type():
    begin, minute = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC), dt.timedelta(minutes=1)
    ends = [None, None, begin + 3 * minute]
    states = pa.table({
        "stream": pa.array(["dock", "door", "dock"]).dictionary_encode(), "on": [1, 1, 0],
        "t_min": pa.array([begin, begin + minute, begin + 2 * minute], pa.timestamp("ms", "UTC")),
        "t_max": pa.array(ends, pa.timestamp("ms", "UTC")),
    })  # fmt: skip
    found = wa.verdicts(states, "DEFINITELY dock.on AND door.on")
    assert found.schema.field("until_max").type == pa.timestamp("ms", "UTC")
    [one] = found.to_pylist()
    spans = [(one[name] - begin) / minute for name in ("t_min", "t_max", "until_min", "until_max")]
    assert spans == [1, 1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_frames_without_rows_have_no_verdicts_and_all_columns(kind):
    found = wa.verdicts(KINDS[kind](stamped([])), "POSSIBLY dock AND door.row")
    assert rows(found) == []
    columns = (
        found.collect_schema().names()
        if isinstance(found, pl.LazyFrame)
        else list(getattr(found, "column_names", found.columns))
    )
    assert columns[:5] == ["t_min", "t_max", "until_min", "until_max", "t_min_dock"]
    assert columns[-2:] == ["row_door", "probability"]


CLOCKS = pa.table({"stream": ["dock", "dock"], "ts": [0, 1], "value": [1, 1], "vclock": [[0, 0], [2, 0]]})


@pytest.mark.parametrize(
    ("states", "verdict", "more", "text"),
    [
        ({}, "POSSIBLY a", {}, "states: found dict, expected a frame"),
        (pd.DataFrame({"ts": [0], "value": [1]}), "POSSIBLY a", {}, "stream: found 'stream', expected a column"),
        (stamped([]), "POSSIBLY dock.on", {}, "verdict: found 'on', expected a column of states: stream"),
        (stamped([]), "POSSIBLY dock", {"group": "room"}, "group: found 'room', expected a column of states"),
        (stamped([]), "POSSIBLY dock", {"members": ["dock"]}, "members: found 'vclock', expected a column of states"),
        (stamped([]), "POSSIBLY dock CAUSAL", {}, "verdict: found CAUSAL, expected it with members"),
        (CLOCKS, "POSSIBLY door", {"members": ["dock", "exit"]}, "members: found dock, exit; expected each stream once"),
        (CLOCKS, "POSSIBLY dock", {"members": ["dock"]}, "found the vector clock [0, 0] in row 0, expected 1 whole numbers"),
        (CLOCKS, "POSSIBLY dock", {"members": ["dock", "door"]}, "states of dock whose own entries in vclock do not follow"),
        (pa.table({"stream": ["a", "a"], "ts": [5, 5], "value": [1, 0]}), "POSSIBLY a", {},
         "states of a with the same times, rows 0 and 1"),
        (pa.table({"stream": ["a"], "ts": [5], "value": [[1]]}), "POSSIBLY a", {}, "found list<item: int64> in value"),
        (pa.table({"stream": ["a"], "when": [5], "value": [1]}), "POSSIBLY a", {}, "expected t_min and t_max"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_what_was_found_and_expected(states, verdict, more, text):
    with pytest.raises(wa.FrameError) as refused:
        wa.verdicts(states, verdict, **more)
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        ("dock AND door", "verdict:1:1: found dock, expected DEFINITELY or POSSIBLY"),
        ("DEFINITELY dock AND\n", "verdict:1:20: found the end of the declaration"),
        ("POSSIBLY dock WINDOW 4", "verdict:1:15: found WINDOW, expected the end of the declaration or CAUSAL"),
        ("DEFINITELY dock.x = door.x", "verdict:1:12: found DEFINITELY of streams compared with each other"),
    ],
)
def test_mistakes_in_a_verdict_have_their_place(verdict, text):
    with pytest.raises(RuleError) as refused:
        wa.verdicts(stamped([]), verdict)
    assert text in str(refused.value)
