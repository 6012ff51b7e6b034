"""`whenabouts-sim chaos`: one schedule, many, nonsense, and a failure that is told with the command that repeats it."""

import json
import re
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from support.child import environment
from whenabouts_sim.chaos.command import _numbers, chaos
from whenabouts_sim.chaos.machine.clock import BEGIN_NS, VirtualTime, taken_over
from whenabouts_sim.chaos.machine.logs import logged
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.chaos.schedule.shrink import shrunk
from whenabouts_sim.chaos.sums import Figures, Result

PLANTED = Path(__file__).parents[1] / "support" / "planted.py"
FAULT = Path(__file__).parent / "faults" / "07-repeats-forgotten.patch"


def _ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from whenabouts_sim.cli import main; main()"
    command = [sys.executable, "-c", program, "chaos", *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)


def test_the_same_command_tells_the_same_bit_for_bit():
    one, two = (_ran("--seed", "5", "--verbose", "--json") for _ in range(2))
    assert one.returncode == two.returncode == 0, one.stderr
    assert one.stdout == two.stdout
    assert json.loads(one.stdout)["broken"] == []


def test_a_failure_is_shortened_and_told_with_its_command():
    command = [sys.executable, str(PLANTED), str(FAULT), "chaos", "--seed", "1", "--schedules", "20"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "time line, in seconds:" in done.stdout
    assert re.search(r"repeat it: whenabouts-sim chaos --seed \d+ --faults [\d,none]+ --readings \d+\n", done.stdout)


def test_unknown_faults_and_options_that_exclude_each_other_are_refused(monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    for arguments, text in (
        (["--seed", "3", "--faults", "99"], "numbers of its"),
        (["--seed", "3", "--schedules", "2", "--verbose"], "for one schedule"),
        (["--seed", "x"], "not a valid integer"),
    ):
        done = CliRunner().invoke(chaos, arguments)
        assert done.exit_code == 2
        assert text in done.output
    assert _numbers("none", (0, 1)) == ()


def test_a_schedule_is_shortened_to_the_fault_and_the_readings_that_matter():
    schedule = next(one for one in map(draw, range(100)) if len(one.faults) >= 4)

    def fails(one):
        return 2 in one.numbers and len(one.sightings) >= 10

    short = shrunk(schedule, fails)
    assert short.numbers == (2,)
    assert 10 <= len(short.sightings) < 20


def test_sums_remember_the_first_failure():
    figures = Figures().after(Result(1, 5, 2, ("kill",), ())).after(Result(2, 1, 0, ("kill", "cut"), ("stamps: x",)))
    assert (figures.schedules, figures.readings, figures.failed) == (2, 6, 2)
    assert figures.as_dict()["faults"] == {"kill": 2, "cut": 1}
    assert "2 kill" in figures.text(1.0)


def test_time_and_chance_are_those_of_the_schedule():
    import logging
    import os
    import time

    seen: list[logging.LogRecord] = []
    loop = VirtualLoop(BEGIN_NS)
    real = time.time
    with logged(seen.append), taken_over(VirtualTime(loop), "seed"):
        before, one = time.monotonic_ns(), os.urandom(4)
        loop.now_ns += 1_000_000
        assert time.monotonic_ns() - before == 1_000_000
        logging.getLogger("any").info("noted")
    with taken_over(VirtualTime(loop), "seed"):
        assert os.urandom(4) == one
    assert time.time is real
    assert [record.getMessage() for record in seen] == ["noted"]
    loop.close()
