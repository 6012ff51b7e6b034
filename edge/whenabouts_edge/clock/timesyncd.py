"""A bound computed from systemd-timesyncd's last exchange; timesyncd itself computes none, and sets the kernel's figure
to 0.

Its property NTPMessage holds the last answer of its server with the four moments of the exchange: originate T1 and
destination T4 by our clock, receive T2 and transmit T3 by the server's. At T4 our clock was behind by ((T2 - T1) + (T3
- T4)) / 2, wrong by at most half of the round trip (T4 - T1) - (T3 - T2) plus the error of the server: root dispersion
and half of its root delay. Corrections since then only bring the clock nearer, so that

    bound = |offset| + round trip / 2 + root delay / 2 + root dispersion + precision + drift since T4 + slewing T1 .. T4

holds whether or not the answer was used. After the first correction of a clock that was years off, T4 is years ago: the
second answer gives the bound, and readings wait for it. RFC 5905, section 8; systemd, org.freedesktop.timesync1.
"""

import json
import subprocess
from collections.abc import Callable

from whenabouts_edge.clock import ASSUMED_DRIFT_PPM, UNBOUNDED_US, ClockSample
from whenabouts_edge.clock.system import read_clocks, sampled

_ASK = (
    "busctl", "--json=short", "get-property", "org.freedesktop.timesync1", "/org/freedesktop/timesync1",
    "org.freedesktop.timesync1.Manager", "NTPMessage",
)  # fmt: skip
_ASK_TIMEOUT_S = 2.0
_FIELDS = 15
_LEAP, _STRATUM, _PRECISION, _DELAY, _DISPERSION = 0, 3, 4, 5, 6
_ORIGINATE, _RECEIVE, _TRANSMIT, _DESTINATION, _PACKETS = 8, 9, 10, 11, 13
_NOT_SYNCHRONISED = 3
_STRATUM_MAX = 15
# Assumed slewing of our clock during the exchange: the kernel corrects an eighth of the error each second, timesyncd asks
# again after at least 32 s and leaves at most 0.4 s to the kernel: 700 ppm are left by then.
_SLEW_PPM = 1000
# timesyncd asks at least every 2048 s; after that without an answer, only the drift supports the bound.
_FREE_RUNNING_US = 2 * 2048 * 1_000_000


class TimesyncdClock:
    """The system clock with the bound of timesyncd's last exchange."""

    def __init__(
        self, ask: Callable[[], str] | None = None, clocks: Callable[[], tuple[int, int, int]] = read_clocks
    ) -> None:
        self._ask = ask or ask_timesyncd
        self._clocks = clocks

    def host_us(self, monotonic_ns: int) -> int:
        return monotonic_ns // 1000

    def sample(self) -> ClockSample:
        return sampled(self._clocks, self._ask, parse_message, "timesyncd")


def ask_timesyncd() -> str:
    """timesyncd's last message as JSON, or empty text if there is none."""
    try:
        done = subprocess.run(
            _ASK, capture_output=True, text=True, errors="replace", timeout=_ASK_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def parse_message(message: str, utc_us: int) -> tuple[int | None, str]:
    """(bound in us or None, clock state) from the property in busctl's format, at system time utc_us."""
    data = _data(message)
    if data is None or data[_LEAP] == _NOT_SYNCHRONISED or not data[_PACKETS]:
        return None, "unbounded"
    sent, received, answered, back = (data[n] for n in (_ORIGINATE, _RECEIVE, _TRANSMIT, _DESTINATION))
    trip_us = (back - sent) - (answered - received)
    if not (0 < data[_STRATUM] <= _STRATUM_MAX) or trip_us < 0 or answered < received or back > utc_us:
        return None, "unbounded"
    offset_us = ((received - sent) + (answered - back)) / 2
    precision_us = 2.0 ** min(data[_PRECISION], 0) * 1e6
    age_us = utc_us - back
    bound_us = (
        int(abs(offset_us) + trip_us / 2 + data[_DELAY] / 2 + data[_DISPERSION] + precision_us)
        + 1
        - (-(back - sent) * _SLEW_PPM // 1_000_000)
        - (-age_us * ASSUMED_DRIFT_PPM // 1_000_000)
    )
    if bound_us >= UNBOUNDED_US:
        return None, "unbounded"
    return bound_us, "free-running" if age_us > _FREE_RUNNING_US else "bounded"


def _data(message: str) -> list[int] | None:
    """The fields of the message as integers, None if they are malformed."""
    try:
        fields = json.loads(message)["data"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(fields, list) or len(fields) != _FIELDS:
        return None
    numbers = [value if type(value) is int else 0 for value in fields]
    wanted = (_LEAP, _STRATUM, _PRECISION, _DELAY, _DISPERSION, _ORIGINATE, _RECEIVE, _TRANSMIT, _DESTINATION, _PACKETS)
    if any(type(fields[n]) is not int or not -(1 << 63) <= fields[n] < 1 << 63 for n in wanted):
        return None
    return numbers if numbers[_DELAY] >= 0 and numbers[_DISPERSION] >= 0 else None
