"""The probabilities as native Spark columns: no UDF, so they run inside generated code and combine with everything else.

    within_probability("a_min", "a_max", "b_min", "b_max", 1_000_000)            double
    within_at_least("a_min", "a_max", "b_min", "b_max", 1_000_000, "0.8")        boolean, ties decided exactly

Stamps are integer columns or their names (microseconds, or any one tick; not timestamps), limits are numbers or columns.
A row gives null where a stamp or limit is null or an interval ends before it begins.

`*_probability` is the branch form of the trapezoid (correlation mathematics, section 2) on differences that were taken in
64-bit integers, within 1e-12 of `whenabouts_protocol`. Where a difference does not fit 64 bits, doubles take over: nothing
is raised and nothing wraps, with ANSI mode or without.

`*_at_least` compares that with the confidence as the decimal written. Rows closer to it than GUARD are decided in
DECIMAL(38, 0), which is exact as long as 2 w_a w_b q < 10^38 for lengths w and a confidence p/q: with two decimals, lengths
to 20 000 years; with twelve, to 80 days. Longer ones that close count as reaching it.

Size matters: Spark repeats a subexpression wherever it occurs in a filter or join, and Java stops compiling a method of more
than 8000 bytecodes. So generated code only holds plain arithmetic for stamps and limits within +-2^61; what is rare, wider
stamps and near ties, sits in a lambda of an array function, which Spark evaluates outside generated code and only for those
rows.
"""

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as F

from whenabouts_cloud.correlation.condition import Condition, exact_confidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

    ColumnOrName = Column | str
    Limit = Column | str | int
    Confidence = str | Decimal | Fraction | float | int

GUARD = 1e-9  # doubles err by less than 1e-14
EXACT_LIMIT = 1e38  # of DECIMAL(38, 0)
PLAIN_LIMIT = 1 << 61  # |stamp| and |limit| up to which no sum or difference below leaves 64 bits


def within_probability(
    a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName", d: "Limit"
) -> "Column":
    """P(|Y - X| <= d); 0 for a negative d."""
    return _between(_stamps(a_min, a_max, b_min, b_max), -_limit(d), _limit(d))


def between_probability(
    a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName", lo: "Limit", hi: "Limit"
) -> "Column":
    """P(lo <= Y - X <= hi); 0 when lo > hi."""
    return _between(_stamps(a_min, a_max, b_min, b_max), _limit(lo), _limit(hi))


def deadline_probability(
    a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName", d: "Limit"
) -> "Column":
    """P(Y - X <= d)."""
    return _one_sided(_stamps(a_min, a_max, b_min, b_max), _limit(d), _below)


def delay_probability(
    a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName", d: "Limit"
) -> "Column":
    """P(Y - X >= d). Not 1 - deadline: two points at distance d satisfy both."""
    return _one_sided(_stamps(a_min, a_max, b_min, b_max), _limit(d), _above)


def within_at_least(
    a_min: "ColumnOrName",
    a_max: "ColumnOrName",
    b_min: "ColumnOrName",
    b_max: "ColumnOrName",
    d: "Limit",
    confidence: "Confidence",
) -> "Column":
    """Whether P(|Y - X| <= d) >= confidence, exactly."""
    return between_at_least(a_min, a_max, b_min, b_max, -_limit(d), _limit(d), confidence)


def between_at_least(
    a_min: "ColumnOrName",
    a_max: "ColumnOrName",
    b_min: "ColumnOrName",
    b_max: "ColumnOrName",
    lo: "Limit",
    hi: "Limit",
    confidence: "Confidence",
) -> "Column":
    """Whether P(lo <= Y - X <= hi) >= confidence, exactly."""
    stamps, low, high = _stamps(a_min, a_max, b_min, b_max), _limit(lo), _limit(hi)
    sides = [_below_exact(stamps, high), _above_exact(stamps, low)]
    exact = _reaches(stamps, sides, exact_confidence(confidence)) & (low <= high)
    return _guarded(stamps, _between(stamps, low, high), exact, confidence)


def deadline_at_least(
    a_min: "ColumnOrName",
    a_max: "ColumnOrName",
    b_min: "ColumnOrName",
    b_max: "ColumnOrName",
    d: "Limit",
    confidence: "Confidence",
) -> "Column":
    """Whether P(Y - X <= d) >= confidence, exactly."""
    stamps, limit = _stamps(a_min, a_max, b_min, b_max), _limit(d)
    exact = _reaches(stamps, [_below_exact(stamps, limit)], exact_confidence(confidence))
    return _guarded(stamps, _one_sided(stamps, limit, _below), exact, confidence)


