"""The demonstration as a person runs it, and its end when it is interrupted."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from support.cloud.demo import ENVIRONMENT, GUARANTEES, check_replayed, demo_command, run_demo
from support.files.own_captures import FOLDER
from whenabouts_hardware import READERS
from whenabouts_sim.cli import main
from whenabouts_sim.stack.sources import SimulatedReaders
from whenabouts_sim.world.clocks import EPOCH_US, SimClock
from whenabouts_sim.world.world import World


@pytest.mark.timeout(700)
def test_the_demonstration_keeps_every_guarantee_and_surpasses_the_plain_join():
    """Nothing lost or repeated, every stamp right, all rules exact, and fewer results are false than by plain timestamps."""
    done = run_demo("--seed", "7", "--json")
    summary = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert summary["made"] > 150
    assert [summary[guarantee] for guarantee in GUARANTEES] == [0] * len(GUARANTEES)
    whole = not summary["damaged"]  # a machine that is too slow withholds frames: there is less to find then
    assert summary["expected_pairs"] > (50 if whole else 10)
    assert summary["job"]["false"] <= summary["naive"]["false"] - whole
    thefts = summary["thefts"]
    assert [thefts[guarantee] for guarantee in ("unexpected", "absent", "matches_repeated")] == [0, 0, 0]
    assert thefts["job"]["false"] == 0
    assert thefts["job"]["true_reported"] >= (4 if whole else 1)
    assert thefts["by_arrival"]["false"] >= whole  # paid for while the till's uplink was cut
    lies = summary["lies"]
    assert lies["attempts"] == lies["denied"] > 100
    assert lies["let_through"] == lies["overheard"] == 0
    staff = summary["staff"]
    assert [staff[guarantee] for guarantee in ("violations", "repeated", "absent")] == [0, 0, 0]
    assert staff["job"]["false"] == 0
    assert staff["job"]["true_reported"] >= 1 + whole
    assert staff["by_stamp"]["false"] == len(staff["misjudged"])
    assert staff["misjudged"] or summary["damaged"]  # clocks 165 ms apart; a lost last read makes a miss wider


@pytest.mark.deep
@pytest.mark.timeout(700)
def test_the_office_reports_when_all_were_there_and_nothing_else():
    """Three agents in one group, the rule in Spark: every certain meeting once, and no miss."""
    command = [sys.executable, "-m", "whenabouts_sim.cli", "office", "--seed", "5", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    summary = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [summary[guarantee] for guarantee in ("violations", "repeated", "absent")] == [0, 0, 0]
    assert summary["job"]["false"] == 0
    assert summary["job"]["true_reported"] >= 1


@pytest.mark.deep
@pytest.mark.timeout(500)
def test_a_capture_of_our_own_is_replayed_through_the_whole_system(tmp_path):
    """`whenabouts-edge capture` records a simulated reader; the demonstration replays it and finds its tags again."""
    capture = tmp_path / "dock.jsonl"
    seen = _capture_a_reader(tmp_path, capture)
    done = run_demo("--trace", str(capture), "--seed", "7", "--json")
    summary = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert summary["made"] == 3 * seen  # played to dock, gate and door
    assert [summary[guarantee] for guarantee in GUARANTEES] == [0] * len(GUARANTEES)
    assert summary["expected_pairs"] >= seen  # each tag is at dock and door at once
    assert summary["thefts"] is None
    assert summary["staff"] is None


@pytest.mark.deep
@pytest.mark.timeout(500)
def test_a_folder_of_captures_is_replayed_through_the_whole_system(tmp_path):
    """The captures that the project brings along, in both formats; so can anybody replay theirs."""
    check_replayed(FOLDER, tmp_path, seed=4)


def _capture_a_reader(folder: Path, capture: Path) -> int:
    """Record a simulated M6e for some seconds with the real command; how many of its tags were sent whole."""
    clock = SimClock(EPOCH_US, time.monotonic_ns())
    source = SimulatedReaders(World.make(5, 6, items=8), clock, folder)
    source.plug()
    port = folder / "dock-1"
    command = [sys.executable, "-m", "whenabouts_edge.cli", "capture", str(port), str(capture), "--baud", "115200"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRONMENT)
    try:
        while not capture.exists() or not capture.stat().st_size:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        _start_reader(port)
        source.go(time.monotonic_ns(), None)
        time.sleep(source.duration_s + 0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        source.stop()
    return sum(e.reader == "dock-1" and not e.damaged for e in source.emitted())


def _start_reader(port: Path) -> None:
    """Command the reader as its host would; the capture listens on the same line."""
    descriptor = os.open(port, os.O_WRONLY | os.O_NOCTTY)
    for frame in READERS["m6e"].start:
        os.write(descriptor, frame)
    os.close(descriptor)


@pytest.mark.timeout(500)
def test_at_a_terminal_the_dashboard_stays_open_with_the_finished_run_until_ctrl_c():
    """Its address is told at the beginning; it shows what landed, with the truth, and ends with all that was started."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        demo_command("--seed", "7", "--speed", "2"), stdin=theirs, stdout=theirs, stderr=theirs,
        env={**ENVIRONMENT, "TERM": "dumb", "COLUMNS": "200"},
    )  # fmt: skip
    os.close(theirs)
    try:
        said = b""
        while b"stays open with the finished run" not in said:
            said += os.read(ours, 4096)
        address = re.search(rb"dashboard +(http://127.0.0.1:[0-9]+/) shows this run", said)[1].decode()
        assert said.index(address.encode()) < said.index(b" pair ") < said.index(b"stays open")
        with urllib.request.urlopen(f"{address}api/overview", timeout=30) as answer:
            seen = json.load(answer)
        assert seen["readings"] > 150
        assert seen["has_truth"]
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        threading.Thread(target=_drained, args=(ours,), daemon=True).start()
        assert process.wait(60) == 0
        _, alive = psutil.wait_procs(family, timeout=5)
        assert alive == []
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _drained(terminal: int) -> None:
    """Read what is still written to a terminal, which the last process closes."""
    with contextlib.suppress(OSError):
        os.read(terminal, 1 << 20)


@pytest.mark.deep
@pytest.mark.timeout(120)
def test_ctrl_c_ends_every_process():
    """Interrupted while readings flow, the demonstration ends all it started and leaves nothing behind."""
    process = subprocess.Popen(
        demo_command("--seed", "3"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, "PYTHONUNBUFFERED": "1"},
    )
    family: list[psutil.Process] = []
    for line in process.stdout:
        if " readings " in line:
            family = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGINT)
            break
    threading.Thread(target=process.stdout.read, daemon=True).start()
    assert process.wait(60) == 130
    assert len(family) >= 8  # broker, ingest, the job with Spark's own process, and four agents at least
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--trace", "no-such-file"], "no such file"),
        (["--trace", __file__], "expected a head"),
        (["--speed", "fast"], "not a valid float"),
        (["--seed", "-1"], "-1"),
    ],
)
def test_nonsense_is_refused_with_a_clear_error(arguments, text):
    """Arguments that cannot be run give an error with the value found, and no traceback."""
    done = CliRunner().invoke(main, ["demo", *arguments])
    assert done.exit_code in (1, 2)
    assert isinstance(done.exception, SystemExit)
    assert text in done.stderr
