"""The rules of a text, as an editor shows them."""

import pytest

from whenabouts_cloud.dashboard.questions import explained
from whenabouts_cloud.dashboard.questions.explained import answer

STREAMS = 'STREAM dock FROM "dock/+" DELAY 2 s\nSTREAM shelf FROM "shelf/+" DELAY 5 s\n'
PAIRS = "RULE pairs CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key\n"
EVENTS = "RULE order SEQ(dock a, shelf b) WITHIN 1 h PER key\n"
STATES = "RULE both DEFINITELY dock.on AND shelf.on WINDOW 4 IN GROUP office\n"


def test_rules_of_all_kinds_are_explained_and_drawn():
    """Each with its own text."""
    found = answer({"text": STREAMS + PAIRS + EVENTS + STATES})
    assert found["ok"]
    assert [(rule["name"], rule["kind"]) for rule in found["rules"]] == [
        ("pairs", "pairs"), ("order", "events"), ("both", "states"),
    ]  # fmt: skip
    for rule in found["rules"]:
        assert rule["name"] in rule["explanation"][0]
        assert rule["svg"].startswith("<svg")
        assert f"RULE {rule['name']}" in rule["text"]


def test_a_rule_runs_where_its_streams_have_landed():
    """Both are on one gateway."""
    streams = [("dock/1", "g1", "hall"), ("shelf/1", "g1", "hall")]
    [rule] = answer({"text": STREAMS + PAIRS, "streams": streams})["rules"]
    assert "at the edge, on hall/g1" in rule["explanation"][1]


def test_a_rule_that_cannot_run_where_it_must_says_so():
    """It is no mistake of the text."""
    found = answer({"text": STREAMS + PAIRS.replace("CORRELATE", "AT EDGE CORRELATE")})
    assert found["ok"]
    assert "cannot run" in found["rules"][0]["explanation"][1]


def test_mistakes_are_told_at_their_places():
    """All at once, with what was found and expected."""
    found = answer({"text": STREAMS + "RULE r SEQ(dock a, nobody b) WITHIN 1 h\nRULE"})
    assert not found["ok"]
    assert [(m["line"], m["column"]) for m in found["mistakes"]] == [(3, 20), (4, 5)]
    for mistake in found["mistakes"]:
        assert mistake["text"] == f"found {mistake['found']}, expected {mistake['expected']}"


def test_pictures_end_where_there_are_too_many(monkeypatch):
    """The rules behind have their explanation still."""
    monkeypatch.setattr(explained, "MAX_DRAWN", 1)
    found = answer({"text": STREAMS + PAIRS + EVENTS})
    assert [rule["svg"] is None for rule in found["rules"]] == [False, True]
    assert all(rule["explanation"] for rule in found["rules"])


@pytest.mark.parametrize("text", ["", "RULE", "\x00", "((((" * 1000, "é" * 1000, "STREAM " * 1000])
def test_any_text_has_an_answer(text):
    """With mistakes in it."""
    found = answer({"text": text})
    assert found["mistakes"]
    assert not found["ok"]