def delay_at_least(
    a_min: "ColumnOrName",
    a_max: "ColumnOrName",
    b_min: "ColumnOrName",
    b_max: "ColumnOrName",
    d: "Limit",
    confidence: "Confidence",
) -> "Column":
    """Whether P(Y - X >= d) >= confidence, exactly."""
    stamps, limit = _stamps(a_min, a_max, b_min, b_max), _limit(d)
    exact = _reaches(stamps, [_above_exact(stamps, limit)], exact_confidence(confidence))
    return _guarded(stamps, _one_sided(stamps, limit, _above), exact, confidence)


def probability_of(
    condition: Condition, a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName"
) -> "Column":
    """The probability of a `Condition`."""
    return between_probability(a_min, a_max, b_min, b_max, condition.lo_us, condition.hi_us)


def holds(
    condition: Condition, a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName"
) -> "Column":
    """Whether a `Condition` holds, exactly."""
    return between_at_least(a_min, a_max, b_min, b_max, condition.lo_us, condition.hi_us, condition.ct)


class _Stamps(NamedTuple):
    """Ends as BIGINT columns, lengths and their sum as doubles."""

    a_min: "Column"
    a_max: "Column"
    b_min: "Column"
    b_max: "Column"
    w_a: "Column"
    w_b: "Column"
    valid: "Column"


