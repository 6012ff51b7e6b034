"""Messages of a run to a person while it works and while it waits."""

import os
import pty
import subprocess
import sys

CODE = """
import time
from whenabouts_sim.demo.reporter import Reporter
reporter = Reporter(quiet={quiet})
reporter.say("spark", "starts [3/4]")
with reporter.waiting("Spark starts"):
    time.sleep(0.3)
    reporter.say("pair", "a line " + 30 * "that is long ")
"""


def on_a_terminal(code):
    """A terminal's output of this code."""
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=slave, env=env)
    os.close(slave)
    seen = b""
    try:
        while part := os.read(master, 4096):
            seen += part
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert process.wait(20) == 0
    return seen.decode()


def test_on_a_terminal_a_bar_moves_while_it_waits():
    """Below the lines, which come out whole and as they are."""
    seen = on_a_terminal(CODE.format(quiet=False))
    assert "Spark starts" in seen
    assert "━" in seen
    assert "starts [3/4]" in seen
    assert 30 * "that is long " in seen.replace("\r\n", " ")


def test_without_a_terminal_there_are_only_lines():
    """No bar in a log file."""
    code = CODE.format(quiet=False)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    first, second = done.stdout.splitlines()
    assert first == "  0.0 s  spark     starts [3/4]"
    assert second.endswith("that is long ")


def test_quiet_prints_nothing():
    """On a terminal either."""
    assert on_a_terminal(CODE.format(quiet=True)) == ""
