"""The truncated normal distribution on [0, 1]: a bell inside the interval, for clocks whose errors add up from many sources.

The vectorised normal distribution function is a table of math.erfc at steps of 1/64 with the Taylor polynomial of degree 5
around the nearest one. Its remainder is below max|He5 phi| / 6! * (1/128)^6 < 2.4 / 720 / 4.4e12 < 1e-15.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

SIGMA_MIN, SIGMA_MAX = 0.02, 10.0  # below, the interval is far too wide; above, the density is uniform within 0.25 %
TAIL = 8.5  # standard deviations: the 1e-17 beyond is taken as 0
STEPS = 64  # of the table per unit

Floats = npt.NDArray[np.float64]

_AT = np.arange(-round(TAIL * STEPS), round(TAIL * STEPS) + 1) / STEPS
_BELOW = np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in _AT])
_DENSITY = np.exp(-_AT * _AT / 2) / math.sqrt(2 * math.pi)


def normal_cdf(x: Floats) -> Floats:
    """P(N(0, 1) <= x) to 2e-15, elementwise; exactly constant beyond TAIL."""
    x = np.clip(x, -TAIL, TAIL)
    k = np.rint((x + TAIL) * STEPS).astype(np.int64)
    t = _AT[k]
    h = x - t
    # phi's derivatives are Hermite polynomials times phi: -t, t^2 - 1, -(t^3 - 3 t), t^4 - 6 t^2 + 3.
    tt = t * t
    series = (tt * (tt - 6) + 3) / 120
    series = -t * (tt - 3) / 24 + h * series
    series = (tt - 1) / 6 + h * series
    series = -t / 2 + h * series
    value: Floats = _BELOW[k] + h * _DENSITY[k] * (1 + h * series)
    return value


@dataclass(frozen=True)
class TruncatedNormal:
    """Normal distribution with this mean and standard deviation, both as shares of the interval's length, given u in [0, 1].

    Raises:
        ValueError: the mean is not within [0, 1], or sigma not within [0.02, 10].

    >>> TruncatedNormal().quantile(0.5)
    0.5
    """

    mean: float = 0.5
    sigma: float = 0.25
    _cut: float = field(init=False, repr=False, compare=False)  # normal probability below 0
    _mass: float = field(init=False, repr=False, compare=False)  # and inside [0, 1]

    def __post_init__(self) -> None:
        if not 0 <= self.mean <= 1:
            raise ValueError(f"truncated normal: found mean {self.mean}, expected a share of the length from 0 to 1")
        if not SIGMA_MIN <= self.sigma <= SIGMA_MAX:
            raise ValueError(
                f"truncated normal: found sigma {self.sigma}, expected a share of the length from {SIGMA_MIN} to {SIGMA_MAX}"
            )
        cut, to = normal_cdf((np.array([0.0, 1.0]) - self.mean) / self.sigma)
        object.__setattr__(self, "_cut", float(cut))
        object.__setattr__(self, "_mass", float(to - cut))

    @property
    def grid(self) -> Floats:
        """Panel borders from 0 to 1, at most one standard deviation apart where the density is not negligible."""
        inside = self.mean + self.sigma * np.arange(-TAIL, TAIL + 0.5)
        return np.concatenate([[0.0], inside[(inside > 0) & (inside < 1)], [1.0]])

    @property
    def peak(self) -> float:
        """The largest density, at the mean, which is inside."""
        return 1 / (math.sqrt(2 * math.pi) * self.sigma * self._mass)

    @property
    def support(self) -> tuple[float, float]:
        """The whole interval."""
        return 0.0, 1.0

    def density(self, u: "Floats | float") -> Floats:
        """Probability density at u; 0 outside [0, 1]."""
        u = np.asarray(u, np.float64)
        z = (u - self.mean) / self.sigma
        inside: Floats = np.where((u >= 0) & (u <= 1), self.peak * np.exp(-z * z / 2), 0.0)
        return inside

    def cdf(self, u: "Floats | float") -> Floats:
        """P(U <= u)."""
        u = np.clip(np.asarray(u, np.float64), 0.0, 1.0)
        value: Floats = (normal_cdf((u - self.mean) / self.sigma) - self._cut) / self._mass
        return np.clip(value, 0.0, 1.0)

    def quantile(self, p: float) -> float:
        """The u with P(U <= u) = p, for p in [0, 1], by bisection."""
        if p <= 0 or p >= 1:
            return float(p >= 1)
        low, high = 0.0, 1.0
        while (middle := (low + high) / 2) not in (low, high):
            low, high = (middle, high) if self.cdf(middle) < p else (low, middle)
        return high
