"""Probabilities as native Spark columns: no UDF, so they run in generated code and combine with other expressions.

    within_probability("a_min", "a_max", "b_min", "b_max", 1_000_000)            double
    within_at_least("a_min", "a_max", "b_min", "b_max", 1_000_000, "0.8")        boolean, ties decided exactly

Stamps are integer columns or their names (microseconds, or any one tick; not timestamps), limits are numbers or columns.
A row gives null where a stamp or limit is null or an interval ends before it begins.

`*_probability` is the trapezoid's distribution (correlation mathematics, section 2), on differences of stamps of any
size that are rounded once: within 1e-12 of `whenabouts_protocol`, without errors or overflow, with or without ANSI mode.

`*_at_least` compares the probability with the confidence as the exact decimal. Rows closer to it than GUARD are decided in
DECIMAL(38, 0), which is exact as long as 2 w_a w_b q < 10^38 for lengths w and a confidence p/q: with two decimals, lengths
to 20 000 years; with twelve, to 80 days. Longer intervals so close to the confidence count as reaching it.

Size matters: Spark repeats a subexpression wherever it occurs in a filter or join, and Java stops compiling a method of more
than 8000 bytecodes and then interprets it. So values that are used more than once are bound to the variable of a lambda
(`let`), differences are summed as doubles, which Spark adds without overflow checks, and null is decided once. The
decision of near ties is kept out of generated code; its operator is therefore not fused with its neighbours.
"""

import functools
import operator
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as F

from whenabouts_cloud.pattern.condition import Condition, exact_confidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

    ColumnOrName = Column | str
    Limit = Column | str | int
    Confidence = str | Decimal | Fraction | float | int

GUARD = 1e-9  # doubles err by less than 1e-14
EXACT_LIMIT = 1e38  # of DECIMAL(38, 0)
LOW_BITS = 32  # of a stamp; sums of three lower or upper halves are exact in doubles


def within_probability(
    a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName", d: "Limit"
) -> "Column":
    """P(|Y - X| <= d); 0 for a negative d."""
    return between_probability(a_min, a_max, b_min, b_max, -_limit(d), _limit(d))


def between_probability(
    a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName", lo: "Limit", hi: "Limit"
) -> "Column":
    """P(lo <= Y - X <= hi); 0 when lo > hi."""
    low, high = _limit(lo), _limit(hi)
    return _between(_stamps(a_min, a_max, b_min, b_max, low, high), low, high)


def deadline_probability(
    a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName", d: "Limit"
) -> "Column":
    """P(Y - X <= d)."""
    limit = _limit(d)
    stamps = _stamps(a_min, a_max, b_min, b_max, limit)
    return _probability(stamps, [_below(stamps, limit)])


def delay_probability(
    a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName", d: "Limit"
) -> "Column":
    """P(Y - X >= d). Not 1 - deadline: two points at distance d satisfy both."""
    limit = _limit(d)
    stamps = _stamps(a_min, a_max, b_min, b_max, limit)
    return _probability(stamps, [_above(stamps, limit)])


def within_at_least(
    a_min: "ColumnOrName",
    a_max: "ColumnOrName",
    b_min: "ColumnOrName",
    b_max: "ColumnOrName",
    d: "Limit",
    confidence: "Confidence",
) -> "Column":
    """True if P(|Y - X| <= d) >= confidence, exactly."""
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
    """True if P(lo <= Y - X <= hi) >= confidence, exactly."""
    low, high = _limit(lo), _limit(hi)
    stamps = _stamps(a_min, a_max, b_min, b_max, low, high)
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
    """True if P(Y - X <= d) >= confidence, exactly."""
    limit = _limit(d)
    stamps = _stamps(a_min, a_max, b_min, b_max, limit)
    exact = _reaches(stamps, [_below_exact(stamps, limit)], exact_confidence(confidence))
    return _guarded(stamps, _probability(stamps, [_below(stamps, limit)]), exact, confidence)


def delay_at_least(
    a_min: "ColumnOrName",
    a_max: "ColumnOrName",
    b_min: "ColumnOrName",
    b_max: "ColumnOrName",
    d: "Limit",
    confidence: "Confidence",
) -> "Column":
    """True if P(Y - X >= d) >= confidence, exactly."""
    limit = _limit(d)
    stamps = _stamps(a_min, a_max, b_min, b_max, limit)
    exact = _reaches(stamps, [_above_exact(stamps, limit)], exact_confidence(confidence))
    return _guarded(stamps, _probability(stamps, [_above(stamps, limit)]), exact, confidence)


def holds(
    condition: Condition, a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName"
) -> "Column":
    """True if a `Condition` holds, exactly."""
    return between_at_least(a_min, a_max, b_min, b_max, condition.lo_us, condition.hi_us, condition.ct)


