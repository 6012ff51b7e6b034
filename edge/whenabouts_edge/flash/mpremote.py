"""A board on a serial port, through the program mpremote: inspect, run, copy, restart. A driver; `plan` makes the
decisions.

mpremote interrupts the running program of the board, and restarts its Python without the main program. Its reads of a
terminal have no time-out, so this module bounds the silence. If this process dies, mpremote ends at its next line of
output.
"""

import importlib.util
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import serial.tools.list_ports

from whenabouts_edge.flash import FlashError
from whenabouts_edge.flash.modules import SHARED
from whenabouts_edge.flash.plan import CONFIG_PATH, HOLD_PATH, LIB, MAIN_PATH, Seen

SILENCE_S = 25.0  # without output: mpremote itself waits 10 s for a prompt, and a file may take seconds
BUSY_S = 10.0  # a program that has just ended, or a restarting board, frees the port within this time
AWAKE_S = 30.0  # after a restart: the port comes back, boot.py ends
COPIED_AT_ONCE = 64  # files in one run of mpremote: their paths are its arguments

# Prints facts of the board in lines of words, so that nothing accumulates in its memory. Errors, such as of memory, end it.
_LOOK = """\
import binascii, hashlib, os, sys
i = sys.implementation
print("board", sys.platform, getattr(i, "_mpy", 0) & 255, ".".join(str(n) for n in i[1][:3]))
print("machine", getattr(i, "_machine", ""))
try:
    v = os.statvfs("/")
    print("free", v[0] * v[3])
except (AttributeError, OSError):
    print("free", -1)
b = bytearray(512)
m = memoryview(b)
def look(p):
    h, n = hashlib.sha256(), 0
    with open(p, "rb") as f:
        while True:
            k = f.readinto(b)
            if not k:
                break
            n += k
            h.update(m[:k])
    print("file", n, binascii.hexlify(h.digest()).decode(), p)
w = {roots!r}
while w:
    p = w.pop()
    try:
        s = os.stat(p)[0]
    except OSError:
        continue
    if s & 0x4000:
        print("folder", p)
        for e in os.listdir(p):
            w.append(p + "/" + e)
    else:
        look(p)
try:
    os.stat({lib!r})
    print("folder", {lib!r})
except OSError:
    pass
print("end")
"""


class Device:
    """The board at one port. reported: called with each line of progress. Each method raises FlashError when it fails."""

    def __init__(self, port: str, reported: Callable[[str], None] = lambda line: None) -> None:
        self.port, self._reported = port, reported
        if importlib.util.find_spec("mpremote") is None:
            raise FlashError(
                "mpremote: found nothing installed, expected the extra `flash`; pip install 'whenabouts[flash]'"
            )
        _check_port(port)

    def look(self) -> Seen:
        """The facts of the board, and the files that flashing manages."""
        roots = [f"{LIB}/{package}" for package in SHARED] + [f"/{package}" for package in SHARED]
        said = self.run(_LOOK.format(roots=[*roots, CONFIG_PATH, MAIN_PATH], lib=LIB))
        return seen(said.splitlines(), self.port)

    def run(self, code: str) -> str:
        """Run a program on the board; return its output."""
        return self._mpremote(["exec", code])

    def hold(self) -> None:
        """Restart once into the prompt, where no watchdog runs, however long the next steps take. Wait until it
        answers.

        A main program without support for holding runs again instead, with its watchdog.
        """
        code = f"import machine, os\nos.stat({MAIN_PATH!r})\nopen({HOLD_PATH!r}, 'w').close()\nmachine.reset()"
        self._mpremote(["exec", "--no-follow", code])
        self.wait_awake()

    def detach(self) -> None:
        """Remove the main program and restart, in one run: its watchdog leaves only seconds. Wait until the board
        answers.
        """
        code = f"import machine, os\ntry:\n os.remove({MAIN_PATH!r})\nfinally:\n machine.reset()"
        self._mpremote(["exec", "--no-follow", code])
        self.wait_awake()

    def remove(self, paths: Sequence[str]) -> None:
        """Remove files."""
        if paths:
            self.run(f"import os\nfor p in {list(paths)!r}:\n os.remove(p)\n")

    def make_folders(self, paths: Sequence[str]) -> None:
        """Make folders, outer ones first; existing ones are fine."""
        if paths:
            self.run(f"import os\nfor p in {list(paths)!r}:\n try:\n  os.mkdir(p)\n except OSError:\n  os.stat(p)\n")

    def copy(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write (path, content) in order, replacing existing files."""
        with tempfile.TemporaryDirectory() as folder:  # private to this user
            for first in range(0, len(files), COPIED_AT_ONCE):
                words: list[str] = []
                for number, (path, data) in enumerate(files[first : first + COPIED_AT_ONCE], first):
                    local = Path(folder) / str(number)
                    local.write_bytes(data)
                    words += ["+", "fs", "cp", "-f", str(local), f":{path}"]
                self._mpremote(words[1:], self._report_copied)

    def _report_copied(self, line: str) -> None:
        if line.startswith("cp ") and " :" in line:
            self._reported(f"copy    {line.rpartition(' :')[2]}")

    def restart(self) -> None:
        """Restart the board as if its power had been cut."""
        self._mpremote(["reset"])

    def wait_awake(self) -> None:
        """Wait until a restarted board answers again."""
        until = time.monotonic() + AWAKE_S
        while True:
            try:
                self.run(f"import os\ntry:\n os.remove({HOLD_PATH!r})\nexcept OSError:\n pass")
                return
            except FlashError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)

    def _mpremote(self, words: Sequence[str], reported: Callable[[str], None] = lambda line: None) -> str:
        """Run mpremote and return its output. Retries while another program has the port."""
        until = time.monotonic() + BUSY_S
        while True:
            code, out, err = _ran([sys.executable, "-m", "mpremote", "connect", self.port, *words], reported)
            if code == 0:
                return out
            if "failed to access" not in out + err or time.monotonic() > until:
                raise FlashError(explained(self.port, code, out, err))
            time.sleep(0.5)


def _ran(command: Sequence[str], reported: Callable[[str], None]) -> tuple[int | None, str, str]:
    """(exit code, None after too long a silence; output on stdout; on stderr). Lines are reported as they come."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with tempfile.TemporaryFile() as errors, selectors.DefaultSelector() as selector:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment
        )
        assert process.stdout is not None
        selector.register(process.stdout, selectors.EVENT_READ)
        said, rest, code = bytearray(), b"", None
        try:
            while selector.select(SILENCE_S):
                data = os.read(process.stdout.fileno(), 65536)
                if not data:
                    code = process.wait(SILENCE_S)
                    break
                said += data
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    reported(line.decode(errors="replace").rstrip())
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
        errors.seek(0)
        return code, said.decode(errors="replace").replace("\r\n", "\n"), errors.read().decode(errors="replace")


