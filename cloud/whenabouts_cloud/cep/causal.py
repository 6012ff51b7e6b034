"""Order by what gateways knew, instead of by time: x -> y iff x's local state had ended in the causal past of y.

Clocks are dense: the own entry of an event's vector clock is the number of its gateway's current local state. Then x -> y
iff V_y[gateway of x] >= own entry of x + 1, and on one gateway iff (own entry, sequence number) is smaller. The window is
asked of the stamps: some placement has all positives within it. A negated x is in a gap iff all left positives -> x -> all
right ones, and it is not surely out of the window's reach where the gap has no left or no right. O(n^2 + n x) comparisons.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.cep.downsets import Ints, downsets
from whenabouts_cloud.cep.obstacles import Bools, Negated, outside_window
from whenabouts_cloud.cep.plan import Plan, Variant


@dataclass(frozen=True)
class Clocks:
    """Of event i: vectors[i] (P,), its process (0..P - 1) and its sequence number there. All int64."""

    vectors: npt.NDArray[np.int64]  # (events, P)
    process: npt.NDArray[np.int64]
    seq: npt.NDArray[np.int64]

    def before(self, x: Ints, y: Ints) -> Bools:
        """Whether x -> y, for arrays of events of equal shape."""
        at = self.process[x]
        own, known = self.vectors[x, at], self.vectors[y, at]
        local = (own < known) | ((own == known) & (self.seq[x] < self.seq[y]))
        return np.where(at == self.process[y], local, known > own)


def causal(
    variant: Variant, plan: Plan, t_min: Ints, t_max: Ints, negated: Negated, ids: Ints, clocks: Clocks
) -> Bools:
    """Which candidates (m, n) are matches in causal order; `negated` holds, a negation, offsets (m + 1), stamps and ids."""
    apart = np.maximum(t_min.max(axis=1) - t_max.min(axis=1), 0)  # at least
    keep: Bools = apart < plan.window if plan.strict_window else apart <= plan.window
    for i, mask in enumerate(downsets(variant).covers):
        for j in range(len(variant.before)):
            if mask >> j & 1:
                keep = keep & clocks.before(ids[:, j], ids[:, i])
    for negation, (offsets, x_min, x_max, x_ids) in zip(variant.negations, negated, strict=True):
        c = np.repeat(np.arange(len(t_min)), np.diff(offsets))
        x_min, x_max, x_ids = (v[offsets[0] : offsets[-1]] for v in (x_min, x_max, x_ids))
        inside: Bools = (ids[c] != x_ids[:, None]).all(axis=1)
        early, late = outside_window(plan, t_min[c], t_max[c], x_min, x_max)
        if negation.left == 0:
            inside &= ~early
        if negation.right == 0:
            inside &= ~late
        for j in range(len(variant.before)):
            if negation.left >> j & 1:
                inside &= clocks.before(ids[c, j], x_ids)
            if negation.right >> j & 1:
                inside &= clocks.before(x_ids, ids[c, j])
        keep = keep & (np.bincount(c[inside], minlength=len(t_min)) == 0)
    return keep
