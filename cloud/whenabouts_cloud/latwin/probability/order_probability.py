"""Probability that a predicate held, or that a global state was passed, when starts of states are known as intervals.

Model: each state held began at a moment of its own, uniform in its [lo, hi], independent of the others, given that a
start is not before those that its clock names and not before that of its predecessor. The true global state at t
consists of the newest state of each process begun by t. The last state held lasts forever, unless some state held knows
of its successor: the start of that successor is uniform between the last start and the first that knows of it, and the
execution then leaves the window. `held`: the probability that at some moment all processes were in their windows and
the predicate held. `passed`: for each global state, the probability that it was the true one at some moment. Starts
that are points may coincide; a global state between them lasts no time, and was never true.

Exact: h_S(t) is the measure of all orders in which exactly the starts of an order ideal S have happened by t (the order
ideals are walked like a lattice; those with every process in its window are the CGSs); between neighbouring ends of
intervals it is a polynomial (`spread`). Cost: ends x order ideals x n x starts that may happen at once. Beyond
EXACT_WORK, starts are sampled in a causal order with importance weights (Rubinstein & Kroese 2016, 5.7): the reported
error is one standard error, and never less than 1 / effective number of samples. The caller gives the seed.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.latwin.model.frame import Frame, Ints
from whenabouts_cloud.latwin.probability.spread import Draws, Stretch, entered, sample, spread
from whenabouts_cloud.latwin.windows.walk import Truth, count, states

EXACT_WORK = 1 << 27  # multiplications: some tenths of a second
ORDER_IDEALS = 1 << 16
SAMPLES = 100_000
BLOCK = 2048  # samples at once
BEFORE = -(1 << 62)  # lo and hi of an initial state, which began before everything
AFTER = 1 << 62

Floats = npt.NDArray[np.float64]


class HoldProbability(NamedTuple):
    """The probability that a predicate held at some moment, and its standard error, which is 0 if it is exact.

    `samples` is the effective number: of equally weighted samples with the same variance.
    """

    probability: float
    exact: bool
    error: float
    samples: float


class StateProbabilities(NamedTuple):
    """The probability of each global state that it was passed; when sampled, states that no sample met are missing."""

    states: Ints  # (m, n) numbers, in lexical order
    probability: Floats  # (m,)
    exact: bool
    error: Floats  # (m,)
    samples: float


class _StartOrder(NamedTuple):
    """The starts of a window in their order, each with the bounds that this order leaves."""

    lo: Ints  # (n, e) of starts, narrowed by those before and after
    hi: Ints
    need: Ints  # (n, e, n) number of starts of each process that come before this one
    count: Any  # (n,) starts
    inside: Ints  # (n,) of them in the window
    order: list[tuple[int, int]]  # the starts, each after its predecessors


def held(window: Frame, lo: Ints, hi: Ints, truth: Truth, seed: int, samples: int = SAMPLES) -> HoldProbability:
    """The probability that `truth` held at some moment; lo and hi (n, w) are the bounds of the starts, in microseconds.

    Raises:
        ValueError: bounds contradict the order, or a start has none.
    """
    if (window.count == 0).any():
        return HoldProbability(0.0, True, 0.0, 0.0)
    model = _model(window, lo, hi)
    if (exact := _ExactIntegration.of(model)) is not None:
        return HoldProbability(exact.held(truth), True, 0.0, 0.0)
    weights: list[Floats] = []
    hits = []
    for weight, rows, lasts in _samples(model, seed, samples):
        hit = np.zeros(lasts.shape, np.bool_)
        where = lasts & _inside(rows, model)
        hit[where] = truth(rows[where] - 1)
        weights.append(weight)
        hits.append(hit.any(axis=1))
    probability, error, size = _estimate(np.concatenate(weights), np.concatenate(hits).astype(np.float64))
    return HoldProbability(probability, False, error, size)


def passed(window: Frame, lo: Ints, hi: Ints, seed: int, samples: int = SAMPLES) -> StateProbabilities:
    """The probability that each global state of the window was passed, in lexical order; bounds as in `held`.

    Raises:
        ValueError: bounds contradict the order, or a start has none.
    """
    n = len(window.first)
    if (window.count == 0).any():
        return StateProbabilities(np.empty((0, n), np.int64), np.empty(0), True, np.empty(0), 0.0)
    model = _model(window, lo, hi)
    if (exact := _ExactIntegration.of(model)) is not None:
        inside, exactly = exact.passed()
        return StateProbabilities(inside - 1 + window.first, exactly, True, np.zeros(len(inside)), 0.0)
    weights: list[Floats] = []
    met = []
    for weight, rows, lasts in _samples(model, seed, samples):
        where = lasts & _inside(rows, model)
        of = np.repeat(np.arange(len(weight)), where.sum(axis=1)) + len(weights) * BLOCK
        weights.append(weight)
        met.append(np.column_stack([rows[where].astype(np.int64), of]))
    weight, every = np.concatenate(weights), np.concatenate(met)
    entered_by, place = np.unique(every[:, :n], axis=0, return_inverse=True)
    share: Floats = weight / weight.sum()
    place = place.ravel()
    probability = np.bincount(place, share[every[:, n]], len(entered_by)).astype(np.float64)
    squares = np.bincount(place, share[every[:, n]] ** 2, len(entered_by))
    size = 1.0 / (share**2).sum()
    variance: Floats = (1.0 - probability) ** 2 * squares + probability**2 * ((share**2).sum() - squares)
    error = np.maximum(np.sqrt(np.maximum(variance, 0.0)), 1.0 / size)
    return StateProbabilities(entered_by - 1 + window.first, np.minimum(probability, 1.0), False, error, float(size))


def _model(window: Frame, lo: Ints, hi: Ints) -> _StartOrder:
    n, w = window.clocks.shape[:2]
    if np.shape(lo) != (n, w) or np.shape(hi) != (n, w):
        raise ValueError(f"probability: found bounds of shape {np.shape(lo)}, {np.shape(hi)}, expected {(n, w)}")
    need, beyond = np.zeros((n, w + 1, n), np.int64), np.zeros(n, np.bool_)
    low, high = np.full((n, w + 1), BEFORE), np.full((n, w + 1), AFTER)
    for j, size in enumerate(window.count.tolist()):
        low[j, :size], high[j, :size] = np.asarray(lo)[j, :size], np.asarray(hi)[j, :size]
        clocks = window.clocks[j, :size]
        known = np.where(clocks > 0, clocks - window.first + 1, 0)  # 0 may also mean that nothing is known
        known[:, j] = 0
        beyond |= known.max(axis=0) > window.count
        need[j, :size] = np.clip(known, 0, window.count + 1)
        need[j, :, j] = np.arange(w + 1)
    begins = window.count + beyond
    model = _StartOrder(low, high, need, begins, window.count, _extension(need, begins))
    for j, k in model.order:
        for i, m in _before(model, j, k):
            low[j, k] = max(low[j, k], low[i, m])
    for j, k in reversed(model.order):
        for i, m in _before(model, j, k):
            high[i, m] = min(high[i, m], high[j, k])
    for j, k in model.order:
        if low[j, k] > high[j, k]:
            raise ValueError(
                f"probability: found state {window.first[j] + k} of process {j} to begin before {high[j, k]} and after "
                f"{low[j, k]}, by its bounds and those of states before and after it: check the stamps"
            )
        if low[j, k] < high[j, k] and (low[j, k] <= BEFORE or high[j, k] >= AFTER):
            raise ValueError(
                f"probability: found [{low[j, k]}, {high[j, k]}] as bounds of the start of state {window.first[j] + k} of "
                f"process {j}, expected both, or BEFORE twice for an initial state"
            )
    return model


def _extension(need: Ints, begins: Ints) -> list[tuple[int, int]]:
    order, done, n = [], np.zeros_like(begins), len(begins)
    for _ in range(int(begins.sum())):
        ready = (j for j in range(n) if done[j] < begins[j] and (need[j, done[j]] <= done).all())
        if (j := next(ready, None)) is None:
            raise ValueError(
                "probability: found clocks of two states that name each other, expected an order: check clocks"
            )
        order.append((j, int(done[j])))
        done[j] += 1
    return order


def _before(model: _StartOrder, j: int, k: int) -> list[tuple[int, int]]:
    """The latest starts of each process that come before a start."""
    return [(i, m - 1) for i, m in enumerate(model.need[j, k].tolist()) if m > 0]


def _inside(rows: npt.NDArray[Any], model: _StartOrder) -> npt.NDArray[np.bool_]:
    inside: npt.NDArray[np.bool_] = np.all((rows >= 1) & (rows <= model.inside), axis=-1)
    return inside


class _ExactIntegration:
    """The order ideals of the starts, and measures over them carried from stretch to stretch."""

    def __init__(self, model: _StartOrder, rows: Ints, stretches: list[Stretch], degrees: int) -> None:
        self._rows, self._stretches, self._degrees, self._model = rows, stretches, degrees, model
        sizes = (model.count + 1).tolist()
        self._radix = np.array([np.prod(sizes[j + 1 :], dtype=np.int64) for j in range(len(sizes))], np.int64)
        self._codes = rows @ self._radix

    @classmethod
    def of(cls, model: _StartOrder) -> "_ExactIntegration | None":
        """Returns None if it would be too much work."""
        ideals = _order(model)
        if np.prod((model.count + 1).astype(float)) >= 2.0**62 or (size := count(ideals)) > ORDER_IDEALS:
            return None
        stretches = _stretches(model)
        degrees = 1 + max((int(np.count_nonzero(one.rate)) for one in stretches), default=0)
        if size * len(stretches) * degrees * max(degrees, len(model.count)) > EXACT_WORK:
            return None
        return cls(model, states(ideals), stretches, degrees)

    def held(self, truth: Truth) -> float:
        """Share of the orders that enter an order ideal in which the predicate holds."""
        good = np.zeros(len(self._rows), np.bool_)
        where = _inside(self._rows, self._model)
        good[where] = truth((self._rows[where] - 1).astype(np.uint16))
        measure = np.zeros((len(self._rows), 2))
        measure[0, 0] = 1.0
        fewer, coefficients = self._neighbours(-1), np.empty((len(measure), 2, self._degrees))
        for stretch in self._stretches:
            if stretch.at_once.any():
                measure = self._jump(measure, stretch)
                measure[good] = np.column_stack([np.zeros(good.sum()), measure[good].sum(axis=1)])
            else:
                spread(measure, coefficients, self._rows, fewer, False, stretch, good)
        return float(measure[-1, 1] / measure[-1].sum())

    def passed(self) -> tuple[Ints, Floats]:
        """Order ideals inside the window and the share of the orders that enter each."""
        size = len(self._rows)
        none = np.zeros(size, np.bool_)
        fewer, more = self._neighbours(-1), self._neighbours(1)
        forward, backward = np.empty((size, 2, self._degrees)), np.empty((size, 2, self._degrees))
        following = np.zeros((size, 2))
        following[-1, 0] = 1.0
        ends = [following]  # measures of what follows the end of each stretch
        for stretch in reversed(self._stretches):
            following = following.copy()
            if stretch.at_once.any():
                following = self._jump_back(following, stretch)
            else:
                spread(following, backward, self._rows, more, True, stretch, none)
            ends.append(following)
        total = ends.pop()[0, 0]
        measure, entries = np.zeros((size, 2)), np.zeros(size)
        measure[0, 0] = 1.0
        for stretch in self._stretches:
            following = ends.pop().copy()
            if stretch.at_once.any():
                measure = self._jump(measure, stretch)
                entries += measure[:, 0] * following[:, 0]
            else:
                spread(measure, forward, self._rows, fewer, False, stretch, none)
                spread(following, backward, self._rows, more, True, stretch, none)
                entered(forward[:, 0], backward[:, 0], entries)
        where = _inside(self._rows, self._model)
        return self._rows[where], np.minimum(entries[where] / total, 1.0)

    def _neighbours(self, step: int) -> Ints:
        """Places (D, n) of the order ideals with one start of each process more or less, or -1."""
        places = [
            self._places(np.eye(self._rows.shape[1], dtype=np.int64)[j] * step) for j in range(self._rows.shape[1])
        ]
        return np.column_stack(places)

    def _places(self, change: Ints) -> Ints:
        """Places of the order ideals with `change` added, or -1."""
        after = self._rows + change
        code = after @ self._radix
        place = np.minimum(np.searchsorted(self._codes, code), len(code) - 1)
        right = (self._codes[place] == code) & (after >= 0).all(axis=1) & (after <= self._model.count).all(axis=1)
        return np.where(right, place, -1)

    def _jump(self, measure: Floats, stretch: Stretch) -> Floats:
        """The measure after the starts of a point have happened at once."""
        source = self._places(-stretch.at_once)
        alive = (source >= 0) & (self._rows >= stretch.must).all(axis=1)
        moved: Floats = np.where(alive[:, None], measure[source], 0.0)
        return moved

    def _jump_back(self, following: Floats, stretch: Stretch) -> Floats:
        """The measure of what follows, before the starts of a point have happened at once."""
        target = self._places(stretch.at_once)
        alive = (target >= 0) & (self._rows + stretch.at_once >= stretch.must).all(axis=1)
        moved: Floats = np.where(alive[:, None], following[target], 0.0)
        return moved


def _order(model: _StartOrder) -> Frame:
    """The order of the starts as a frame: state k of a process means "k of its starts have happened"."""
    n, size = len(model.count), int(model.count.max())
    clocks = np.zeros((n, size + 1, n), np.int64)
    for j in range(n):
        for k in range(model.count[j]):
            surely = [(model.hi[i, : model.count[i]] < model.lo[j, k]).sum() for i in range(n)]
            clocks[j, k + 1] = np.maximum(model.need[j, k], surely)
        np.maximum.accumulate(clocks[j], axis=0, out=clocks[j])
    return Frame(np.zeros(n, np.int64), model.count + 1, clocks)


def _stretches(model: _StartOrder) -> list[Stretch]:
    lo, hi, n = model.lo, model.hi, len(model.count)
    real = np.arange(lo.shape[1]) < model.count[:, None]
    ends = np.unique(np.concatenate([lo[real], hi[real]])).tolist()
    stretches = []
    for place, x in enumerate(ends):
        must = (real & (hi <= x)).sum(axis=1)
        at_once = (real & (lo == x) & (hi == x)).sum(axis=1)
        can = (real & (lo <= x)).sum(axis=1)
        if at_once.any():
            stretches.append(Stretch(np.zeros(lo.shape), at_once, must, can))
        active = real & (lo <= x) & (hi > x)
        if active.any():
            rate = np.zeros(lo.shape)
            rate[active] = (ends[place + 1] - x) / (hi[active] - lo[active])
            stretches.append(Stretch(rate, np.zeros(n, np.int64), must, can))
    return stretches


def _samples(
    model: _StartOrder, seed: int, samples: int
) -> Iterator[tuple[Floats, npt.NDArray[Any], npt.NDArray[np.bool_]]]:
    """Yields block by block: weights (s,), order ideals passed (s, E + 1, n) and flags whether each lasts (s, E + 1)."""
    random, n, events = np.random.default_rng(seed), len(model.count), len(model.order)
    after = np.zeros(model.lo.shape)
    place = {event: number for number, event in enumerate(model.order)}
    for j, k in reversed(model.order):
        before = [event for event in _before(model, j, k) if model.hi[event] == model.hi[j, k]]
        if before:  # each counts only for its latest predecessor, so weights are bounded
            after[max(before, key=place.__getitem__)] += 1 + after[j, k]
    real = np.arange(model.lo.shape[1]) < model.count[:, None]
    origin = min((int(x) for x in model.lo[real] if x > BEFORE), default=0)
    lo, hi = (np.where(x <= BEFORE, -1.0, (np.maximum(x, origin) - origin).astype(float)) for x in (model.lo, model.hi))
    for begin in range(0, samples, BLOCK):
        size = min(BLOCK, samples - begin)
        weights, rows = np.empty(size), np.empty((size, events + 1, n), np.uint16)
        lasts = np.empty((size, events + 1), np.bool_)
        chance = random.random((size, events))
        sample(np.array(model.order), lo, hi, model.need, after, chance, Draws(weights, rows, lasts))
        yield weights, rows, lasts


def _estimate(weights: Floats, hits: Floats) -> tuple[float, float, float]:
    """Mean, standard error of a ratio of means, effective number of samples (Kong 1992)."""
    share = weights / weights.sum()
    mean, size = float(share @ hits), float(1.0 / (share @ share))
    error = float(np.sqrt(share**2 @ (hits - mean) ** 2))
    return min(mean, 1.0), max(error, 1.0 / size), size
