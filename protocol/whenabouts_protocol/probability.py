"""Probability that two uncertain instants satisfy a timing predicate.

X is uniform in [a_min, a_max], Y uniform in [b_min, b_max], independent; the predicates are on Z = Y - X:

    deadline d   Z <= d            within d        -d <= Z <= d
    delay d      Z >= d            between lo, hi  lo <= Z <= hi

All of them come from one primitive, the distribution C of the sum of two uniforms (a trapezoid), kept as an exact ratio
of integers: `ratio_*` give (numerator, denominator), `prob_*` divide once. To compare with a confidence p/q, use
integers, `num * q >= p * den`: ties are then decided exactly. Source: Theorem 1 of "Lazy Approaches for Interval Timing
Correlation" (2010). The form used here is also right for zero lengths and for d smaller than the lengths, where the
paper's Corollaries 1 and 3 do not hold: within is F + G - 1, never F(d) - F(-d), which loses the atoms of two points.
"""


def _cdf(s: int, w1: int, w2: int) -> "tuple[int, int]":
    """P(U(0, w1) + U(0, w2) <= s) as an exact ratio. The order of the tests decides ties and points."""
    total = w1 + w2
    if s >= total:
        return 1, 1
    if s <= 0:
        return 0, 1
    lo, hi = (w1, w2) if w1 <= w2 else (w2, w1)
    if s < lo:
        return s * s, 2 * lo * hi
    if s <= hi:
        return 2 * s - lo, 2 * hi
    area = 2 * lo * hi
    return area - (total - s) * (total - s), area


def _check(a_min: int, a_max: int, b_min: int, b_max: int) -> None:
    if a_min > a_max or b_min > b_max:
        raise ValueError(
            f"intervals: found [{a_min}, {a_max}] and [{b_min}, {b_max}], expected the minimum first in both"
        )


def ratio_deadline(a_min: int, a_max: int, b_min: int, b_max: int, d: int) -> "tuple[int, int]":
    """P(Y - X <= d) as (numerator, denominator)."""
    _check(a_min, a_max, b_min, b_max)
    return _cdf(d + a_max - b_min, a_max - a_min, b_max - b_min)


def ratio_delay(a_min: int, a_max: int, b_min: int, b_max: int, d: int) -> "tuple[int, int]":
    """P(Y - X >= d) as (numerator, denominator). Not 1 - deadline: two points at distance d satisfy both."""
    _check(a_min, a_max, b_min, b_max)
    return _cdf(b_max - a_min - d, a_max - a_min, b_max - b_min)


def ratio_between(a_min: int, a_max: int, b_min: int, b_max: int, lo: int, hi: int) -> "tuple[int, int]":
    """P(lo <= Y - X <= hi) as (numerator, denominator); 0 when lo > hi, an empty condition."""
    f_num, f_den = ratio_deadline(a_min, a_max, b_min, b_max, hi)
    g_num, g_den = ratio_delay(a_min, a_max, b_min, b_max, lo)
    if lo > hi:
        return 0, 1
    if f_den == g_den:
        return f_num + g_num - f_den, f_den
    return f_num * g_den + g_num * f_den - f_den * g_den, f_den * g_den


def ratio_within(a_min: int, a_max: int, b_min: int, b_max: int, d: int) -> "tuple[int, int]":
    """P(|Y - X| <= d) as (numerator, denominator); 0 for a negative d."""
    return ratio_between(a_min, a_max, b_min, b_max, -d, d)


def prob_deadline(a_min: int, a_max: int, b_min: int, b_max: int, d: int) -> float:
    """P(Y - X <= d): b happens at most d after a, or before it.

    >>> prob_deadline(0, 100, 40, 41, 10)
    0.695
    """
    num, den = ratio_deadline(a_min, a_max, b_min, b_max, d)
    return num / den


def prob_delay(a_min: int, a_max: int, b_min: int, b_max: int, d: int) -> float:
    """P(Y - X >= d): b happens at least d after a.

    >>> prob_delay(0, 0, 10, 10, 10)
    1.0
    """
    num, den = ratio_delay(a_min, a_max, b_min, b_max, d)
    return num / den


def prob_within(a_min: int, a_max: int, b_min: int, b_max: int, d: int) -> float:
    """P(|Y - X| <= d): the two happen at most d apart.

    >>> prob_within(0, 100, 40, 41, 10)
    0.2
    """
    num, den = ratio_within(a_min, a_max, b_min, b_max, d)
    return num / den


def prob_between(a_min: int, a_max: int, b_min: int, b_max: int, lo: int, hi: int) -> float:
    """P(lo <= Y - X <= hi): b follows a by at least lo and at most hi.

    >>> prob_between(0, 10, 5, 5, 0, 10)
    0.5
    """
    num, den = ratio_between(a_min, a_max, b_min, b_max, lo, hi)
    return num / den
