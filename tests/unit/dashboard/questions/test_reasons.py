"""Why a key has no result, as JSON for a page."""

import json

import pytest

from support.cloud.landing import EPOCH_US, land, reading
from whenabouts_cloud.dashboard.questions.reasons import answer

TEXT = (
    'STREAM dock FROM "dock/+" DELAY 2 s\nSTREAM shelf FROM "shelf/+" DELAY 5 s\n'
    "RULE r CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key"
)


@pytest.fixture
def landing(tmp_path):
    """One reading of the key E1 whose numbers a browser cannot hold."""
    land(tmp_path / "landing", [reading("g1", 2**60, "dock/1", "E1", EPOCH_US, EPOCH_US + 5, boot=2**62)])
    return str(tmp_path / "landing")


def test_the_answer_is_that_of_why_not(landing):
    """The lines for people, the verdict, and the values that a picture needs."""
    found = answer({"landing": landing, "text": TEXT, "rule": None, "key": "E1", "at_us": EPOCH_US})
    assert found["verdict"] == found["answer"]["verdict"] == "missing"
    assert found["answer"]["focus"]["boot"] == str(2**62)
    assert len(found["lines"]) > 2
    json.dumps(found, allow_nan=False)


def test_a_time_may_be_anywhere(landing):
    """Nothing overflows."""
    for at_us in (-(2**63), 2**63 - 1):
        found = answer({"landing": landing, "text": TEXT, "rule": "r", "key": "E1", "at_us": at_us})
        assert found["verdict"] == "nothing"


def test_a_rule_that_is_not_there_is_refused(landing):
    """The error names those that are."""
    with pytest.raises(LookupError, match="found x, expected one of r"):
        answer({"landing": landing, "text": TEXT, "rule": "x", "key": "E1", "at_us": 0})
