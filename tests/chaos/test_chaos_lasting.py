"""The law of what a group's watermarks say of states: the last that was published has lasted until then."""

import json

import pytest

from support.landed_readings import landed
from whenabouts_protocol import Heartbeat
from whenabouts_sim.chaos.checks.gateways.lasting import broken_lasting
from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.network.overheard import Said
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import SECOND_US, Sighting

READS_S = (5.0, 5.1, 5.2, 9.0)  # of its badge
UNKNOWN = object()


def at(moment_s):
    return EPOCH_US + int(moment_s * SECOND_US)


def state(seq, number, begin_s, is_there, **attrs):
    """A state, or a clock heartbeat if it is not known whether the badge is there."""
    said = {"$group": "staff", "$process": 0, "$view": 1, **attrs}
    if is_there is not UNKNOWN:
        said |= {"$heartbeat": True} if is_there is None else {"present": is_there}
    stamp = at(begin_s) - 10, at(begin_s) + 10
    return landed("gw-1/state", seq, *stamp, kind="state", vclock=[number], attrs=json.dumps(said))


def broken(until_s, last, *readings, missed=()):
    """What the law says of a heartbeat with this watermark and these numbers."""
    sightings = [Sighting(int(one * SECOND_US), "badge1", number, "BA00000001") for number, one in enumerate(READS_S)]
    reads = [landed("badge1/tags", 100 + n, at(one) - 5, at(one) + 5) for n, one in enumerate(READS_S)]
    beat = Heartbeat("hall", "gw-1", 7, at(until_s), {7: (0, last)}, "bounded", 1000)
    said = [Said(beat, {}, at(20))]
    hidden = [one for one in sightings if one.true_us / SECOND_US in missed]
    seen = [one for one in sightings if one not in hidden]
    return list(broken_lasting([("hall", "gw-1")], seen, hidden, Landed([*reads, *readings], []), said))


ABSENT, THERE, GONE = state(0, 0, 1, False), state(1, 1, 5, True), state(2, 2, 5.5, False)


@pytest.mark.parametrize(
    ("until_s", "last", "is_broken"),
    [(4.9, 0, 0), (5.1, 0, 1), (5.1, 1, 0), (5.5, 1, 0), (6, 1, 1), (8.9, 2, 0), (9.1, 2, 1)],
)
def test_a_watermark_waits_for_the_state_that_follows(until_s, last, is_broken):
    found = broken(until_s, last, ABSENT, THERE, GONE)
    assert len(found) == is_broken
    assert all("lasted until" in text and "its badge had" in text for text in found)


def test_a_state_that_was_refused_is_told_by_a_gap_or_by_the_next_number():
    gap = landed("gw-1/state", 1, at(5), at(5.1), kind="gap", value="1")
    assert len(broken(5.5, 5, ABSENT)) == 1
    assert broken(5.5, 5, ABSENT, gap) == []
    assert broken(5.5, 5, ABSENT, state(1, 1, 5.3, None)) == []
    assert len(broken(5.5, 5, ABSENT, state(1, 0, 5.3, None))) == 1


def test_nothing_is_said_of_a_state_that_an_earlier_start_has_found():
    assert broken(6, 5, ABSENT, state(1, 1, 5, True, **{"$earlier": 6})) == []


def test_no_state_says_that_a_badge_is_away_that_a_closed_port_hid():
    assert broken(8.9, 2, ABSENT, THERE, GONE, missed=[9.0]) == []
    assert len(broken(9.1, 2, ABSENT, THERE, GONE, missed=[9.0])) == 1
    unknown = state(3, 3, 8, UNKNOWN)
    assert broken(20, 3, ABSENT, THERE, GONE, unknown, missed=[9.0]) == []
    assert len(broken(20, 4, ABSENT, THERE, GONE, unknown, state(4, 4, 9.2, False), missed=[9.0])) == 1
    assert broken(20, 4, ABSENT, THERE, GONE, unknown, state(4, 4, 9.5, False), missed=[9.0]) == []
