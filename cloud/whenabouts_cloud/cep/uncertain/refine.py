"""Decision of candidates when stamps are intervals: CERTAIN, POSSIBLE, OVER p, or CAUSAL.

The kernel finds tuples of events that may be matches, and the negated events that may block them. A candidate is a match if

    certain    every placement of the stamps is a match               comparisons
    possible   some placement is a match                              least placements (`possible`)
    over       the probability is at least p, within ERROR            bounds first (`bounds`), then exact integration
    causal     order by vector clocks (`causal`), window by stamps    comparisons

OVER integrates only candidates that the bounds leave undecided. A candidate with more than OBSTACLES undecided negated
events keeps those that are most likely in a gap. The others lower its probability by the sum of theirs, a bound, so that no
match with less than p is emitted. `Counters.limited` counts such candidates.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.cep.uncertain.bounds import bounds
from whenabouts_cloud.cep.uncertain.causal import Clocks, causal
from whenabouts_cloud.cep.uncertain.chain_probability import ERROR, probabilities, probability
from whenabouts_cloud.cep.uncertain.forbidden_events import Bools, Negated, Obstacles, obstacles, window
from whenabouts_cloud.cep.uncertain.order_ideals import Ints, OrderIdeals, extensions, ideals
from whenabouts_cloud.cep.uncertain.possible import possible
from whenabouts_cloud.pattern.plan import Alternative, Plan

# Each raises the degree and, in a gap that begins after the second positive, doubles the states: 0.1 s a match at 8.
OBSTACLES = 8
ROUNDING = 1e-13  # error of the bounds

Floats = npt.NDArray[np.float64]


@dataclass
class Counters:
    """Counters of OVER since the start."""

    candidates: int = 0
    integrated: int = 0  # the others were decided by bounds
    limited: int = 0  # integrated with only a bound for some negated events


class Candidates(NamedTuple):
    """m tuples of n events as an alternative lists them, with the negated events that may lie in their gaps.

    t_min, t_max, ids are (m, n), int64 ticks and events' numbers. `negated` has, for each negation of the alternative,
    offsets (m + 1), t_min, t_max and ids: the events offsets[c]:offsets[c + 1] may lie in the gap of candidate c.
    """

    t_min: Ints
    t_max: Ints
    ids: Ints
    negated: Negated


def refine(
    alternative: Alternative,
    plan: Plan,
    candidates: Candidates,
    clocks: Clocks | None = None,
    *,
    exact: bool | Bools = False,
    counters: Counters | None = None,
) -> tuple[Bools, Floats]:
    """Decide which of m candidates are matches of the alternative in the plan's mode.

    Conditions are not checked. `clocks` are needed only in causal mode.

    Returns keep (m,) and probability (m,). In mode over the probability is exact if it was integrated. If bounds decided, it
    is the lower bound of a kept candidate and the upper bound of another; with `exact`, for all or some candidates, the kept
    ones among these are integrated. In the other modes it is 1 for kept candidates, nan for others.

    Raises:
        ValueError: causal mode without clocks, or an alternative with too many orders or elements.
    """
    t_min, t_max, ids, negated = candidates
    if plan.mode == "causal":
        if clocks is None:
            raise ValueError(
                "found no vector clocks, expected them for CAUSAL: feed events with clocks or use another mode"
            )
        return _as_emitted(causal(alternative, plan, t_min, t_max, negated, ids, clocks))
    near = obstacles(alternative, plan, t_min, t_max, negated, ids)
    if plan.mode == "certain":
        return _as_emitted(_certain(alternative, plan, t_min, t_max) & (np.diff(near.offsets) == 0))
    if plan.mode == "possible":
        return _as_emitted(_possible(alternative, plan, t_min, t_max, near))
    return _over(alternative, plan, t_min, t_max, near, exact, counters or Counters())


def _as_emitted(keep: Bools) -> tuple[Bools, Floats]:
    return keep, np.where(keep, 1.0, np.nan)


def _certain(alternative: Alternative, plan: Plan, t_min: Ints, t_max: Ints) -> Bools:
    """True for candidates that are in order and within the window in every placement."""
    reach = plan.window - 1 if plan.strict_window else plan.window
    keep: Bools = np.full(len(t_min), reach >= 0)
    for i in range(t_min.shape[1]):  # between any two; a single event is at one moment, however long its stamp
        others = np.delete(t_max, i, axis=1)
        keep &= (others <= t_min[:, i, None] + reach).all(axis=1)
    for i, mask in enumerate(ideals(alternative).covers):
        for j in range(t_min.shape[1]):
            if mask >> j & 1:
                keep = keep & (t_max[:, j] < t_min[:, i])
    return keep


def _possible(alternative: Alternative, plan: Plan, t_min: Ints, t_max: Ints, near: Obstacles) -> Bools:
    """True for certain candidates and those with a least placement; `near` has only obstacles that may block one."""
    keep: Bools = _certain(alternative, plan, t_min, t_max) & (np.diff(near.offsets) == 0)
    rest = np.flatnonzero(~keep)
    structure, orders = ideals(alternative), extensions(alternative.before)
    keep[rest] = possible(
        structure, orders, t_min[rest], t_max[rest], _taken(near, rest), window(plan), plan.strict_window
    )
    return keep


def _taken(near: Obstacles, rows: Ints) -> Obstacles:
    """The obstacles of some candidates."""
    counts = np.diff(near.offsets)[rows]
    offsets = np.r_[0, np.cumsum(counts)].astype(np.int64)
    at = np.repeat(near.offsets[rows] - offsets[:-1], counts) + np.arange(offsets[-1])
    return Obstacles(offsets, near.t_min[at], near.t_max[at], near.gaps[at])


def _over(
    alternative: Alternative,
    plan: Plan,
    t_min: Ints,
    t_max: Ints,
    near: Obstacles,
    exact: bool | Bools,
    counters: Counters,
) -> tuple[Bools, Floats]:
    structure = ideals(alternative)
    threshold = float(Fraction(plan.probability))
    lower, upper, risk = bounds(structure, t_min, t_max, near, window(plan), plan.strict_window)
    keep: Bools = lower >= threshold
    unmatchable = upper < threshold - ERROR - ROUNDING
    value: Floats = np.where(keep, lower, upper)
    undecided = ~unmatchable & (~keep | (exact & (lower < 1.0)))
    undecided &= upper > 0.0  # OVER 0 keeps impossible candidates too
    keep |= ~unmatchable & ~undecided
    counters.candidates += len(keep)
    rows = np.flatnonzero(undecided)
    value[rows] = probabilities(structure, t_min, t_max, near, rows, window(plan), plan.strict_window, OBSTACLES)
    for c in rows[np.isnan(value[rows])]:
        at = np.arange(near.offsets[c], near.offsets[c + 1])
        integral, limited = _integrated(plan, structure, t_min[c], t_max[c], near, at[np.argsort(-risk[at])], risk)
        value[c] = max(integral, lower[c]) if limited else integral
        counters.limited += limited
    keep[rows] = value[rows] >= threshold - ERROR
    counters.integrated += len(rows)
    return keep, value


def _integrated(
    plan: Plan, structure: OrderIdeals, t_min: Ints, t_max: Ints, near: Obstacles, at: Ints, risk: Floats
) -> tuple[float, bool]:
    """(probability with the obstacles `at`, the riskiest first, False), or (lower bound, True) if they are too many."""
    taken = min(len(at), OBSTACLES)
    while True:
        few = at[:taken]
        x_min, x_max, gaps = near.t_min[few], near.t_max[few], near.gaps[few]
        value = probability(structure, t_min, t_max, x_min, x_max, gaps, window(plan), plan.strict_window)
        if not np.isnan(value):
            return max(value - float(risk[at[taken:]].sum()), 0.0), taken < len(at)
        taken //= 2
