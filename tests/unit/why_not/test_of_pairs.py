"""`why-not` for pairs: what stood in the way of each partner, as text and as JSON. One unit is a second."""

import json

import pytest

from support.cloud.landing import EPOCH_US, land, reading, table, watermark
from support.cloud.parts import Part
from whenabouts_cloud.landing.layout import AHEAD, Numbers
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import parse_rules
from whenabouts_cloud.why_not import around as around_module
from whenabouts_cloud.why_not.of_pairs import why_not_pairs

S = 1_000_000
STREAMS = 'STREAM dock FROM "dock/+" DELAY 2 s\nSTREAM shelf FROM "shelf/+" DELAY 5 s'
HANDOVER = "WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key"


def row(seq, stream, first, last, key="E1", landed_after=0.0, gateway="g1"):
    """A reading of these seconds."""
    stamp = EPOCH_US + int(first * S), EPOCH_US + int(last * S)
    one = reading(gateway, seq, stream, key, *stamp)
    return one | {"landed_us": stamp[1] + int(landed_after * S)}


@pytest.fixture
def ask(tmp_path):
    """The answer for a rule with this body about the key E1 at a second, over a landing with these rows."""
    tmp_path.joinpath("landing").mkdir()

    def ask(body, rows, second=0.0, key="E1", streams=STREAMS):
        for number, one in enumerate(rows):
            land(tmp_path / "landing", [one], number)
        watermark(tmp_path / "landing", {"g1": EPOCH_US})
        rule = parse_rules(f"{streams}\nRULE r CORRELATE dock AS a, shelf AS b {body}").rules[0]
        return why_not_pairs(Store.at(tmp_path / "landing"), rule, key, EPOCH_US + int(second * S))

    return ask


def told(answer):
    """The verdict, and of each candidate its number, verdict and reason."""
    said = answer.json()
    return said["verdict"], [(x["reading"]["seq"], x["verdict"], x["reason"]) for x in said["candidates"]]


def test_a_pair_and_what_nearly_is_one(ask):
    """dock [0 .. 4]; shelves at 6 (sure), at [8 .. 16] (half of it within 10 s), at 30."""
    rows = [row(1, "dock/1", 0, 4), row(2, "shelf/1", 6, 6), row(3, "shelf/1", 8, 16), row(4, "shelf/1", 30, 30)]
    answer = ask(HANDOVER, rows)
    assert told(answer) == (
        "pair",
        [
            (2, "pair", "probability 1, 0.8 is needed"),
            (3, "improbable", "probability 0.5, 0.8 is needed"),
            (4, "beyond", "@b - @a is at least 16 s above the limits"),
        ],
    )
    assert answer.lines() == [
        "a pair",
        "  a  2026-11-18T11:06:40.000000Z .. 11:06:44.000000  dock/1@hall/g1 1:1",
        "  b  2026-11-18T11:06:46.000000Z  shelf/1@hall/g1 1:2",
        "     @b - @a 2 s .. 6 s: probability 1, 0.8 is needed",
        "  b  2026-11-18T11:06:48.000000Z .. 11:06:56.000000  shelf/1@hall/g1 1:3",
        "     @b - @a 4 s .. 16 s: probability 0.5, 0.8 is needed",
        "  b  2026-11-18T11:07:10.000000Z  shelf/1@hall/g1 1:4",
        "     @b - @a 26 s .. 30 s: @b - @a is at least 16 s above the limits",
        "  a pair needs @b - @a from -10 s to 10 s with probability 0.8, and one key",
        "  looked at 4 readings",
    ]


