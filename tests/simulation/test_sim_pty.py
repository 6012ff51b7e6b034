"""Simulated readers on pseudo-terminals, in real time, with plain pyserial at the other end."""

import os
import threading
import time
from dataclasses import replace
from itertools import pairwise

import pytest
import serial

from support.waiting import until
from whenabouts_hardware import READERS, decoder
from whenabouts_hardware.readers.m6e_frames import START_CONTINUOUS, VERSION
from whenabouts_sim.readers.faults import Faults
from whenabouts_sim.readers.m6e import M6eNano
from whenabouts_sim.readers.pty_link import HOST_BUFFER_BYTES, PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.world.clocks import EPOCH_US, SimClock
from whenabouts_sim.world.emitted import read_emitted
from whenabouts_sim.world.world import DOCK, GATE, SECOND_US, World

SPEED = 5
REAL_S = 2


class Reading:
    """A thread that reads a serial port into bytes until closed, as a host would."""

    def __init__(self, path, baud):
        self.port = serial.Serial(str(path), baud, timeout=0.05, exclusive=True)
        self.data = bytearray()
        self.error = None
        self._open = True
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while self._open:
            try:
                self.data += self.port.read(max(1, self.port.in_waiting))
            except (serial.SerialException, OSError) as error:
                self.error = error
                return

    def wait_for(self, condition, what, timeout_s=10.0):
        until(condition, lambda: f"{what}, have {bytes(self.data)[-80:]!r}", timeout_s, every_s=0.005)

    def close(self):
        self._open = False
        self._thread.join()
        self.port.close()


def keys(data, kind):
    decode = decoder(kind)
    return [seen.key for frame in decode.feed(bytes(data)) + decode.flush() for seen in READERS[kind].sightings(frame)]


def sim_clock(speed=SPEED):
    return SimClock(EPOCH_US, time.monotonic_ns(), 1000 * speed)


def now_us(clock):
    return clock.true_us(time.monotonic_ns())


