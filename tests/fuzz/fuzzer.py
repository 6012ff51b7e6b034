"""Draws inputs for targets, checks them, and shrinks an input that breaks a property.

Time is that of the processor, and a slow check is repeated, so that a busy machine gives no findings. Memory is traced
for long inputs and for one in 256 of the others, because tracing is slow.
"""

import signal
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from fuzz.targets import Target

TRACED_EVERY = 256
TRACED_BYTES_MIN = 2000
SECONDS_PER_BYTE = 20e-6
REPEATS = 3
END_S = 60.0  # of the processor; a check that needs more is said not to end
SHRINK_CHECKS = 3000
SHRINK_S = 20.0
SLICE_S = 0.5  # of a target's turn in a run that is limited by time


class Finding(Exception):
    """An input that broke a property of its target; `cause` is the kind of the problem, the text describes it."""

    def __init__(self, target: str, data: bytes, cause: str, text: str) -> None:
        super().__init__(text)
        self.target, self.data, self.cause = target, data, cause


class NoEndError(BaseException):
    """A check took END_S; no handler within it may catch this."""


@dataclass
class Tally:
    """Counts of one target."""

    inputs: int = 0
    accepted: int = 0
    bytes: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0


@contextmanager
def ended(seconds: float = END_S) -> Iterator[None]:
    """Context whose checks are ended after a time of the processor."""

    def end(*_: object) -> None:
        raise NoEndError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def tried(target: Target, data: bytes, traced: bool = False) -> tuple[bool, float]:
    """Check one input; return if it was accepted, and the seconds that it took.

    Raises:
        Finding: a property does not hold.
    """
    if traced:
        tracemalloc.start()
    began = time.process_time()
    try:
        accepted = target.check(data)
        seconds = time.process_time() - began
        peak = tracemalloc.get_traced_memory()[1] if traced else 0
    except NoEndError:
        raise Finding(target.name, data, "no end", f"found no end after {END_S:.0f} s") from None
    except Exception as error:
        raise Finding(target.name, data, type(error).__name__, f"{type(error).__name__}: {error}") from error
    finally:
        if traced:
            tracemalloc.stop()
    if peak > (most := target.fixed_bytes + target.bytes_per_byte * len(data)):
        raise Finding(target.name, data, "memory", f"memory: found {peak} bytes, expected at most {most}")
    return accepted, seconds


def check_input(target: Target, data: bytes, traced: bool = True) -> tuple[bool, float]:
    """Check one input, its time too.

    Raises:
        Finding: a property does not hold.
    """
    accepted, seconds = tried(target, data)
    if traced:  # a second time, because the first may have imported modules
        tried(target, data, traced)
    most = target.fixed_s + SECONDS_PER_BYTE * len(data)
    if seconds > most and (seconds := min(tried(target, data)[1] for _ in range(REPEATS))) > most:
        raise Finding(target.name, data, "time", f"time: found {seconds:.2f} s, expected at most {most:.2f} s")
    return accepted, seconds


class Run:
    """One target, fuzzed from a seed; more inputs continue it."""

    def __init__(self, target: Target, seed: int) -> None:
        self.target, self.tally = target, Tally()
        self._rng = Random(f"{seed} {target.name}")

    def go_on(self, inputs: int, until: Callable[[], bool] = lambda: False) -> None:
        """Check up to `inputs` more inputs.

        Raises:
            Finding: the first input that breaks a property, as it was drawn.
        """
        tally, rng, began = self.tally, self._rng, time.perf_counter()
        for n in range(inputs):
            if n % 16 == 0:
                if until():
                    break
                signal.setitimer(signal.ITIMER_VIRTUAL, END_S)  # effective within `ended`
            data = self.target.draw(rng)
            traced = len(data) >= TRACED_BYTES_MIN or tally.inputs % TRACED_EVERY == 0
            accepted, seconds = check_input(self.target, data, traced)
            tally.inputs += 1
            tally.bytes += len(data)
            tally.slowest_s = max(tally.slowest_s, seconds)
            if accepted:
                tally.accepted += 1
                self.target.learn(rng, data)
        tally.seconds += time.perf_counter() - began


def fuzz_inputs(targets: list[Target], seed: int, inputs: int, least: int = 1) -> dict[str, Tally]:
    """Check about `inputs` inputs, shared among the targets; each gets at least `least`.

    Raises:
        Finding: the first input that breaks a property.
    """
    whole = sum(target.share for target in targets)
    runs = [Run(target, seed) for target in targets]
    with ended():
        for run in runs:
            run.go_on(max(least, round(inputs * run.target.share / whole)))
    return {run.target.name: run.tally for run in runs}


def fuzz_seconds(targets: list[Target], seed: int, seconds: float) -> dict[str, Tally]:
    """Check inputs for some time; the targets take turns.

    Raises:
        Finding: the first input that breaks a property.
    """
    end = time.monotonic() + seconds
    runs = [Run(target, seed) for target in targets]
    with ended():
        while time.monotonic() < end:
            for run in runs:
                turn = min(end, time.monotonic() + SLICE_S)
                run.go_on(1 << 62, lambda turn=turn: time.monotonic() >= turn)  # type: ignore[misc]
    return {run.target.name: run.tally for run in runs}


def shrunk(target: Target, finding: Finding) -> bytes:
    """The shortest input found by leaving out pieces that shows the same kind of problem."""
    data, checks, end = finding.data, SHRINK_CHECKS, time.monotonic() + SHRINK_S
    size = max(1, len(data) // 2)
    while size:
        at, before = 0, len(data)
        while at < len(data) and checks and time.monotonic() < end:
            shorter = data[:at] + data[at + size :]
            checks -= 1
            if _same(target, shorter, finding.cause):
                data = shorter
            else:
                at += size
        if len(data) == before or size > 1:
            size //= 2
    return data


def _same(target: Target, data: bytes, cause: str) -> bool:
    try:
        with ended():
            check_input(target, data, traced=cause == "memory")
    except Finding as finding:
        return finding.cause == cause
    return False
