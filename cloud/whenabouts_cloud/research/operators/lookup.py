"""`lookup`: Algorithms 6 and 7, LazyWithLookup-newblock and EfficientProbe, of "Lazy Approaches ..." (2010).

As `lazy`, with a table that keeps for every target in a probe region the last base that was evaluated with it: a satisfied
result may be reused for the next base of the walk when that one is nearer at both ends (Corollary 2, Theorem 2).

Corrections, made in `block_kernels.match_block_lookup`: the base block is sorted, as the proof needs; the right regions
have a table and a range of their own; on the right the usable test is min(new) >= min(stored), not <=; an entry is asked
only when it is initialised; a result found after a failed reuse is stored, as the text says; and a pair is asked only
where one tail can be cut, max(e) <= min(n) + d on the left and min(e) >= max(n) - d on the right, which makes reuse right
for every d.

It hardly pays on today's machines: it saves a third of the evaluations, but one costs about what a look at the table does
(measured: 0.9 to 1.1 of the time of `lazy`). Kept as the papers' algorithm, with its counters; use `banded`.
"""

from whenabouts_cloud.research.operators.block_operator import BlockOperator


class Lookup(BlockOperator):
    """Match by blocks, reusing results in the probe regions."""

    name = "lookup"
    kernel = "match_block_lookup"
