"""Times of EPCIS documents: text with a zone, from and to integer microseconds since 1970 UTC."""

import re
from datetime import UTC, datetime, timedelta

from whenabouts_cloud.display_time import moment

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,18}))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_US, _ROUNDED_UP_US = 1_000_000, 999_500


class TimeError(ValueError):
    """A time cannot be written or read; the text says what was found and what is expected."""


def written(us: int) -> str:
    """The time in UTC, with all six digits.

    Raises:
        TimeError: it is outside the years 1 to 9999.

    >>> written(1_795_000_000_000_001)
    '2026-11-18T11:06:40.000001Z'
    """
    time = moment(us)
    if time is None:
        raise TimeError(f"found the time {us} us, expected one in the years 1 to 9999")
    return time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def hashable(us: int, up: bool) -> int:
    """The time, moved by less than a millisecond down or up if its fraction is .9995 s or more.

    GS1's program for event hashes rounds to milliseconds and fails on these, which would round to the next second.
    """
    fraction = us % _SECOND_US
    if fraction < _ROUNDED_UP_US:
        return us
    return us - fraction + (_SECOND_US if up else 999_000)


def read(text: object) -> tuple[int, int]:
    """The last microsecond not after a time, and the first one not before it: the same unless it has more than six digits.

    Raises:
        TimeError: it is no time with a zone.

    >>> read("2026-11-18T13:06:40.0000015+02:00")
    (1795000000000001, 1795000000000002)
    """
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    try:
        if match is None:
            raise ValueError
        second = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
        begin_us = (second - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise TimeError(f"found the time {text!r:.60}, expected one such as 2026-11-18T13:06:40.5+02:00") from None
    digits = (match[2] or "").ljust(6, "0")
    us = begin_us + int(digits[:6])
    return us, us + bool(digits[6:].strip("0"))
