"""L_H, L_L, R_L, R_H: limits between the targets that certainly match a base interval, never match, and must be probed.

After Section 4 of "Online Timing Correlation of Streaming Data with Uncertain Timestamps" (2009), Figures 1 and 2, which
leave it at "rearrange the formulae". Closed form: let C be the distribution of U(0, w1) + U(0, w2) and s*(w1, w2) the least
s with C(s) >= ct. For a base [a1, b1] and targets of length rho..pi under |Y - X| <= d, on the target's maximum:

    L_H = a1 - d + s*(w1, rho)          R_L = b1 + d + rho - s*(w1, rho)
    L_L = a1 - d + s*(w1, pi)           R_H = b1 + d + pi - s*(w1, pi)

Below L_H and above R_H nothing matches, for every d >= 0; between L_L and R_L everything does if 2d >= w1 + pi (the papers
ask d >= pi). Ordered by middle instead: never if the doubled distance of the middles exceeds max K(w1, w2) over the target
lengths w2, sure up to min K, with K = 2d + w1 + w2 - 2 s*(w1, w2). s* - (w1 + w2)/2 is monotone in either length (up for
ct >= 1/2, down for ct <= 1/2), so both extremes are at the corners. Any lo <= Y - X <= hi is this case with 2d = hi - lo and
the target moved by (lo + hi)/2; all values are computed doubled, to stay in integers.

Rounding: a limit is moved outward (candidates) or inward (sure) by two ticks plus 2^-40 of the lengths, far above the
rounding of the square root; targets between the limits go to the exact test. So no float decides.

Cost: the limits depend only on the base's length, so they are tabulated: the range of lengths is cut into at most STEPS
classes, each with limits valid for all its lengths (s* and w - s* grow with w). At 1024 classes a probe region is at most
0.4 % wider than that of the length itself. A table takes 5 ms, and is made once for equal lengths.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from whenabouts_cloud.pattern.condition import Condition

STEPS = 1024  # classes of base lengths in a table
TABLES_KEPT = 16  # tables of each kind in the cache: equal streams, and all keys of a rule, share tables
Order = Literal["max", "middle"]
Row = tuple[int, int, int, int]  # from, sure from, sure to, to: inclusive, relative to the base


def least_sum(w1: int, w2: int, ct: float) -> float:
    """s*: the least s with P(U(0, w1) + U(0, w2) <= s) >= ct.

    >>> least_sum(100, 0, 0.8)
    80.0
    """
    low, high = (w1, w2) if w1 <= w2 else (w2, w1)
    if high == 0:
        return 0.0
    edge = low / (2 * high)
    if ct <= edge:
        return math.sqrt(2 * ct * low * high)
    if ct >= 1 - edge:
        return low + high - math.sqrt(2 * (1 - ct) * low * high)
    return ct * high + low / 2


@dataclass(frozen=True)
class Lengths:
    """Shortest (rho) and longest (pi) interval of a stream."""

    rho: int
    pi: int

    def with_length(self, length: int) -> "Lengths":
        """The range that also has this length."""
        return Lengths(min(self.rho, length), max(self.pi, length))


@dataclass(frozen=True)
class Limits:
    """Limits on targets for every length of a base; `rows[(length - rho) // step]` belongs to a base.

    In max order a row is relative to the base's minimum and limits the target's maximum; in middle order it is relative
    to the base's doubled middle and limits the target's. An empty sure range has its start above its end.
    one_tail: no length allows both tails to be cut, the condition under which the papers' corollaries hold.
    """

    rho: int
    step: int
    rows: list[Row]
    one_tail: bool

    def row(self, length: int) -> Row:
        """Return the limits of a base of this length."""
        return self.rows[(length - self.rho) // self.step]


@lru_cache(TABLES_KEPT)
def limits(condition: Condition, order: Order, *, base_in_a: bool, base: Lengths, target: Lengths) -> Limits:
    """Return the table for bases of one stream against targets of the other."""
    step = _step(base)
    one = _max_row if order == "max" else _middle_row
    shift = condition.doubled_centre if base_in_a else -condition.doubled_centre
    rows = [
        one(condition, shift, w, min(w + step - 1, base.pi), target) for w in range(base.rho, base.pi + 1, step)
    ]  # fmt: skip
    return Limits(base.rho, step, rows, condition.width >= base.pi + target.pi)


def obsolete_below(condition: Condition, order: Order, *, base_in_a: bool, base: Lengths, target: Lengths) -> int:
    """Return the offset from x, the least maximum of all future bases, below which targets match none of them.
    In max order it is added to x and compared with the target's maximum, in middle order to 2x and its doubled middle.
    The worst base is the longest one that ends at x: L_H grows with the maximum and falls with the length.
    """
    shift = condition.doubled_centre if base_in_a else -condition.doubled_centre
    if order == "max":
        return _max_row(condition, shift, base.pi, base.pi, target)[0] - base.pi
    return _middle_row(condition, shift, base.pi, base.pi, target)[0] - base.pi


def _max_row(condition: Condition, shift: int, w_low: int, w_high: int, target: Lengths) -> Row:
    ct, width = float(condition.ct), condition.width
    margin = _margin(w_high + target.pi)
    short, long = least_sum(w_low, target.rho, ct), least_sum(w_high, target.pi, ct)
    first = shift - width + math.floor(2 * short) - margin
    last = shift + width + 2 * (w_high + target.pi) - math.floor(2 * long) + margin
    sure_first = shift - width + math.ceil(2 * long) + margin
    sure_last = shift + width + 2 * (w_low + target.rho) - math.ceil(2 * short) - margin
    if width < w_high + target.pi:  # both tails can be cut: the sure range of the papers does not hold
        sure_first, sure_last = 2, 0
    return -(-first // 2), -(-sure_first // 2), sure_last // 2, last // 2


def _middle_row(condition: Condition, shift: int, w_low: int, w_high: int, target: Lengths) -> Row:
    ct, width = float(condition.ct), condition.width
    margin = _margin(w_high + target.pi)
    corners = [(w, v, 2 * least_sum(w, v, ct)) for w, v in ((w_low, target.rho), (w_high, target.pi))]
    reach = max(width + w + v - math.floor(s) for w, v, s in corners) + margin
    sure = min(width + w + v - math.ceil(s) for w, v, s in corners) - margin
    if width < w_high + target.pi:
        sure = -1
    return shift - reach, shift - sure, shift + sure, shift + reach


def _step(lengths: Lengths) -> int:
    return max(1, -(-(lengths.pi - lengths.rho + 1) // STEPS))


def _margin(length_sum: int) -> int:
    return 4 + (length_sum >> 40)


GRID_STEPS = 64  # classes a side in a grid: about one probe in a hundred goes to the exact test


@dataclass(frozen=True)
class Grid:
    """|M| up to `sure[i][j]` certainly matches, beyond `reach[i][j]` never, for a base of class i and a target of class j.

    M is the doubled distance of the middles from the condition's centre. A class is (length - rho) // step of its stream,
    the step a multiple of that of its limits, so that a class of limits lies in one class of the grid.
    """

    base_rho: int
    base_step: int
    target_rho: int
    target_step: int
    sure: list[list[int]]
    reach: list[list[int]]


@lru_cache(TABLES_KEPT)
def grid(condition: Condition, *, base: Lengths, target: Lengths) -> Grid:
    """Return cheap decisions for probes, by the classes of both lengths; values between go to the exact test."""
    base_step, target_step = _grid_step(base), _grid_step(target)
    classes = [
        Lengths(v, min(v + target_step - 1, target.pi)) for v in range(target.rho, target.pi + 1, target_step)
    ]  # fmt: skip
    sure, reach = [], []
    for w in range(base.rho, base.pi + 1, base_step):
        cells = [_middle_row(condition, 0, w, min(w + base_step - 1, base.pi), one) for one in classes]
        sure.append([cell[2] for cell in cells])
        reach.append([cell[3] for cell in cells])
    return Grid(base.rho, base_step, target.rho, target_step, sure, reach)


def _grid_step(lengths: Lengths) -> int:
    step = _step(lengths)
    classes = (lengths.pi - lengths.rho) // step + 1
    return step * -(-classes // GRID_STEPS)
