"""A pair as one line for people."""

from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def pair_text(pair: dict[str, Any]) -> str:
    """When, what, who and how surely, from a row of `pairs.RESULT`; a reading of a that is in no pair says so.

    >>> a = {"a_stream": "dock", "a_site": "s", "a_gateway": "g", "a_t_min": 0, "a_t_max": 1500}
    >>> b = {"b_stream": "shelf", "b_site": "s", "b_gateway": "h", "b_t_min": 0, "b_t_max": 20}
    >>> pair_text({**a, **b, "key": None, "probability": 0.9}).split("  ")[2:]
    ['dock@s/g 00:00:00.000000..00:00:00.001500', 'shelf@s/h 00:00:00.000000..00:00:00.000020', 'p=0.9000']
    """
    both = "a" if pair["b_site"] is None else "ab"
    first = min(pair[f"{x}_t_min"] for x in both)
    day = _date(first)
    sides = "  ".join(
        f"{_shown(pair[f'{x}_stream'])}@{pair[f'{x}_site']}/{pair[f'{x}_gateway']} "
        f"{_instant(pair[f'{x}_t_min'], day)}..{_instant(pair[f'{x}_t_max'], day)}"
        for x in both
    )
    surely = "unmatched" if both == "a" else f"p={pair['probability']:.4f}"
    return f"{_headline(first)}  {_shown(pair['key'])}  {sides}  {surely}"


def _time(us: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError:  # a clock can be wrong by more than calendars go
        return None


def _date(us: int) -> str | None:
    time = _time(us)
    return f"{time:%Y-%m-%d}" if time else None


def _headline(us: int) -> str:
    time = _time(us)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z") if time else f"{us} us"


def _instant(us: int, day: str | None) -> str:
    """Time of day, with the date where it is not that of the line."""
    time = _time(us)
    if time is None:
        return f"{us} us"
    clock = time.time().isoformat(timespec="microseconds")
    return clock if _date(us) == day else f"{_date(us)}T{clock}"


def _shown(text: str | None) -> str:
    """Text from outside, such that it cannot steer a terminal; `-` for none."""
    if text is None:
        return "-"
    return text if text.isprintable() else ascii(text)
