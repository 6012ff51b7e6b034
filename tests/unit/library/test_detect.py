"""`wa.detect` on frames of every kind: the matches of the definition, as a frame of that kind."""

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whenabouts as wa
from reference import cep_uncertain
from reference.cep import Event, candidates
from support.library.kinds import KINDS, rows
from support.search import examples
from whenabouts_cloud.language.errors import RuleError
from whenabouts_cloud.language.pattern import Pattern

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "other", None]),
        st.sampled_from(["x", "y", None]),
        st.integers(-20, 20),
        st.integers(0, 4),
        st.sampled_from([None, 0.0, 1.5, 2.0]),
        st.sampled_from(["left", "right", None]),
    ),
    max_size=8,
)
# With the columns that conditions read, in the order of the plan's.
PATTERNS = [
    "SEQ(a x, !c z, b y) WITHIN 15 us",
    "SEQ(a x, b y) WITHIN < 9 us PER tag NEXT",
    "AND(a x, b, (a | c) w) WITHIN 12 us ACROSS KEYS",
    "OR(a, SEQ(b{1,3} r, c)) WITHIN 20 us PER tag",
    'SEQ(a x, b y) WITHIN 20 us ACROSS KEYS WHERE x.v < y.v AND y.side = "left"',
    "SEQ(a x, c y) WITHIN 30 us PER tag WHERE x.side = y.side AND y.t_min - x.t_max < 10",
]


def table(events):
    """Events as an Arrow table; `row` is the position."""
    columns = {
        "stream": pa.array([one[0] for one in events], pa.string()),
        "tag": pa.array([one[1] for one in events], pa.string()),
        "t_min": pa.array([one[2] for one in events], pa.int64()),
        "t_max": pa.array([one[2] + one[3] for one in events], pa.int64()),
        "v": pa.array([one[4] for one in events], pa.float64()),
        "side": pa.array([one[5] for one in events], pa.string()),
        "row": pa.array(range(len(events)), pa.int64()),
    }
    return pa.table(columns)


def definition(pattern, events):
    """Rows of positions, from the definition; texts are numbers by their order."""
    plan = pattern.plan(pattern.types)
    used = [n for n, one in enumerate(events) if one[0] in pattern.types and (one[1] or not pattern.per_key)]
    nan = float("nan")
    codes = {"left": 100.0, "right": 101.0, None: nan}

    def column(name, one):
        _, _, begin, length, v, side = one
        known = {"v": nan if v is None else v, "side": codes[side], "t_min": begin, "t_max": begin + length}
        return known[name] if name in known else nan if side is None else float(name == f'side="{side}"')

    made = [
        Event(
            pattern.types.index(events[n][0]), ("x", "y", None).index(events[n][1]), events[n][2],
            events[n][2] + events[n][3], 0, tuple(column(name, events[n]) for name in plan.attributes),
        )
        for n in used
    ]  # fmt: skip
    found = [one.row for one in candidates(plan, made, range(len(made))) if not one.violators]
    return sorted([tuple(None if i < 0 else used[i] for i in row) for row in found], key=str)


@settings(max_examples=examples(60), deadline=None)
@given(events=EVENTS, text=st.sampled_from(PATTERNS))
def test_the_matches_are_those_of_the_definition_in_every_kind(events, text):
    """Each with the rows of its events, and nulls where it has none."""
    text = text if "PER" in text or "ACROSS" in text else f"{text} PER tag"
    pattern = Pattern.parse(text, None, any_key=True)
    wanted = definition(pattern, events)
    places = [name.replace("[", "_").replace("]", "").replace("|", "_") for name in pattern.names]
    for name, made in KINDS.items():
        frame = made(table(events))
        found = wa.detect(frame, text)
        assert type(found) is type(frame), name
        found = rows(found)
        assert sorted([tuple(one[f"row_{place}"] for place in places) for one in found], key=str) == wanted, name
        for one in found:
            assert one["probability"] == 1.0
            filled = [place for place in places if one[f"row_{place}"] is not None]
            for place in filled:
                stream, tag, begin, length, v, _ = events[one[f"row_{place}"]]
                own = stream, begin, begin + length, v
                assert own == tuple(one[f"{what}_{place}"] for what in ("stream", "t_min", "t_max", "v")), name
                assert one["tag" if pattern.per_key else f"tag_{place}"] == tag


