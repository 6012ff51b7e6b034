"""Times, and text from outside, formatted for the lines that commands print."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(us: int) -> datetime | None:
    """Microseconds since 1970 as a time in UTC; None outside the calendar's range."""
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError:  # a wrong clock can be outside the calendar's range
        return None


def date(us: int) -> str | None:
    """The day, as in 2026-01-31; None outside the calendar's range."""
    time = moment(us)
    return f"{time:%Y-%m-%d}" if time else None


def headline(us: int, timespec: str = "milliseconds") -> str:
    """Day and time for the beginning of a line; `timespec` is that of `datetime.isoformat`."""
    time = moment(us)
    return time.isoformat(timespec=timespec).replace("+00:00", "Z") if time else f"{us} us"


def instant(us: int, day: str | None) -> str:
    """Time of day, with the date if it differs from `day`, the date of the line."""
    time = moment(us)
    if time is None:
        return f"{us} us"
    clock = time.time().isoformat(timespec="microseconds")
    return clock if date(us) == day else f"{date(us)}T{clock}"


def shown(text: str | None) -> str:
    """Text from outside, escaped so that it cannot control a terminal; `-` for none."""
    if text is None:
        return "-"
    return text if text.isprintable() else ascii(text)
