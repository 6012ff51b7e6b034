"""Vector clocks of the events that may still be in a match, for order CAUSAL; evicted oldest first."""

import numpy as np

from whenabouts_cloud.cep.uncertain.causal import Clocks
from whenabouts_cloud.jit import Array


class HeldClocks:
    """Clocks of the events from index `base` on; None if no pattern needs them."""

    def __init__(self, wanted: bool, base: int = 0) -> None:
        self.wanted, self.base = wanted, base
        self.known: Clocks | None = None
        self.t_max: Array = np.empty(0, np.int64)

    def add(self, clocks: Clocks | None, t_max: Array, past: int) -> None:
        """Add the clocks of a block's events; evict those of events that ended before `past`, up to the first that did not.

        Raises:
            ValueError: there are no clocks, or not one for each event.
        """
        if not self.wanted:
            return
        if clocks is None:
            raise ValueError(
                "clocks: found none, expected the vector clocks of the events for a pattern in causal order"
            )
        if clocks.vectors.ndim != 2 or any(len(column) != len(t_max) for column in clocks.columns):
            raise ValueError(f"clocks: found vectors of shape {clocks.vectors.shape}, expected {len(t_max)} of them")
        if self.known is None:
            self.known, self.t_max = clocks, t_max
            return
        gone = int(np.argmax(np.append(self.t_max >= past, True)))
        self.base += gone
        self.t_max = np.concatenate([self.t_max[gone:], t_max])
        self.known = self.known.take(slice(gone, None)).joined(clocks)

    def cut(self, fed: int) -> None:
        """Remove the clocks of events from index `fed` on, which were not stored."""
        if self.known is not None:
            self.known, self.t_max = self.known.take(slice(0, fed - self.base)), self.t_max[: fed - self.base]
