"""Time and chance of the interpreter, taken over for the length of a schedule.

All code of the product asks the modules `time` and `random`, `os.urandom` or the event loop, so none of it can know real
time or make a choice that the seed does not decide.
"""

import contextlib
import os
import random
import threading
import time
from collections.abc import Callable, Iterator

from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.machine.process import current
from whenabouts_sim.world.clocks import EPOCH_US

BEGIN_NS = 1_000_000_000_000  # of the loop's clock, at EPOCH_US of true time


class VirtualTime:
    """The clocks that code of a process sees. behind_ns: while not None, the moment up to which this process has been seen
    by its own clock; a read of a port lasts from there to now.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.behind_ns: int | None = None

    @property
    def now_ns(self) -> int:
        """The loop's clock."""
        return self._loop.now_ns

    @property
    def true_us(self) -> int:
        """UTC, without an error."""
        return EPOCH_US + (self.now_ns - BEGIN_NS) // 1000

    @property
    def seen_us(self) -> int:
        """UTC at the moment up to which the current process has been seen."""
        return EPOCH_US + ((self.now_ns if self.behind_ns is None else self.behind_ns) - BEGIN_NS) // 1000

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC of the machine on which the current process runs."""
        now_ns = self.now_ns if self.behind_ns is None else self.behind_ns
        process = current()
        return now_ns if process is None else now_ns - process.machine.on_ns

    def time_ns(self) -> int:
        """UTC by the clock of a server, which may be set back; gateways have clocks of their own (`parts.wrong_clock`)."""
        process = current()
        return 1000 * self.true_us - (0 if process is None else process.machine.back_ns)


@contextlib.contextmanager
def taken_over(clock: VirtualTime, seed: str) -> Iterator[None]:
    """Give all code of this interpreter virtual time, and chance that a seed decides."""
    chance = random.Random(seed)
    state = random.getstate()
    replaced = {
        (time, "monotonic_ns"): clock.monotonic_ns,
        (time, "monotonic"): lambda: clock.monotonic_ns() / 1e9,
        (time, "time_ns"): clock.time_ns,
        (time, "time"): lambda: clock.time_ns() / 1e9,
        (time, "sleep"): _refusal_to_sleep(time.sleep),
        (os, "urandom"): chance.randbytes,
        (random, "_urandom"): chance.randbytes,
    }
    real = {(module, name): getattr(module, name) for module, name in replaced}
    for (module, name), value in replaced.items():
        setattr(module, name, value)
    random.seed(seed)
    try:
        yield
    finally:
        for (module, name), value in real.items():
            setattr(module, name, value)
        random.setstate(state)


def _refusal_to_sleep(sleep: Callable[[float], None]) -> Callable[[float], None]:
    """A sleep that this thread, in which all is simulated, refuses; others of the interpreter sleep."""
    simulated = threading.get_ident()

    def refuse(seconds: float) -> None:
        if threading.get_ident() != simulated:
            return sleep(seconds)
        raise RuntimeError(f"a simulated process would block all others for {seconds} s")

    return refuse
