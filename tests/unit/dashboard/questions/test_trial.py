"""Trying a rule on what has landed gives the results of a batch over these readings."""

import json

import pytest

from support.cloud.landing import EPOCH_US, land, reading, watermark
from support.latwin.states import definitely, state
from whenabouts_cloud.dashboard.questions import trial
from whenabouts_cloud.dashboard.questions.trial import answer

S = 1_000_000
STREAMS = 'STREAM dock FROM "dock/+" DELAY 2 s\nSTREAM shelf FROM "shelf/+" DELAY 5 s\n'
PAIRS = STREAMS + "RULE r CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key"
ORDER = STREAMS + "RULE r SEQ(dock a, shelf b) WITHIN 10 s PER key"
STATES = STREAMS + "RULE r DEFINITELY dock.on AND shelf.on WINDOW 4 IN GROUP office"


def row(seq, stream, second, key="E1"):
    return reading("g1", seq, stream, key, EPOCH_US + second * S, EPOCH_US + second * S + 1000)


@pytest.fixture
def landing(tmp_path):
    """Five passes from the dock to a shelf, one every minute; and a stream that no rule asks about."""
    rows = []
    for n in range(5):
        rows += [row(3 * n, "dock/1", 60 * n), row(3 * n + 1, "shelf/1", 60 * n + 5), row(3 * n + 2, "other", 60 * n)]
    land(tmp_path / "landing", rows)
    return str(tmp_path / "landing")


def ask(landing, text, first=0, last=1000, rule=None):
    return answer(
        {"landing": landing, "text": text, "rule": rule, "from_us": EPOCH_US + first * S, "to_us": EPOCH_US + last * S}
    )


@pytest.mark.parametrize("text", [PAIRS, ORDER])
def test_a_rule_is_tried_on_the_readings_of_its_streams(landing, text):
    """Each pass is a result, with the identity of its readings as texts."""
    found = ask(landing, text)
    assert (found["readings"], found["results"], found["more"], found["damaged"]) == (10, 5, False, [])
    assert len(found["rows"]) == 5
    assert '"0"' in json.dumps(found["rows"][0])


def test_only_readings_of_the_time_count(landing):
    """The second pass lies between 60 s and 65 s."""
    found = ask(landing, PAIRS, 30, 90)
    assert (found["readings"], found["results"]) == (2, 1)
    assert ask(landing, PAIRS, 600, 900)["results"] == 0


def test_a_rule_about_states_is_tried(landing):
    """No gateway has sent one."""
    assert ask(landing, STATES)["results"] == 0


def test_rows_are_limited_and_all_are_counted(landing, monkeypatch):
    """The page shows how many there are."""
    monkeypatch.setattr(trial, "MAX_ROWS", 2)
    found = ask(landing, PAIRS)
    assert (len(found["rows"]), found["results"], found["more"]) == (2, 5, True)


def test_too_many_readings_are_refused(landing, monkeypatch):
    """With what to do."""
    monkeypatch.setattr(trial, "MAX_READINGS", 9)
    with pytest.raises(ValueError, match="choose a shorter time"):
        ask(landing, PAIRS)


def test_a_damaged_file_is_left_out_and_named(landing, tmp_path):
    """The results are those of the others."""
    (tmp_path / "landing" / "hour=2026-11-20T18" / "part-00000002.parquet").write_bytes(b"nonsense")
    found = ask(landing, PAIRS)
    assert found["results"] == 5
    assert "part-00000002" in found["damaged"][0]


def test_a_rule_that_is_not_in_the_text_is_refused(landing):
    """The error names those that are."""
    with pytest.raises(LookupError, match="expected one of r"):
        ask(landing, PAIRS, rule="other")
    with pytest.raises(ValueError, match="found"):
        ask(landing, "RULE")


def test_a_watermark_that_lands_during_a_trial_does_not_count(tmp_path, monkeypatch):
    """It would say that a gateway was still on, while the state that ended that is not among the readings."""
    rule, folder, listed = definitely(2), tmp_path / "landing", trial._landed
    on = [state(n, 4, (0, 0), EPOCH_US + n * 20_000, EPOCH_US + n * 20_000 + 1000, True) for n in range(2)]
    land(folder, on)
    watermark(folder, {"g0": EPOCH_US + 5000, "g1": EPOCH_US + S})

    def while_it_grows(*arguments):
        found = listed(*arguments)
        land(folder, [state(0, 5, (1, 0), EPOCH_US + 10_000, EPOCH_US + 11_000, False)])
        watermark(folder, {"g0": EPOCH_US + S})
        return found

    monkeypatch.setattr(trial, "_landed", while_it_grows)
    assert [ask(str(folder), rule.text(), rule=rule.name)["results"] for _ in range(2)] == [0, 0]