def test_conditions_on_keys_are_named_with_what_was_found(ask):
    """Of a partner with another product, one whose key holds no name, and of the reading that is asked about."""
    case, other = "3074257BF7194E4000001A85", "3034257BF400004000000007"
    rows = [
        row(1, "dock/1", 0, 0, case), row(2, "shelf/1", 1, 1, other), row(3, "shelf/1", 2, 2, "E1"),
        row(4, "shelf/1", 3, 3, case),
    ]  # fmt: skip
    body = 'WHERE |@a - @b| <= 10 s OVER 80 % AND b.gtin = "80614141123458"'
    assert told(ask(body, rows, key=case)) == (
        "pair",
        [
            (4, "pair", "probability 1, 0.8 is needed"),
            (2, "tags", 'probability 1, but b.gtin = "80614141123458" does not hold: it is "00614141000012"'),
            (3, "tags", 'probability 1, but b.gtin = "80614141123458" does not hold: its key holds no gtin'),
        ],
    )
    answer = ask('WHERE |@a - @b| <= 10 s OVER 80 % AND a.epc_scheme != "sgtin" KEEP ALL a', [], key=case)
    assert told(answer) == ("tags", [])
    assert answer.lines()[0] == "no pair: a key does not satisfy the conditions on it"
    assert (
        answer.lines()[2] == '     a.epc_scheme != "sgtin" does not hold: it is "sgtin": it takes no part in the rule'
    )
    assert answer.json()["tags"] == ['a.epc_scheme != "sgtin"']
    assert answer.json()["lacks"] in answer.lines()[2]


def test_the_answer_has_what_a_picture_needs(ask):
    """The corners of the trapezoid, in us, its height, the limits, the threshold."""
    said = ask(HANDOVER, [row(1, "dock/1", 0, 4), row(3, "shelf/1", 8, 16)]).json()
    [candidate] = said["candidates"]
    assert candidate["distribution"] == {
        "corners_us": [4 * S, 8 * S, 12 * S, 16 * S],
        "height_per_us": pytest.approx(1 / (8 * S)),
    }
    assert (said["kind"], said["limits_us"], said["threshold"]) == ("pairs", [-10 * S, 10 * S], 0.8)
    assert (said["side"], said["focus"]["lane"], said["aliases"]) == ("a", "hall/g1/dock/1", ["a", "b"])
    assert json.loads(json.dumps(said, allow_nan=False)) == said


def test_offsets_move_the_stamps_that_are_shown(ask):
    """The shelf's clock is 20 s behind; @b - @a is of the moved stamps, as the rule has it."""
    streams = STREAMS + " OFFSET 20 s"
    said = ask(HANDOVER, [row(1, "dock/1", 0, 0), row(2, "shelf/1", -18, -18)], streams=streams).json()
    [candidate] = said["candidates"]
    assert candidate["verdict"] == "pair"
    assert candidate["reading"]["t_min"] - candidate["reading"]["offset_us"] == EPOCH_US - 18 * S
    assert candidate["distribution"] == {"corners_us": [2 * S] * 4, "height_per_us": None}


def test_the_question_may_be_about_the_second_stream(ask):
    """At 8 s the shelf is nearer than the dock; the dock is its candidate."""
    answer = ask(HANDOVER, [row(1, "dock/1", 0, 0), row(2, "shelf/1", 9, 9)], second=8)
    assert (answer.json()["side"], told(answer)) == ("b", ("pair", [(1, "pair", "probability 1, 0.8 is needed")]))


@pytest.mark.parametrize(
    ("rows", "verdict", "reason"),
    [
        ([row(2, "shelf/1", 5, 5, key="E2")], "keys", "probability 1, but of another key"),
        ([row(2, "shelf/1", 5, 5, key=None)], "keys", "it has no key"),
        ([row(2, "shelf/1", 1, 31)], "long", "the stamp of b is 30 s long, at most 25 s can be in a pair"),
        ([row(2, "shelf/1", 5, 3)], "long", "the stamp of b ends before it begins"),
        ([row(2, "shelf/1", 45, 45, key="E2")], "missing", None),
        ([row(2, "till", 5, 5)], "missing", None),
    ],
)
def test_what_is_in_the_way_of_a_reading_without_a_pair(ask, rows, verdict, reason):
    """A partner of another key counts only where it would be a partner."""
    answer = ask(HANDOVER, [row(1, "dock/1", 0, 0), *rows])
    assert told(answer) == (verdict, [] if reason is None else [(2, verdict, reason)])


def test_a_reading_that_is_too_long_itself(ask):
    """Of an unset clock: it spans all time, and no other stream is searched."""
    long = reading("g1", 1, "dock/1", "E1", -(1 << 62), 1 << 62)
    answer = ask(HANDOVER, [long, row(2, "shelf/1", 5, 5)])
    verdict, [(_, _, reason)] = told(answer)
    assert verdict == "long"
    assert reason.startswith("the stamp of a is 2.56205e+09 h long")


