"""Asks questions of child processes (`child`): few at once, a short queue, and each is killed in time.

A process is killed when its time is over, when whoever asked has gone (the call is cancelled), and when the server ends.
Cost: the server itself only waits; two questions at once are what a machine of two cores can bear.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from whenabouts_protocol.logs import Log

log = Log(__name__)

AT_ONCE = 2
WAITING = 4  # questions beyond those; more are refused
ANSWER_BYTES = 16 << 20
STDERR_BYTES = 4 << 10  # of what a failed process says, for the log
LONG = (
    "ask about less; or once more, if the program is new here: engines are compiled at their first use, which "
    "`python -m whenabouts_cloud.warm` does beforehand"
)
CHILD = "whenabouts_cloud.dashboard.questions.child"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the process of a kind of question may use."""

    seconds: int
    memory_bytes: int


LIMITS = {
    "explain": Limits(10, 1 << 30),
    "why-not": Limits(30, 3 << 30),
    "try": Limits(60, 3 << 30),
    "publish": Limits(75, 1 << 30),
}


class BusyError(Exception):
    """Too many questions wait already; ask again later."""


@dataclass(slots=True)
class AskedCounters:
    """Counts since the start."""

    asked: int = 0
    busy: int = 0  # refused, as too many waited
    killed: int = 0  # at the end of their time
    failed: int = 0  # ended without an answer


class Asker:
    """The questions of one server; `ask` belongs to one event loop. limits: by kind."""

    def __init__(self, limits: Mapping[str, Limits] = LIMITS, at_once: int = AT_ONCE, waiting: int = WAITING) -> None:
        self._limits, self._most = limits, at_once + waiting
        self._free = asyncio.Semaphore(at_once)
        self._present = 0
        self._running: set[int] = set()
        self._closed = False
        self.counters = AskedCounters()

    async def ask(self, kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of a child process, or {"error": text}.

        Raises:
            BusyError: too many questions wait.
        """
        if self._present >= self._most:
            self.counters.busy += 1
            raise BusyError(f"found {self._present} questions, expected fewer than {self._most}: ask again soon")
        self._present += 1
        try:
            async with self._free:
                self.counters.asked += 1
                return await self._answer(kind, values, self._limits[kind])
        finally:
            self._present -= 1

    def close(self) -> None:
        """Kill all processes, and start no more."""
        self._closed = True
        for number in list(self._running):
            _kill(number)

    async def _answer(self, kind: str, values: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
        if self._closed:
            return {"error": "the server ends"}
        question = json.dumps({**values, "kind": kind}).encode()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", CHILD, str(limits.seconds), str(limits.memory_bytes),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            start_new_session=True, env=_environment(),
        )  # fmt: skip
        self._running.add(process.pid)
        try:
            async with asyncio.timeout(limits.seconds):
                content, said, _ = await asyncio.gather(
                    _read(process.stdout, ANSWER_BYTES), _read(process.stderr, STDERR_BYTES), _write(process, question)
                )
                return self._answered(kind, content, said)
        except TimeoutError:
            self.counters.killed += 1
            return {"error": f"found no answer within {limits.seconds} s; {LONG}"}
        finally:
            _kill(process.pid)
            self._running.discard(process.pid)
            await asyncio.shield(process.wait())

    def _answered(self, kind: str, content: bytes, said: bytes) -> dict[str, Any]:
        if len(content) > ANSWER_BYTES:
            return {"error": f"found an answer of more than {ANSWER_BYTES} bytes; ask about less"}
        try:
            value: dict[str, Any] = json.loads(content)
        except ValueError:
            self.counters.failed += 1
            if self._closed:
                return {"error": "the server ends"}
            log.error("dashboard.question", said.decode("utf-8", "replace")[-1000:], kind=kind)
            return {"error": "the question ended without an answer: it may have needed too much memory; ask about less"}
        return value


def _environment() -> dict[str, str]:
    """That of this process, with its packages; libraries start no threads for each core."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


async def _write(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it ended before it read all
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _read(stream: asyncio.StreamReader | None, most: int) -> bytes:
    """All bytes, at most one more than `most` of them; the others are read and dropped, so that the process can end."""
    assert stream is not None
    parts, size = [], 0
    while part := await stream.read(1 << 16):
        if size <= most:
            parts.append(part[: most + 1 - size])
            size += len(parts[-1])
    return b"".join(parts)


def _kill(number: int) -> None:
    """Kill a process with its children; it leads a group of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(number, signal.SIGKILL)
