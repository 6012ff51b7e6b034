"""Ticks of a time axis: round times in UTC, from years to microseconds, and how many digits their labels need."""

from datetime import UTC, datetime

SECOND, DAY = 1_000_000, 86_400_000_000
STEPS = tuple(
    [digit * 10**power for power in range(6) for digit in (1, 2, 5)]
    + [SECOND * n for n in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)]
    + [DAY * n for n in (1, 2, 7, 14, 30, 91, 182, 365, 730, 1826, 3652, 36524)]
)  # us; from a month on they drift from the calendar, and their labels name the day


def ticks(from_us: int, to_us: int, most: int) -> tuple[int, list[int]]:
    """The least step of which at most `most` ticks lie in a time, and these ticks (us)."""
    step = next((step for step in STEPS if (to_us - from_us) // step < most), STEPS[-1])
    return step, list(range(-(-from_us // step) * step, to_us + 1, step))[:most]


def label(us: int, step_us: int) -> str:
    """A tick as text: the day from steps of a day on, else the time of day with the digits that tell ticks apart."""
    try:
        time = datetime.fromtimestamp(us // SECOND, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{us} us"
    if step_us >= DAY:
        return f"{time:%Y-%m-%d}"
    if step_us >= 60 * SECOND:
        return f"{time:%H:%M}"
    digits = 0 if step_us >= SECOND else next(n for n in range(1, 7) if step_us % 10 ** (6 - n) == 0)
    part = f".{us % SECOND:06d}"[: digits + 1] if digits else ""
    return f"{time:%H:%M:%S}{part}"
