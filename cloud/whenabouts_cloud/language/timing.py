"""Converts durations, thresholds and predicates from parse trees to exact limits.

Every predicate becomes limits lo <= @b - @a <= hi, so all forms of one condition give the same rule.
"""

import difflib
from fractions import Fraction
from typing import Any

from lark import Token

from whenabouts_cloud.language.errors import Mistake
from whenabouts_cloud.pattern.condition import Condition

UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
MAX_DURATION_US = 10 * 366 * 24 * UNITS_US["h"]  # ten years: far above any use, far below the limits of int64
MAX_DECIMALS = 12  # of a confidence: keeps the exact comparison in small integers


class UnreadableError(Exception):
    """A mistake that has been noted; the expression around it cannot be read."""


class Notes:
    """Collects mistakes with their places."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        self.mistakes = mistakes

    def add(self, where: Any, text: str) -> None:
        """Note a mistake at a token or tree."""
        at: Any = where if isinstance(where, Token) else where.meta
        self.mistakes.append(Mistake(at.line, at.column, text))

    def unreadable(self, where: Any, text: str) -> UnreadableError:
        """Note a mistake and return the error to raise, which ends the reading of the expression."""
        self.add(where, text)
        return UnreadableError()


def duration(tree: Any, notes: Notes, signed: bool = False) -> int | None:
    """Read a duration in microseconds, or return None with a note."""
    *sign, number, unit = tree.children
    if unit not in UNITS_US:
        near = difflib.get_close_matches(unit.lower(), [*UNITS_US, "sec", "hour"], n=1)
        names = {"sec": "s", "hour": "h"}
        hint = f"; did you mean {names.get(near[0], near[0])}?" if near else ""
        notes.add(unit, f"found the unit {unit}, expected us, ms, s, min or h{hint}")
        return None
    value = Fraction(str(number)) * UNITS_US[str(unit)]
    if sign and not signed:
        notes.add(sign[0], f"found -{number} {unit}, expected 0 or more")
    elif value.denominator != 1:
        notes.add(number, f"found {number} {unit}, expected whole microseconds")
    elif value > MAX_DURATION_US:
        notes.add(number, f"found {number} {unit}, expected at most ten years")
    else:
        return -int(value) if sign else int(value)
    return None


def confidence(tree: Any, notes: Notes) -> Fraction | None:
    """Read a confidence as its exact decimal, or return None with a note."""
    number, percent = tree.children[0], len(tree.children) == 2
    value = Fraction(str(number)) / (100 if percent else 1)
    decimals = len(str(number).partition(".")[2])
    if decimals > MAX_DECIMALS:
        notes.add(number, f"found {decimals} decimals, expected at most {MAX_DECIMALS}")
    elif value == 0:
        notes.add(number, "found OVER 0, expected more than 0: at 0 every reading pairs with every other one")
    elif value > 1:
        hint = f"; did you mean {number} %?" if not percent and value <= 100 else ""
        notes.add(number, f"found OVER {number}{' %' if percent else ''}, expected at most 1 or 100 %{hint}")
    else:
        return value
    return None


def condition(predicate: Any, window: Any, ct: Fraction | None, aliases: tuple[str, str], notes: Notes) -> Any:
    """Read a predicate with its window (or None), for the aliases of streams a and b, as a Condition, or return None."""
    first, second = (x.children[0] for x in predicate.children if x.data == "moment")
    _check_moments(first, second, aliases, notes)
    window_us = None if window is None else duration(window.children[0], notes)
    if predicate.data in ("within", "between"):
        if window is not None:
            notes.add(window, "found WITHIN, expected none: the condition has both its limits")
        limits = _within(predicate, notes) if predicate.data == "within" else _between(predicate, notes)
        if limits is not None and predicate.data == "between" and str(first) == aliases[0]:
            limits = -limits[1], -limits[0]
    else:
        limits = _one_sided(predicate, window, window_us, str(first) == aliases[0], notes)
    if limits is None or ct is None:
        return None
    if limits[0] == -limits[1]:
        return Condition("within", d=limits[1], confidence=ct)
    return Condition("between", lo=limits[0], hi=limits[1], confidence=ct)


def either(names: set[str], sign: str = "") -> str:
    """Join the names with "or"."""
    return " or ".join(sign + name for name in sorted(names))


def _check_moments(first: Token, second: Token, aliases: tuple[str, str], notes: Notes) -> None:
    known = set(aliases)
    if len(known) < 2:
        return  # equal aliases are noted as a mistake already
    for moment in (first, second):
        if moment not in known:
            notes.add(moment, f"found @{moment}, expected {either(known, '@')}")
    if first == second and second in known:
        notes.add(second, f"found @{second} twice, expected {either(known - {str(first)}, '@')}")


def _within(predicate: Any, notes: Notes) -> tuple[int, int] | None:
    d = duration(predicate.children[2], notes)
    return None if d is None else (-d, d)


def _between(predicate: Any, notes: Notes) -> tuple[int, int] | None:
    low, high = (duration(x, notes, signed=True) for x in predicate.children[2:])
    if low is None or high is None:
        return None
    if low > high:
        notes.add(predicate.children[2], f"found IN [{low} us, {high} us], expected the lower limit first")
        return None
    return low, high


def _one_sided(
    predicate: Any, window: Any, window_us: int | None, from_a: bool, notes: Notes
) -> tuple[int, int] | None:
    """Limits of `@x + d >= @y`: x = a bounds @b - @a above, x = b below; the window is the limit on the other side."""
    d = duration(predicate.children[1], notes, signed=True)
    if window is None:
        other = "earlier" if from_a else "later"
        notes.add(
            predicate,
            "found a one-sided condition without WITHIN, expected one before OVER, as in WITHIN 1 h: without a second "
            f"limit every {other} reading would match for ever",
        )
        return None
    if d is None or window_us is None:
        return None
    if window_us == 0:
        notes.add(window, "found WITHIN 0, expected more than 0")
        return None
    later = d if predicate.data == "shifted_later" else -d
    low, high = (-window_us, later) if from_a else (-later, window_us)
    if low > high:
        notes.add(window, f"found WITHIN {window_us} us, expected at least {abs(later)} us: nothing lies in between")
        return None
    return low, high
