"""The timeline as shapes, and as files."""

import io
from xml.etree import ElementTree as ET

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from PIL import Image

from support.browser import known_run
from support.browser.known_run import BEGIN_US, DOCK, DOOR, EXIT, KEYS, SECOND_US
from whenabouts_cloud.dashboard.answers import timeline_answer
from whenabouts_cloud.dashboard.answers.timeline_answer import Asked, timeline
from whenabouts_cloud.dashboard.data.landed import LandedIndex
from whenabouts_cloud.dashboard.picture import as_png, as_svg, table_files, view_file
from whenabouts_cloud.dashboard.picture.picture_shapes import Curve, Rect, Text
from whenabouts_cloud.dashboard.picture.timeline_picture import LEFT, RIGHT, THEMES, timeline_picture
from whenabouts_cloud.dashboard.results.result_index import ResultIndex
from whenabouts_cloud.landing.store import Store

FROM_US, TO_US = BEGIN_US - SECOND_US, BEGIN_US + 59 * SECOND_US


@pytest.fixture(scope="module")
def indices(tmp_path_factory):
    """The known run, read whole."""
    landing, results, _ = known_run.make(tmp_path_factory.mktemp("known"))
    landed, found = LandedIndex(Store.at(landing)), ResultIndex([Store.at(results)])
    while landed.follow(10) or found.follow(10):
        pass
    return landed, found


@pytest.fixture(scope="module")
def answer(indices):
    """A minute with all readings."""
    return timeline(*indices, Asked(FROM_US, TO_US, 600))


def bars_of(picture, theme="light"):
    colours = (THEMES[theme]["bar"], THEMES[theme]["late"])
    return [x for x in picture.shapes if isinstance(x, Rect) and x.fill in colours and x.x >= LEFT]


def test_each_reading_is_a_bar_as_wide_as_its_uncertainty(answer):
    """At its time, in pixels of the plot."""
    picture = timeline_picture(answer, 1200)
    scale = (1200 - LEFT - RIGHT) / (TO_US - FROM_US)
    expected = sorted(
        (round(LEFT + (row["t_min"] - FROM_US) * scale, 1), round(max(1.5, (row["t_max"] - row["t_min"]) * scale), 1))
        for row in known_run.readings()
    )
    assert sorted((round(x.x, 1), round(x.width, 1)) for x in bars_of(picture)) == expected


def test_arcs_are_as_dark_as_they_are_probable(answer):
    """Those of matches in full."""
    opacities = sorted(x.opacity for x in timeline_picture(answer).shapes if isinstance(x, Curve))
    assert opacities == pytest.approx(sorted([1 - n / 100 for n in range(15)] + [1.0] * 5))


def test_counts_are_columns_as_high_as_their_logarithm(indices, monkeypatch):
    """The highest fills its lane."""
    monkeypatch.setattr(timeline_answer, "MOST_BARS", 0)
    many = timeline(*indices, Asked(FROM_US, TO_US, 20))
    bars = bars_of(timeline_picture(many))
    assert len(bars) == sum(len(cells) // 2 for cells in many["cells"])
    assert max(x.height for x in bars) <= 52


def test_svg_is_wellformed_whatever_the_names_are(answer):
    """Markup is text, and what XML forbids is replaced."""
    hostile = {**answer, "lanes": [{**lane, "label": '<script>&"\x00', "site": "]]>"} for lane in answer["lanes"]]}
    root = ET.fromstring(as_svg.as_svg(timeline_picture(hostile)))
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    texts = [x.text for x in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any("<script>&" in text for text in texts)


@pytest.mark.parametrize("theme", sorted(THEMES))
def test_png_shows_the_same_at_twice_the_size(answer, theme):
    """The middle of each bar has its colour, over the ground."""
    picture = timeline_picture(
        {**answer, "arcs": timeline_answer.NO_ARCS, "bars": {**answer["bars"], "true_us": None}}, 800, 0, theme
    )
    image = Image.open(io.BytesIO(as_png.as_png(picture)))
    assert image.size == (2 * picture.width, 2 * picture.height)
    ground = Image.new("RGB", (1, 1), picture.ground).getpixel((0, 0))
    for bar in bars_of(picture, theme):
        at = int(2 * (bar.x + bar.width / 2)), int(2 * (bar.y + bar.height / 2))
        assert image.getpixel(at) != ground


def test_a_picture_that_is_too_large_is_refused(answer):
    """With what is expected."""
    with pytest.raises(ValueError, match="expected at most"):
        as_png.as_png(timeline_picture(answer, 9000, 9000))


def test_tables_have_every_reading(answer):
    """CSV and Parquet hold the same."""
    table = pq.read_table(io.BytesIO(view_file.view_file(answer, "parquet")))
    rows = {
        (x["gateway"], x["stream"], x["boot"], x["seq"], x["key"], x["t_min"], x["t_max"]) for x in table.to_pylist()
    }
    names = ("gateway", "stream", "boot", "seq", "key", "t_min", "t_max")
    assert rows == {tuple(row[name] for name in names) for row in known_run.readings()}
    again = pa_csv.read_csv(io.BytesIO(view_file.view_file(answer, "csv")))
    assert again["t_min"].to_pylist() == table["t_min"].to_pylist()
    assert [x for x, late in zip(table["seq"].to_pylist(), table["late"].to_pylist(), strict=True) if late] == [7]


def test_tables_of_counts_add_up(indices, monkeypatch):
    """To the readings of each lane."""
    monkeypatch.setattr(timeline_answer, "MOST_BARS", 0)
    table = table_files.view_table(timeline(*indices, Asked(FROM_US, TO_US, 30)))
    found = table.group_by("stream").aggregate([("readings", "sum")]).to_pylist()
    assert {x["stream"]: x["readings_sum"] for x in found} == {DOCK[1]: 20, DOOR[1]: 15, EXIT[1]: 5}


def test_a_key_that_looks_like_a_formula_is_none_in_a_spreadsheet(answer):
    """It gets an apostrophe in CSV, and stays as it is in Parquet."""
    key = '=HYPERLINK("http://evil.example")'
    hostile = {**answer, "bars": {**answer["bars"], "key": [key] * len(answer["bars"]["key"])}}
    table = table_files.view_table(hostile)
    assert table["key"].to_pylist()[0] == key
    assert b"\"'=HYPERLINK" in table_files.as_csv(table)


def test_labels_name_the_readers(answer):
    """Reader, place and number of readings."""
    texts = [x.text for x in timeline_picture(answer).shapes if isinstance(x, Text)]
    assert {"dock/tags", "hall / gw-1", "20"} <= set(texts)
    assert KEYS[0] not in texts
