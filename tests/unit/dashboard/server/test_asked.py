"""Questions by HTTP: check, try, why-not, publish; and hostile bodies."""

import pytest

from support.browser.served import board_over, in_thread
from support.cloud.landing import EPOCH_US, land, reading
from whenabouts_cloud.dashboard.server.about import About
from whenabouts_cloud.dashboard.server.app import Guard, site_of
from whenabouts_cloud.dashboard.server.asked import MAX_KEY

RULES = 'STREAM dock FROM "dock/tags" DELAY 1 s\nRULE twice SEQ(dock a, dock b) WITHIN 1 min PER key\n'
S = 1_000_000


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory):
    """A dashboard over two readings of a key, and a rule about two readings."""
    folder = tmp_path_factory.mktemp("asked")
    (folder / "rules.wa").write_text(RULES)
    times = [EPOCH_US, EPOCH_US + 10 * S]
    land(folder / "landing", [reading("gw", n, "dock/tags", "k", t, t + 1000) for n, t in enumerate(times)])
    about = About(str(folder / "landing"), (), folder / "rules.wa")
    with (
        board_over(folder / "landing", folder / "rules.wa") as board,
        in_thread(site_of(board, about, Guard())) as made,
    ):
        yield made


def test_a_text_with_a_mistake_is_answered_with_its_place(dashboard):
    """As `check` tells it."""
    found = dashboard.post("/api/check", {"text": RULES.replace("WITHIN", "WITHOUT")}).json
    assert found["ok"] is False
    assert found["mistakes"][0]["line"] == 2


def test_a_rule_is_tried_on_what_has_landed(dashboard):
    """Both readings are a match."""
    asked = {"text": RULES, "rule": "twice", "from_us": EPOCH_US, "to_us": EPOCH_US + 60 * S}
    found = dashboard.post("/api/try", asked).json
    assert (found["readings"], found["results"]) == (2, 1)


def test_why_not_answers_for_a_key_and_a_time(dashboard):
    """With the lines that the command prints."""
    found = dashboard.get(f"/api/why-not?rule=twice&key=k&at={EPOCH_US}").json
    assert found["lines"]
    assert found["answer"]["key"] == "k"


@pytest.mark.parametrize(
    ("query", "said"),
    [("", "key: found nothing"), ("key=k", "at: found nothing"), ("key=k&at=soon", "at: found 'soon'"),
     (f"key={'k' * (MAX_KEY + 1)}&at=1", f"key: found {MAX_KEY + 1} characters"),
     ("key=k&key=l&at=1", "key: found 2 values")],
)  # fmt: skip
def test_why_not_says_what_is_wrong_with_its_parameters(dashboard, query, said):
    """No process is started for it."""
    found = dashboard.get(f"/api/why-not?{query}")
    assert found.status == 400
    assert said in found.json["error"]


def test_an_unknown_rule_is_named(dashboard):
    """With those that there are."""
    found = dashboard.get(f"/api/why-not?rule=thrice&key=k&at={EPOCH_US}")
    assert found.status == 422
    assert "thrice" in found.json["error"]


def test_a_dashboard_that_only_reads_publishes_nothing(dashboard):
    """It says which option would allow it."""
    found = dashboard.post("/api/publish", {"text": RULES, "confirm": True})
    assert found.status == 403
    assert "--allow-publish" in found.json["error"]


@pytest.mark.parametrize("path", ["/api/check", "/api/try"])
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"nul", b'{"text": 1}', b'{"text": "' + b"x" * (2 << 20), b"[" * 100_000, b"\xff"]
)
def test_a_body_that_is_no_question_is_refused(dashboard, path, body):
    """Whatever it is, the server says what it expected and goes on."""
    found = dashboard.get(path, {"Content-Type": "application/json"}, "POST", body)
    assert 400 <= found.status < 500
    assert found.json["error"]
    assert dashboard.get("/healthz").status == 200
