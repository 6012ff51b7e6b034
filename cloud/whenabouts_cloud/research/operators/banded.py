"""`banded`, the default: every push is matched at once, in the order of the middles.

P(lo <= Y - X <= hi) depends on the doubled distance |M| of the middles from the condition's centre and on the two lengths,
and falls with |M| for every d >= 0. So targets ordered by their middles are sure up to the least K(w1, w2) over the
target's lengths and out of question beyond the greatest (`target_bounds`): symmetric, without the papers' assumption on d
and pi, and with a third of the probes of the order by maxima at ct 0.8, none at 0.5, never more.
"""

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.operators.base import MAX_BUFFER, StreamBounds
from whenabouts_cloud.research.operators.block_operator import BlockOperator


class Banded(BlockOperator):
    """Match each push when it arrives, best in batches of 100 or more."""

    name = "banded"
    order = "middle"

    def __init__(self, condition: Condition, a: StreamBounds, b: StreamBounds, *, max_buffer: int = MAX_BUFFER) -> None:
        super().__init__(condition, a, b, block=1, every=None, max_buffer=max_buffer)