class _Stamps(NamedTuple):
    """Ends as BIGINT columns; `valid` is True if both are intervals and no limit is null."""

    a_min: "Column"
    a_max: "Column"
    b_min: "Column"
    b_max: "Column"
    valid: "Column"

    @property
    def lengths(self) -> "tuple[Column, Column]":
        """Lengths of a and b, as doubles."""
        return _total(self.a_max, minus=(self.a_min,)), _total(self.b_max, minus=(self.b_min,))


Side = tuple["Column", "Column"]
"""Cut of the trapezoid by one limit: the part inside and the rest, as doubles; their sum is the whole width."""


def _stamps(
    a_min: "ColumnOrName", a_max: "ColumnOrName", b_min: "ColumnOrName", b_max: "ColumnOrName", *limits: "Column"
) -> _Stamps:
    first, last, low, high = (_bigint(x) for x in (a_min, a_max, b_min, b_max))
    valid = (first <= last) & (low <= high)
    return _Stamps(first, last, low, high, functools.reduce(operator.and_, (x.isNotNull() for x in limits), valid))


def _bigint(column: "ColumnOrName") -> "Column":
    return (F.col(column) if isinstance(column, str) else column).cast("bigint")


def _limit(limit: "Limit") -> "Column":
    if not isinstance(limit, int):
        return _bigint(limit)
    if not -(1 << 63) < limit < 1 << 63:
        raise ValueError(f"limit: found {limit}, expected a number of 64 bits")
    return F.lit(limit).cast("bigint")


def let(values: "dict[str, Column]", body: "Callable[[dict[str, Column]], Column]") -> "Column":
    """Return `body` of the values, each computed once: they are the variable of a lambda over an array of one row."""
    row = F.struct(*(value.alias(name) for name, value in values.items()))
    return F.transform(F.array(row), lambda bound: body({name: bound.getField(name) for name in values})).getItem(0)


def _rarely(value: "Column") -> "Column":
    """The value, evaluated outside generated code: Spark does not generate the lambda of `zip_with`."""
    one = F.array(F.lit(0))
    return F.zip_with(one, one, lambda _, __: value).getItem(0)


def _total(*plus: "Column", minus: "tuple[Column, ...]") -> "Column":
    """Sum of `plus` minus the sum of `minus`, at most three columns in all, as a double rounded once; nulls count as 0."""

    def summed(half: "Callable[[Column], Column]") -> "Column":
        total = F.lit(0.0)
        for x in plus:
            total = total + half(F.coalesce(x, F.lit(0))).cast("double")
        for x in minus:
            total = total - half(F.coalesce(x, F.lit(0))).cast("double")
        return total

    upper = summed(lambda x: F.shiftright(x, LOW_BITS))
    lower = summed(lambda x: x.bitwiseAND(F.lit((1 << LOW_BITS) - 1)))
    return upper * float(1 << LOW_BITS) + lower


def _below(stamps: _Stamps, limit: "Column") -> Side:
    """limit + a_max - b_min, and the rest of the width."""
    return _total(limit, stamps.a_max, minus=(stamps.b_min,)), _total(stamps.b_max, minus=(stamps.a_min, limit))


def _above(stamps: _Stamps, limit: "Column") -> Side:
    """b_max - a_min - limit, and the rest of the width."""
    part, rest = _below(stamps, limit)
    return rest, part


def _between(stamps: _Stamps, low: "Column", high: "Column") -> "Column":
    whole = _probability(stamps, [_below(stamps, high), _above(stamps, low)])
    return F.when(low > high, F.when(stamps.valid, F.lit(0.0))).otherwise(whole)


def _probability(stamps: _Stamps, sides: "list[Side]") -> "Column":
    lengths = dict(zip(("w_a", "w_b"), stamps.lengths, strict=True))
    return F.when(stamps.valid, let(lengths, lambda x: share(x["w_a"], x["w_b"], sides)))


