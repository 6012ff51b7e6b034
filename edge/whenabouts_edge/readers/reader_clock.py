"""A reader's own clock, bounded by what is known of its reports, and never trusted beyond that.

Every report has a stamp that holds the sighting's true time without the reader's clock. So the time that the reader gives,
less the stamp, bounds the error of its clock; a later report bounds it again, and between them the error grows by drift
alone. Two bounds that exclude each other show that the clock was stepped.

A step that is smaller than the bounds shows nowhere. So the error narrows stamps only where the operator states that
nothing steps the clock, and how far it may drift; it is measured in any case.
"""

from collections.abc import Mapping
from typing import Any

RESOLUTION_US = 1000  # some readers count milliseconds
DRIFT_PPM = 1000  # of any crystal, where nothing is stated
NO_UTC_US = 10 * 365 * 86400 * 1_000_000  # a clock that is wrong by more was never set, or counts from its start


class ReaderClock:
    """drift_ppm: most drift of a clock that nothing steps, as stated by the operator; None: narrow nothing.

    error_us: least and most that the clock is ahead of UTC, None before the first report; it counts from the reader's start
    where the reader gives uptime. steps: how often it was certainly stepped.
    """

    def __init__(self, drift_ppm: int | None = None) -> None:
        self._narrows, self._drift_ppm = drift_ppm is not None, drift_ppm or DRIFT_PPM
        self.error_us: tuple[int, int] | None = None
        self.steps = 0
        self._last = 0, 0, 0  # time and stamp of the last report

    def narrowed(self, reader_us: int, t_min: int, t_max: int) -> tuple[int, int]:
        """The stamp of a sighting that the reader's clock dates reader_us, and that surely happened in t_min..t_max."""
        low, high = reader_us - t_max - RESOLUTION_US, reader_us - t_min + RESOLUTION_US
        if self.error_us is not None:
            apart_us = min(
                max(t_max, self._last[2]) - min(t_min, self._last[1]),
                abs(reader_us - self._last[0]) + 2 * RESOLUTION_US,
            )
            drift_us = self._drift_ppm * apart_us // 1_000_000 + 1
            least, most = max(low, self.error_us[0] - drift_us), min(high, self.error_us[1] + drift_us)
            if least > most:
                self.steps += 1
            else:
                low, high = least, most
        self.error_us, self._last = (low, high), (reader_us, t_min, t_max)
        if not self._narrows:
            return t_min, t_max
        return max(t_min, reader_us - high - RESOLUTION_US), min(t_max, reader_us - low + RESOLUTION_US)

    @property
    def counters(self) -> dict[str, int]:
        """For the status of a reader: the middle of the error, its bound, and steps; nothing of a reader without a clock."""
        if self.error_us is None:
            return {}
        low, high = self.error_us
        return {"clock_error_us": (low + high) // 2, "clock_bound_us": (high - low + 1) // 2, "clock_steps": self.steps}


def in_words(status: Mapping[str, Any]) -> str:
    """What a reader's status says of its clock; "" if it has none."""
    if "clock_error_us" not in status:
        return ""
    error_us, steps = status["clock_error_us"], status["clock_steps"]
    side, bound_us = "ahead" if error_us > 0 else "behind", status["clock_bound_us"]
    said = f"is {abs(error_us) / 1e6:.3f} s {side} within {bound_us / 1e6:.3f} s"
    times = f", stepped {steps} time{'s' if steps > 1 else ''}" if steps else ""
    return f"its clock {'does not give UTC' if abs(error_us) > NO_UTC_US else said}{times}"
