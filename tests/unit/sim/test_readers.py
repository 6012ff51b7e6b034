"""Simulated reader firmware in virtual time: bytes from the line decode to the sightings, within the stated latency."""

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_hardware import READERS, decoder
from whenabouts_hardware.readers.m6e_frames import READ_FILTER_OFF, START_ACK, START_CONTINUOUS, STOP, VERSION, command
from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.readers.faults import NO_FAULTS, Faults
from whenabouts_sim.readers.m6e import M6eNano
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.readers.wire import ADAPTER_US_MAX, Line, Piece, wire_us
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import DOCK, GATE, SECOND_US, Sighting, World

ALL_FAULTS = Faults(split=150, noise=150, flipped=100, head_lost=100, glued=100, mid_frame_start=True)


@dataclass
class Host:
    """Runs a core from event to event and keeps what came, with the decoder of its kind."""

    core: ReaderCore
    kind: str
    now_us: int = EPOCH_US
    pieces: list[Piece] = field(default_factory=list)

    def run(self, until_us: int) -> None:
        while (next_us := self.core.next_us()) is not None and next_us <= until_us:
            self.now_us = max(self.now_us, next_us)
            self.pieces += self.core.due(self.now_us)
        self.now_us = until_us
        self.pieces += self.core.due(until_us)

    @property
    def data(self) -> bytes:
        return b"".join(piece.data for piece in self.pieces)

    def frames(self) -> list:
        decoding = decoder(self.kind)
        return decoding.feed(self.data) + decoding.flush()

    def keys(self) -> list[str]:
        return [seen.key for frame in self.frames() for seen in READERS[self.kind].sightings(frame)]


def portal(world: World, faults: Faults = NO_FAULTS, started: bool = True) -> Host:
    """An M6e Nano that is powered and, if asked, started one second before the world begins."""
    core = M6eNano(DOCK.name, world.seed, faults)
    host = Host(core, "m6e", world.epoch_us - SECOND_US)
    core.power_on(host.now_us)
    core.load(world.of_reader(DOCK.name), host.now_us)
    if started:
        core.feed(START_CONTINUOUS, host.now_us)
    return host


def end_us(world: World) -> int:
    return world.epoch_us + world.duration_us + SECOND_US


def made(host: Host) -> list[tuple[Sighting, str]]:
    return [(piece.sighting, piece.damaged) for piece in host.pieces if piece.sighting is not None]


@pytest.mark.parametrize("seed", range(5))
def test_a_started_portal_reports_every_sighting_once_and_in_order(seed):
    """The decoder finds exactly the keys that passed, and every frame is good."""
    world = World.make(seed, 20, 60)
    host = portal(world)
    host.run(end_us(world))
    assert host.keys() == [sighting.key for sighting in world.of_reader(DOCK.name)]
    assert all(frame.ok for frame in host.frames())
    assert host.core.unseen == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_badge_reader_reports_every_sighting_once_and_in_order(seed):
    """One 14-byte frame per sighting, nothing else on the line."""
    world = World.make(seed, 60, 0, people=12)
    host = Host(Rdm6300(GATE.name, seed), "rdm6300", world.epoch_us - 1)
    host.core.power_on(host.now_us)
    host.core.load(world.of_reader(GATE.name), host.now_us)
    host.run(end_us(world))
    assert host.keys() == [sighting.key for sighting in world.of_reader(GATE.name)]
    assert len(host.data) == 14 * len(host.keys())


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 10**6), faults=st.sampled_from([NO_FAULTS, Faults(split=500, noise=500), ALL_FAULTS]))
def test_the_first_byte_leaves_within_the_stated_latency(seed, faults):
    """
    air      x
    line     ....|<- frame, 86.8 us a byte ->|
             ^ at most 30 ms after x; the last byte is readable when its last bit has passed
    """
    world = World.make(seed, 10, 40)
    host = portal(world, faults)
    host.run(end_us(world))
    for piece in host.pieces:
        if piece.sighting is not None:
            assert piece.sighting.true_us < piece.ready_us <= piece.latest_us - ADAPTER_US_MAX
    for before, after in pairwise(host.pieces):
        assert after.ready_us >= before.ready_us + wire_us(len(after.data), 115_200)


