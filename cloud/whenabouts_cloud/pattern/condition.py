"""The timing condition of a rule, and bounds that exclude intervals which can never satisfy it.

X is uniform in [a_min, a_max], Y in [b_min, b_max], independent of each other, Z = Y - X. Every predicate has one form:

    lo <= Z <= hi   with probability ct or more; a tie is a result, and ct is the decimal that was written.

    within d               lo = -d, hi = d
    between lo, hi         as written
    deadline d, window w   lo = -w, hi = d      b at most d after a
    delay d, window w      lo = d,  hi = w      b at least d after a

Deadline and delay without a window are one-sided: every older (newer) reading would match forever, the result would grow
with the square of the input and one of the two buffers could never be emptied. So they require the other limit.

With M = (b_min + b_max) - (a_min + a_max) - (lo + hi), the doubled distance of the middles from the condition's centre, and
D = hi - lo, the probability depends on |M|, the two lengths and D only: it is that of `within` D/2 for intervals whose
middles are |M|/2 apart. Three facts keep the rest cheap; they hold for every D >= 0 and all lengths, zero included.

*Longest useful interval.* Fix X = x. Y has the constant density 1/w on its length w > 0, and the condition covers at most
D of it, so P <= D/w for every x and therefore for the pair. P >= ct thus needs w <= D/ct, for either of the two intervals.
At D = 0 only points remain, correctly: an interval meets a given instant with probability 0.

*Band.* Let T = w_a + w_b and C the distribution of U(0, w_a) + U(0, w_b). C is convex up to T/2 with C(0) = 0 and
C(T/2) = 1/2, so C(s) <= s/T there, and C(s) < 1/2 for s < T/2. P is at most C((D + T - |M|)/2), so P >= ct needs
C((D + T - |M|)/2) >= ct, hence |M| <= D for ct >= 1/2 and |M| <= D + (1 - 2 ct) T below.

*Exact half width.* For D >= T at most one tail is cut and P = C((D + T - |M|)/2) up to 1, so P >= ct is |M| <= D - 2Q with
Q = s* - T/2, s* the least s with C(s) >= ct.
"""

from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Literal

from whenabouts_protocol import ratio_between

Kind = Literal["within", "between", "deadline", "delay"]
KINDS = ("within", "between", "deadline", "delay")
MAX_DENOMINATOR = 10**12  # of ct: keeps the exact comparison in small integers