def test_without_keys_any_partner_counts(ask):
    """The key only names the reading; far from any partner the nearest within a minute is shown."""
    rows = [row(1, "dock/1", 0, 0), row(2, "shelf/1", 5, 5, key="E2"), row(3, "shelf/1", 300, 300)]
    body = "WHERE |@a - @b| <= 10 s OVER 80 %"
    assert told(ask(body, rows))[0] == "pair"
    assert told(ask("WHERE |@a - @b| <= 1 s OVER 80 %", [])) == (
        "beyond",
        [(2, "beyond", "@b - @a is at least 4 s above the limits")],
    )


def test_of_the_best_partners_only_the_best_stay(ask):
    """NEAREST: the shelf at 3 s is nearer; asked about the other one, its reading of a has a better partner."""
    rows = [row(1, "dock/1", 0, 0), row(2, "shelf/1", 3, 3), row(3, "shelf/1", 9, 9)]
    assert [x[:2] for x in told(ask(HANDOVER + " NEAREST", rows))[1]] == [(2, "pair"), (3, "beaten")]
    assert told(ask(HANDOVER + " NEAREST", [], second=9)) == (
        "beaten",
        [(1, "beaten", "probability 1, but a has 1 better partners")],
    )


@pytest.mark.parametrize(
    ("clause", "shelf", "line"),
    [
        ("KEEP ALL a", 5, "  it is emitted in its pairs"),
        ("KEEP ALL a", 45, "  it is emitted as unmatched"),
        ("ONLY UNMATCHED a", 5, "  it is in a pair, so it is not emitted"),
    ],
)
def test_what_an_outer_join_emits_is_told(ask, clause, shelf, line):
    """Of a reading of a."""
    assert line in ask(f"{HANDOVER} {clause}", [row(1, "dock/1", 0, 0), row(2, "shelf/1", shelf, shelf)]).lines()


def test_what_landed_late_is_told(ask):
    """The shelf landed 7 s after its stamp, and 5 s are waited for."""
    answer = ask(HANDOVER, [row(1, "dock/1", 0, 0), row(2, "shelf/1", 5, 5, landed_after=7)])
    assert [x["late_us"] for x in answer.json()["candidates"]] == [2 * S]
    assert any(line.endswith("landed 2 s after its DELAY, so it may have come too late") for line in answer.lines())


def test_readings_from_the_future_lie_in_the_side_output(ask, tmp_path):
    """They are named, as no job reads them."""
    part = Part(tmp_path / "landing")
    part.hour = 48
    part.write(AHEAD, Numbers(9, 9), table([row(7, "shelf/1", 5, 5)]))
    answer = ask(HANDOVER, [row(1, "dock/1", 0, 0)])
    assert answer.json()["ahead"] == ["shelf/1@hall/g1 1:7"]
    assert answer.lines()[-1] == "  1 readings lie in the side output _ahead: they began in the future"


def test_limits_and_what_cannot_be_read_are_told(ask, tmp_path, monkeypatch):
    """Rows beyond the limit, files that are damaged, readings without a number."""
    monkeypatch.setattr(around_module, "MAX_ROWS", 2)
    land(tmp_path / "landing", [row(8, "dock/1", 0, 0) | {"boot": None}])
    land(tmp_path / "landing", [row(9, "dock/1", 0, 0)]).write_bytes(b"")
    answer = ask(HANDOVER, [row(n, "shelf/1", 5, 5) for n in range(4)] + [row(5, "dock/1", 0, 0)])
    said = answer.json()
    assert (said["more_readings_landed"], said["incomplete"], len(said["damaged"])) == (True, 1, 1)
    assert "  more than 2 readings have landed: some were not examined" in answer.lines()


def test_no_reading_of_the_key(ask):
    """Around that time."""
    answer = ask(HANDOVER, [row(1, "dock/1", 0, 0)], key="<b>E9</b>")
    assert told(answer) == ("nothing", [])
    assert answer.lines()[0] == "no reading around that time could be in a pair"
