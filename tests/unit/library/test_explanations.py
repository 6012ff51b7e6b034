"""`wa.explain` and `wa.plot`: why a row is a pair, a match or a verdict, or why it is none, as text and as bars."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whenabouts as wa
from support.child import environment
from support.library.kinds import KINDS, rows
from support.search import examples
from whenabouts.explanations import Bar, Explanation, explain
from whenabouts.pictures import plot
from whenabouts_cloud.svg import COLOURS

mpl.use("Agg")

CONDITION = "|@a - @b| <= 10 us OVER 20 %"
DOCK = pa.table({"t_min": [0, 500], "t_max": [10, 510]})
DOOR = pa.table({"t_min": [15, 30, 900], "t_max": [25, 40, 901]})
EVENTS = pa.table({
    "stream": ["shelf", "exit", "till"], "key": ["x", "x", "y"], "t_min": [0, 4_000_000, 0],
    "t_max": [1_000_000, 5_000_000, 0],
})  # fmt: skip
SEQUENCE = "SEQ(shelf a, !till c, exit{1,2} e) WITHIN 1 h PER key"
STATES = pa.table({
    "stream": ["dock", "door", "dock"], "t_min": [0, 5, 20], "t_max": [2, 8, 30], "on": [1, 1, 0],
})  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_is_explained_from_a_row_of_any_kind(kind):
    made = KINDS[kind]
    condition = "|@a - @b| <= 20 us OVER 80 %"
    found = explain(wa.correlate(made(DOCK), made(DOOR), condition), condition)
    assert str(found) == (
        "a pair\n  a  0 us .. 10 us\n  b  15 us .. 25 us\n  @b - @a from 5 us to 25 us, asked for -20 us to 20 us\n"
        "  probability 0.875, 0.8 is needed"
    )


def test_what_is_no_pair_says_what_is_missing():
    """Improbable, impossible, or with a time that is too long."""
    near = explain({"t_min_a": 0, "t_max_a": 10, "t_min_b": 15, "t_max_b": 25}, CONDITION)
    assert (near.headline, near.probability) == ("no pair", 0.125)
    assert near.lines == ("@b - @a from 5 us to 25 us, asked for -10 us to 10 us", "probability 0.125, 0.2 is needed")
    far = explain(pd.Series({"ts_a": 0, "ts_b": -40}), CONDITION)
    assert far.lines[-1] == "not possible: at least 30 us below the limits"
    long = explain({"t_min_a": 0, "t_max_a": 500, "ts_b": 5}, CONDITION)
    assert long.lines[-1] == "the time of a is 500 us long: none longer than 100 us can be in a pair"


def test_the_nearest_partners_of_a_row_are_explained():
    """Also those that are none, the most probable first."""
    found = explain(DOCK.slice(0, 1), CONDITION, among=DOOR)
    assert found.headline == "no pair among 3 rows"
    assert [bar.name for bar in found.bars] == ["a", "b, row 0", "b, row 1", "b, row 2"]
    assert found.lines[0].startswith("row 0: no pair, @b - @a from 5 us to 25 us")
    assert explain({"ts": 5}, CONDITION, among=DOOR.slice(0, 0)).headline == "no partner at all"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"t_min": [0]}, {"t_min": [0], "t_max": [3]}),
        ({"t_min": [0], "t_max": [3]}, {"t_min": [0]}),
        ({"ts": [0]}, {"t_min": [0], "t_max": [3]}),
        ({"t_min": [0], "t_max": [3]}, {"ts": [0]}),
        ({"t_min": [0], "ts": [9]}, {"t_min": [0], "t_max": [3], "v": [1]}),
    ],
)
def test_a_time_of_one_side_alone_is_never_taken_for_that_of_the_other(kind, a, b):
    """Names that do not meet have no _a and _b. With names that meet, a row is explained as it was found."""
    made, condition = KINDS[kind], "|@a - @b| <= 1 us OVER 20 %"
    with pytest.raises(wa.FrameError, match=r"which is of one side alone.*whose times have the same names"):
        explain(wa.correlate(made(pa.table(a)), made(pa.table(b)), condition), condition)
    both = [{"t_min": [0], "t_max": [one.get("t_max", [0])[0]]} for one in (a, b)]
    pairs = wa.correlate(*(made(pa.table(one)) for one in both), condition)
    [one] = rows(pairs)
    found = explain(pairs, condition)
    assert found.headline == "a pair"
    assert found.probability == pytest.approx(one["probability"], abs=1e-14) == 1 / 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [["t_min", "t_max"], ["ts"], ["t_min"]])
def test_nanoseconds_are_rounded_outwards_as_by_correlate(kind, names):
    """500 ns lie between 0 us and 1 us, so they are not surely at 0 us."""
    condition = "@b - @a IN [0 us, 0 us] OVER 50 %"
    ends = pa.array([500], pa.timestamp("ns"))
    frame = KINDS[kind](pa.table({f"{name}_{side}": ends if side == "b" else [0] for side in "ab" for name in names}))
    found = explain(frame, condition)
    assert (found.headline, found.bars[1].begin_us, found.bars[1].end_us) == ("no pair", 0, 1)
    assert explain({"ts_a": 0, "ts_b": pd.Timestamp(500)}, condition).bars[1].end_us == 1


def test_keys_are_compared_where_the_condition_asks_for_it():
    condition = f"{CONDITION} AND a.key = b.key"
    times = {"ts_a": 0, "ts_b": 5}
    found = explain({**times, "key_a": "x", "key_b": "y"}, condition)
    assert found.headline == "no pair"
    assert found.lines[-1] == "the keys are 'x' and 'y': only equal keys can be a pair"
    assert explain({**times, "key_a": None, "key_b": None}, condition).headline == "no pair"
    assert explain({**times, "key_a": "x", "key_b": "x"}, condition).headline == "a pair"
    assert explain({**times, "key_a": "x", "key_b": "y"}, CONDITION).headline == "a pair"
    door = pa.table({"ts": [0, 9, 20], "key": ["y", "x", None]})
    found = explain({"ts": 0, "key": "x"}, condition, among=door)
    assert found.headline == "a pair among 3 rows"
    assert [line.split(",")[0] for line in found.lines] == ["row 1: a pair", "row 0: no pair", "row 2: no pair"]
    for row, among, text in (
        (times, None, "expected key_a, as the condition asks"),
        ({"ts": 0}, door, "expected key, as the condition asks"),
        ({"ts": 0, "key": "x"}, DOOR, "among: found the columns t_min, t_max; expected key"),
    ):
        with pytest.raises(wa.FrameError, match=text):
            explain(row, condition, among=among)


def test_the_most_probable_partner_is_found_behind_many_that_are_nearer():
    condition = "|@a - @b| <= 10 us OVER 50 %"
    door = pa.table({"t_min": [-1000] * 30 + [9], "t_max": [1000] * 30 + [10]})
    [pair] = rows(wa.correlate(pa.table({"ts": [0]}), door, condition))
    found = explain({"ts": 0}, condition, among=door)
    assert (found.headline, found.probability) == ("a pair among 31 rows", pair["probability"])
    assert found.bars[1].name == "b, row 30"


@settings(max_examples=examples(60), deadline=None)
@given(
    own=st.tuples(st.integers(-20, 20), st.integers(0, 20)),
    others=st.lists(st.tuples(st.integers(-40, 40), st.integers(0, 30)), min_size=1, max_size=9),
    d=st.integers(0, 20),
)
def test_among_finds_a_partner_exactly_where_correlate_does(own, others, d):
    condition = f"|@a - @b| <= {d} us OVER 30 %"
    a = pa.table({"t_min": [own[0]], "t_max": [sum(own)]})
    b = pa.table({"t_min": [begin for begin, _ in others], "t_max": [sum(one) for one in others]})
    pairs = rows(wa.correlate(a, b, condition))
    found = explain(a, condition, among=b)
    assert found.headline == f"{'a' if pairs else 'no'} pair among {len(others)} rows"
    if pairs:
        assert found.probability == pytest.approx(max(one["probability"] for one in pairs))


@pytest.mark.parametrize(
    ("row", "pattern", "headline"),
    [
        ({"ts_a": 0, "ts_e": 5}, "SEQ(shelf a, exit e) WITHIN 10 us", "a match"),
        ({"ts_a": 5, "ts_e": 0}, "SEQ(shelf a, exit e) WITHIN 10 us", "no match"),
        ({"ts_a": 5, "ts_e": 0}, "AND(shelf a, exit e) WITHIN 10 us", "a match"),
        ({"ts_a": 0, "ts_e": 11}, "SEQ(shelf a, exit e) WITHIN 10 us", "no match"),
        ({"ts_a": 0, "ts_e": 11}, "AND(shelf a, exit e) WITHIN 10 us", "no match"),
        ({"t_min_a": 0, "t_max_a": 5, "ts_e": 3}, "SEQ(shelf a, exit e) WITHIN 10 us", "no match"),
        ({"t_min_a": 0, "t_max_a": 5, "ts_e": 3}, "SEQ(shelf a, exit e) WITHIN 10 us POSSIBLE", "a match"),
        ({"t_min_a": 0, "t_max_a": 5, "ts_e": 3}, "SEQ(shelf a, exit e) WITHIN 10 us OVER 50 %", "a match"),
        ({"t_min_a": 0, "t_max_a": 5, "ts_e": 3}, "SEQ(shelf a, exit e) WITHIN 10 us OVER 70 %", "no match"),
        ({"ts_a": 0, "ts_e": None}, "SEQ(shelf a, exit e) WITHIN 10 us", "no match"),
        ({"ts_a": 0, "ts_e": None}, "OR(shelf a, exit e) WITHIN 10 us", "a match"),
        ({"ts_a": 0, "ts_e": 5}, "SEQ(shelf a, !till c, exit e) WITHIN 10 us WHERE a.n < e.n AND c.n = a.n", "a match"),
        ({"ts_a": 0, "ts_e": 5}, "SEQ((shelf | till) a, (shelf | exit) e) WITHIN 10 us NEXT", "a match"),
    ],
)
def test_a_row_is_a_match_only_if_its_times_keep_order_and_window(row, pattern, headline):
    found = explain({**row, "probability": 1.0}, pattern)
    assert found.headline.partition(":")[0] == headline
    assert found.probability == (1.0 if headline == "a match" else None)  # that of a row which is none means nothing


@pytest.mark.parametrize("mode", ["", "POSSIBLE", "OVER 60 %"])
def test_each_row_that_is_detected_is_a_match(mode):
    pattern = f"SEQ(shelf a, !till c, AND(exit+ e, shelf b)) WITHIN 60 us PER key {mode}"
    rng = np.random.default_rng(5)
    t_min = rng.integers(0, 100, 25)
    events = pa.table({
        "stream": rng.choice(["shelf", "exit", "till"], 25, p=[0.5, 0.4, 0.1]), "key": ["x"] * 25, "t_min": t_min,
        "t_max": t_min + rng.integers(0, 9, 25),
    })  # fmt: skip
    found = wa.detect(events, pattern).slice(0, 40)
    assert len(found) > 5
    assert {explain(found.slice(n, 1), pattern).headline for n in range(len(found))} == {"a match"}


@pytest.mark.parametrize(
    ("until", "probability", "definitely", "possibly"),
    [
        ((9, 9), None, "certain", "possible"),
        ((5, 9), None, "not certain", "possible"),
        ((5, 9), 1.0, "certain", "possible"),
        ((0, 1), None, "not possible", "not possible"),
        ((None, None), None, "certain", "possible"),
    ],
)
def test_a_row_is_a_verdict_only_if_its_runs_held_at_one_moment(until, probability, definitely, possibly):
    row = {
        "ts_dock": 2,
        "t_min": 2,
        "t_max": 6,
        "until_min": until[0],
        "until_max": until[1],
        "probability": probability,
    }
    wanted = "not certain" if definitely == "not possible" else definitely
    assert explain(row, "DEFINITELY dock.on").headline == f"{wanted}: dock.on"
    assert explain(row, "POSSIBLY dock.on").headline == f"{possibly}: dock.on"


def test_a_match_is_explained_by_the_distances_of_its_events():
    found = explain(wa.detect(EVENTS, SEQUENCE), SEQUENCE)
    assert [bar.name for bar in found.bars] == ["a", "e[1]"]
    assert found.lines == (
        "e[1] - a from 3 s to 5 s",
        "all within 3 s to 5 s, asked for at most 1 h",
        "no till where !till c stands",
        "probability 1, for all times",
    )


def test_a_verdict_is_explained_by_the_span_in_which_it_held():
    text = "DEFINITELY dock.on AND door.on"
    found = explain(wa.verdicts(STATES, text), text)
    assert str(found).splitlines() == [
        "certain: dock.on AND door.on",
        "  dock began           0 us .. 2 us",
        "  door began           5 us .. 8 us",
        "  first of them ended  20 us .. 30 us",
        "  together from 5 us .. 8 us on",
        "  for 12 us to 25 us",
        "  probability 1",
    ]


def test_a_notebook_shows_a_table_in_which_nothing_is_markup():
    shown = Explanation("<b>", (Bar("<i>", 0, 5),), ("a & b",), None)._repr_html_()
    assert shown == (
        "<p><b>&lt;b&gt;</b></p><table><tr><th>&lt;i&gt;</th><td>0 us .. 5 us</td></tr></table><p>a &amp; b</p>"
    )


def test_times_of_day_are_shown_as_such():
    at = pd.Timestamp("2026-01-01 12:00")
    found = explain({"ts_a": at, "ts_b": at + pd.Timedelta("1s")}, "|@a - @b| <= 1 s OVER 20 %")
    assert "  a  12:00:00.000000\n  b  12:00:01.000000\n" in str(found)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (DOOR, "row: found more than one row, expected one"),
        (DOOR.slice(0, 0), "row: found no rows, expected one"),
        ({"x": 5}, "row: found the columns x; expected t_min_a and t_max_a, or ts_a"),
        ({"ts_a": 5, "ts_b": None}, "row: found a null as a time"),
        (7, "row: found int, expected a frame"),
        ({"ts_a": "now", "ts_b": 5}, "row: found string in ts_a, expected timestamps"),
        ({"ts_a": 2**70, "ts_b": 5}, f"row: found {2**70} in ts_a, expected a timestamp, a date or whole microseconds"),
        ({"ts_a": 1e30, "ts_b": 5}, "in ts_a, expected a timestamp, a date or whole microseconds"),
        ({"ts_a": object, "ts_b": 5}, "row: found <class 'object'> in ts_a, expected a timestamp"),
        ({"ts_a": np.arange(2), "ts_b": 5}, "in ts_a, expected"),
        (
            {"t_min_a": 5, "t_max_a": 4, "ts_b": 5},
            "row: found t_max_a 4 us before t_min_a 5 us, expected it there or later",
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_is_no_row_is_refused(row, text):
    with pytest.raises(wa.FrameError) as refused:
        explain(row, CONDITION)
    assert text in str(refused.value)


def test_times_of_numpy_are_times():
    for unit in ("Y", "M", "D", "h", "m", "s", "ms", "us", "ns"):
        at = np.datetime64("2026-01-01").astype(f"datetime64[{unit}]")
        found = explain({"ts_a": at, "ts_b": pd.Timestamp("2026-01-01", tz="UTC")}, CONDITION)
        assert (found.probability, found.bars[0].begin_us) == (1.0, 1_767_225_600_000_000)
    with pytest.raises(wa.FrameError, match="row: found a null as a time"):
        explain({"ts_a": np.datetime64("NaT"), "ts_b": 5}, CONDITION)


def bars(ax):
    """Each bar as (label, row, left, right)."""
    return [
        (
            one.get_label(),
            round(patch.get_y() + patch.get_height() / 2),
            patch.get_x(),
            patch.get_x() + patch.get_width(),
        )
        for one in ax.containers
        for patch in one.patches
    ]


def test_a_pair_is_drawn_as_bars_before_what_the_condition_allows():
    ax = plot({"t_min_a": 100, "t_max_a": 110, "t_min_b": 115, "t_max_b": 125}, CONDITION)
    assert bars(ax) == [
        ("a", 0, 0, 10), ("allowed by the condition", 1, -10, 20), ("b", 1, 15, 25),
    ]  # fmt: skip
    assert ax.get_title() == "no pair, probability 0.125"
    assert [one.get_text() for one in ax.get_yticklabels()] == ["a", "b"]
    assert ax.get_xlabel() == "us"


def test_bars_are_seen_in_the_picture_and_moments_too():
    """Pixels of each colour, a moment's included, on the axes that were given."""
    figure, own = mpl.pyplot.subplots(figsize=(6, 2), dpi=100)
    ax = plot(pl.DataFrame({"t_min_a": [0], "t_max_a": [10], "ts_b": [15]}), CONDITION, ax=own)
    assert ax is own
    figure.canvas.draw()
    picture = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    for colour in COLOURS[:2]:
        wanted = [int(colour[n : n + 2], 16) for n in (1, 3, 5)]
        assert (np.abs(picture.astype(int) - wanted).max(axis=2) < 3).sum() > 20, colour
    mpl.pyplot.close("all")