@settings(max_examples=examples(40), deadline=None)
@given(a=st.tuples(st.integers(0, 6), st.integers(0, 5)), b=st.tuples(st.integers(0, 8), st.integers(0, 5)),
       c=st.tuples(st.integers(0, 8), st.integers(0, 3)))  # fmt: skip
def test_probabilities_are_those_of_the_definition(a, b, c):
    """Of the whole match, order, window and absence together; POSSIBLE has none."""
    text = "SEQ(a, !c, b) WITHIN 9 us PER tag"
    stamps = [(begin, begin + length) for begin, length in (a, b, c)]
    events = pa.table({
        "stream": ["a", "b", "c"], "tag": ["x"] * 3,
        "t_min": [one[0] for one in stamps], "t_max": [one[1] for one in stamps],
    })  # fmt: skip
    [alternative] = Pattern.parse(text, None, any_key=True).plan(("a", "c", "b")).alternatives
    case = cep_uncertain.Case(
        alternative, tuple(stamps[:2]), (cep_uncertain.Obstacle(stamps[2], (0,)),), 9, strict=False
    )
    wanted = cep_uncertain.probability(case)
    found = rows(wa.detect(events, f"{text} OVER 1 %"))
    assert [one["probability"] for one in found] == ([pytest.approx(float(wanted), abs=1e-9)] if wanted >= 0.01 else [])
    for name, made in KINDS.items():
        found = rows(wa.detect(made(events), f"{text} POSSIBLE"))
        assert [one["probability"] for one in found] == ([None] if cep_uncertain.possible(case) else []), name


@pytest.mark.parametrize("kind", KINDS)
def test_frames_without_rows_have_no_matches_and_all_columns(kind):
    empty = KINDS[kind](table([]))
    found = wa.detect(empty, "SEQ(a, b{1,2} r) WITHIN 1 h PER tag")
    assert rows(found) == []
    columns = (
        found.collect_schema().names()
        if isinstance(found, pl.LazyFrame)
        else list(getattr(found, "column_names", found.columns))
    )
    assert columns[:2] == ["tag", "stream_a"]
    assert columns[-1] == "probability"
    assert "t_max_r_2" in columns


def test_times_are_those_of_correlate():
    """Timestamps in a column ts, which conditions compare too."""
    begin = dt.datetime(2026, 1, 1, 12)
    events = pd.DataFrame({
        "stream": pd.Categorical(["shelf", "exit"]), "key": [7, 7], "ts": [begin, begin + dt.timedelta(minutes=5)],
    })  # fmt: skip
    pattern = "SEQ(shelf a, exit e) WITHIN 1 h PER key"
    [one] = rows(wa.detect(events, f"{pattern} WHERE e.ts - a.ts > 4 min"))
    assert (one["key"], one["ts_a"], one["ts_e"]) == (7, events.ts[0], events.ts[1])
    assert rows(wa.detect(events, f"{pattern} WHERE e.ts - a.ts > 6 min")) == []
    assert len(rows(wa.detect(events.rename(columns={"stream": "kind"}), pattern, stream="kind"))) == 1


def test_whole_numbers_of_pandas_stay_whole_beside_nulls():
    events = pd.DataFrame({"stream": ["a", "b"], "ts": [1, 2], "n": [(1 << 60) + 1, 3], "yes": [True, False]})
    found = wa.detect(events, "OR(a, b) WITHIN 1 s ACROSS KEYS")
    assert [str(found[name].dtype) for name in ("n_a", "yes_a")] == ["Int64", "boolean"]
    assert found.n_a.isna().tolist() == [True, False]
    assert found.n_a[1] == (1 << 60) + 1


