"""Query parameters of a request as checked values.

A parameter comes from anyone who can reach the port: it may be missing, repeated, huge, or no number at all. Each is refused
with a text that says what was found and what was expected. Numbers are plain ASCII digits: `int` would also take spaces,
underscores and digits of other scripts, which no page sends.
"""

import re
from collections.abc import Sequence
from typing import NoReturn

from starlette.datastructures import QueryParams

from whenabouts_cloud.dashboard.answers.timeline_answer import Asked

SAFE = 2**53  # the greatest time in microseconds that a browser's number holds exactly, in the year 2255
INT64 = 2**63
MAX_TEXT = 256  # characters of a name, a key, a search
MAX_PX = 4_000
MAX_LANES = 500
MAX_OFFSET = 10_000_000
MAX_RULES = 50
MAX_SHOWN = 60  # characters of a wrong value in an error
_WHOLE = re.compile(r"-?[0-9]{1,20}")


class ParameterError(ValueError):
    """A parameter is wrong; the text says which, what was found and what was expected."""


def view_of(query: QueryParams) -> Asked:
    """The view of the timeline that a request asks for.

    Raises:
        ParameterError: a parameter is wrong.
    """
    from_us, to_us = times_of(query)
    by = one(query, "by", "reader")
    if by not in ("reader", "tag"):
        refuse("by", by, "reader or tag")
    rules = one(query, "rules", "")
    names = tuple(dict.fromkeys(name for name in rules.split(",") if name))
    if len(names) > MAX_RULES:
        raise ParameterError(f"rules: found {len(names)} names, expected at most {MAX_RULES}")
    return Asked(
        from_us,
        to_us,
        whole(query, "px", 1, MAX_PX, 1000),
        by,
        one(query, "search", ""),
        whole(query, "offset", 0, MAX_OFFSET, 0),
        whole(query, "limit", 1, MAX_LANES, 50),
        names or None,
    )


def times_of(query: QueryParams) -> tuple[int, int]:
    """Parameters from and to: a stretch of time that is not empty."""
    from_us, to_us = whole(query, "from", -SAFE, SAFE), whole(query, "to", -SAFE, SAFE)
    if from_us >= to_us:
        refuse("to", str(to_us), f"a time after from, {from_us}")
    return from_us, to_us


def whole(query: QueryParams, name: str, least: int, greatest: int, default: int | None = None) -> int:
    """A whole number; without a default it is required."""
    text = one(query, name, None if default is None else str(default))
    number = int(text) if _WHOLE.fullmatch(text) else None
    if number is None or not least <= number <= greatest:
        refuse(name, text, f"a whole number from {least} to {greatest}")
    return number


def one(query: QueryParams, name: str, default: str | None = None, longest: int = MAX_TEXT) -> str:
    """A text that is given once; without a default it is required."""
    found: Sequence[str] = query.getlist(name)
    if len(found) > 1:
        raise ParameterError(f"{name}: found {len(found)} values, expected one")
    if not found:
        if default is None:
            raise ParameterError(f"{name}: found nothing, expected {name}=...")
        return default
    text = found[0]
    if len(text) > longest:
        raise ParameterError(f"{name}: found {len(text)} characters, expected at most {longest}")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        refuse(name, text, "text in UTF-8")
    return text


def refuse(name: str, found: str, expected: str) -> NoReturn:
    """Raise the error of a wrong value; a long one is cut, and what does not print is escaped."""
    shown = ascii(found[:MAX_SHOWN]) + ("..." if len(found) > MAX_SHOWN else "")
    raise ParameterError(f"{name}: found {shown}, expected {expected}")
