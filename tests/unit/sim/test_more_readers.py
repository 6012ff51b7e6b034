"""Simulated ID-12LA, PN532, UHFReader18 and YRM100 held against the agent's side of each: dialogue, decoder, stamper."""

from random import Random

import pytest

from whenabouts_edge.readers.stamp import Stamper, after_question
from whenabouts_hardware import READERS
from whenabouts_hardware.decoding import GAP_US
from whenabouts_hardware.readers.yrm100 import ROUNDS_MAX, inventory
from whenabouts_sim.readers.cards import Id12La, Pn532
from whenabouts_sim.readers.faults import NO_FAULTS, Faults
from whenabouts_sim.readers.uhf import UhfReader18, Yrm100
from whenabouts_sim.world.world import Sighting

STEP_US = 5_000  # how often the host looks
CORES = {"id12la": Id12La, "pn532": Pn532, "uhfreader18": UhfReader18, "yrm100": Yrm100}
KEYS = {"id12la": 5, "pn532": 7, "uhfreader18": 12, "yrm100": 12}  # bytes of a key
# What costs a frame that reports a tag. A flipped bit of a UHFReader18's answer is seen, as is one in the others.
HARMLESS = Faults(split=400, noise=0)
DAMAGING = Faults(split=100, flipped=150, head_lost=100, glued=100)


class Host:
    """A reader of a kind, driven as the agent drives it, in virtual time from 0; what came, with its stamp."""

    def __init__(self, kind, seed, faults=NO_FAULTS):
        self.kind, self.facts = kind, READERS[kind]
        self.core = CORES[kind]("one", seed, faults)
        self.core.power_on(0)
        self.dialogue = self.facts.dialogue()
        self.decoder = self.facts.new_decoder()
        self.stamper = Stamper(self.facts.baud, self.facts.latency_us, 0)
        self.now_us = self.fed = self.heard_us = 0
        self.stamped = []  # (key, earliest, latest)
        self.reported = []  # (sighting, damaged)

    def run(self, until_us):
        """Every STEP_US: read what has come, then write what is due."""
        while self.now_us < until_us:
            before_us, self.now_us = self.now_us, self.now_us + STEP_US
            pieces = self.core.due(self.now_us)
            self.reported += [(p.sighting, p.damaged) for p in pieces if p.sighting is not None]
            data = b"".join(p.data for p in pieces)
            if data:
                self.stamper.arrived(len(data), before_us, self.now_us)
                self.fed += len(data)
                self.heard_us = self.now_us
                self._heard(self.decoder.feed(data))
            elif self.now_us - self.heard_us > GAP_US:
                self._heard(self.decoder.flush())
            while raw := self.dialogue.due(self.now_us):
                self.core.feed(raw, self.now_us)
        self._heard(self.decoder.flush())

    def _heard(self, frames):
        for frame in frames:
            asked_us = self.dialogue.asked_us
            for sighting in self.facts.sightings(frame):
                window = self.stamper.window(frame.start, frame.end)
                self.stamped.append(
                    (sighting.key, *after_question(window, self.stamper.begun_by(frame.start), asked_us))
                )
            self.dialogue.heard(frame, self.now_us)
        self.stamper.forget(self.fed - len(self.decoder.pending))


def passing(kind, seed, count=60, apart_us=120_000):
    """Tags that come one after the other."""
    random = Random(seed)
    at_us, some = 1_000_000, []
    for number in range(count):
        at_us += random.randint(apart_us // 2, apart_us)
        some.append(Sighting(at_us, "one", number, random.randbytes(KEYS[kind]).hex().upper()))
    return some


@pytest.mark.parametrize("kind", sorted(CORES))
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("faults", [NO_FAULTS, HARMLESS, DAMAGING], ids=["", "harmless", "damaging"])
def test_what_a_reader_reports_is_found_with_the_true_time_in_its_stamp(kind, seed, faults):
    """Every undamaged report is decoded, nothing else is; the moment of each lies between its bounds."""
    host = Host(kind, seed, faults)
    tags = passing(kind, seed)
    host.core.load(tags, 0)
    host.run(tags[-1].true_us + 3_000_000)
    true_us = {tag.key: tag.true_us for tag in tags}
    intact = {sighting.key for sighting, damaged in host.reported if not damaged}
    decoded = {key for key, _, _ in host.stamped}
    assert intact <= decoded <= {sighting.key for sighting, _ in host.reported}
    assert len(host.reported) + host.core.unseen == len(tags)
    assert len(intact) > len(tags) // 8
    for key, earliest, latest in host.stamped:
        assert earliest <= true_us[key] <= latest
        assert latest - earliest <= host.facts.latency_us + 100_000


@pytest.mark.parametrize("kind", ["pn532", "yrm100"])
def test_a_reader_that_lost_power_is_started_again(kind):
    """
    t     0        3                7..8            15
          start    power lost       started again   tags are seen as before
    """
    host = Host(kind, 1)
    host.run(3_000_000)
    host.core.power_off(host.now_us)
    host.core.power_on(host.now_us)
    late = [Sighting(t.true_us + 9_000_000, "one", t.number, t.key) for t in passing(kind, 1, count=20)]
    host.core.load(late, host.now_us)
    host.run(late[-1].true_us + 1_000_000)
    assert host.dialogue.restarts >= 1
    assert len(host.stamped) >= 5


def test_a_reader_is_polled_no_faster_than_it_can_answer():
    """No command of ours meets a UHFReader18 that is busy."""
    host = Host("uhfreader18", 2)
    host.run(20_000_000)
    assert host.core.lost_commands == 0


def test_rounds_end_and_are_begun_again():
    """A YRM100 stops by itself; three seconds of silence later it searches again."""
    host = Host("yrm100", 3)
    host.run(100_000)
    host.core.feed(inventory(10), host.now_us)
    host.run(1_000_000)
    assert host.core.rounds_left == 0
    host.run(6_000_000)
    assert host.dialogue.restarts == 1
    assert 0 < host.core.rounds_left <= ROUNDS_MAX
