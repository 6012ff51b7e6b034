"""The rule file on the page follows the file on the disk."""

import pytest

from whenabouts_cloud.dashboard.questions import rule_book
from whenabouts_cloud.dashboard.questions.rule_book import RuleBook

STREAMS = 'STREAM dock FROM "dock/+" DELAY 2 s\nSTREAM shelf FROM "shelf/+" DELAY 5 s\n'
PAIRS = "RULE pairs CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key\n"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "rules.wa"


def names(book):
    return [rule["name"] for rule in book.value()["rules"]]


def test_a_changed_file_is_read_again(file):
    """An unchanged one is not."""
    file.write_text(STREAMS + PAIRS)
    book = RuleBook(file)
    for _ in range(2):
        assert not book.follow(0.1)
    assert (book.version, names(book), book.text) == (1, ["pairs"], STREAMS + PAIRS)
    file.write_text(STREAMS + PAIRS.replace("pairs", "others"))
    book.follow(0.1)
    assert (book.version, names(book)) == (2, ["others"])


def test_mistakes_are_shown_with_the_text(file):
    """So that they can be mended in it."""
    file.write_text("RULE")
    book = RuleBook(file)
    book.follow(0.1)
    value = book.value()
    assert (value["ok"], value["text"], value["rules"]) == (False, "RULE", [])
    assert [(m["line"], m["column"]) for m in value["mistakes"]] == [(1, 5)]


@pytest.mark.parametrize(
    ("raw", "said"), [(None, "no readable file"), (b"\xff", "byte 0xff"), (b" " * 11, "more than 10")]
)
def test_a_file_that_cannot_be_read_says_why(file, raw, said, monkeypatch):
    """It may be one again soon."""
    monkeypatch.setattr(rule_book, "MAX_BYTES", 10)
    if raw is not None:
        file.write_bytes(raw)
    book = RuleBook(file)
    book.follow(0.1)
    [mistake] = book.value()["mistakes"]
    assert said in mistake["text"]


def test_rules_are_explained_again_when_streams_land(file):
    """They show where a rule can run."""
    file.write_text(STREAMS + PAIRS)
    streams = []
    book = RuleBook(file, lambda: streams)
    book.follow(0.1)
    assert "in the cloud" in book.value()["rules"][0]["explanation"][1]
    streams += [("dock/1", "g1", "hall"), ("shelf/1", "g1", "hall")]
    book.follow(0.1)
    assert "on hall/g1" in book.value()["rules"][0]["explanation"][1]


def test_without_a_file_there_are_no_rules():
    """And nothing to follow."""
    book = RuleBook(None)
    assert not book.follow(0.1)
    assert (book.version, book.value()) == (0, {"file": None, "text": "", "ok": True, "mistakes": [], "rules": []})
