"""`whenabouts-sim reader` and `whenabouts-sim site` as a person runs them."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
import serial

from whenabouts_hardware import READERS, decoder
from whenabouts_hardware.readers.line_values import observed
from whenabouts_sim.readers.faults import NO_FAULTS
from whenabouts_sim.readers.line import LineSensor
from whenabouts_sim.readers.reader_run import KINDS, FaultOptions, Passage, ReaderRun
from whenabouts_sim.stack.site_run import SiteRun
from whenabouts_sim.stack.sources import SimulatedReaders
from whenabouts_sim.stack.stack import Stack
from whenabouts_sim.world.clocks import EPOCH_US, SimClock
from whenabouts_sim.world.emitted import read_emitted
from whenabouts_sim.world.world import Sighting, World

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
LIMIT_S = 60.0


@contextmanager
def running(*arguments):
    """The command as a process that is interrupted at the end, if it has not ended by then."""
    command = [sys.executable, "-m", "whenabouts_sim.cli", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(LIMIT_S)
        process.stdout.close()
        process.stderr.close()


def test_a_reader_prints_its_port_and_reports_with_the_faults_asked_for(tmp_path):
    """The port delivers the sightings of the truth file, less the frames that the file marks as damaged."""
    truth = tmp_path / "truth.jsonl"
    options = ("--seed", "3", "--rate", "10", "--flipped", "300", "--truth", str(truth))
    with running("reader", "rdm6300", *options) as process:
        path = process.stdout.readline().strip()
        decode, keys = READERS["rdm6300"].new_decoder(), []
        with serial.Serial(path, 9600, timeout=0.1) as port:
            until_s = time.monotonic() + LIMIT_S
            while len(keys) < 20 and time.monotonic() < until_s:
                for frame in decode.feed(port.read(64)):
                    keys += [s.key for s in READERS["rdm6300"].sightings(frame)]
        process.send_signal(signal.SIGINT)
        figures = json.loads(process.stderr.read().strip().splitlines()[-1])
        assert process.wait(LIMIT_S) == 0
    entries = read_emitted([truth])
    assert figures["reported"] == len(entries)
    assert figures["damaged"] == sum(bool(e.damaged) for e in entries) > 0
    whole = [entry.key for entry in entries if not entry.damaged]
    assert len(keys) >= 20
    assert [key for key in keys if key in whole] == whole[: len(keys)]
    assert not Path(path).exists()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_runs_until_its_time_is_over(tmp_path, kind):
    """The port appears, and is removed at the end; its tags come in order, at intervals that the reader can read."""
    port, seen = tmp_path / kind, []
    run = ReaderRun(kind, port, 1, 50.0, 3, NO_FAULTS, FaultOptions(unplug_s=0.2), None)
    run.run(0.5, lambda: seen.append(port.exists()), seen.append)
    assert seen == [True, "unplugged"]
    assert not port.exists()
    passing = Passage(kind, KINDS[kind], 1, 50.0, 3, 0).until(10_000_000)
    assert [s.number for s in passing] == list(range(len(passing)))
    assert len({s.key for s in passing}) <= 3
    assert all(b.true_us - a.true_us >= KINDS[kind].spacing_us for a, b in pairwise(passing))


def test_brown_out_of_a_reader_that_has_none_is_refused(tmp_path):
    """Only an M6e Nano boots by itself."""
    with pytest.raises(ValueError, match="found reader rdm6300, expected m6e"):
        ReaderRun("rdm6300", tmp_path / "x", 1, 1.0, 1, NO_FAULTS, FaultOptions(brown_out_s=1), None)


def test_a_site_publishes_to_a_given_broker_and_writes_the_truth(tmp_path):
    """Every landed reading's stamp holds a true sighting of its tag; Ctrl-C ends every process."""
    keep = tmp_path / "site"
    with Stack(tmp_path / "cloud") as stack:
        stack.broker.start()
        stack.start_ingest()
        broker = f"127.0.0.1:{stack.broker.port}"
        with running("site", "--seed", "7", "--keep", str(keep), "--broker", broker) as process:
            stack.wait("readings to land", lambda: stack.landed_count() >= 5, LIMIT_S)
            children = psutil.Process(process.pid).children(recursive=True)
            assert len(children) == 3  # one agent for each gateway
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT_S) == 130
            _, alive = psutil.wait_procs(children, timeout=LIMIT_S)
            assert not alive
        landed = stack.landed()
    truth = {}
    for entry in read_emitted((keep / "truth").glob("*.jsonl")):
        truth.setdefault(entry.key, []).append(entry.true_us)
    assert len(landed) >= 5
    for row in landed:
        assert any(row.t_min <= true_us <= row.t_max for true_us in truth[row.key])


def test_a_site_with_a_broker_of_its_own_ends_after_its_time(tmp_path):
    """Worlds follow each other without a gap in the numbers; the output names the broker and the truth file."""
    said = []
    run = SiteRun(tmp_path, 7, None, said.append)
    assert run.run(4.0) > 0
    assert "(own)" in said[0]
    assert "truth" in said[-1]
    readers = SimulatedReaders(World.make(1, 60, 10), SimClock(EPOCH_US, time.monotonic_ns()), tmp_path / "ports")
    first = [s for s in readers.world.sightings if s.reader == "dock-1"]
    end_us = readers.end_us
    readers.more(World.make(2, 60, 10))
    more = [s for s in readers.world.sightings if s.reader == "dock-1"]
    assert [s.number for s in (*first, *more)] == list(range(len(first) + len(more)))
    assert min(s.true_us for s in more) >= end_us
    assert readers.end_us == end_us + 60_000_000


def test_a_simulated_sensor_sends_lines_that_are_read():
    """Two measurements as JSON, with the probe as key."""
    sensor = LineSensor("s", 1)
    sensor.power_on(0)
    sensor.load([Sighting(10, "s", 0, "0A"), Sighting(200_000, "s", 1, "0B")], 0)
    data = b"".join(piece.data for piece in sensor.due(1_000_000))
    measures = [observed(frame, "probe", "temperature") for frame in decoder("line").feed(data)]
    assert [one.key for one in measures] == ["0A", "0B"]
    assert all(18 <= one.value <= 24 for one in measures)
