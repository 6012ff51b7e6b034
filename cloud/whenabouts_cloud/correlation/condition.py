"""The condition `|@a - @b| <= d OVER ct`, and what follows from it for intervals that can never satisfy it.

X is uniform in [a_min, a_max], Y in [b_min, b_max], both independent; a pair is a result iff P(|Y - X| <= d) >= ct, and a
tie is a result. Times are integer microseconds and ct is the decimal that was written, as an exact fraction.

Two bounds make everything else cheap. Both hold for every d >= 0 and all lengths, zero included.

*Longest useful interval.* Fix X = x. Y has the constant density 1/w on its length w > 0, and {|Y - x| <= d} covers at
most 2d of it, so P <= 2d/w for every x and therefore for the pair. P >= ct thus needs w <= 2d/ct, for either of the two
intervals. Points (w = 0) always pass. At d = 0 only points are left, rightly: an interval meets a given instant with
probability 0.

*Band.* Let m be the difference of the middles, T = w_a + w_b, and C the distribution of U(0,w_a) + U(0,w_b). C is convex up
to T/2 with C(0) = 0, C(T/2) = 1/2, so C(s) <= s/T there, and by symmetry C(s) < 1/2 for s < T/2. P is at most
P(Z <= d) = C(d + T/2 - m) and likewise with -m, so P >= ct needs C(d + T/2 - |m|) >= ct, hence
|m| <= d for ct >= 1/2 and |m| <= d + (1/2 - ct) T below; in doubled middles, |m'| <= 2d + max(0, 1 - 2 ct) T.
(d + T/2 - |m| >= T gives |m| <= d - T/2, which is inside both.)
"""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Within:
    """At most `d_us` apart with probability at least `ct`.

    Raises:
        ValueError: d_us is negative or ct is not within (0, 1]; at ct = 0 every pair would match.
    """

    d_us: int
    ct: Fraction

    def __post_init__(self) -> None:
        if self.d_us < 0:
            raise ValueError(f"distance: found {self.d_us} us, expected 0 or more")
        if not 0 < self.ct <= 1:
            raise ValueError(f"confidence threshold: found {self.ct}, expected more than 0 and at most 1")

    @property
    def longest_us(self) -> int:
        """No interval longer than this is ever part of a pair; one of exactly this length can be (with a point)."""
        return 2 * self.d_us * self.ct.denominator // self.ct.numerator

    def band(self, length_sum_us: int) -> int:
        """Largest difference of doubled middles at which intervals of this total length can match, rounded up."""
        slack = max(Fraction(0), 1 - 2 * self.ct) * length_sum_us
        return 2 * self.d_us - (-slack.numerator // slack.denominator)

    def is_met(self, num: int, den: int) -> bool:
        """Whether the exact probability num/den reaches ct; a tie does."""
        return num * self.ct.denominator >= self.ct.numerator * den