def seen(lines: Iterable[str], port: str) -> Seen:
    """The facts in the output of a board.

    Raises:
        FlashError: lines are missing or malformed.
    """
    said: dict[str, list[str]] = {}
    files: dict[str, tuple[int, str]] = {}
    folders = set()
    for line in lines:
        what, *rest = line.split(" ")
        if what == "file" and len(rest) >= 3 and rest[0].isdigit():
            files[" ".join(rest[2:])] = int(rest[0]), rest[1]
        elif what == "folder" and rest:
            folders.add(" ".join(rest))
        else:
            said[what] = rest
    try:
        platform, mpy, firmware = said["board"]
        free = int(said["free"][0])
        machine = " ".join(said["machine"])
        said["end"]
        version = int(mpy)
    except (KeyError, ValueError, IndexError):
        raise FlashError(
            f"{port}: found an answer that is not MicroPython's, expected a board's; press its reset button and try again"
        ) from None
    return Seen(platform, machine, firmware, version, None if free < 0 else free, files, frozenset(folders))


def explained(port: str, code: int | None, out: str, err: str) -> str:
    """The reason why mpremote ended with this code: found, expected, what to do."""
    said = [line for line in (*out.splitlines(), *err.splitlines()) if line.strip()]
    last = said[-1].removeprefix("mpremote: ") if said else "nothing"
    reported = out + err
    if "failed to access" in reported:
        return (
            f"{port}: found it in use by another program, expected it free; end the agent or terminal that has it open"
        )
    if code is None or "could not enter raw repl" in reported or "timeout waiting for" in reported:
        return (
            f"{port}: found a port that does not answer as MicroPython, expected its prompt; check the cable and that "
            "MicroPython is on the board, press its reset button, and try again"
        )
    if "No space left" in reported or "ENOSPC" in reported or "OSError: 28" in reported:
        return (
            "flash of the board: found it full, expected room for the files; remove files of others: "
            "`python -m mpremote fs ls` shows them"
        )
    if "Input/output error" in reported or "SerialException" in reported or "disconnected" in reported:
        return f"{port}: found the connection lost, expected it until the end; check the cable and run it again to continue"
    if "MemoryError" in reported:
        return f"{port}: found the board out of memory, expected an idle one; press its reset button and try again"
    return (
        f"{port}: mpremote ended with exit code {code}, expected 0: {last}; run it again, it continues where it ended"
    )


def _check_port(port: str) -> None:
    if not port.startswith("/"):
        return  # a name known to mpremote
    if not os.path.exists(port):
        there = ", ".join(sorted(one.device for one in serial.tools.list_ports.comports())) or "none"
        raise FlashError(f"{port}: found no such port, expected a board's; ports that are there: {there}")
    if not os.access(port, os.R_OK | os.W_OK):
        raise FlashError(
            f"{port}: found no permission, expected a user in the group dialout; `sudo usermod -aG dialout $USER`, then log "
            "in again"
        )
