"""The answers to GET requests, of a server with no more than a rule file."""

import pytest

from support.browser.served import board_over, in_thread
from support.waiting import until
from whenabouts_cloud.dashboard.server.about import About
from whenabouts_cloud.dashboard.server.app import Guard, site_of
from whenabouts_cloud.dashboard.server.shown import VIEWS

RULES = 'STREAM dock FROM "dock/tags" DELAY 1 s\nRULE twice SEQ(dock a, dock b) WITHIN 1 min PER key\n'


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory):
    """A dashboard with a rule file."""
    file = tmp_path_factory.mktemp("rules") / "rules.wa"
    file.write_text(RULES)
    with board_over(rules=file) as board, in_thread(site_of(board, About("/landing", (), file), Guard())) as made:
        until(lambda: made.get("/api/rules").json["rules"], "the rules to be explained")
        yield made


def test_the_overview_tells_what_is_shown_and_what_is_allowed(dashboard):
    """A dashboard that only reads says so."""
    found = dashboard.get("/api/overview").json
    assert found["landing"] == "/landing"
    assert found["rules"] == [{"name": "twice", "kind": "events"}]
    assert (found["may_publish"], found["broker"]) == (False, None)
    assert found["version"].keys() >= {"rules"}


def test_rules_come_with_their_explanation(dashboard):
    """As `explain` tells it, with its picture."""
    [rule] = dashboard.get("/api/rules").json["rules"]
    assert rule["name"] == "twice"
    assert rule["explanation"]
    assert "<svg" in rule["svg"]


@pytest.mark.parametrize("view", sorted(VIEWS))
@pytest.mark.parametrize("query", ["prefix=" + "x" * 5000, "prefix=%00", "prefix=1&prefix=2", "%FF=%FE", "from=1&to=0"])
def test_no_parameter_makes_an_answer_fail(dashboard, view, query):
    """A wrong one is refused with what is wrong; one that a view does not have is ignored."""
    found = dashboard.get(f"/api/{view}?{query}")
    assert found.status in (200, 400)
    assert found.status == 200 or found.json["error"]


def test_an_unknown_address_is_not_found(dashboard):
    """As JSON, without a list of what there is."""
    found = dashboard.get("/api/nothing")
    assert (found.status, found.json["error"]) == (404, "Not Found")