@pytest.mark.parametrize("seed", range(5))
def test_a_record_dates_itself_from_the_first_byte_of_the_last_keep_alive(seed):
    """
    line   KA........ record(ts) ....... KA
           |<-- ts ms, rounded down -->x
    """
    world = World.make(seed, 20, 60)
    host = portal(world)
    host.run(end_us(world))
    lines, anchor_us, dated, anchors = decoder("m6e"), None, 0, []
    for piece in host.pieces:
        for frame in lines.feed(piece.data):
            if frame.kind == "keepalive":
                anchor_us = piece.ready_us - wire_us(len(frame.raw), 115_200)
                anchors.append(anchor_us)
            for seen in READERS["m6e"].sightings(frame):
                assert 0 <= piece.sighting.true_us - (anchor_us + 1000 * seen.ts_ms) < 1000
                dated += 1
    assert dated == len(world.of_reader(DOCK.name)) > 0
    cycles = [b - a for a, b in pairwise(anchors)]
    assert min(cycles) == SECOND_US
    assert max(cycles) < SECOND_US + 60_000


def test_nothing_is_sent_before_the_host_starts_the_portal():
    """Sightings until then are unseen, and are counted."""
    world = World.make(1, 10, 20)
    host = portal(world, started=False)
    host.run(world.epoch_us + 5 * SECOND_US)
    assert host.data == b""
    host.core.feed(START_CONTINUOUS, host.now_us)
    host.run(end_us(world))
    assert host.data.startswith(START_ACK)
    late = [sighting for sighting in world.of_reader(DOCK.name) if sighting.true_us > world.epoch_us + 5_010_000]
    assert host.keys()[-len(late) :] == [sighting.key for sighting in late]
    assert host.core.unseen + len(host.keys()) == len(world.of_reader(DOCK.name))


def test_commands_are_answered_in_order_and_rubbish_is_counted():
    """Version, settings, an unknown opcode; a wake-up preamble, a half frame and a wrong checksum in between."""
    core = M6eNano("x", 1)
    host = Host(core, "m6e")
    core.power_on(EPOCH_US)
    wrong = VERSION[:-1] + b"\x00"
    sent = b"\xff" * 7 + VERSION + READ_FILTER_OFF + b"zz" + wrong + command(0x77) + START_CONTINUOUS[:5]
    for at in range(len(sent)):
        core.feed(sent[at : at + 1], EPOCH_US + at)
    host.run(EPOCH_US + SECOND_US)
    answers = [(frame.fields["op"], frame.fields["status"]) for frame in host.frames()]
    assert answers == [(0x03, 0), (0x9A, 0), (0x77, 0x0101)]
    assert core.bad_commands == 1
    assert not core.streaming
    core.feed(START_CONTINUOUS[5:], host.now_us)
    assert core.streaming


def test_stop_ends_the_stream_after_what_is_on_its_way():
    """The answer to STOP is the last frame; later sightings are unseen."""
    world = World.make(3, 10, 30)
    host = portal(world)
    host.run(world.epoch_us + 4 * SECOND_US)
    host.core.feed(STOP, host.now_us)
    host.run(end_us(world))
    assert host.frames()[-1].kind == "stop"
    assert host.core.unseen > 0
    assert len(host.keys()) + host.core.unseen == len(world.of_reader(DOCK.name))


def test_a_brown_out_boots_the_module_and_ends_the_stream():
    """A boot message in mid-stream, then silence until the host starts it again."""
    world = World.make(3, 10, 30)
    host = portal(world)
    host.run(world.epoch_us + 4 * SECOND_US)
    host.core.brown_out(host.now_us)
    host.run(world.epoch_us + 6 * SECOND_US)
    assert host.frames()[-1].kind == "boot"
    host.core.feed(START_CONTINUOUS, host.now_us)
    host.run(end_us(world))
    assert host.keys()[-1] == world.of_reader(DOCK.name)[-1].key
    assert len(host.keys()) + host.core.unseen == len(world.of_reader(DOCK.name))


