"""Order by vector clocks instead of by time: x -> y iff x's local state had ended in the causal past of y.

Clocks are dense: the own entry of an event's vector clock is the number of its gateway's current local state. Then x -> y
iff V_y[gateway of x] >= own entry of x + 1, and on one gateway iff (own entry, sequence number) is smaller. The window is
checked on the stamps: some placement must have all positives within it. A negated x is in a gap iff all left positives -> x
-> all right ones and, where the gap has no left or no right, x is not certainly beyond the window. O(n^2 + n x) comparisons.

Vectors of different views cannot be compared: between them only the order on one gateway is known.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.cep.uncertain.forbidden_events import Bools, Negated, outside_window
from whenabouts_cloud.cep.uncertain.order_ideals import Ints, ideals
from whenabouts_cloud.pattern.plan import Alternative, Plan


@dataclass(frozen=True)
class Clocks:
    """Vector clocks. Event i has vectors[i] (P,), its process in it (0..P - 1, -1: none), its sequence number; all int64.

    Where processes come and go: `gateway` is the event's gateway (default: its process), `boot` orders events of one gateway
    before their sequence numbers do (default: the own entry), `view` identifies the processes that the vector counts
    (default: one view for all). Vectors shorter than P are padded with arbitrary numbers.
    """

    vectors: npt.NDArray[np.int64]  # (events, P)
    process: npt.NDArray[np.int64]
    seq: npt.NDArray[np.int64]
    gateway: npt.NDArray[np.int64] = None  # type: ignore[assignment]  # filled in by __post_init__
    boot: npt.NDArray[np.int64] = None  # type: ignore[assignment]
    view: npt.NDArray[np.int64] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        own = self.vectors[np.arange(len(self.process)), self.process] if self.boot is None else None
        columns: dict[str, Any] = {"gateway": self.process, "boot": own, "view": np.zeros(len(self.process), np.int64)}
        for name, column in columns.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, column)

    @property
    def columns(self) -> tuple[npt.NDArray[np.int64], ...]:
        """All columns, in the order of the arguments."""
        return self.vectors, self.process, self.seq, self.gateway, self.boot, self.view

    def take(self, rows: Any) -> "Clocks":
        """The clocks of some events."""
        return Clocks(*(column[rows] for column in self.columns))

    def joined(self, more: "Clocks") -> "Clocks":
        """These clocks followed by `more`, with vectors as long as the longest."""
        longest = max(self.vectors.shape[1], more.vectors.shape[1])
        vectors = [np.pad(x.vectors, ((0, 0), (0, longest - x.vectors.shape[1]))) for x in (self, more)]
        rest = zip(self.columns[1:], more.columns[1:], strict=True)
        return Clocks(np.concatenate(vectors), *(np.concatenate(pair) for pair in rest))

    def before(self, x: Ints, y: Ints) -> Bools:
        """True where x -> y, for arrays of events of equal shape."""
        at = self.process[x]
        known = self.vectors[y, at] > self.vectors[x, at]
        local = (self.boot[x] < self.boot[y]) | ((self.boot[x] == self.boot[y]) & (self.seq[x] < self.seq[y]))
        across = known & (at >= 0) & (self.process[y] >= 0) & (self.view[x] == self.view[y])
        earlier: Bools = np.where(self.gateway[x] == self.gateway[y], local, across)
        return earlier


def causal(
    alternative: Alternative, plan: Plan, t_min: Ints, t_max: Ints, negated: Negated, ids: Ints, clocks: Clocks
) -> Bools:
    """Mask of the candidates (m, n) that are matches in causal order; `negated` has offsets, stamps and ids by negation."""
    apart = np.maximum(t_min.max(axis=1) - t_max.min(axis=1), 0)  # the least possible span
    keep: Bools = apart < plan.window if plan.strict_window else apart <= plan.window
    for i, mask in enumerate(ideals(alternative).covers):
        for j in range(len(alternative.before)):
            if mask >> j & 1:
                keep = keep & clocks.before(ids[:, j], ids[:, i])
    for negation, (offsets, x_min, x_max, x_ids) in zip(alternative.negations, negated, strict=True):
        c = np.repeat(np.arange(len(t_min)), np.diff(offsets))
        x_min, x_max, x_ids = (v[offsets[0] : offsets[-1]] for v in (x_min, x_max, x_ids))
        inside: Bools = (ids[c] != x_ids[:, None]).all(axis=1)
        early, late = outside_window(plan, t_min[c], t_max[c], x_min, x_max)
        if negation.left == 0:
            inside &= ~early
        if negation.right == 0:
            inside &= ~late
        for j in range(len(alternative.before)):
            if negation.left >> j & 1:
                inside &= clocks.before(ids[c, j], x_ids)
            if negation.right >> j & 1:
                inside &= clocks.before(x_ids, ids[c, j])
        keep = keep & (np.bincount(c[inside], minlength=len(t_min)) == 0)
    return keep
