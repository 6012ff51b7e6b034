"""The law of visits: what presence tells of a badge is judged by when its reader truly saw it."""

import json

from whenabouts_sim.chaos.checks.gateways.visits import LEAVE, broken_visits
from whenabouts_sim.chaos.checks.landed import ENTER, Landed, LandedReading
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting

MS = 1000
SEEN_MS = (2000, 2060, 2120, 5000, 5060)  # two visits, of 300 ms without a read
SIGHTINGS = [Sighting(at * MS, "badge1", number, "BA") for number, at in enumerate(SEEN_MS)]
ALWAYS = [[0, 1 << 62]]
FIRST, SECOND = {"visit": 1 << 32}, {"visit": (1 << 32) + 1}
GONE = {"reads": 3, "stay_min_us": 110 * MS, "stay_max_us": 440 * MS}


def row(seq, stream, kind, begin_ms, end_ms, value=None, attrs=None):
    stamp = EPOCH_US + begin_ms * MS, EPOCH_US + end_ms * MS
    text = None if attrs is None else json.dumps(attrs)
    return LandedReading(FileId(0, 1), "hall", "gw-1", 7, seq, stream, kind, "BA", *stamp, value, text, None)


READS = [row(n, "badge1/tags", "tag", at - 5, at + 5) for n, at in enumerate(SEEN_MS)]
ENTERS = [
    row(10, "badge1/presence", "tag", 1995, 2005, ENTER, FIRST),
    row(12, "badge1/presence", "tag", 4995, 5005, ENTER, SECOND),
]
LEAVES = [
    row(11, "badge1/presence", "absent", 2115, 2425, LEAVE, FIRST | GONE),
    row(13, "badge1/presence", "absent", 5055, 5365, LEAVE, SECOND | GONE | {"reads": 2, "stay_min_us": 50 * MS}),
]


def broken(visits, lives=ALWAYS, rotten=(), shut=(), seen=SIGHTINGS):
    landed, shut = Landed(READS + visits, []), {"badge1": shut}
    return list(broken_visits([("hall", "gw-1")], seen, SIGHTINGS, landed, {"badge1": lives}, rotten, shut))


def test_two_visits_told_whole_break_no_law():
    """
    seen      | | |                      | |
    enter     -                          -
    leave         -------                  -------
    """
    assert broken(ENTERS + LEAVES) == []


def test_an_end_of_a_visit_that_was_none_is_told():
    """A leave before the badge's last sighting, an enter while nobody saw it."""
    early = row(11, "badge1/presence", "absent", 2055, 2100, LEAVE, FIRST | GONE)
    assert "holds no last sighting before a pause" in broken([ENTERS[0], early, ENTERS[1], LEAVES[1]])[0]
    nobody = row(10, "badge1/presence", "tag", 1000, 1100, ENTER, FIRST)
    assert "holds no sighting" in broken([nobody])[0]


def test_what_a_reader_saw_while_its_port_was_shut_makes_no_pause():
    """The badge lay there from 2 to 5 s; nobody read the port from 2.2 to 4.9 s, so its first leave is none."""
    always = [Sighting(at * MS, "badge1", at, "BA") for at in range(2000, 5061, 60)]
    assert "holds no last sighting before a pause" in broken(ENTERS + LEAVES, shut=[[0, 1 << 62]], seen=always)[0]
    long = FIRST | {"reads": 5, "stay_min_us": 3050 * MS, "stay_max_us": 3370 * MS}
    leave = LEAVES[1]._replace(attrs=json.dumps(long))
    assert broken([ENTERS[0], leave], shut=[[0, 1 << 62]], seen=always) == []


def test_a_visit_that_a_well_agent_does_not_tell_is_missing():
    """Its leave and the next enter, as stamps leave no doubt of the pause; nothing is asked of an agent that was killed."""
    assert [one.split(" of ")[0] for one in broken([ENTERS[0]])] == [LEAVE, ENTER]
    assert broken([ENTERS[0]], lives=[[0, EPOCH_US + 3_000 * MS]]) == []
    assert broken([], rotten={("hall", "gw-1")}) == []
    for stream in ("badge1/presence", "badge1/tags"):  # nobody knows the stamps of refused reads
        assert broken([ENTERS[0], row(14, stream, "gap", 0, 9000, "4")]) == []


def test_a_port_that_is_shut_says_nothing_of_a_badge():
    """A pause is one if the port was open in it for long enough, and looked at to the end."""

    def is_missing(begin_ms, end_ms):
        return bool(broken([ENTERS[0]], shut=[[EPOCH_US + begin_ms * MS, EPOCH_US + end_ms * MS]]))

    assert not is_missing(2200, 4900)
    assert not is_missing(2900, 4700)
    assert is_missing(3100, 4900)
    assert is_missing(2200, 4500)
    assert is_missing(2200, 2600)


def test_a_visit_begins_and_ends_once_and_its_length_fits():
    """A number of two visits, a leave without its enter, and lengths and reads that the world does not know."""
    twice = [*ENTERS[:1], ENTERS[1]._replace(attrs=json.dumps(FIRST)), *LEAVES]
    assert any("was told 2 times" in one for one in broken(twice))
    assert "no enter before" in broken([*ENTERS[1:], *LEAVES])[0]
    for wrong in (
        {"stay_min_us": 130 * MS},
        {"stay_max_us": 400 * MS},
        {"stay_max_us": 100 * MS, "stay_min_us": 0},
        {"reads": 9},
        {"reads": 0},
    ):
        leave = LEAVES[0]._replace(attrs=json.dumps(FIRST | GONE | wrong))
        assert "does not fit to its enter" in broken([*ENTERS, leave, LEAVES[1]])[0]


def test_a_damaged_frame_that_noise_has_mended_counts_as_read():
    """A byte of noise stands in place of the one that was lost: the visit has a read more than was reported."""
    leaves = [LEAVES[0]._replace(attrs=json.dumps(FIRST | GONE | {"reads": 4})), LEAVES[1]]
    assert len(broken(ENTERS + leaves)) == 1
    hurt = [Sighting(2100 * MS, "badge1", 9, "BA")]
    landed, lives = Landed(READS + ENTERS + leaves, []), {"badge1": ALWAYS}
    assert list(broken_visits([("hall", "gw-1")], SIGHTINGS, SIGHTINGS, landed, lives, (), {}, hurt)) == []