@pytest.mark.parametrize("seed", range(12))
def test_every_undamaged_frame_survives_damaged_neighbours(seed):
    """Faults take what they name and nothing else; every kind of damage occurs."""
    world = World.make(seed, 120, 400)
    host = portal(world, ALL_FAULTS)
    host.run(end_us(world))
    sound = [sighting.key for sighting, damaged in made(host) if not damaged]
    assert host.keys() == sound
    assert {damaged for _, damaged in made(host)} == {"", "flipped", "head_lost", "glued"}
    assert made(host)[0][1] == "head_lost"


def test_badge_frames_survive_damaged_neighbours_too():
    """A flip of one bit can only be harmless in a badge frame where it changes the case of a digit."""
    world = World.make(1, 120, 0, people=60)
    host = Host(Rdm6300(GATE.name, 1, ALL_FAULTS), "rdm6300", world.epoch_us - 1)
    host.core.power_on(host.now_us)
    host.core.load(world.of_reader(GATE.name), host.now_us)
    host.run(end_us(world))
    sound = [sighting.key for sighting, damaged in made(host) if not damaged]
    survivors = host.keys()
    harmless = len(survivors) - len(sound)
    remaining = iter(survivors)
    assert all(key in remaining for key in sound)
    assert 0 <= harmless <= sum(damaged == "flipped" for _, damaged in made(host))
    assert len(sound) < len(made(host))


def test_same_calls_same_bytes_and_other_seed_other_latencies():
    """Random numbers depend only on the seed, the reader's name and the sighting's number."""
    worlds = [World.make(1, 10, 20)] * 2
    hosts = [portal(world, ALL_FAULTS) for world in worlds]
    coarse = hosts[1]
    hosts[0].run(end_us(worlds[0]))
    while coarse.now_us < end_us(worlds[1]):
        coarse.now_us += 777_777
        coarse.pieces += coarse.core.due(coarse.now_us)
    assert coarse.pieces[: len(hosts[0].pieces)] == hosts[0].pieces
    other = Host(M6eNano(DOCK.name, 2, ALL_FAULTS), "m6e", worlds[0].epoch_us - SECOND_US)
    other.core.power_on(other.now_us)
    other.core.load(worlds[0].of_reader(DOCK.name), other.now_us)
    other.core.feed(START_CONTINUOUS, other.now_us)
    other.run(end_us(worlds[0]))
    assert other.pieces != hosts[0].pieces


def test_sightings_that_are_past_when_loaded_are_not_seen():
    """A reader never reports late what happened before it knew."""
    world = World.make(1, 20, 0, people=5)
    core = Rdm6300(GATE.name, 1)
    core.power_on(world.epoch_us)
    half_us = world.epoch_us + world.duration_us // 2
    core.load(world.of_reader(GATE.name), half_us)
    host = Host(core, "rdm6300", half_us)
    host.run(end_us(world))
    assert host.keys() == [sighting.key for sighting in world.of_reader(GATE.name) if sighting.true_us > half_us]
    assert core.unseen == len(world.of_reader(GATE.name)) - len(host.keys())


def test_a_line_gives_bytes_when_their_last_bit_has_passed():
    """
    9600 baud  0        14 584 us        29 168 us
               | frame of 14 | frame of 14 |     the second waited for the first
    """
    line = Line(9600)
    first = line.send(b"x" * 14, 0)
    second = line.send(b"y" * 14, 5_000, cuts=((4, 100),))
    assert [piece.ready_us for piece in first] == [14_584]
    assert [(piece.ready_us, len(piece.data), piece.ends_frame) for piece in second] == [
        (14_584 + 4_167, 4, False),
        (14_584 + 4_167 + 100 + 10_417, 10, True),
    ]


def test_fault_rates_above_certainty_are_refused():
    """More than a thousand frames in a thousand cannot be hit."""
    with pytest.raises(ValueError, match="add up to 1001"):
        Faults(split=500, noise=501)
