"""Operators that differ from another one by a few lines: `simple_sort`, `lazy`, `lookup`, and the default `banded`."""

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.operators.base import MAX_BUFFER, StreamBounds
from whenabouts_cloud.research.operators.block_operator import BlockOperator
from whenabouts_cloud.research.operators.simple import Simple


class SimpleSort(Simple):
    """`simple_sort`: the Simple-Sort correlation of 2009, Section 5 (2010, Section 4.2, below Algorithm 1).

    As `simple`, with the buffers in the order of the maxima: all obsolete tuples are at the front, none is behind a tuple
    that is still needed, so fewer tuples are held and compared.
    """

    name = "simple_sort"
    _sorted = True


class Lazy(BlockOperator):
    """`lazy`: Algorithms 4 and 5, LazyTimingCorrelation and BlockTimingCorrelation, of "Lazy Approaches ..." (2010).

    Limits and order are those of `eager` (max order, L_H..R_H); the evaluation waits for a block (`block_operator`, which
    also names the corrections). Results come later and more tuples are held; sorting, searching and dropping are done
    once a block.
    """

    name = "lazy"


class Lookup(BlockOperator):
    """`lookup`: Algorithms 6 and 7, LazyWithLookup-newblock and EfficientProbe, of "Lazy Approaches ..." (2010).

    As `lazy`, with a table that keeps for every target in a probe region the last base that was evaluated with it: a
    satisfied result may be reused for the next base of the walk if that base is nearer at both ends (Corollary 2,
    Theorem 2).

    Corrections, made in `block_kernels.match_block_lookup`: the base block is sorted, as the proof needs; the right
    regions have a separate table and range; on the right the test for reuse is min(new) >= min(stored), not <=; an entry
    is read only when it is initialised; a result computed after a failed reuse is stored, as the text says; and a pair is
    looked up only where one tail can be cut, max(e) <= min(n) + d on the left and min(e) >= max(n) - d on the right,
    which makes reuse correct for every d.

    It hardly pays on today's machines: it saves a third of the evaluations, but one costs about as much as a look-up
    (measured: 0.9 to 1.1 of the time of `lazy`). Kept as the papers' algorithm, with its counters; use `banded`.
    """

    name = "lookup"
    kernel = "match_block_lookup"


class Banded(BlockOperator):
    """`banded`, the default: every push is matched at once, in the order of the middles; best in batches of 100 or more.

    P(lo <= Y - X <= hi) depends on the doubled distance |M| of the middles from the condition's centre and on the two
    lengths, and falls with |M| for every d >= 0. So targets ordered by their middles certainly match up to the least
    K(w1, w2) over the target's lengths and never beyond the greatest (`target_bounds`): symmetric, without the papers'
    assumption on d and pi, and with a third of the probes of the order by maxima at ct 0.8, none at 0.5, never more.
    """

    name = "banded"
    order = "middle"

    def __init__(self, condition: Condition, a: StreamBounds, b: StreamBounds, *, max_buffer: int = MAX_BUFFER) -> None:
        super().__init__(condition, a, b, block=1, every=None, max_buffer=max_buffer)
