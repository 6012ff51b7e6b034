"""Names, keys and dead letters that would like to be markup: a page shows them as text and runs nothing."""

import json

import pytest

from support.browser.look import LIMIT_MS, opened
from support.browser.served import served
from support.cloud.landing import EPOCH_US, land, reading
from whenabouts_cloud.health.records import birth, heartbeat, hour_of, ingest, line_of
from whenabouts_protocol import Birth, Heartbeat

MARKUP = [
    '<img src=x onerror="window.hacked=1">',
    "<script>window.hacked=1</script>",
    '"><svg onload=window.hacked=1>',
    "javascript:window.hacked=1",
    "{{7*7}}${7*7}",
    "\u202egnp.exe",
    "a\u0000b\nc\td",
    "x" * 900,
]
SITE, GATEWAY, STREAM = "<b>hall</b>", "<i>gw</i>", "<u>dock</u>/tags"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A dashboard over a landing whose every text is markup."""
    folder = tmp_path_factory.mktemp("hostile")
    landing = folder / "landing"
    rows = [
        reading(GATEWAY, n, STREAM, key, EPOCH_US + 1000 * n, EPOCH_US + 1000 * n + 500, site=SITE)
        | {
            "attrs": json.dumps({"<img src=x onerror=window.hacked=1>": key}),
            "value": json.dumps(key),
            "unit": "<b>C</b>",
        }
        for n, key in enumerate(MARKUP)
    ]
    land(landing, rows)
    health = landing / "_health" / f"hour={hour_of(EPOCH_US)}"
    health.mkdir(parents=True)
    records = [
        birth(Birth(SITE, GATEWAY, 1, [(STREAM, "tag", "<b>C</b>", 1, 1, 1, 1, 1, 1)], build=MARKUP[0]), EPOCH_US),
        heartbeat(
            Heartbeat(
                SITE, GATEWAY, 1, EPOCH_US, published={}, clock_state="bounded", bound_us=5, clock_source=MARKUP[1]
            ),
            EPOCH_US,
        ),
        ingest(MARKUP[2], EPOCH_US, {"landed": 1}, {MARKUP[0]: 3}, True),
    ]
    (health / "part-0-0000.jsonl").write_bytes(b"".join(map(line_of, records)))
    with served(landing, folder) as dashboard:
        yield dashboard


@pytest.mark.parametrize("view", ["timeline", "timeline?by=tag", "gateways", "rules", "why-not", "health"])
def test_markup_in_names_is_text_in_every_view(page, hostile, view):
    """No script of it runs, no element of it exists."""
    opened(page, hostile.url, view)
    page.wait_for_load_state("networkidle")
    if view != "rules" and view != "why-not":
        page.get_by_text("<", exact=False).first.wait_for(state="attached", timeout=LIMIT_MS)
    assert page.evaluate("() => window.hacked") is None
    assert page.locator("main :is(b, i, u, script, iframe, svg[onload], img[onerror])").count() == 0


def test_a_link_with_markup_opens_a_view_without_it(page, hostile):
    """Whoever sends a link decides its state, and nothing else."""
    search = "%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E"
    opened(page, hostile.url, f"timeline?search={search}&from=javascript:1&to=%00&by=%3Cscript%3E&offset=1e9")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("() => window.hacked") is None
    assert page.locator("main img[onerror]").count() == 0
