"""`why-not` as a command: reads only the key's rows of a landing, and gives the reason as text and as JSON."""

import json
from collections import Counter

import pytest
from click.testing import CliRunner

from support.cep.landing import CAUSAL, causal_expected, causal_readings
from support.cloud.landing import EPOCH_US, land, reading, watermark
from whenabouts_cloud.commands.why_not import why_not_command

S = 1_000_000
RULES = """
STREAM shelf FROM "shelf/+" DELAY 1 s
STREAM till  FROM "till"    DELAY 1 s
STREAM exit  FROM "door/+"  DELAY 1 s
RULE unpaid
  SEQ(shelf, !till, exit x) WITHIN 1 min PER key WHERE x.antenna = "out" AND x.value > 3
"""


def row(gateway, seq, stream, second, *, key="tag-1", value=None, attrs=None, kind="tag"):
    """A reading at a second."""
    columns = reading(gateway, seq, stream, key, EPOCH_US + second * S, EPOCH_US + second * S, kind=kind)
    return columns | {"value": value, "attrs": attrs}


@pytest.fixture
def run(tmp_path):
    """The command on a landing with these rows."""
    rules, landing = tmp_path / "rules.wa", tmp_path / "landing"
    rules.write_text(RULES)
    landing.mkdir()

    def call(rows, *arguments):
        for number, some in enumerate(rows):
            land(landing, some, number)
        watermark(landing, {"g1": EPOCH_US}, 1)
        command = ["--landing", str(landing), "--rule", str(rules), *map(str, arguments)]
        return CliRunner().invoke(why_not_command, command)

    return call


OUT = {"value": "5", "attrs": '{"antenna": "out"}'}
VISIT = [row("g1", 1, "shelf/2", 0), row("g2", 1, "till", 10), row("g3", 1, "door/1", 20, **OUT)]


def test_the_till_between_shelf_and_exit(run):
    """For people: the verdict, each element with when and where, what is in the way."""
    done = run([VISIT], "tag-1", "2026-11-18T11:06:55Z")
    assert done.exit_code == 0, done.output
    first, *rest = done.stdout.splitlines()
    assert first == "rule unpaid, key tag-1, around 2026-11-18T11:06:55Z: complete, but a negated event is in the way"
    assert rest == [
        "  shelf  2026-11-18T11:06:40.000000Z  shelf/2@hall/g1 1:1",
        "  x      2026-11-18T11:07:00.000000Z  door/1@hall/g3 1:1",
        "  !till: 2026-11-18T11:06:50.000000Z  till@hall/g2 1:1 lies after shelf and before x",
        "  looked at 3 readings",
    ]


def test_repeats_other_keys_and_readings_that_are_no_events_do_not_count(run):
    """Landed twice, of another tag, or the note of a gap: a match remains."""
    rows = [VISIT[0], VISIT[2], row("g2", 9, "till", 10, key="tag-2"), row("g2", 10, "till", 11, kind="gap")]
    done = run([rows, [VISIT[0], VISIT[2]]], "tag-1", EPOCH_US, "--json")
    answer = json.loads(done.stdout)
    assert (answer["verdict"], answer["readings"], answer["repeats"]) == ("match", 2, 2)
    assert [e["event"]["reading"] for e in answer["elements"]] == ["shelf/2@hall/g1 1:1", "door/1@hall/g3 1:1"]
    assert answer["focus"] == {
        "stream": "shelf",
        "t_min": EPOCH_US,
        "t_max": EPOCH_US,
        "reading": "shelf/2@hall/g1 1:1",
        "offset_us": 0,
        "lane": "hall/g1/shelf/2",
        "site": "hall",
        "gateway": "g1",
        "boot": 1,
        "seq": 1,
        "key": "tag-1",
    }
    assert [e["reading"] for e in answer["events"]] == ["shelf/2@hall/g1 1:1", "door/1@hall/g3 1:1"]
    assert (answer["kind"], answer["window_us"], answer["mode"]) == ("events", 60 * S, "certain")


@pytest.mark.parametrize(
    ("value", "attrs", "reason"),
    [
        ("2", '{"antenna": "out"}', "fails x.value > 3"),
        ("5", '{"antenna": "in"}', 'fails x.antenna = "out"'),
        ("5", None, 'fails x.antenna = "out"'),
        ('"high"', '{"antenna": "out"}', "fails x.value > 3"),
        ("true", '{"antenna": "out"}', "fails x.value > 3"),
    ],
)
def test_conditions_read_what_landed(run, value, attrs, reason):
    """Numbers, texts, and what is missing."""
    answer = json.loads(
        run([[VISIT[0], row("g3", 1, "door/1", 20, value=value, attrs=attrs)]], "tag-1", EPOCH_US, "--json").stdout
    )
    assert answer["verdict"] == "condition"
    assert [e["reason"] for e in answer["elements"]] == ["", reason]


def test_nothing_of_the_key(run):
    """An empty landing, or one without the key."""
    done = run([VISIT], "tag-9", EPOCH_US)
    assert done.exit_code == 0
    assert "no event around that time could play a part" in done.stdout


