"""The clock of a simulated gateway: wrong, drifting, slewed, set anew, at first unknown; its claimed bound is true.

The product's `PacedClock` is above it, as on a real gateway.
"""

import time
from dataclasses import dataclass

from whenabouts_edge.clock import ClockSample, Pace
from whenabouts_sim.chaos.machine.clock import VirtualTime


@dataclass(frozen=True)
class ClockPlan:
    """What a clock does; times in us since the schedule's begin. drift_ppm: of the host's crystal.

    known: spans in which UTC is known, with the claimed bound of its error. errors: the error from a moment on, as a part of
    the bound in thousandths, from -1000 to 1000. slews: spans in which the host's clock is corrected, with the rate in ppm.
    """

    drift_ppm: int = 0
    known: tuple[tuple[int, int, int], ...] = ()
    errors: tuple[tuple[int, int], ...] = ((0, 0),)
    slews: tuple[tuple[int, int, int], ...] = ()

    def text(self) -> str:
        """The plan for people."""
        known = ", ".join(
            f"{bound_us / 1000:g} ms from {max(0, begin_us) / 1e6:g} s"
            + (f" to {end_us / 1e6:g} s" if end_us < 1 << 59 else "")
            for begin_us, end_us, bound_us in self.known
        )
        return f"UTC known within {known}; {len(self.errors)} errors, {len(self.slews)} slews"


class WrongClock:
    """A source of UTC (`clock.ClockSource`). on_us: true time at which the machine was switched on."""

    def __init__(self, plan: ClockPlan, clock: VirtualTime, begin_us: int, on_us: int) -> None:
        self._plan, self._clock, self._begin_us, self._on_us = plan, clock, begin_us, on_us

    def host_us(self, monotonic_ns: int) -> int:
        """The host's clock: its crystal drifts, and it is slewed."""
        elapsed_us = monotonic_ns // 1000
        return elapsed_us + self._plan.drift_ppm * elapsed_us // 1_000_000 + self._slewed_us(elapsed_us)

    def sample(self) -> ClockSample:
        """UTC now: wrong, but by no more than it claims."""
        true_us = self._clock.true_us
        host_us = self.host_us(time.monotonic_ns())
        at_us = true_us - self._begin_us
        bound_us = next((bound for begin, end, bound in self._plan.known if begin <= at_us < end), None)
        if bound_us is None:
            return ClockSample(host_us, 0, None, "unbounded", "sim")
        part = next(part for begin, part in reversed(self._plan.errors) if begin <= at_us)
        # The true time lies within a microsecond behind true_us, and the host's clock is rounded down too.
        return ClockSample(host_us, true_us + bound_us * part // 1000 - host_us, bound_us + 2, "bounded", "sim")

    def pace(self) -> Pace:
        """How far the host's clock was slewed, for `PacedClock`."""
        return Pace(self._slewed_us(time.monotonic_ns() // 1000), 0, 1)

    def _slewed_us(self, elapsed_us: int) -> int:
        at_us = self._on_us - self._begin_us + elapsed_us
        since_us = self._on_us - self._begin_us
        total = 0
        for begin, end, ppm in self._plan.slews:
            total += ppm * max(0, min(end, at_us) - max(begin, since_us)) // 1_000_000
        return total
