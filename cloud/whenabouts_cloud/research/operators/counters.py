"""Counters of an operator: work done, tuples held, and waits of results.

Evaluations are the machine-independent measure of the algorithms: pairs whose two lengths were examined. The two
papers define the response time of a result differently, so both are kept (sums over all pairs, in ticks of `now`):

    2009   completion - max(arrival of a, arrival of b)      the delay of the operator
    2010   completion - max(max(@a), max(@b))                including the way to the operator

Completion is the `now` of the call that returned the pair: it excludes the time spent inside a call, as no operator
reads a clock. A driver that measures that time adds it (as the experiments do).
"""

from dataclasses import dataclass


@dataclass
class Counters:
    """Sums since the start; `buffer_*` are tuples held now, `buffer_*_max` their maximum; both include waiting tuples."""

    tuples: int = 0
    pairs: int = 0
    evaluations: int = 0  # probability evaluations
    sure: int = 0  # pairs from satisfaction regions, without an evaluation
    lookups: int = 0  # targets in probe regions looked up in the table
    hits: int = 0  # look-ups that the table answered
    blocks: int = 0  # evaluations of a block, lazy operators
    late: int = 0  # arrived longer after their maximum than the stream's delay
    late_dropped: int = 0  # late tuples dropped from the side output before they were taken
    beyond_length: int = 0  # shorter than rho or longer than pi: joined, but a partner may have been purged
    unmatchable: int = 0  # longer than (hi - lo)/ct: never part of a pair, so not held
    purged_a: int = 0
    purged_b: int = 0
    overflow: int = 0  # dropped, oldest first, because the buffer was full
    buffer_a: int = 0
    buffer_b: int = 0
    buffer_a_max: int = 0
    buffer_b_max: int = 0
    response_2009_sum: int = 0
    response_2010_sum: int = 0

    @property
    def hit_ratio(self) -> float:
        """Share of the tuples in probe regions that needed no evaluation; 0 before the first."""
        return self.hits / self.lookups if self.lookups else 0.0

    @property
    def response_2009(self) -> float:
        """Mean response time as the 2009 paper defines it."""
        return self.response_2009_sum / self.pairs if self.pairs else 0.0

    @property
    def response_2010(self) -> float:
        """Mean response time as the 2010 paper defines it."""
        return self.response_2010_sum / self.pairs if self.pairs else 0.0
