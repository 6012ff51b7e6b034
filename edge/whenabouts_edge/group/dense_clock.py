"""The dense clock of one process in one view, told for moments and not only for now.

Readings are dated back: when one comes in, its event may lie before a peer's message that came meanwhile, and then it does
not follow from it. So a message counts for an event only if it was here before the earliest moment of the event, and a state
of this gateway's own only if it had surely begun. What is known is kept with the moment from which it counts until no later
event can have happened before that; all times are of the host's clock.
"""

MAX_LATER = (
    64  # steps kept apart; beyond it the newest two become one that counts from the later moment: less is claimed
)


class DenseClock:
    """Counts by process: own entry = number of the own state, others = states that surely had begun."""

    def __init__(self, process: int, size: int) -> None:
        self.process = process
        self.state = (0,) * size  # clock at the begin of the newest own state
        self._base = self.state
        self._later: list[tuple[int, tuple[int, ...]]] = []  # (from when it counts, counts), in order of time

    @property
    def number(self) -> int:
        """Of the newest own state."""
        return self.state[self.process]

    @property
    def newest(self) -> "tuple[int, ...]":
        """Everything heard, whenever it counts from."""
        counts = joined(self._base, self.state)
        for _, step in self._later:
            counts = joined(counts, step)
        return counts

    def at(self, earliest_us: int) -> "tuple[int, ...]":
        """What an event that did not happen before this moment knows."""
        counts = self._base
        for from_us, step in self._later:
            if from_us > earliest_us:
                break
            counts = joined(counts, step)
        return counts

    def received(self, now_us: int, counts: "tuple[int, ...]") -> bool:
        """A peer's clock is here at now_us; whether it says anything new."""
        if all(ours >= theirs for ours, theirs in zip(self.newest, counts)):
            return False
        self._keep(now_us, counts)
        return True

    def begin(self, earliest_us: int, latest_us: int) -> "tuple[int, ...]":
        """A new own state begins somewhere in the interval: the clock of its begin."""
        counts = list(joined(self.state, self.at(earliest_us)))
        counts[self.process] = self.number + 1
        self.state = tuple(counts)
        self._keep(latest_us, self.state)
        return self.state

    def settle(self, until_us: int) -> None:
        """No event will be asked for that can have happened before this moment."""
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
