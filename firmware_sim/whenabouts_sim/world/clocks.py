"""True time, and time by the wrong clock of a gateway.

True time is defined, not measured: it runs from the host's monotonic clock, so that every process on the host (agent,
simulated reader, judge) computes the same true microsecond from the same `SimClock` parameters, at any speed.
A `GatewayClock` is wrong by an offset, a drift and steps, and claims a bound that covers all three, as an honest
time daemon would (correction + dispersion, growing with an assumed drift of 50 ppm). Integers throughout: floor for
the reading, ceiling for the bound, so that the claim holds to the microsecond. A reading costs O(steps).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

# 2025-06-15T13:59:57Z: any fixed instant does; soon after it an hour ends, and with it the folders that are named after it.
EPOCH_US = 1_749_995_997_000_000
NS_PER_US = 1000
MILLI = 1000

# Drift that careful time daemons assume of a crystal; the clocks drawn here never drift more.
ASSUMED_DRIFT_PPM = 50


@dataclass(frozen=True)
class SimClock:
    """True time in microseconds since 1970 UTC as a function of the host's CLOCK_MONOTONIC in nanoseconds.

    `speed_milli` is simulated time over host time in thousandths: 5000 runs five times as fast as the wall.
    """

    epoch_us: int
    anchor_ns: int
    speed_milli: int = MILLI

    def __post_init__(self) -> None:
        if self.speed_milli < 1:
            raise ValueError(f"sim clock: speed_milli {self.speed_milli}, expected 1 or more (1000 is real time)")

    def true_us(self, mono_ns: int) -> int:
        """True time at a host monotonic instant, rounded down."""
        return self.epoch_us + (mono_ns - self.anchor_ns) * self.speed_milli // (MILLI * NS_PER_US)

    def mono_ns(self, true_us: int) -> int:
        """The first host monotonic nanosecond at which true time has reached `true_us`."""
        return self.anchor_ns - (self.epoch_us - true_us) * (MILLI * NS_PER_US) // self.speed_milli

    def as_dict(self) -> dict[str, int]:
        """The parameters under the names a configuration file uses."""
        return {"epoch_us": self.epoch_us, "anchor_ns": self.anchor_ns, "speed_milli": self.speed_milli}


@dataclass(frozen=True)
class GatewayClock:
    """A wrong clock and the honest bound it claims; all times in microseconds.

    reading = true + offset + drift * (true - epoch) + the steps taken so far; `steps` are (true_us, step_us).

    Raises:
        ValueError: the claimed bound does not cover offset, steps or drift.
    """

    epoch_us: int
    offset_us: int = 0
    drift_ppm: int = 0
    steps: tuple[tuple[int, int], ...] = ()
    base_bound_us: int = 0
    assumed_drift_ppm: int = ASSUMED_DRIFT_PPM

    def __post_init__(self) -> None:
        if abs(self.drift_ppm) > self.assumed_drift_ppm:
            raise ValueError(
                f"gateway clock: drift {self.drift_ppm} ppm, expected at most the assumed {self.assumed_drift_ppm} ppm"
            )
        if self.base_bound_us < self.worst_offset_us:
            raise ValueError(
                f"gateway clock: base_bound_us {self.base_bound_us}, expected at least the worst offset "
                f"with steps, {self.worst_offset_us}"
            )

    @property
    def worst_offset_us(self) -> int:
        """Largest error without drift, before, between and after the steps."""
        after_us = [self._stepped_us(at_us) for at_us, _ in self.steps]
        return max(abs(self.offset_us + stepped_us) for stepped_us in (0, *after_us))

    def error_us(self, true_us: int) -> int:
        """Reading minus truth."""
        drifted_us = self.drift_ppm * (true_us - self.epoch_us) // 1_000_000
        return self.offset_us + self._stepped_us(true_us) + drifted_us

    def _stepped_us(self, true_us: int) -> int:
        """Sum of the steps taken by then; several at one instant are one."""
        return sum(step_us for at_us, step_us in self.steps if at_us <= true_us)

    def reading_us(self, true_us: int) -> int:
        """Time on the clock at a true instant."""
        return true_us + self.error_us(true_us)

    def bound_us(self, true_us: int) -> int:
        """The clock's claimed bound of its error at a true instant."""
        return self.base_bound_us - (-self.assumed_drift_ppm * abs(true_us - self.epoch_us) // 1_000_000)

    def interval_us(self, true_us: int) -> tuple[int, int]:
        """The closed interval that the clock claims to contain true time; it does."""
        reading_us, bound_us = self.reading_us(true_us), self.bound_us(true_us)
        return reading_us - bound_us, reading_us + bound_us

    def as_dict(self) -> dict[str, Any]:
        """The parameters under the names a configuration file uses; `from_dict` is the inverse."""
        return {
            "epoch_us": self.epoch_us,
            "offset_us": self.offset_us,
            "drift_ppm": self.drift_ppm,
            "steps": [list(step) for step in self.steps],
            "base_bound_us": self.base_bound_us,
            "assumed_drift_ppm": self.assumed_drift_ppm,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> GatewayClock:
        """A clock from `as_dict`, after JSON or TOML."""
        steps = tuple((int(at_us), int(step_us)) for at_us, step_us in given["steps"])
        return cls(**{**given, "steps": steps})


def plausible_clock(
    random: Random, epoch_us: int, offset_us_max: int = 300_000, step_at_us: tuple[int, ...] = ()
) -> GatewayClock:
    """A clock as found on gateways: off by up to `offset_us_max`, drifting up to 50 ppm, bound 5 to 40 % too wide.

    At each instant of `step_at_us` it is set again, to another error of the same size.
    """
    offsets_us = [random.randint(-offset_us_max, offset_us_max) for _ in range(1 + len(step_at_us))]
    steps = tuple(
        (at_us, after - before)
        for at_us, before, after in zip(sorted(step_at_us), offsets_us, offsets_us[1:], strict=False)
    )
    worst_us = max(abs(offset_us) for offset_us in offsets_us)
    return GatewayClock(
        epoch_us=epoch_us,
        offset_us=offsets_us[0],
        drift_ppm=random.randint(-ASSUMED_DRIFT_PPM, ASSUMED_DRIFT_PPM),
        steps=steps,
        base_bound_us=worst_us * random.randint(105, 140) // 100 + 100,
    )