def run_world(link, clock, world, host):
    """Runs a world that begins shortly after now and waits until all of it is on the record."""
    placed = world.starting_at(now_us(clock) + SECOND_US // 2)
    mine = placed.of_reader(link.core.name)
    link.go(placed.sightings)
    host.wait_for(lambda: len(link.emitted) + link.unseen == len(mine), f"{len(mine)} emissions")
    return mine


def sound(link):
    return [entry.key for entry in link.emitted if not entry.damaged]


def is_within(wanted, items):
    """True if `wanted` is a subsequence of `items`."""
    rest = iter(items)
    return all(key in rest for key in wanted)


def test_a_portal_serves_a_plain_serial_host_in_real_time(tmp_path):
    """Two seconds at speed five: started by the host, every sighting arrives, its stamp within the stated latency."""
    clock = sim_clock()
    world = World.make(11, REAL_S * SPEED, 40)
    with PtyLink(M6eNano(DOCK.name, 11), clock, tmp_path / "dock", tmp_path / "dock.log") as link:
        host = Reading(tmp_path / "dock", 115_200)
        host.port.write(VERSION + START_CONTINUOUS)
        assert link.started_by_host.wait(60)
        mine = run_world(link, clock, world, host)
        host.wait_for(lambda: len(keys(host.data, "m6e")) == len(sound(link)), "every undamaged frame")
        host.close()
    assert keys(host.data, "m6e") == sound(link)
    assert [(e.number, e.key, e.true_us) for e in link.emitted] == [(s.number, s.key, s.true_us) for s in mine]
    assert {entry.damaged for entry in link.emitted} <= {"", "late"}
    assert len(sound(link)) > len(mine) // 2, f"late by {link.late_us_max} us"
    assert all(e.true_us < e.last_byte_us <= e.true_us + 50_000 for e in link.emitted if not e.damaged)
    assert all(a.last_byte_us < b.last_byte_us for a, b in pairwise(link.emitted))
    assert read_emitted([tmp_path / "dock.log"]) == link.emitted


def test_a_badge_reader_sends_nothing_before_go(tmp_path):
    """The world begins when asked; then every badge arrives as one frame."""
    clock = sim_clock()
    world = World.make(12, REAL_S * SPEED, 0, people=6)
    with PtyLink(Rdm6300(GATE.name, 12), clock, tmp_path / "gate") as link:
        host = Reading(tmp_path / "gate", 9600)
        assert host.data == b""
        mine = run_world(link, clock, world, host)
        host.wait_for(lambda: len(host.data) == 14 * len(sound(link)), "every undamaged frame")
        host.close()
    assert keys(host.data, "rdm6300") == sound(link)
    assert len(mine) == len(link.emitted)


def test_faults_are_on_the_record_and_take_nothing_else(tmp_path):
    """Frames that the log marks as undamaged arrive; damage is named by its kind."""
    clock = sim_clock(speed=20)
    faults = Faults(split=200, noise=200, flipped=100, head_lost=100, glued=100)
    world = World.make(13, 20, 0, people=20)
    with PtyLink(Rdm6300(GATE.name, 13, faults), clock, tmp_path / "gate") as link:
        host = Reading(tmp_path / "gate", 9600)
        run_world(link, clock, world, host)
        # In order and one at a time: a badge that repeats is complete only after its last repeat.
        host.wait_for(lambda: is_within(sound(link), keys(host.data, "rdm6300")), "every undamaged frame")
        host.close()
    assert {"flipped", "head_lost", "glued"} <= {entry.damaged for entry in link.emitted}


def test_a_host_may_close_the_port_and_open_it_again(tmp_path):
    """The line neither hangs up nor echoes while nobody has it open; streaming goes on."""
    clock = sim_clock()
    with PtyLink(M6eNano(DOCK.name, 1), clock, tmp_path / "dock") as link:
        first = Reading(tmp_path / "dock", 115_200)
        first.port.write(START_CONTINUOUS)
        first.wait_for(lambda: len(first.data) > 20, "acknowledgement and keep-alives")
        first.close()
        second = Reading(tmp_path / "dock", 115_200)
        second.wait_for(lambda: len(second.data) > 14, "keep-alives without a new start")
        second.close()
        assert second.error is None
    decode = decoder("m6e")
    assert {frame.kind for frame in decode.feed(bytes(second.data))} == {"keepalive"}
    assert link.core.bad_commands == 0


def test_unplugging_ends_the_hosts_port_and_plugging_in_brings_the_same_path_back(tmp_path):
    """The host gets an error, the path is gone; afterwards a reader in power-on state answers there."""
    clock = sim_clock()
    with PtyLink(M6eNano(DOCK.name, 1), clock, tmp_path / "dock") as link:
        host = Reading(tmp_path / "dock", 115_200)
        host.port.write(START_CONTINUOUS)
        assert link.started_by_host.wait(60)
        link.unplug()
        host.wait_for(lambda: host.error is not None, "an error on the host's side")
        host.close()
        assert not os.path.lexists(tmp_path / "dock")
        link.plug()
        assert not link.started_by_host.is_set()
        again = Reading(tmp_path / "dock", 115_200)
        again.port.write(VERSION)
        again.wait_for(lambda: len(again.data) == 27, "the answer to version")
        again.close()


def test_a_brown_out_shows_as_a_boot_message(tmp_path):
    """In mid-stream, and only for a reader that can report it."""
    clock = sim_clock()
    with PtyLink(M6eNano(DOCK.name, 1), clock, tmp_path / "dock") as link:
        host = Reading(tmp_path / "dock", 115_200)
        host.port.write(START_CONTINUOUS)
        assert link.started_by_host.wait(60)
        link.brown_out()
        host.wait_for(lambda: any(f.kind == "boot" for f in decoder("m6e").feed(bytes(host.data))), "boot message")
        host.close()
    with PtyLink(Rdm6300(GATE.name, 1), clock, tmp_path / "gate") as link, pytest.raises(TypeError, match="M6eNano"):
        link.brown_out()


class Unpromised(Rdm6300):
    """A badge reader without a limit on its latency: however busy the machine is, no frame is withheld."""

    def due(self, now_us):
        return [replace(piece, latest_us=None) for piece in super().due(now_us)]


def test_frames_for_a_host_that_does_not_read_are_dropped_and_counted(tmp_path):
    """
    host       opens, then reads nothing ........................ reads
    buffer     fills up to 4095 bytes | everything after is lost
    """
    clock = sim_clock(speed=50)
    world = World.make(14, 120, 0, people=100)
    with PtyLink(Unpromised(GATE.name, 14), clock, tmp_path / "gate") as link:
        port = serial.Serial(str(tmp_path / "gate"), 9600, timeout=0.2)
        placed = world.starting_at(now_us(clock) + 20 * SECOND_US)
        link.go(placed.sightings)
        frames = len(placed.of_reader(GATE.name))
        until(lambda: len(link.emitted) + link.unseen >= frames, "the last frame", 60)
        data = port.read(10 * HOST_BUFFER_BYTES)
        port.close()
    assert link.overruns == sum(entry.damaged == "overrun" for entry in link.emitted) > 0
    # A busy kernel counts bytes as unread only once it has passed them on; some frames more find room meanwhile.
    assert HOST_BUFFER_BYTES - 14 < len(data) < 2 * HOST_BUFFER_BYTES
    assert keys(data, "rdm6300") == sound(link)
