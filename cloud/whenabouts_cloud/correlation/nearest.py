"""The k best pairs of each reading of a: highest probability, then nearest middles, then smallest identity of b.

The order is that of the exact probabilities. Doubles decide it where they differ by more than GUARD; where the k-th and
the next pair of a reading are closer, its pairs are ranked in integers. Certain pairs are recognised as ties without
exact arithmetic, so the common case (several certain pairs) stays fast.

Source of the probability: correlation mathematics, section 2. Cost: one sort of the pairs, and 3 us a pair of the
readings where the choice is closer than GUARD.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.landing.schema import plain_text
from whenabouts_cloud.pattern.condition import Condition

GUARD = 1e-9  # doubles err by less than 1e-15
TIE_BREAK = ("b_site", "b_gateway", "b_boot", "b_seq")

Ints = npt.NDArray[np.int64]


def nearest(pairs: pa.Table, group: Ints, k: int, condition: Condition, shift_us: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the pairs that stay.

    `pairs` has the columns of `pairs.RESULT`, all of them satisfy `condition` (on the stamps without offsets);
    `group` is a number for each reading of a. Middles are compared with b moved by `shift_us` relative to a.
    """
    a_min, a_max, b_min, b_max = (pairs[f"{x}_t_{end}"].to_numpy() for x in "ab" for end in ("min", "max"))
    # The differences wrap around for stamps at the ends of int64; their sum is small for a pair and therefore correct.
    distance = np.abs((b_min - a_min) + (b_max - a_max) + 2 * shift_us)
    certain = (b_max - a_min <= condition.hi_us) & (b_min - a_max >= condition.lo_us)
    probability = np.where(certain, 1.0, pairs["probability"].to_numpy())
    ranked = pa.table(
        {"group": group, "likely": -probability, "distance": distance}
        | {name: plain_text(pairs[name]) for name in TIE_BREAK}
    )
    order = pc.sort_indices(ranked, [(name, "ascending") for name in ranked.schema.names]).to_numpy()
    begin, end = _runs(group[order])
    place = np.arange(len(order)) - begin
    kept = np.zeros(len(order), bool)
    kept[order[place < k]] = True
    edge = np.flatnonzero((place[1:] == k) & (probability[order][:-1] - probability[order][1:] < GUARD))
    edge = edge[~(certain[order[edge]] & certain[order[edge + 1]])]
    for at in edge:
        _rank_exactly(pairs, order[begin[at] : end[at]], k, condition, distance, kept)
    return kept


def _runs(values: Ints) -> tuple[Ints, Ints]:
    """For each place, begin and end of its run of equal values."""
    begins = np.flatnonzero(np.r_[True, values[1:] != values[:-1]][: len(values)])
    lengths = np.diff(np.r_[begins, len(values)])
    return np.repeat(begins, lengths), np.repeat(begins + lengths, lengths)


def _rank_exactly(
    pairs: pa.Table, rows: Ints, k: int, condition: Condition, distance: Ints, kept: npt.NDArray[np.bool_]
) -> None:
    def rank(at: int) -> tuple[Any, ...]:
        row = emitted[at]
        num, den = condition.ratio(row["a_t_min"], row["a_t_max"], row["b_t_min"], row["b_t_max"])
        return (-Fraction(num, den), int(distance[rows[at]]), *(row[name] for name in TIE_BREAK))

    emitted = pairs.take(pa.array(rows)).to_pylist()
    best = sorted(range(len(rows)), key=rank)
    kept[rows] = False
    kept[rows[best[:k]]] = True
