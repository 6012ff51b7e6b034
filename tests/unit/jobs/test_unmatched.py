"""Streams of rules that nothing in a landing belongs to."""

import pytest

from support.cloud.landing import land, reading
from whenabouts_cloud.jobs import unmatched
from whenabouts_cloud.jobs.unmatched import Landed
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import Stream, load_rules

RULES = """
STREAM dock FROM "dok/tags"  DELAY 1 s
STREAM door FROM "door/+"    AT SITE "shop"  DELAY 1 s
STREAM till FROM "till/tags" DELAY 1 s
RULE near  CORRELATE dock AS a, door AS b WHERE |@a - @b| <= 1 s OVER 80 %
RULE order SEQ(door, till) WITHIN 1 s PER key
"""


@pytest.fixture
def rules(tmp_path):
    """The rules of a file with two streams that never come."""
    (tmp_path / "rules.wa").write_text(RULES, encoding="utf-8")
    return load_rules(tmp_path / "rules.wa").rules


def names(texts):
    return [f"Stream {name}" for name in texts]


def test_each_stream_without_a_reading_is_reported_once_with_what_there_is(tmp_path, rules):
    """Of two rules that share streams; a stream at another site is not matched either."""
    landing = tmp_path / "landing"
    land(landing, [reading("g", 0, "dock/tags", "k", 1, 2), reading("g", 1, "door/1", "k", 1, 2, site="shop")], 0)
    texts = Landed(Store.at(landing)).unmatched(rules)
    assert list(texts.values()) == [
        'Stream dock: no reading matches "dok/tags"; the landing has dock/tags, door/1',
        'Stream till: no reading matches "till/tags"; the landing has dock/tags, door/1',
    ]
    elsewhere = tmp_path / "elsewhere"
    land(elsewhere, [reading("g", 0, "dock/tags", "k", 1, 2), reading("g", 0, "door/1", "k", 1, 2)])
    assert (
        'Stream door: no reading matches "door/+" at site shop; the landing has dock/tags at hall, door/1 at hall'
        in Landed(Store.at(elsewhere)).unmatched(rules).values()
    )


def test_it_goes_on_with_files_that_land_later(tmp_path, rules):
    """Nothing is reported while nothing has landed, nor a stream whose readings came meanwhile."""
    landing = tmp_path / "landing"
    landing.mkdir()
    landed = Landed(Store.at(landing))
    assert landed.unmatched(rules) == {}
    land(landing, [reading("g", 0, "till/tags", "k", 1, 2)], 0)
    assert names(landed.unmatched(rules)) == ["Stream dock", "Stream door"]
    land(landing, [reading("g", 1, "door/7", "k", 1, 2, site="shop")], 1)
    assert names(landed.unmatched(rules)) == ["Stream dock"]


def test_files_are_read_once_and_no_longer_than_needed(tmp_path, rules, monkeypatch):
    """With all streams found nothing more is read, however much lands."""
    landing = tmp_path / "landing"
    opened = []
    read = unmatched.read_piece
    monkeypatch.setattr(unmatched, "read_piece", lambda *of: (opened.append(of[1].path), read(*of))[1])
    for number in range(3):
        land(
            landing,
            [reading("g", number, "dok/tags", "k", 1, 2), reading("g", 9, "door/1", "k", 1, 2, site="shop")],
            number,
        )
    landed = Landed(Store.at(landing))
    assert landed.unmatched(rules[:1]) == landed.unmatched(rules[:1]) == {}
    assert len(opened) == 1
    assert names(landed.unmatched(rules)) == names(landed.unmatched(rules)) == ["Stream till"]
    assert len(opened) == len(set(opened)) == 3


def test_what_is_no_parquet_or_hidden_is_passed_over(tmp_path):
    """A file that is not whole, and the folders of the ingest."""
    landing = tmp_path / "landing"
    hidden = land(landing / "_dead", [reading("g", 0, "hidden", "k", 1, 2)], 0)
    land(landing, [reading("g", 0, "seen", "k", 1, 2)], 0)
    (landing / "zz.parquet").write_bytes(b"no parquet")
    rule = type("Rule", (), {"streams": (Stream("x", "y", 0),)})()
    assert hidden.exists()
    assert Landed(Store.at(landing)).unmatched([rule]) == {
        "x": 'Stream x: no reading matches "y"; the landing has seen'
    }


def test_a_stream_of_a_gateway_that_has_sent_nothing_is_reported_with_those_that_have(tmp_path):
    """The name has landed, but from another gateway."""
    landing = tmp_path / "landing"
    land(landing, [reading("evil", 0, "dock/tags", "k", 1, 2), reading("g0", 1, "other", "k", 1, 2)], 0)
    rule = type("Rule", (), {"streams": (Stream("dock", "dock/tags", 0, site="hall", gateway="g0"),)})()
    assert Landed(Store.at(landing)).unmatched([rule]) == {
        "dock": 'Stream dock: no reading matches "dock/tags" at gateway hall/g0; '
        "the landing has dock/tags at hall/evil, other"
    }
