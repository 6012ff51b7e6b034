"""`wa.explain` and `wa.plot`: why a row is a pair, a match or a verdict, or why it is none, as text and as bars."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import whenabouts as wa
from support.child import environment
from support.library.kinds import KINDS
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
    assert found.headline == "no pair among the nearest of 3"
    assert [bar.name for bar in found.bars] == ["a", "b, row 0", "b, row 1", "b, row 2"]
    assert found.lines[0].startswith("row 0: no pair, @b - @a from 5 us to 25 us")
    assert explain({"ts": 5}, CONDITION, among=DOOR.slice(0, 0)).headline == "no partner at all"


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
        ({"ts_a": "now", "ts_b": 5}, "row: found string, expected timestamps"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_is_no_row_is_refused(row, text):
    with pytest.raises(wa.FrameError) as refused:
        explain(row, CONDITION)
    assert text in str(refused.value)


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