@dataclass(frozen=True)
class Condition:
    """A predicate on two uncertain instants with its confidence threshold; times in integer microseconds (or any tick).

    Two conditions are equal if their limits and confidence are equal, in whatever form they were written. confidence is the
    decimal as written: text, Decimal, Fraction, or a float, which counts as its shortest decimal.

    Raises:
        ValueError: the kind is unknown, a limit is missing or contradicts the kind, or the confidence is not within (0, 1].

    >>> Condition("within", d=10, confidence="0.2").holds(0, 100, 40, 41)
    True
    """

    kind: str = field(compare=False)
    d: int | None = field(default=None, kw_only=True, compare=False)
    lo: int | None = field(default=None, kw_only=True, compare=False)
    hi: int | None = field(default=None, kw_only=True, compare=False)
    window: int | None = field(default=None, kw_only=True, compare=False)
    confidence: "str | Decimal | Fraction | float | int" = field(kw_only=True, compare=False)
    lo_us: int = field(init=False, repr=False)
    hi_us: int = field(init=False, repr=False)
    ct: Fraction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        lo, hi = self._limits()
        for name, value in (("lo_us", lo), ("hi_us", hi), ("ct", exact_confidence(self.confidence))):
            object.__setattr__(self, name, value)

    @property
    def doubled_centre(self) -> int:
        """lo + hi: twice the distance b - a in the middle of the condition; 0 for within."""
        return self.lo_us + self.hi_us

    @property
    def width(self) -> int:
        """D = hi - lo; 2d for within."""
        return self.hi_us - self.lo_us

    @property
    def longest_us(self) -> int:
        """No interval longer than this is ever part of a pair; one of exactly this length can be (with a point)."""
        return self.width * self.ct.denominator // self.ct.numerator

    def band(self, length_sum_us: int) -> int:
        """Largest |M| at which intervals of this total length can match, rounded up."""
        slack = max(Fraction(0), 1 - 2 * self.ct) * length_sum_us
        return self.width - (-slack.numerator // slack.denominator)

    def ratio(self, a_min: int, a_max: int, b_min: int, b_max: int) -> tuple[int, int]:
        """The exact probability as (numerator, denominator)."""
        return ratio_between(a_min, a_max, b_min, b_max, self.lo_us, self.hi_us)

    def probability(self, a_min: int, a_max: int, b_min: int, b_max: int) -> float:
        """The probability, correctly rounded."""
        num, den = self.ratio(a_min, a_max, b_min, b_max)
        return num / den

    def holds(self, a_min: int, a_max: int, b_min: int, b_max: int) -> bool:
        """Return True if the pair is a result, decided in integers."""
        return self.is_met(*self.ratio(a_min, a_max, b_min, b_max))

    def is_met(self, num: int, den: int) -> bool:
        """Return True if the exact probability num/den is at least ct; a tie counts."""
        return num * self.ct.denominator >= self.ct.numerator * den

    def _limits(self) -> tuple[int, int]:
        if self.kind not in KINDS:
            raise ValueError(f"condition: found kind {self.kind!r}, expected one of {', '.join(KINDS)}")
        if self.kind == "between":
            lo, hi = self._given("lo", self.lo), self._given("hi", self.hi)
            self._absent(d=self.d, window=self.window)
            if lo > hi:
                raise ValueError(f"between: found lo {lo} above hi {hi}, expected lo <= hi")
            return lo, hi
        self._absent(lo=self.lo, hi=self.hi)
        d = self._given("d", self.d)
        if self.kind == "within":
            self._absent(window=self.window)
            if d < 0:
                raise ValueError(f"within: found d {d}, expected 0 or more")
            return -d, d
        if self.window is None:
            raise ValueError(
                f"{self.kind}: found no window, expected one: the condition is one-sided, so without a second limit every "
                f"{'earlier' if self.kind == 'deadline' else 'later'} reading would match for ever"
            )
        lo, hi = (-self._given("window", self.window), d) if self.kind == "deadline" else (d, self.window)
        if lo > hi:
            raise ValueError(f"{self.kind}: found d {d} outside the window {self.window}, expected it inside")
        return lo, hi

    def _given(self, name: str, value: int | None) -> int:
        if value is None or isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{self.kind}: found {name} = {value!r}, expected a whole number")
        return value

    def _absent(self, **limits: int | None) -> None:
        for name, value in limits.items():
            if value is not None:
                raise ValueError(f"{self.kind}: found {name} = {value}, which belongs to another kind of condition")


def exact_confidence(confidence: "str | Decimal | Fraction | float | int") -> Fraction:
    """The confidence threshold as the exact fraction of the decimal written.

    Raises:
        ValueError: it is not a number in (0, 1], or has more than 12 decimals. At 0 everything would match.

    >>> exact_confidence(0.8)
    Fraction(4, 5)
    """
    text = repr(confidence) if isinstance(confidence, float) else str(confidence)
    try:
        ct = Fraction(confidence) if isinstance(confidence, Fraction) else Fraction(Decimal(text))
    except (InvalidOperation, ValueError, OverflowError):
        raise ValueError(f"confidence: found {confidence!r}, expected a number such as 0.8") from None
    if not 0 < ct <= 1:
        raise ValueError(
            f"confidence: found {confidence!r}, expected more than 0 and at most 1 (at 0 every pair would match)"
        )
    if ct.denominator > MAX_DENOMINATOR:
        raise ValueError(f"confidence: found {confidence!r}, expected at most 12 decimals")
    return ct
