"""`why-not` for groups: the state of each gateway at a time, and what did not hold. One unit is a millisecond."""

import json
from xml.etree import ElementTree as ET

import pytest

from support.cloud.landing import EPOCH_US, land
from support.latwin.states import MS, rule, state
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.why_not import of_states
from whenabouts_cloud.why_not.of_states import states_before, why_not_states

BOTH = "DEFINITELY s0 AND s1 WINDOW 2"


def at(process, seq, clock, first, last, value, **more):
    """A state that began within these milliseconds."""
    return state(process, seq, clock, EPOCH_US + first * MS, EPOCH_US + last * MS, value, **more)


# s0   |--0--|==1== from 10 .. 12 ======|--2-- from 60
# s1   |--0-------|==1== from 20 .. 25 =======          heartbeat at 40 .. 41
ROWS = [
    at(0, 0, (0, 0), 0, 0, False),
    at(1, 0, (0, 0), 0, 0, False),
    at(0, 1, (1, 0), 10, 12, True),
    at(1, 1, (0, 1), 20, 25, True),
    at(1, 2, (0, 1), 40, 41, None, is_heartbeat=True),
    at(0, 2, (2, 0), 60, 60, False),
]


@pytest.fixture
def ask(tmp_path):
    """The answer for a rule at a millisecond, over a landing with these rows."""

    def ask(body, rows, ms, group="office", **more):
        for one in rows:
            land(tmp_path, [one])
        return why_not_states(Store.at(tmp_path), rule(body, processes=2, **more), group, EPOCH_US + ms * MS)

    return ask


def numbers(answer):
    """The verdict, and the number of each gateway's state."""
    return answer.verdict, [None if x.state is None else x.state.number for x in answer.members]


@pytest.mark.parametrize(
    ("ms", "expected"),
    [(-1, ("nothing", [None, None])), (5, ("false", [0, 0])), (15, ("false", [1, 0])), (30, ("held", [1, 1])),
     (70, ("false", [2, 1]))],
)  # fmt: skip
def test_the_states_at_a_time_are_those_that_had_begun(ask, ms, expected):
    """In the picture above."""
    assert numbers(ask(BOTH, ROWS, ms)) == expected


def test_states_that_overlap_certainly_are_told(ask):
    """From 25, the latest begin of the last one, to 40, when the heartbeat reports it as on."""
    answer = ask(BOTH, ROWS, 30)
    assert answer.together_us == (EPOCH_US + 25 * MS, EPOCH_US + 40 * MS)
    assert answer.lines() == [
        "the predicate held in the states around that time",
        "  s0  hall/g0  state 1 began 2026-11-18T11:06:40.010000Z .. 11:06:40.012000, value 1.0",
        "  s1  hall/g1  state 1 began 2026-11-18T11:06:40.020000Z .. 11:06:40.025000, value 1.0",
        "  s0 AND s1: held",
        "  they certainly were on together within 2026-11-18T11:06:40.025000Z .. 11:06:40.040000",
        "  looked at 6 readings of states",
    ]


@pytest.mark.parametrize(
    "rows",
    [ROWS[:4], [*ROWS[:4], at(0, 3, (3, 0), 60, 60, False), at(1, 3, (0, 2), 80, 80, False)]],
    ids=["no later word", "a state between was lost"],
)
def test_states_are_not_taken_to_last_longer_than_is_known(ask, rows):
    """Whether state 1 of s0 lasted until 25 is open."""
    answer = ask(BOTH, rows, 30)
    assert (numbers(answer), answer.together_us) == (("held", [1, 1]), None)
    assert answer.lines()[-2] == "  by their stamps alone they need not have been on at once: vector clocks decide"


def test_what_did_not_hold_is_told_for_each_alternative(ask):
    """At 15 only s0 is on; a value that nobody reported holds in no comparison."""
    answer = ask('DEFINITELY s0 AND s1 OR s0.room = "meeting" WINDOW 2', ROWS, 15)
    assert answer.verdict == "false"
    assert answer.lines()[3:5] == ["  s0 AND s1: not in s1", '  s0.room = "meeting": not in s0']
    assert [one["holds"] for one in answer.json()["members"]] == [[True, False], [False, None]]


def test_a_gateway_without_a_state_leaves_the_verdict_open(ask):
    """Unless the predicate holds without it."""
    assert numbers(ask(BOTH, ROWS[:1], 5)) == ("unknown", [0, None])
    answer = ask("POSSIBLY s0 OR s1 WINDOW 2", ROWS[2:3], 15)
    assert (numbers(answer), answer.svg) == (("held", [1, None]), None)
    assert "s1  has sent no state" in answer.lines()[2]


def test_other_groups_and_other_views_do_not_count(ask):
    """The view that began last by the time is asked about."""
    other = [at(0, 7, (3, 0), 15, 15, True, group="attic"), at(0, 8, (0, 0), 90, 90, True, view=8)]
    answer = ask(BOTH, [*ROWS, *other], 30)
    assert (numbers(answer), answer.view) == (("held", [1, 1]), 7)
    assert numbers(ask(BOTH, [], 95)) == ("unknown", [0, None])
    assert numbers(ask(BOTH, [], 30, group="attic")) == ("nothing", [None, None])


def test_the_windows_are_drawn_as_they_were(ask, tmp_path):
    """The lattice of the last two states of each gateway at 30; state 2 of s0 comes later."""
    drawn = ask(BOTH, ROWS, 30).svg
    titles = [x.text for x in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.endswith("hall/g0 1, s1 hall/g1 1: holds") for title in titles)
    assert not any("hall/g0 2" in title for title in titles)
    wide = ask("POSSIBLY s0 AND s1 WINDOW 64", [], 30)
    assert wide.svg is not None
    nothing, _ = states_before(Store.at(tmp_path / "nothing"), wide.rule, 0)
    assert of_states.lattice(rule("POSSIBLY s0 AND s1 AND s2 WINDOW 64"), nothing) is None


def test_the_answer_is_json(ask):
    """Values of any kind, as they are compared."""
    rows = [at(0, 0, (0, 0), 0, 0, "<b>", attrs={"room": "</svg>", "n": 3}), at(1, 0, (0, 0), 0, 0, True)]
    said = ask('POSSIBLY s0.room = "</svg>" AND s0.n > 2 AND s0 = "<b>" AND s1 WINDOW 2', rows, 1).json()
    assert (said["kind"], said["verdict"]) == ("states", "held")
    assert said["members"][0]["values"] == {"room": "</svg>", "n": 3.0, "value": "<b>"}
    assert json.loads(json.dumps(said, allow_nan=False)) == said


def test_a_state_that_began_long_before_is_found(ask, monkeypatch):
    """A day ago; beyond the limit of readings those nearest to the time count."""
    day = 86_400_000
    long_ago = [at(0, 0, (0, 0), -day, -day, True), at(1, 0, (0, 0), -day, -day, True)]
    assert numbers(ask(BOTH, long_ago, 0)) == ("held", [0, 0])
    monkeypatch.setattr(of_states, "MAX_STATES", 3)
    answer = ask(BOTH, ROWS, 50)
    assert (answer.more, answer.readings) == (True, 3)
    assert answer.lines()[-1] == "  more than 3 have landed: those nearest to the time were examined"