@pytest.mark.parametrize(
    ("events", "pattern", "text"),
    [
        (7, "SEQ(a, b) WITHIN 1 s", "events: found int, expected a frame"),
        (table([]).drop_columns(["stream"]), "SEQ(a, b) WITHIN 1 s",
         "stream: found 'stream', expected a column of events: tag"),
        (table([]), "SEQ(a, b) WITHIN 1 s", "PER: found 'key', expected a column of events: stream, tag"),
        (table([]), "SEQ(a x, b) WITHIN 1 s PER tag WHERE x.rssi > 3", "WHERE: found 'rssi', expected a column of events"),
        (table([]), "SEQ(a, b) WITHIN 1 s PER tag CAUSAL", "pattern: found CAUSAL, expected CERTAIN, POSSIBLE or OVER"),
        (table([]), "SEQ(a r_1, b{1,2} r) WITHIN 1 s PER tag", "columns that would both be called 'row_r_1'"),
        (pa.table({"stream": [1], "ts": [5]}), "SEQ(a, b) WITHIN 1 s ACROSS KEYS",
         "events: found Int64 in stream, expected"),
        (pa.table({"stream": ["a"], "x": [5]}), "SEQ(a, b) WITHIN 1 s ACROSS KEYS", "events: found the columns stream, x"),
        (pa.table({"stream": ["a"], "ts": [1 << 60]}), "SEQ(a, b) WITHIN 1 s ACROSS KEYS", "less than 2^60 from 1970"),
        (pa.table({"stream": ["a"], "ts": [1], "v": [[1]]}), "SEQ(a x, b) WITHIN 1 s ACROSS KEYS WHERE x.v > 1",
         "events: found list<item: int64> in v, expected numbers, truth values, times or texts"),
        (pa.table([[1], [2]], names=["ts", "ts"]), "SEQ(a, b) WITHIN 1 s", "events: found the column 'ts' twice"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_what_was_found_and_expected(events, pattern, text):
    with pytest.raises(wa.FrameError) as refused:
        wa.detect(events, pattern)
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("SEQ(a, b) WITHIN 3", "pattern:1:18: found 3 without a unit"),
        ("SEQ(a, b) WITHIN 3 s COUNT", "pattern:1:22: found COUNT, expected the end of the declaration"),
        ("SEQ(a,\n b", "pattern:2:3: found the end of the declaration"),
    ],
)
def test_mistakes_in_a_pattern_have_their_place(pattern, text):
    with pytest.raises(RuleError) as refused:
        wa.detect(table([]), pattern)
    assert text in str(refused.value)


@pytest.mark.parametrize("kind", KINDS)
def test_conditions_on_names_read_the_own_column_or_else_the_name_in_the_key(kind):
    """`a.gtin` where the keys are EPCs; a column of that name wins, as the one that `epc_names` adds."""

    def make(columns):
        return KINDS[kind](pa.table(columns))

    named, other = "3074257BF7194E4000001A85", "E28011700000020A"
    tags = {"stream": ["shelf", "exit"] * 2, "tag": [named] * 2 + [other] * 2, "ts": [0, 1, 0, 1]}
    text = "SEQ(shelf a, exit e) WITHIN 1 h PER tag WHERE a.{}"
    gtin = f'gtin = "{wa.epc(named).gtin}"'
    assert [one["tag"] for one in rows(wa.detect(make(tags), text.format(gtin)))] == [named]
    assert len(rows(wa.detect(make(tags), text.format("gtin = e.gtin")))) == 1
    own = make({**tags, "gtin": ["x"] * 4})
    assert rows(wa.detect(own, text.format(gtin))) == []
    with pytest.raises(wa.FrameError, match="found int64 in tag, expected texts"):
        wa.detect(make({**tags, "tag": [1, 1, 2, 2]}), text.format(gtin))