def share(w_a: "Column", w_b: "Column", sides: "list[Side]") -> "Column":
    """Sum of the distributions of U(0, w_a) + U(0, w_b) at the sides, minus one for each but the first; all doubles.

    With lo, hi the shorter and the longer length and 0 <= s <= lo + hi = s + r the distribution is
    (min(s, lo)^2 - min(r, lo)^2) / 2 lo hi + (min(max(s, lo), hi) - lo/2) / hi. Where s or r is 0 or less it is 0 or 1;
    that is tested first, so that points and ties are exact; for two points no other case occurs.
    """
    count = len(sides)
    values = {"low": F.least(w_a, w_b), "high": F.greatest(w_a, w_b)}
    values |= {f"part{n}": part for n, (part, _) in enumerate(sides)}
    values |= {f"rest{n}": rest for n, (_, rest) in enumerate(sides)}

    def distribution(x: "dict[str, Column]") -> "Column":
        low, high = x["low"], x["high"]
        # At least 1: a division by zero raises in ANSI mode even where another branch is taken.
        height = F.greatest(high, F.lit(1.0))
        area = F.greatest(low, F.lit(1.0)) * height * 2
        pairs = [(x[f"part{n}"], x[f"rest{n}"]) for n in range(count)]
        corners, middles = F.lit(0.0), F.lit(0.0)
        for part, rest in pairs:
            corners = corners + _square(F.least(part, low)) - _square(F.greatest(F.least(rest, low), F.lit(0.0)))
            middles = middles + F.least(F.greatest(part, low), high)
        value = corners / area + (middles - low * (count / 2)) / height - (count - 1.0)
        all_of_it = functools.reduce(operator.and_, (rest <= 0 for _, rest in pairs))
        none_of_it = functools.reduce(operator.or_, (part <= 0 for part, _ in pairs))
        # Rounding can give less than 0.
        return F.when(all_of_it, F.lit(1.0)).when(none_of_it, F.lit(0.0)).otherwise(F.greatest(value, F.lit(0.0)))

    return let(values, distribution)


def _square(x: "Column") -> "Column":
    """x * x with only one occurrence of x; Java's power with exponent 2 is that product."""
    return F.pow(x, F.lit(2.0))


def _guarded(stamps: _Stamps, probability: "Column", exact: "Column", confidence: "Confidence") -> "Column":
    ct = exact_confidence(confidence)
    threshold = ct.numerator / ct.denominator
    w_a, w_b = stamps.lengths
    small_enough = F.lit(2.0 * ct.denominator) * w_a * w_b < EXACT_LIMIT
    decided = _rarely(F.when(small_enough, exact).otherwise(F.lit(True)))

    def compared(x: "dict[str, Column]") -> "Column":
        return F.when(F.abs(x["p"] - threshold) < GUARD, decided).otherwise(x["p"] >= threshold)

    return let({"p": probability}, compared)


def _decimal(column: Any, digits: int = 20) -> "Column":
    decimal: Column = column.cast(f"decimal({digits},0)")
    return decimal


def _below_exact(stamps: _Stamps, limit: "Column") -> "Column":
    return _decimal(limit) + _decimal(stamps.a_max) - _decimal(stamps.b_min)


def _above_exact(stamps: _Stamps, limit: "Column") -> "Column":
    return _decimal(stamps.b_max) - _decimal(stamps.a_min) - _decimal(limit)


def _reaches(stamps: _Stamps, sides: "list[Column]", ct: Fraction) -> "Column":
    """True if the sum of the distributions at `sides`, minus one for each but the first, is p/q or more.

    With s clamped to [0, T] and N(s) = s^2 - (s - w_a)+^2 - (s - w_b)+^2 the distribution is N(s) / 2 w_a w_b, s / T if
    one of the two is a point, and s >= 0 if both are (correlation mathematics, sections 2 and 7).
    """
    values = {"w_a": _decimal(stamps.a_max) - _decimal(stamps.a_min)}
    values |= {"w_b": _decimal(stamps.b_max) - _decimal(stamps.b_min)}
    values |= {f"s{n}": side for n, side in enumerate(sides)}
    p, q, zero = (_decimal(F.lit(x)) for x in (ct.numerator, ct.denominator, 0))

    def reached(parts: "list[Column]", whole: "Column") -> "Column":
        summed = parts[0] if len(parts) == 1 else parts[0] + parts[1] - whole
        return _decimal(summed, 38) * q >= _decimal(whole, 38) * p

    def area(s: "Column", w_a: "Column", w_b: "Column") -> "Column":
        corners = {"s": s, "a": F.greatest(s - w_a, zero), "b": F.greatest(s - w_b, zero)}
        return let(corners, lambda x: _product(x["s"], x["s"]) - _product(x["a"], x["a"]) - _product(x["b"], x["b"]))

    def decided(x: "dict[str, Column]") -> "Column":
        w_a, w_b = x["w_a"], x["w_b"]
        raw = [x[f"s{n}"] for n in range(len(sides))]
        clamped = [F.least(F.greatest(s, zero), w_a + w_b) for s in raw]
        atoms = functools.reduce(operator.and_, (s >= 0 for s in raw))
        return (
            F.when((w_a == 0) & (w_b == 0), atoms)
            .when((w_a == 0) | (w_b == 0), reached(clamped, w_a + w_b))
            .otherwise(reached([area(s, w_a, w_b) for s in clamped], _decimal(2 * _product(w_a, w_b), 38)))
        )

    return let(values, decided)


def _product(x: "Column", y: "Column") -> "Column":
    return _decimal(x) * _decimal(y)
