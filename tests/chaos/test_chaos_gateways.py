"""The laws of gateways together: what readers could tell, when agents were well, and that wrong clocks are told."""

from types import SimpleNamespace

from whenabouts_sim.chaos.checks.gateways.gateways import broken_gateways, lives_of, reported_by
from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.network.overheard import Overheard
from whenabouts_sim.chaos.parts.serial_line import Happened
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.world.clocks import EPOCH_US

DRAWN = next(one for one in map(draw, range(100)) if not one.gateways[0].group).only([])
LIFE = [EPOCH_US, 1 << 62]


def gateways(lost=(), wrong=(), what="opened"):
    """Those of the schedule. lost: sightings that their lines lost; what: happened to these at the begin."""
    return {
        f"{plan.site}/{plan.name}": SimpleNamespace(
            plan=plan, lives=[list(LIFE)], wrong_times=list(wrong), machine=SimpleNamespace(runs=0),
            lines={
                name: SimpleNamespace(
                    lost={one for one in lost if one.reader == name}, damaged=set(), history=[Happened(EPOCH_US, what)]
                )
                for name, _ in plan.readers
            },
        )
        for plan in DRAWN.gateways
    }  # fmt: skip


def broken(some):
    end_us = EPOCH_US + 60_000_000
    landed, heard = Landed([], []), Overheard(lambda: 0)
    return {one.law for one in broken_gateways(some, DRAWN, landed, heard, set(), end_us)}


def test_what_a_line_lost_was_not_reported():
    lost = DRAWN.sightings[:3]
    assert reported_by(gateways(lost), DRAWN.sightings) == list(DRAWN.sightings[3:])


def test_each_reader_has_the_lives_of_its_agent():
    assert lives_of(gateways(), DRAWN) == {name: [LIFE] for one in DRAWN.gateways for name, _ in one.readers}


def test_wrong_times_and_lost_ports_are_told():
    assert broken(gateways()) == set()
    assert broken(gateways(wrong=["..."])) == {"utc"}
    assert broken(gateways(what="unplugged")) == {"ports"}
