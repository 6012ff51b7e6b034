"""A page that stays open: new readings appear, a killed server is told and found again, and nothing is asked elsewhere."""

import re
import time

import pytest

from browser.test_timeline_view import settled, table
from support.browser.look import LIMIT_MS, Watched, opened
from support.browser.served import served
from support.cloud.landing import land, reading

MICRO = 1_000_000
RATE, SECONDS, FILES_S = 10_000, 3, 4


def now_us():
    return time.time_ns() // 1000


def badge(seq, key):
    """A reading of this moment."""
    return reading("gw", seq, "gate/tags", key, now_us() - 1000, now_us() + 1000) | {"landed_us": now_us()}


@pytest.fixture
def landing(tmp_path):
    """A landing with one reading."""
    land(tmp_path / "landing", [badge(0, "first")])
    return tmp_path / "landing"


def read_of(section, key):
    """Wait until the table behind the timeline has a key."""
    section.locator("table td, table th").filter(has_text=key).first.wait_for(state="attached", timeout=LIMIT_MS)


def test_a_reading_that_lands_appears_without_a_reload(page, landing, tmp_path):
    """In the picture's table and in the figures of the header."""
    page.watched.server_may_end = True  # it does at the end, before the page
    with served(landing, tmp_path) as dashboard:
        section = opened(page, dashboard.url, f"timeline?live=1&span={60 * MICRO}")
        read_of(section, "first")
        land(landing, [badge(1, "second")])
        read_of(section, "second")
        page.locator("#figures").get_by_text("2 readings").wait_for(timeout=LIMIT_MS)
        # Not once the canvas has settled: a live view moves on, and on a busy machine it seldom has.
        lanes = section.locator("table").filter(has=page.locator("caption", has_text=re.compile("^Lanes")))
        lanes.locator("tbody").get_by_text("2", exact=True).wait_for(state="attached", timeout=LIMIT_MS)
        assert [row[1] for row in table(section, "Lanes")] == ["2"]


def test_after_a_kill_the_page_says_so_and_goes_on_when_the_server_is_back(page, landing, tmp_path):
    """What landed meanwhile appears; the view stays as it was."""
    with served(landing, tmp_path) as dashboard:
        page.watched.server_may_end = True
        section = opened(page, dashboard.url, f"timeline?live=1&span={600 * MICRO}")
        read_of(section, "first")
        dashboard.process.kill()
        dashboard.process.wait()
        page.locator("#status[data-connection=lost]").wait_for(timeout=LIMIT_MS)
        land(landing, [badge(1, "meanwhile")])
        with served(landing, tmp_path, "--port", str(dashboard.port)):
            page.locator("#status[data-connection=open]").wait_for(timeout=LIMIT_MS)
            read_of(section, "meanwhile")
            assert "live=1" in page.url


def test_ten_thousand_readings_a_second_are_all_counted_while_the_page_moves(page, landing, tmp_path):
    """The lane's number is that of all that landed, and no mistake is made meanwhile."""
    page.watched.server_may_end = True  # it does at the end, before the page
    with served(landing, tmp_path) as dashboard:
        section = opened(page, dashboard.url, f"timeline?live=1&span={300 * MICRO}")
        canvas = settled(section)
        canvas.focus()
        count = RATE // FILES_S
        for file in range(SECONDS * FILES_S):
            began = time.monotonic()
            begin_us = now_us() - MICRO // FILES_S
            rows = [
                reading(
                    "gw",
                    1 + file * count + n,
                    "gate/tags",
                    f"k{n % 500}",
                    begin_us + 100 * n,
                    begin_us + 100 * n + 5000,
                )
                for n in range(count)
            ]
            land(landing, rows)
            page.keyboard.press("ArrowLeft")
            page.keyboard.press("End")
            page.wait_for_timeout(max(0.0, 1000 / FILES_S - 1000 * (time.monotonic() - began)))
        page.locator("#figures").get_by_text("30\u2009001 readings").wait_for(timeout=LIMIT_MS)
        page.keyboard.press("Home")
        section.locator("table tbody tr").first.get_by_text("30\u2009001").wait_for(state="attached", timeout=LIMIT_MS)
        assert [row[1] for row in table(section, "Lanes")] == ["30\u2009001"]


def test_every_file_of_the_page_comes_from_the_server_that_it_was_opened_at(browser, known):
    """No other host is asked, in any view; the policy would forbid it, and no breach is reported."""
    context = browser.new_context()
    page = context.new_page()
    watched, asked = Watched(page), []
    page.on("request", lambda request: asked.append(request.url))
    for view in ("timeline", "gateways", "rules", "why-not", "health"):
        opened(page, known.url, view)
        page.wait_for_load_state("load")
    context.close()
    assert len(asked) > 10
    assert all(url.startswith((known.url, "blob:", "data:")) for url in asked)
    assert watched.faults() == []
