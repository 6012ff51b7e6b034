"""The timeline in a browser: what is drawn and what its tables say is what the run holds."""

import re

import pytest

from support.browser import known_run
from support.browser.known_run import BEGIN_US, DOCK, DOOR, EXIT, FRONTIER_US, KEYS, LANES, LATE_SEQ, SECOND_US
from support.browser.look import LIMIT_MS, opened, picture, rows_of, same

READINGS = known_run.readings()
LANE_OF = {lane: number for number, lane in enumerate((DOCK, DOOR, EXIT))}


def drawn(page, known, from_us, to_us, **more):
    """Open the timeline at a time; return its section and canvas once they are up to date."""
    parameters = "&".join(f"{name}={value}" for name, value in {"from": from_us, "to": to_us, **more}.items())
    section = opened(page, known.url, f"timeline?{parameters}")
    return section, settled(section)


def settled(section):
    """The canvas, when it and its tables show the newest answer."""
    canvas = section.locator("canvas[data-state=ready][data-table=ready]").first
    canvas.wait_for(timeout=LIMIT_MS)
    return canvas


class Plot:
    """Where the canvas draws times and lanes, from its data attributes, and the pixels there."""

    def __init__(self, canvas):
        self.at, self.image = self._geometry(canvas), picture(canvas)
        while self.at != (now := self._geometry(canvas)):  # it was laid out anew while the picture was taken
            self.at, self.image = now, picture(canvas)

    @staticmethod
    def _geometry(canvas):
        names = ("from", "to", "left", "right", "top", "laneHeight", "scroll")
        found = canvas.evaluate("(canvas, names) => names.map(name => Number(canvas.dataset[name]))", list(names))
        return dict(zip(names, found, strict=True))

    def x(self, us):
        """Horizontal place of a time."""
        share = (us - self.at["from"]) / (self.at["to"] - self.at["from"])
        return self.at["left"] + share * (self.at["right"] - self.at["left"])

    def rows(self, lane):
        """Vertical places of a lane's inside."""
        top = self.at["top"] + lane * self.at["laneHeight"] - self.at["scroll"]
        return range(round(top) + 2, round(top + self.at["laneHeight"]) - 2)

    def has(self, x, lane, colour):
        """True if a column of pixels has a colour somewhere within a lane."""
        return any(same(self.image.getpixel((round(x), y)), colour) for y in self.rows(lane))


def colour(page, name, over=None, opacity=1.0):
    """A colour of the style sheet, laid over another one."""
    text = page.evaluate(
        "name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()", f"--{name}"
    )
    found = tuple(int(text[n : n + 2], 16) for n in (1, 3, 5))
    return (
        found
        if over is None
        else tuple(round(a * opacity + b * (1 - opacity)) for a, b in zip(found, over, strict=True))
    )


def table(section, caption):
    """Rows of the table behind the canvas whose caption begins so."""
    return rows_of(
        section.locator("table").filter(has=section.page.locator("caption", has_text=re.compile(f"^{caption}")))
    )


def test_each_reading_is_a_bar_from_its_earliest_to_its_latest_time(page, known):
    """Just inside of both ends of a bar its colour is drawn, just outside it is not."""
    _, canvas = drawn(page, known, BEGIN_US - SECOND_US, BEGIN_US + 9 * SECOND_US, without="handover,unpaid")
    plot, bar = Plot(canvas), colour(page, "bar", colour(page, "panel"), 0.62)
    seen = [row for row in READINGS if row["t_max"] < BEGIN_US + 9 * SECOND_US and row["seq"] != LATE_SEQ]
    assert len(seen) >= 9
    for row in seen:
        lane = LANE_OF[row["gateway"], row["stream"]]
        first, last = plot.x(row["t_min"]), plot.x(row["t_max"])
        assert last - first > 8, "the window shows bars that can be measured"
        assert plot.has(first + 3, lane, bar)
        assert plot.has(last - 3, lane, bar)
        assert not plot.has(first - 3, lane, bar)
        assert not plot.has(last + 3, lane, bar)


def test_the_table_behind_the_bars_has_each_reading_with_its_ends_and_its_truth(page, known):
    """A screen reader hears what the eye sees, to the microsecond."""
    section, _ = drawn(page, known, BEGIN_US - SECOND_US, BEGIN_US + 60 * SECOND_US)
    found = {(row[0], row[1].split(" ")[0], row[2], row[3], row[5], row[6]) for row in table(section, "Readings")}
    expected = {
        (
            row["key"], row["stream"], text_of(row["t_min"]), text_of(row["t_max"]),
            "late" if (row["stream"], row["seq"]) == (DOOR[1], LATE_SEQ) else "",
            text_of(known_run.true_us((row["gateway"], row["stream"]), row["seq"])),
        )
        for row in READINGS
    }  # fmt: skip
    assert found == expected


