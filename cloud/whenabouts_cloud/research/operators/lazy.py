"""`lazy`: Algorithms 4 and 5, LazyTimingCorrelation and BlockTimingCorrelation, of "Lazy Approaches ..." (2010).

Limits and order are those of `eager` (max order, L_H..R_H); the evaluation waits for a block (`block_operator`, which also
names the corrections). Results come later and more is held; sorting, searching and dropping are done once a block.
"""

from whenabouts_cloud.research.operators.block_operator import BlockOperator


class Lazy(BlockOperator):
    """Match by blocks."""

    name = "lazy"
