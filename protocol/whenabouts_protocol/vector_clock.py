"""Dense vector clocks: the states of all processes that a gateway could know when it stamped a reading.

Entry i counts the local states of process i (0 is its initial state); the group view in the birth message fixes the
order of processes. The own entry ticks only when a new local state begins; a received clock is merged without a tick.
Then state k of process i precedes state l of process j exactly if V_j^l[i] >= k + 1. After Mattern, Virtual Time and
Global States of Distributed Systems (1989), with receives not counted as states.
"""

from whenabouts_protocol.reading import MAX_PROCESSES


class VectorClock:
    """Immutable vector of counts, one per process of the group's view.

    Raises:
        ValueError: an entry is negative, or there are more than MAX_PROCESSES.

    >>> VectorClock((3, 0)).merged(VectorClock((1, 2))).ticked(0)
    VectorClock((4, 2))
    """

    __slots__ = ("counts",)

    def __init__(self, counts: "tuple[int, ...] | list[int]" = ()) -> None:
        counts = tuple(counts)
        if len(counts) > MAX_PROCESSES:
            raise ValueError(f"vector clock: found {len(counts)} entries, expected at most {MAX_PROCESSES}")
        for count in counts:
            if count < 0:
                raise ValueError(f"vector clock: found entry {count}, expected counts of 0 or more")
        self.counts = counts

    def ticked(self, process: int) -> "VectorClock":
        """The clock after a new local state of the process began."""
        counts = list(self.counts)
        counts[process] += 1
        return VectorClock(counts)

    def merged(self, other: "VectorClock") -> "VectorClock":
        """Component-wise maximum: the clock after receiving `other`. A merge begins no state.

        Raises:
            ValueError: the clocks are of views of different size.
        """
        _same_view(self, other)
        return VectorClock([max(a, b) for a, b in zip(self.counts, other.counts)])

    def dominates(self, other: "VectorClock") -> bool:
        """True if every entry is at least the other's."""
        _same_view(self, other)
        return all(a >= b for a, b in zip(self.counts, other.counts))

    def concurrent(self, other: "VectorClock") -> bool:
        """True if neither dominates: their order is unknown."""
        return not self.dominates(other) and not other.dominates(self)

    def knows_state(self, process: int, state: int) -> bool:
        """True if state number `state` of `process` ended before this clock's state began (precedes it)."""
        return self.counts[process] >= state + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VectorClock) and self.counts == other.counts

    def __hash__(self) -> int:
        return hash(self.counts)

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        return f"VectorClock({self.counts})"


def _same_view(a: VectorClock, b: VectorClock) -> None:
    if len(a.counts) != len(b.counts):
        raise ValueError(f"vector clocks of different views: {len(a.counts)} and {len(b.counts)} entries")
