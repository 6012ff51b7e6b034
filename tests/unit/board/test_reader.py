"""One reader at a board: what it stamps, how it is started."""

import random

import pytest

from support.board.config import config
from support.files.reader_frames import published
from whenabouts_edge.board.config import checked
from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.settings import LineConfig, ReaderConfig
from whenabouts_edge.readers.host_session import HostSession
from whenabouts_edge.readers.port import Chunk
from whenabouts_edge.readers.session import BUFFERED_US, ReaderSession, widest
from whenabouts_hardware.readers.m6e_frames import START_CONTINUOUS, STOP, set_read_power, set_region

S = 1_000_000
KINDS = ["rdm6300", "id12la", "m6e", "pn532", "uhfreader18", "yrm100", "line"]


def frames_of(kind):
    """All published frames of this protocol, good and bad."""
    names = {"id12la": ("id12la", "rdm6300")}.get(kind, (kind,))
    return [frame.raw for frame in published() if frame.reader in names]


def test_the_parts_of_a_stamp_are_those_that_its_reader_is_configured_with():
    """A reader that another program drives may have kept its tags; of readers with one stream the longest parts count."""
    config = {"kind": "m6e", "stream": "s", "baud": 115200, "adapter_us": 5000, "latency_us": 70_000}
    session = ReaderSession(config, 0)
    frame_us = -(-session._decoder.FRAME_BYTES_MAX * 10_000_000 // 115200)
    assert session.parts_us == (70_000, 5000, frame_us)
    assert session.reach_us >= sum(session.parts_us)
    kept = ReaderSession({**config, "listen_only": True}, 0)
    assert kept.parts_us == (70_000 + BUFFERED_US, 5000, frame_us)
    assert kept.reach_us >= sum(kept.parts_us)
    assert ReaderSession({**config, "baud": 0}, 0).parts_us[2] == 0
    assert widest([("s", (1, 5)), ("t", (7, 7)), ("s", (2, 4))]) == {"s": (2, 5), "t": (7, 7)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_board_stamps_as_a_pc_does(kind):
    """Equal bytes at equal times through both give equal observations in equal windows, and equal counters."""
    chance = random.Random(kind)
    frames = frames_of(kind)
    assert frames
    line = LineConfig("auto", (), None, None, "Cel") if kind == "line" else None
    theirs = HostSession(
        ReaderConfig("r", kind, "", "s", 9600, 5000, 70_000, False, line=line), "a", "b", lambda ns: ns // 1000
    )
    config = {"kind": kind, "stream": "s", "baud": 9600, "adapter_us": 5000, "latency_us": 70_000, "unit": "Cel"}
    ours = ReaderSession(config, 0)
    if kind != "line":
        ours.unit = None
    clock, now, count = ClockSample(0, 0, 0, "bounded"), 10 * S, 0
    for _ in range(200):
        data = b"".join(chance.choice([*frames, b"\n", chance.randbytes(3)]) for _ in range(chance.randint(1, 4)))
        while data:
            before = now
            now += chance.randint(0, 300_000)
            for _ in range(3):
                assert ours.dialogue.due(now) == theirs.session.dialogue.due(now)
            cut = chance.randint(1, len(data))
            pending_readings = ours.took(data[:cut], before, now + 1)  # as the other rounds up
            expected = theirs.take(Chunk(data[:cut], before * 1000, now * 1000), clock)[0]
            data = data[cut:]
            if chance.random() < 0.3:
                now += chance.randint(0, 400_000)
                pending_readings += ours.silent(now)
                expected += theirs.silent(now, clock)[0]
                assert ours.clear_us == theirs.session.clear(now)
            observations = [
                (d.kind, d.key, d.value, d.unit, d.attrs, (d.earliest_us, d.latest_us)) for d in pending_readings
            ]
            assert observations == [
                (e.kind, e.key, e.value, e.unit, e.attrs, (e.earliest_us, e.latest_us)) for e in expected
            ]
            count += len(observations)
    assert count > 10
    assert ours.readings == count
    assert ours.counters == theirs.session.counters
    assert ours.dialogue.restarts == theirs.session.dialogue.restarts
    assert ours.complaint == theirs.session.complaint


def test_an_m6e_is_given_region_and_power_before_it_starts():
    """Behind STOP, without which it takes no command; a board that only listens writes nothing."""
    config = {"kind": "m6e", "stream": "s", "region": 8, "read_power_cdbm": 2000}
    reader, said = ReaderSession(config, 0), []
    while command := reader.dialogue.due(0):
        said.append(command)
    assert said[:3] == [STOP, set_region(8), set_read_power(2000)]
    assert said[-1] == START_CONTINUOUS
    assert ReaderSession(config | {"listen_only": True}, 0).dialogue.due(0) == b""


def test_an_unknown_reader_is_refused():
    """By name, with those that exist."""
    with pytest.raises(ValueError, match="found 'rfid', expected one of id12la"):
        ReaderSession({"kind": "rfid", "stream": "s"}, 0)


def test_a_configuration_has_the_keys_of_its_kind_of_reader():
    """Those of an M6e are taken there, and refused for another kind."""
    reader = {"port": "/dev/x", "kind": "m6e", "stream": "s", "region": 8}
    assert checked(config(readers=[reader]))["readers"] == [reader]
    with pytest.raises(ValueError, match="reader: found 'region', expected one of adapter_us, baud"):
        checked(config(readers=[reader | {"kind": "yrm100"}]))
