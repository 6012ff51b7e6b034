"""The command as a separate process, whose output tests can wait for."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar, NamedTuple

TIMEOUT_S = 300


class Ended(NamedTuple):
    """Result of a command that has ended: its exit code and the lines of its two outputs."""

    code: int
    out: list[str]
    err: list[str]


class Process:
    """The command running; its two outputs are collected as lines."""

    started: ClassVar[list["Process"]] = []

    def __init__(
        self, folder: Path, *more: str, command: str = "correlate", landing: str | None = None, out: str | None = None
    ) -> None:
        env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p), PYTHONUNBUFFERED="1")
        options = [
            "--landing",
            landing or folder / "landing",
            "--rule",
            folder / "rule.wa",
            "--out",
            out or folder / "out",
            "--shards",
            "2",
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "whenabouts_cloud.cli", command, *map(str, options), *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True,
        )  # fmt: skip
        Process.started.append(self)
        self.out, self.err = [], []
        self._changed = threading.Condition()
        self._readers = [
            threading.Thread(target=self._collect, args=x, daemon=True)
            for x in ((self.process.stdout, self.out), (self.process.stderr, self.err))
        ]
        for reader in self._readers:
            reader.start()

    def _collect(self, stream, lines):
        for line in stream:
            with self._changed:
                lines.append(line.rstrip("\n"))
                self._changed.notify_all()

    def wait_for(self, text, count=1):
        """Wait until `text` has been printed on stderr so many times."""
        with self._changed:
            said = self._changed.wait_for(lambda: sum(text in x for x in self.err) >= count, TIMEOUT_S)
        assert said, f"expected {text!r}, found " + "\n".join(self.err)

    def until(self, condition):
        """Wait until the condition holds; it is checked after every line on stderr, and twice a second."""
        until_s = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < until_s, "not so in time; it said " + "\n".join(self.err)
            with self._changed:
                self._changed.wait(0.5)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        """The exit code; all lines have been collected then."""
        code = self.process.wait(TIMEOUT_S)
        for reader in self._readers:
            reader.join(10)
        return code

    @classmethod
    def end_all(cls):
        """Kill all started commands that still run, as after a failed test."""
        for one in cls.started:
            if one.process.poll() is None:
                one.kill()
        cls.started.clear()

    def kill(self):
        """SIGKILL to the driver, its JVM and its workers at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