def test_where_a_missing_event_could_be_is_told(run):
    """After the shelf and within a minute of it; the exit of another key is none."""
    answer = json.loads(run([[VISIT[0], row("g3", 1, "door/1", 70, **OUT)]], "tag-1", EPOCH_US, "--json").stdout)
    assert answer["verdict"] == "window"
    assert [e["room_us"] for e in answer["elements"]] == [None, [EPOCH_US, EPOCH_US + 60 * S]]


HOSTILE = [
    {"key": "<script>alert(1)</script>", "value": "1" * 400, "attrs": '{"antenna": NaN}'},
    {"key": "\u202eexe.gnp", "value": "[[", "attrs": "[" * 100_000},
    {"key": "tag\n\x1b[2J", "value": '{"a": 1}', "attrs": '"out"'},
]


@pytest.mark.parametrize("columns", HOSTILE, ids=range(len(HOSTILE)))
def test_texts_of_others_change_nothing_but_themselves(run, columns):
    """They are escaped for people, and whole in JSON."""
    columns = columns | {"unit": "</svg>"}
    rows = [row("g1", 1, "shelf/2", 0, key=columns["key"]), row("g3", 1, "door/1", 20) | columns]
    answer = json.loads(run([rows], columns["key"], EPOCH_US, "--json").stdout)
    assert (answer["key"], answer["verdict"]) == (columns["key"], "condition")
    assert all(c.isprintable() or c == "\n" for c in run([], columns["key"], EPOCH_US).stdout)


def test_stamps_that_are_no_times_are_in_no_match(run):
    """An unset clock: all of int64; an end before its begin."""
    far = row("g1", 2, "shelf/2", 0) | {"t_min": -(1 << 63), "t_max": (1 << 63) - 1}
    back = row("g1", 3, "shelf/2", 0) | {"t_min": EPOCH_US + 9, "t_max": EPOCH_US}
    done = run([[*VISIT, far, back]], "tag-1", EPOCH_US)
    assert "  2 readings have stamps that are no times: they are in no match" in done.stdout
    assert done.stdout.splitlines()[0].endswith("complete, but a negated event is in the way")


def test_a_rule_must_be_named_if_there_are_several(run, tmp_path):
    """Of any kind; pairs are explained too."""
    both = RULES + "RULE near CORRELATE shelf AS a, till AS b WHERE |@a - @b| <= 9 s OVER 0.5 AND a.key = b.key"
    rules = tmp_path / "both.wa"
    rules.write_text(both)
    done = run([VISIT], "tag-1", EPOCH_US, "--rule", rules)
    assert done.exit_code == 2
    assert "found the rules unpaid, near, expected the name of one of them" in " ".join(done.stderr.split())
    done = run([], "tag-1", EPOCH_US, "--rule", rules, "--rule-name", "near")
    assert done.stdout.splitlines()[0].endswith("no pair: no partner within reach")
    assert "    @b - @a 10 s: @b - @a is at least 1 s above the limits" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("tag-1", "yesterday"), "found 'yesterday', expected ISO 8601"),
        (("tag-1", "0", "--rule-name", "other"), "--rule-name: found other, expected one of unpaid"),
    ],
)
def test_mistakes_end_with_2(run, arguments, expected):
    """And the error has what was expected."""
    done = run([], *arguments)
    assert done.exit_code == 2
    assert expected in " ".join(done.stderr.replace("│", " ").split())


def test_causal_order_by_the_views_in_state_readings(run, tmp_path):
    """Asked all along a landing with two views: a match exactly where what the gateways knew makes one with the focus."""
    rows, facts = causal_readings(seed=5, steps=400)
    matches = {frozenset((gateway, seq) for _, gateway, seq in match) for match in causal_expected(rows, facts)}
    streams = "\n".join(f'STREAM {name} FROM "{place}" DELAY 1 h' for name, place in PLACES.items())
    rules = tmp_path / "causal.wa"
    rules.write_text(f"{streams}\nRULE unpaid {CAUSAL}\n")
    verdicts = Counter()
    for number, row in enumerate([r for r in rows if r["key"] == "hot"][::6]):
        done = run([] if number else [rows], "hot", row["t_min"], "--json", "--rule", str(rules))
        answer = json.loads(done.stdout)
        verdicts[answer["verdict"]] += 1
        shown = frozenset(place(e["event"]["reading"]) for e in answer["elements"] if e["failure"] is None)
        focus = place(answer["focus"]["reading"])
        assert (answer["verdict"] == "match") == any(focus in match for match in matches), done.stdout
        assert answer["verdict"] != "match" or shown in matches
    assert verdicts["match"] > 3
    assert verdicts["uncertain"] > 3


PLACES = {"shelf": "shelf/#", "till": "till/tags", "exit": "exit/tags"}


def place(reading):
    """Gateway and number of a reading by its name: shelf/1@hall/g0 1:17."""
    gateway, number = reading.partition("@")[2].split(" ")
    return gateway.split("/")[1], int(number.split(":")[1])
