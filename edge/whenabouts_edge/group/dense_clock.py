"""The dense clock of one process in one view. It gives the counts of past moments, not only the present ones.

Readings are dated back: when a reading comes in, its event may lie before a peer's message that came meanwhile, and then
the event does not follow from that message. So a message counts for an event only if it was received before the earliest
moment of the event, and a state of this gateway only if it had certainly begun. Counts are kept with the moment from
which they hold until no later event can have happened before that moment. All times are of the host's clock.

State k of process i precedes state l of process j exactly if entry i of the clock of l is at least k + 1. After Mattern,
Virtual Time and Global States of Distributed Systems (1989); a receipt is not a state, so it increments nothing.
"""

MAX_LATER = 64  # steps kept; beyond it the newest two become one that counts from the later moment: less is claimed


class DenseClock:
    """Counts by process: own entry = number of the own state, others = states that had certainly begun."""

    def __init__(self, process: int, size: int) -> None:
        self.process = process
        self.state = (0,) * size  # clock at the begin of the newest own state
        self._base = self.state
        self._later: list[tuple[int, tuple[int, ...]]] = []  # (from when it counts, counts), in order of time

    @property
    def number(self) -> int:
        """Number of the newest own state."""
        return self.state[self.process]

    @property
    def newest(self) -> "tuple[int, ...]":
        """All counts received, whatever the moment from which they hold."""
        counts = joined(self._base, self.state)
        for _, step in self._later:
            counts = joined(counts, step)
        return counts

    def at(self, earliest_us: int) -> "tuple[int, ...]":
        """The counts known to an event that happened at this moment or later."""
        counts = self._base
        for from_us, step in self._later:
            if from_us > earliest_us:
                break
            counts = joined(counts, step)
        return counts

    def received(self, now_us: int, counts: "tuple[int, ...]") -> bool:
        """Take in a peer's clock that arrived at now_us; returns True if it holds any new count."""
        if all(ours >= theirs for ours, theirs in zip(self.newest, counts)):
            return False
        self._keep(now_us, counts)
        return True

    def begin(self, earliest_us: int, latest_us: int) -> "tuple[int, ...]":
        """Begin a new own state somewhere in the interval; returns the clock at its beginning."""
        counts = list(joined(self.state, self.at(earliest_us)))
        counts[self.process] = self.number + 1
        self.state = tuple(counts)
        self._keep(latest_us, self.state)
        return self.state

    def settle(self, until_us: int) -> None:
        """Merge the steps up to this moment: no event that can have happened before it will be queried."""
        done = 0
        while done < len(self._later) and self._later[done][0] <= until_us:
            self._base = joined(self._base, self._later[done][1])
            done += 1
        if done:
            self._later = self._later[done:]

    def _keep(self, from_us: int, counts: "tuple[int, ...]") -> None:
        at = len(self._later)
        while at and self._later[at - 1][0] > from_us:
            at -= 1
        self._later.insert(at, (from_us, counts))
        if len(self._later) > MAX_LATER:
            last_us, last = self._later.pop()
            self._later[-1] = last_us, joined(self._later[-1][1], last)


def joined(a: "tuple[int, ...]", b: "tuple[int, ...]") -> "tuple[int, ...]":
    """Component-wise maximum of two clocks of one view."""
    return tuple([max(x, y) for x, y in zip(a, b)])