def _stamps(a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName") -> _Stamps:
    first, last, low, high = (_bigint(x) for x in (a_min, a_max, b_min, b_max))
    lengths = ((last - first).cast("double"), (high - low).cast("double"))
    return _Stamps(first, last, low, high, *lengths, (first <= last) & (low <= high))


def _bigint(column: "ColumnOrName") -> "Column":
    return (F.col(column) if isinstance(column, str) else column).cast("bigint")


def _limit(limit: "Limit") -> "Column":
    if not isinstance(limit, int):
        return _bigint(limit)
    if not -(1 << 63) < limit < 1 << 63:
        raise ValueError(f"limit: found {limit}, expected a number of 64 bits")
    return F.lit(limit).cast("bigint")


def rarely(value: "Column") -> "Column":
    """The value, evaluated outside generated code."""
    return F.transform(F.array(F.lit(0)), lambda _: value).getItem(0)


def _plain(stamps: _Stamps, *limits: "Column") -> "Column":
    """Whether nothing can overflow."""
    return (F.least(stamps.a_min, stamps.b_min, *limits) >= -PLAIN_LIMIT) & (
        F.greatest(stamps.a_max, stamps.b_max, *limits) <= PLAIN_LIMIT
    )


def _minus(x: "Column", y: "Column") -> "Column":
    """x - y as a double: of the exact integer where it fits 64 bits."""
    return F.coalesce(F.try_subtract(x, y).cast("double"), x.cast("double") - y.cast("double"))


def _wide(stamps: _Stamps) -> _Stamps:
    """The same with lengths that cannot overflow."""
    return stamps._replace(w_a=_minus(stamps.a_max, stamps.a_min), w_b=_minus(stamps.b_max, stamps.b_min))


def _below(stamps: _Stamps, limit: "Column", wide: bool) -> "Column":
    """limit + a_max - b_min as a double."""
    if not wide:
        return (limit + (stamps.a_max - stamps.b_min)).cast("double")
    exact = F.try_add(limit, F.try_subtract(stamps.a_max, stamps.b_min)).cast("double")
    return F.coalesce(exact, limit.cast("double") + _minus(stamps.a_max, stamps.b_min))


def _above(stamps: _Stamps, limit: "Column", wide: bool) -> "Column":
    """b_max - a_min - limit as a double."""
    if not wide:
        return (stamps.b_max - stamps.a_min - limit).cast("double")
    exact = F.try_subtract(F.try_subtract(stamps.b_max, stamps.a_min), limit).cast("double")
    return F.coalesce(exact, _minus(stamps.b_max, stamps.a_min) - limit.cast("double"))


def _one_sided(stamps: _Stamps, limit: "Column", side: "Callable[[_Stamps, Column, bool], Column]") -> "Column":
    few = _cdf(side(stamps, limit, False), stamps.w_a, stamps.w_b)
    wide = _wide(stamps)
    many = _cdf(side(wide, limit, True), wide.w_a, wide.w_b)
    return F.when(stamps.valid, F.when(_plain(stamps, limit), few).otherwise(rarely(many)))


def _between(stamps: _Stamps, low: "Column", high: "Column") -> "Column":
    def both(stamps: _Stamps, wide: bool) -> "Column":
        below = _cdf(_below(stamps, high, wide), stamps.w_a, stamps.w_b)
        above = _cdf(_above(stamps, low, wide), stamps.w_a, stamps.w_b)
        return F.greatest(below + above - F.lit(1.0), F.lit(0.0))  # rounding can leave less than 0

    value = F.when(_plain(stamps, low, high), both(stamps, False)).otherwise(rarely(both(_wide(stamps), True)))
    return F.when(stamps.valid, F.when(low > high, F.lit(0.0)).otherwise(value))


def _cdf(s: "Column", w_a: "Column", w_b: "Column") -> "Column":
    """P(U(0, w_a) + U(0, w_b) <= s). The order of the tests decides ties and points."""
    low, high = F.least(w_a, w_b), F.greatest(w_a, w_b)
    # At least 1: a division by zero raises in ANSI mode even where another branch is taken.
    wide = F.greatest(w_a, w_b, F.lit(1.0))
    area = F.greatest(w_a, F.lit(1.0)) * F.greatest(w_b, F.lit(1.0)) * 2
    rest = w_a + w_b - s
    return (
        F.when(rest <= 0, F.lit(1.0))
        .when(s <= 0, F.lit(0.0))
        .when(s < low, s * s / area)
        .when(s <= high, (s - low / 2) / wide)
        .otherwise(F.lit(1.0) - rest * rest / area)
    )


def _guarded(stamps: _Stamps, probability: "Column", exact: "Column", confidence: "Confidence") -> "Column":
    ct = exact_confidence(confidence)
    threshold = ct.numerator / ct.denominator
    wide = _wide(stamps)
    small_enough = F.lit(2.0 * ct.denominator) * wide.w_a * wide.w_b < EXACT_LIMIT
    decided = rarely(F.when(small_enough, exact).otherwise(F.lit(True)))
    return F.when(F.abs(probability - threshold) < GUARD, decided).otherwise(probability >= threshold)


def _decimal(column: Any, digits: int = 20) -> "Column":
    decimal: Column = column.cast(f"decimal({digits},0)")
    return decimal


def _below_exact(stamps: _Stamps, limit: "Column") -> "Column":
    return _decimal(limit) + _decimal(stamps.a_max) - _decimal(stamps.b_min)


def _above_exact(stamps: _Stamps, limit: "Column") -> "Column":
    return _decimal(stamps.b_max) - _decimal(stamps.a_min) - _decimal(limit)


def _reaches(stamps: _Stamps, sides: "list[Column]", ct: Fraction) -> "Column":
    """Whether the sum of the distributions at `sides`, less one for each but the first, is p/q or more.

    With s clamped to [0, T] and N(s) = s^2 - (s - w_a)+^2 - (s - w_b)+^2 the distribution is N(s) / 2 w_a w_b, s / T where
    one of the two is a point, and s >= 0 where both are (correlation mathematics, sections 2 and 7).
    """
    w_a = _decimal(stamps.a_max) - _decimal(stamps.a_min)
    w_b = _decimal(stamps.b_max) - _decimal(stamps.b_min)
    total, zero = w_a + w_b, _decimal(F.lit(0))
    p, q = _decimal(F.lit(ct.numerator)), _decimal(F.lit(ct.denominator))
    clamped = [F.least(F.greatest(s, zero), total) for s in sides]

    def square(x: "Column") -> "Column":
        return _decimal(x) * _decimal(x)

    def reached(parts: "list[Column]", whole: "Column") -> "Column":
        summed = parts[0] if len(parts) == 1 else parts[0] + parts[1] - whole
        return _decimal(summed, 38) * q >= _decimal(whole, 38) * p

    areas = [square(s) - square(F.greatest(s - w_a, zero)) - square(F.greatest(s - w_b, zero)) for s in clamped]
    atoms = sides[0] >= 0 if len(sides) == 1 else (sides[0] >= 0) & (sides[1] >= 0)
    return (
        F.when(total == 0, atoms)
        .when((w_a == 0) | (w_b == 0), reached(clamped, total))
        .otherwise(reached(areas, _decimal(2 * _decimal(w_a) * _decimal(w_b), 38)))
    )