def text_of(us):
    """A time as the page writes it."""
    import datetime

    return (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=us)).strftime("%Y-%m-%d %H:%M:%S.%f")


def test_the_lanes_are_the_readers_with_their_numbers_and_their_frontier(page, known):
    """Also for the reader of which few readings are seen."""
    section, _ = drawn(page, known, BEGIN_US - SECOND_US, BEGIN_US + 60 * SECOND_US)
    rows = table(section, "Lanes")
    assert [row[0].split(" ")[0] for row in rows] == [lane[1] for lane in (DOCK, DOOR, EXIT)]
    assert [row[1] for row in rows] == ["20", "15", "5"]
    assert {row[2] for row in rows} == {text_of(FRONTIER_US)[:-3]}
    assert len(LANES) == len(rows)


def test_pairs_and_matches_are_arcs_with_their_probability(page, known):
    """From the middle of the first to the middle of the last reading."""
    section, canvas = drawn(page, known, BEGIN_US - SECOND_US, BEGIN_US + 60 * SECOND_US)
    rows = table(section, "Results")
    pairs = [row for row in rows if row[0] == "handover"]
    assert sorted(row[2] for row in pairs) == sorted(f"{100 - n} %" for n in range(15))
    assert [row[1] for row in rows if row[0] == "unpaid"] == ["match"] * 5
    middle = next(n for n in READINGS if n["seq"] == 0 and n["stream"] == DOCK[1])
    assert text_of((middle["t_min"] + middle["t_max"]) // 2) in {row[4] for row in pairs}
    with_arcs = Plot(canvas).image
    _, without = drawn(page, known, BEGIN_US - SECOND_US, BEGIN_US + 60 * SECOND_US, without="handover,unpaid")
    assert with_arcs.tobytes() != Plot(without).image.tobytes()


def test_a_late_reading_has_a_colour_of_its_own_and_a_flag(page, known):
    """The others do not."""
    at_us = known_run.true_us(DOOR, LATE_SEQ)
    _, canvas = drawn(page, known, at_us - 2 * SECOND_US, at_us + 2 * SECOND_US, without="handover,unpaid")
    plot, late = Plot(canvas), colour(page, "late", colour(page, "panel"), 0.62)
    assert plot.has(plot.x(at_us + 10_000) - 8, LANE_OF[DOOR], late)
    others = [row for row in READINGS if row["stream"] == DOCK[1] and abs(row["t_min"] - at_us) < SECOND_US]
    assert others
    assert not any(plot.has(plot.x(row["t_min"]) + 3, LANE_OF[DOCK], late) for row in others)


@pytest.mark.parametrize("span_us", [365 * 86_400 * SECOND_US, 86_400 * SECOND_US, 60 * SECOND_US])
def test_far_away_the_counts_of_all_columns_add_up_to_all_readings(page, known, span_us):
    """From a year down to the minute that holds them all."""
    section, _ = drawn(page, known, BEGIN_US - span_us // 4, BEGIN_US - span_us // 4 + span_us)
    if span_us == 60 * SECOND_US:
        assert len(table(section, "Readings")) <= len(READINGS)
        return
    assert [row[1] for row in table(section, "Lanes")] == ["20", "15", "5"]


def test_a_millisecond_shows_the_reading_that_may_have_happened_then(page, known):
    """A bar that is wider than the window fills its lane."""
    at_us = known_run.true_us(DOCK, 3) + 10_000
    section, canvas = drawn(page, known, at_us, at_us + 1000, without="handover,unpaid")
    assert [row[0] for row in table(section, "Readings")] == [KEYS[3]]
    plot, bar = Plot(canvas), colour(page, "bar", colour(page, "panel"), 0.62)
    middle = (plot.at["left"] + plot.at["right"]) / 2
    assert plot.has(middle + 20, LANE_OF[DOCK], bar)
    assert not plot.has(middle + 20, LANE_OF[EXIT], bar)


def test_a_click_on_a_bar_opens_its_reading(page, known):
    """Identity, the parts of its stamp, results, and the true time that the simulator knows."""
    row = next(x for x in READINGS if x["stream"] == DOCK[1] and x["seq"] == 2)
    section, canvas = drawn(page, known, BEGIN_US, BEGIN_US + 10 * SECOND_US, without="handover,unpaid")
    plot, bar = Plot(canvas), colour(page, "bar", colour(page, "panel"), 0.62)
    x = plot.x(row["t_min"]) + 4
    y = next(y for y in plot.rows(LANE_OF[DOCK]) if same(plot.image.getpixel((round(x), y)), bar))
    canvas.click(position={"x": x, "y": y + 2})
    panel = section.locator("aside")
    panel.get_by_text("gw-1").first.wait_for(timeout=LIMIT_MS)  # the key is there before the answer
    text = panel.inner_text()
    for part in (
        "gw-1",
        "handover",
        *(text_of(us)[:-3] for us in (row["t_min"], row["t_max"], known_run.true_us(DOCK, 2))),
    ):
        assert part in text, text
    assert re.search(r"clock", text, re.I)
    assert re.search(r"wire", text, re.I)


def test_keys_alone_open_a_reading(page, known):
    """Down to a lane, along its readings, Enter."""
    section, canvas = drawn(page, known, BEGIN_US - SECOND_US, BEGIN_US + 9 * SECOND_US)
    canvas.focus()
    for key in ("ArrowDown", "Alt+ArrowRight", "Enter"):
        page.keyboard.press(key)
    told = section.locator("aside").get_by_text("urn:epc:").first
    told.wait_for(timeout=LIMIT_MS)
    assert told.text_content().strip() in KEYS


def test_moving_and_zooming_change_the_link_and_the_link_restores_the_view(page, known):
    """What a colleague opens is what was seen."""
    section, canvas = drawn(page, known, BEGIN_US, BEGIN_US + 10 * SECOND_US)
    canvas.focus()
    before = page.url
    page.keyboard.press("ArrowRight")
    page.keyboard.press("+")
    page.wait_for_function("before => location.href !== before", arg=before, timeout=LIMIT_MS)
    canvas = settled(section)
    link, shown = page.url, Plot(canvas).at
    other = page.context.new_page()
    other.set_viewport_size({"width": 1280, "height": 800})
    other.goto(link)
    again = Plot(settled(other.locator('section[data-view="timeline"]'))).at
    assert (again["from"], again["to"]) == pytest.approx((shown["from"], shown["to"]), abs=1000)


def test_by_tag_a_lane_is_a_key(page, known):
    """With the readings of all readers in it."""
    section, _ = drawn(page, known, BEGIN_US - SECOND_US, BEGIN_US + 60 * SECOND_US, by="tag", search=KEYS[17])
    assert [(row[0].split(" ")[0], row[1]) for row in table(section, "Lanes")] == [(KEYS[17], "2")]


@pytest.mark.parametrize("suffix", ["svg", "csv", "parquet", "png"])
def test_each_export_is_a_file_of_its_kind(page, known, suffix, tmp_path):
    """With all that is seen."""
    section, _ = drawn(page, known, BEGIN_US - SECOND_US, BEGIN_US + 60 * SECOND_US)
    section.get_by_text("Export", exact=True).click()
    label = {"svg": "Picture, SVG", "png": "Picture, PNG", "csv": "Data, CSV", "parquet": "Data, Parquet"}[suffix]
    with page.expect_download(timeout=LIMIT_MS) as found:
        section.get_by_text(label, exact=True).click()
    file = tmp_path / f"export.{suffix}"
    found.value.save_as(file)
    content = file.read_bytes()
    begin = {"svg": b"<svg", "png": b"\x89PNG", "csv": b"", "parquet": b"PAR1"}[suffix]
    assert content.startswith((begin, b"<?xml") if suffix == "svg" else begin)
    if suffix == "csv":
        assert len(content.decode().splitlines()) == 1 + len(READINGS)
        assert KEYS[0] in content.decode()


def test_one_finger_drags_and_two_fingers_zoom(page, known):
    """As on a phone: what was under a finger stays there, and spreading two fingers to twice their distance shows half."""
    section, canvas = drawn(page, known, BEGIN_US, BEGIN_US + 40 * SECOND_US)
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})
    box = canvas.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def touch(kind, *places):
        points = [{"x": at, "y": y, "id": number} for number, at in enumerate(places)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def window():
        return [int(float(canvas.get_attribute(name))) for name in ("data-from", "data-to")]

    def finger(*path):
        touch("touchStart", *path[0])
        for places in path[1:]:
            touch("touchMove", *places)
        touch("touchEnd")
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        settled(section)

    before = window()
    us_per_px = (before[1] - before[0]) / (Plot(canvas).at["right"] - Plot(canvas).at["left"])
    finger([x], [x - 30], [x - 60], [x - 100])
    moved = window()
    assert moved[1] - moved[0] == pytest.approx(before[1] - before[0], abs=2)
    assert moved[0] - before[0] == pytest.approx(100 * us_per_px, rel=0.02)
    finger([x - 60, x + 60], [x - 80, x + 80], [x - 100, x + 100], [x - 120, x + 120])
    zoomed = window()
    assert zoomed[1] - zoomed[0] == pytest.approx((moved[1] - moved[0]) / 2, rel=0.02)
