"""One question for rules of all kinds; conditions read numbers of any size; readings nearest to a time are kept."""

import math

import pytest

from support.cep.landing import CAUSAL, causal_readings
from support.cep.landing import rule as order
from support.cloud.landing import EPOCH_US, land, reading, table
from support.cloud.tags import sgtin
from support.latwin.states import definitely
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import parse_rules
from whenabouts_cloud.why_not import of_events
from whenabouts_cloud.why_not.answer import why_not
from whenabouts_cloud.why_not.around import TooManyReadingsError, nearest
from whenabouts_cloud.why_not.of_events import column_of

NEAR = parse_rules("""
    STREAM dock FROM "dock/tags" DELAY 1 s
    STREAM shelf FROM "shelf/#" DELAY 1 s
    RULE near CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 1 s OVER 80 % AND a.key = b.key
""").rules[0]


@pytest.mark.parametrize(
    ("rule", "kind"), [(NEAR, "pairs"), (order("inner"), "events"), (definitely(2), "states")], ids=lambda x: str(x)[:9]
)
def test_an_empty_landing_has_an_answer_for_every_kind(tmp_path, rule, kind):
    """Nothing, with an empty picture; a foreign file without any column is no reading."""
    land(tmp_path, [dict.fromkeys(reading("g", 1, "s", "k", 1, 1))])
    answer = why_not(Store.at(tmp_path), rule, "k", EPOCH_US)
    assert (answer.json()["kind"], answer.json()["verdict"]) == (kind, "nothing")
    assert len(answer.lines()) > 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [(10**400, math.inf), (-(10**400), -math.inf), (True, 1.0), ([1], math.nan), ({}, math.nan), (None, math.nan)],
)
def test_conditions_read_numbers_of_any_size(value, expected):
    """What is no number is missing."""
    assert column_of({}, {"x": value}, "x", {}) == pytest.approx(expected, nan_ok=True)


def test_the_nearest_readings_are_kept_in_their_order():
    """By the distance of their stamps; one that spans the time is at it."""
    rows = table(reading("g", n, "s", "k", *stamp) for n, stamp in enumerate([(0, 4), (90, 99), (0, 99), (9, 9)]))
    kept, left_out = nearest(rows, 10, 2)
    assert (kept["seq"].to_pylist(), left_out) == ([2, 3], 2)
    assert nearest(rows, 10, 4) == (rows, 0)


def test_a_condition_on_a_name_is_named_as_it_was_written(tmp_path):
    """Across keys: two tags of one product match; one of another product, and one whose key holds no name, do not."""
    rule = parse_rules("""
        STREAM dock FROM "dock" DELAY 1 s
        STREAM exit FROM "exit" DELAY 1 s
        RULE r SEQ(dock a, exit e) WITHIN 10 s ACROSS KEYS WHERE a.gtin = e.gtin AND e.company_prefix != "952114100012"
    """).rules[0]
    a, same, other = (sgtin("0614141", item, n).key for n, item in enumerate(["812345", "812345", "812346"]))
    verdicts = []
    for number, key in enumerate([same, other, "hot"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        land(
            folder,
            [reading("g", 1, "dock", a, EPOCH_US, EPOCH_US), reading("g", 2, "exit", key, EPOCH_US + 9, EPOCH_US + 9)],
        )
        answer = why_not(Store.at(folder), rule, a, EPOCH_US)
        verdicts.append(answer.json()["verdict"])
        assert ("a.gtin = e.gtin" in "\n".join(answer.lines())) == (number > 0)
    assert verdicts[0] == "match"
    assert verdicts[1:] == ["condition", "condition"]


def test_too_many_views_are_refused_with_a_way_out(tmp_path, monkeypatch):
    """In CAUSAL, whose clocks depend on all of them."""
    monkeypatch.setattr(of_events, "MAX_ROWS", 2)
    rows, _ = causal_readings(seed=5, steps=50)
    land(tmp_path, rows)
    with pytest.raises(TooManyReadingsError, match="found more than 2 readings with views"):
        why_not(Store.at(tmp_path), order(CAUSAL), "hot", EPOCH_US)


def test_events_beyond_the_limit_are_counted(tmp_path, monkeypatch):
    """Those nearest to the time are examined."""
    monkeypatch.setattr(of_events, "MAX_READ", 2)
    land(tmp_path, [reading("g", n, "shelf/1", "k", EPOCH_US + n, EPOCH_US + n) for n in range(5)])
    said = why_not(Store.at(tmp_path), order("inner"), "k", EPOCH_US).json()
    assert (said["left_out"], [x["seq"] for x in said["events"]]) == (3, [0, 1])