def test_matches_and_verdicts_are_drawn_with_their_times():
    begin = 1_800_000_000_000_000
    match = {
        "t_min_a": begin,
        "t_max_a": begin + 1_000_000,
        "ts_e_1": begin + 3_000_000,
        "ts_e_2": None,
        "probability": 1.0,
    }
    ax = plot(match, SEQUENCE)
    assert bars(ax) == [("a", 0, 0, 1), ("e[1]", 1, 3, 3)]
    assert ax.get_xlabel() == "s since 2027-01-15T08:00:00.000Z"
    text = "POSSIBLY dock.on AND door.on"
    ax = plot(wa.verdicts(STATES, text), text)
    assert [one.get_text() for one in ax.get_yticklabels()] == ["dock began", "door began", "first of them ended"]
    assert ax.get_title() == "possible: dock.on AND door.on, probability 1"
    mpl.pyplot.close("all")


def test_without_matplotlib_a_picture_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.pyplot'] = None\n"
        "import whenabouts as wa\n"
        "row = {'ts_a': 0, 'ts_b': 5}\n"
        "print(wa.explain(row, '|@a - @b| <= 1 s OVER 20 %').headline)\n"
        "try: wa.plot(row, '|@a - @b| <= 1 s OVER 20 %')\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == "a pair"
    assert "pip install 'whenabouts[notebooks]'" in second
