"""Uniform, triangular and histogram: distributions on [0, 1] whose density is linear between knots.

One class serves all three: with linear pieces the distribution function is quadratic, its inverse is a root, and
everything that pairs need is a polynomial, so exact probabilities are fractions. `cdf`, `quantile` and `density` take
floats or arrays and are vectorised; the `exact_` functions take and return fractions.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

MAX_BINS = 128  # of a histogram: every bin is a panel of the integral of every pair
MAX_WEIGHT = 10**9  # keeps exact probabilities in moderate integers

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PiecewiseLinear:
    """A density on [0, 1], linear from heights[k][0] to heights[k][1] between knots[k] and knots[k + 1].

    Made by `uniform`, `triangular` and `histogram`.

    Raises:
        ValueError: the knots do not rise from 0 to 1, a height is negative, or the area is not 1.
    """

    knots: tuple[Fraction, ...]
    heights: tuple[tuple[Fraction, Fraction], ...]
    _below: tuple[Fraction, ...] = field(init=False, repr=False, compare=False)  # cdf at the knots
    _grid: Floats = field(init=False, repr=False, compare=False)
    _cdf: Floats = field(init=False, repr=False, compare=False)
    _start: Floats = field(init=False, repr=False, compare=False)
    _slope: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rising = all(x < y for x, y in zip(self.knots, self.knots[1:], strict=False))
        if not (rising and self.knots[0] == 0 and self.knots[-1] == 1 and len(self.heights) == len(self.knots) - 1):
            raise ValueError(f"shape: found knots {[str(x) for x in self.knots]}, expected them to rise from 0 to 1")
        if any(h < 0 for pair in self.heights for h in pair):
            raise ValueError("shape: found a negative density, expected 0 or more everywhere")
        below = [Fraction(0)]
        for width, (left, right) in zip(self._widths(), self.heights, strict=True):
            below.append(below[-1] + width * (left + right) / 2)
        if below[-1] != 1:
            raise ValueError(f"shape: found a density of area {below[-1]}, expected 1")
        slopes = [(r - left) / w for w, (left, r) in zip(self._widths(), self.heights, strict=True)]
        for name, values in (
            ("_grid", self.knots), ("_cdf", below), ("_start", [h[0] for h in self.heights]), ("_slope", slopes)
        ):  # fmt: skip
            object.__setattr__(self, name, np.array([float(x) for x in values]))
        object.__setattr__(self, "_below", tuple(below))

    @property
    def grid(self) -> Floats:
        """Points from 0 to 1 where the formula of the density changes."""
        return self._grid

    @property
    def peak(self) -> float:
        """The largest density."""
        return float(max(max(pair) for pair in self.heights))

    @property
    def support(self) -> tuple[float, float]:
        """The smallest interval of probability 1."""
        filled = [k for k, pair in enumerate(self.heights) if max(pair) > 0]
        return float(self.knots[filled[0]]), float(self.knots[filled[-1] + 1])

    def density(self, u: "Floats | float") -> Floats:
        """Probability density at u; 0 outside [0, 1]."""
        u = np.asarray(u, np.float64)
        k = self._piece(u)
        inside: Floats = np.where((u >= 0) & (u <= 1), self._start[k] + self._slope[k] * (u - self._grid[k]), 0.0)
        return inside

    def cdf(self, u: "Floats | float") -> Floats:
        """P(U <= u)."""
        u = np.clip(np.asarray(u, np.float64), 0.0, 1.0)
        k = self._piece(u)
        along = u - self._grid[k]
        value: Floats = self._cdf[k] + along * (self._start[k] + self._slope[k] * along / 2)
        return value

    def quantile(self, p: float) -> float:
        """The least u with P(U <= u) >= p, for p in [0, 1]; at 0 the start of the support."""
        low, high = self.support
        if p <= 0 or p >= 1:
            return low if p <= 0 else high
        k = int(np.searchsorted(self._cdf, p, side="left")) - 1
        missing, start, slope = p - self._cdf[k], self._start[k], self._slope[k]
        root = max(start * start + 2 * slope * missing, 0.0) ** 0.5
        # This form avoids cancellation; `missing` is positive, so start and root are not both 0.
        return float(min(self._grid[k] + 2 * missing / (start + root), self._grid[k + 1]))

    def exact_density(self, u: Fraction) -> Fraction:
        """The density at a point that is not a knot."""
        k = self._exact_piece(u)
        left, right = self.heights[k]
        return left + (right - left) * (u - self.knots[k]) / (self.knots[k + 1] - self.knots[k])

    def exact_cdf(self, u: Fraction) -> Fraction:
        """P(U <= u)."""
        if u <= 0 or u >= 1:
            return Fraction(int(u >= 1))
        k = self._exact_piece(u)
        left, along = self.heights[k][0], u - self.knots[k]
        slope = (self.heights[k][1] - left) / (self.knots[k + 1] - self.knots[k])
        return self._below[k] + along * (left + slope * along / 2)

    def _widths(self) -> list[Fraction]:
        return [y - x for x, y in zip(self.knots, self.knots[1:], strict=False)]

    def _piece(self, u: Floats) -> npt.NDArray[np.int64]:
        piece: npt.NDArray[np.int64] = np.searchsorted(self._grid[1:-1], u, side="right")
        return piece

    def _exact_piece(self, u: Fraction) -> int:
        return min(bisect_right(self.knots, u) - 1, len(self.heights) - 1)


def uniform() -> PiecewiseLinear:
    """All moments of the interval are equally likely: the default of every stream."""
    return PiecewiseLinear((Fraction(0), Fraction(1)), ((Fraction(1), Fraction(1)),))


def triangular(mode: "Fraction | str | int" = Fraction(1, 2)) -> PiecewiseLinear:
    """Density rising from the start to `mode` (a share of the length) and falling to the end.

    Raises:
        ValueError: the mode is not within [0, 1].

    >>> triangular("0.25").quantile(0.25)
    0.25
    """
    m, zero, one, two = Fraction(mode), Fraction(0), Fraction(1), Fraction(2)
    if not 0 <= m <= 1:
        raise ValueError(f"triangular: found mode {mode}, expected a share of the length from 0 to 1")
    if m in (0, 1):
        return PiecewiseLinear((zero, one), ((two, zero) if m == 0 else (zero, two),))
    return PiecewiseLinear((zero, m, one), ((zero, two), (two, zero)))


def histogram(weights: Sequence[int]) -> PiecewiseLinear:
    """Equal bins over the interval, each with uniform density, with these integer weights.

    Raises:
        ValueError: no bins, too many, a weight below 0 or above MAX_WEIGHT, or no weight at all.

    >>> histogram([1, 3]).cdf(0.5).item()
    0.25
    """
    if not 1 <= len(weights) <= MAX_BINS:
        raise ValueError(f"histogram: found {len(weights)} bins, expected 1 to {MAX_BINS}")
    if any(type(w) is not int or not 0 <= w <= MAX_WEIGHT for w in weights) or not any(weights):
        raise ValueError(f"histogram: found weights {list(weights)!r}, expected integers from 0 to 10^9, not all 0")
    n, total = len(weights), sum(weights)
    levels = [Fraction(w * n, total) for w in weights]
    return PiecewiseLinear(tuple(Fraction(k, n) for k in range(n + 1)), tuple((h, h) for h in levels))
