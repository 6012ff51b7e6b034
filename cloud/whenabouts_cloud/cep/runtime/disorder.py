"""The disorder bound of counting and of the research baselines; the engine's is in `kernel.block`.

It gives the frontier f, before which all events have arrived, after each event of a block.

K-bound: f = M - K for the largest time M of all events. Per source: f is the least time that a source has reached by an
event or a heartbeat. A source that was named holds f back until it sends; one that was not named counts from its first event
or heartbeat on. f never falls. Cost: a pass over the block; per source, a scan of all sources when the slowest moves.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from whenabouts_cloud.cep.kernel.layout import FOREVER, NEVER
from whenabouts_cloud.cep.runtime.validate import moment, whole
from whenabouts_cloud.jit import Array, compiled

Order = Literal["kbound", "source"]


class Disorder:
    """The frontier and the state that determines it; `arrays` is the whole state."""

    def __init__(self, order: Order, k: int | None, sources: list[int] | None) -> None:
        """Check the arguments and start before all events.

        Raises:
            ValueError: an order of another name, or a K-bound without a K >= 0.
        """
        if order not in ("kbound", "source"):
            raise ValueError(f"order: found {order!r}, expected 'kbound' or 'source'")
        if order == "kbound" and (k is None or k < 0):
            raise ValueError(f"k: found {k}, expected the largest delay >= 0, which order 'kbound' needs")
        self.k = -1 if order == "source" or k is None else k
        self.frontier = NEVER
        self._sources = np.unique(np.array(sources if sources is not None else [], np.int64))
        self._reached = np.full(len(self._sources), NEVER, np.int64)

    @property
    def arrays(self) -> dict[str, Array]:
        """The state as arrays."""
        head = np.array([self.k, self.frontier], np.int64)
        return {"disorder": head, "sources": self._sources, "reached": self._reached}

    @classmethod
    def of(cls, arrays: dict[str, Array]) -> "Disorder":
        """Restore from `arrays`."""
        k, frontier = map(int, arrays["disorder"])
        disorder = cls("source" if k < 0 else "kbound", k, arrays["sources"].tolist())
        disorder.frontier, disorder._reached = frontier, arrays["reached"].copy()
        return disorder

    def after(self, t: Array, source: Array | None) -> Array:
        """Feed events and return the frontier after each.

        Raises:
            ValueError: order "source" without sources.
        """
        if not len(t):
            return np.empty(0, np.int64)
        if self.k >= 0:
            frontier: Array = np.maximum(np.maximum.accumulate(t) - self.k, self.frontier)
        elif source is None:
            raise ValueError("source: found none, expected one for each event, since each source has its own order")
        else:
            self._meet(np.unique(source))
            frontier = np.empty(len(t), np.int64)
            _least(t, np.searchsorted(self._sources, source), self._reached, self.frontier, frontier)
        self.frontier = int(frontier[-1])
        return frontier

    def advance(self, frontier: Any) -> int:
        """Raise the frontier by a watermark for all (int) or by source ({source: int}), and return it.

        Raises:
            ValueError: a source or watermark is not a whole number.
        """
        if isinstance(frontier, Mapping):
            by_source = {whole("source", code): moment("frontier", value) for code, value in frontier.items()}
            codes = np.array(sorted(by_source), np.int64)
            self._meet(codes)
            for place, code in zip(np.searchsorted(self._sources, codes), codes, strict=True):
                before, watermark = self._reached[place], min(by_source[int(code)], FOREVER - 1)
                self._reached[place] = watermark if before == FOREVER else max(before, watermark)
            if self.k < 0 and np.any(self._reached < FOREVER):
                self.frontier = max(self.frontier, int(self._reached.min()))
        else:
            self.frontier = max(self.frontier, moment("frontier", frontier))
        return self.frontier

    def _meet(self, codes: Array) -> None:
        """Add sources that were not known; they count from their first event or heartbeat on."""
        new = np.setdiff1d(codes, self._sources)
        if len(new):
            at = np.searchsorted(self._sources, new)
            self._sources = np.insert(self._sources, at, new)
            self._reached = np.insert(self._reached, at, FOREVER)


@compiled
def _least(t: Array, place: Array, reached: Array, before: int, frontier: Array) -> None:
    least = before
    low = reached.min()
    for n in range(len(t)):
        s = place[n]
        old = reached[s]
        reached[s] = t[n] if old == FOREVER else max(old, t[n])
        if old == low or reached[s] < low:
            low = reached.min()
        least = max(least, low)
        frontier[n] = least
