"""The clock of an agent, watched: at each answer true UTC must lie in it, now and at the moments of earlier answers.

A stamp is such an answer about a moment at which something came. So a wrong clock is found without a reading that shows it.
"""

from collections.abc import Callable

from whenabouts_edge.clock import ClockSample, HostClock

MOST_TOLD = 3
PAST = 4  # earlier answers that each new one is asked about


class WatchedClock:
    """A clock (`clock.HostClock`). now: host time and true UTC of the present moment, us. wrong: what was not true."""

    def __init__(self, clock: HostClock, now: Callable[[], tuple[int, int]], wrong: list[str]) -> None:
        self._clock, self._now, self.wrong = clock, now, wrong
        self._past: list[tuple[int, int]] = []

    def host_us(self, monotonic_ns: int) -> int:
        """Host microseconds of a moment."""
        return self._clock.host_us(monotonic_ns)

    def sample(self) -> ClockSample:
        """UTC now; the newest of all that is known."""
        sample = self._clock.sample()
        moment = self._now()
        for one in (moment, *self._past):
            self._judge(sample, *one)
        self._past = [*self._past[: PAST // 2], *self._past[PAST // 2 :][1 - PAST // 2 :], moment]
        return sample

    def current(self, sample: ClockSample) -> ClockSample:
        """A sample, for this moment."""
        current = self._clock.current(sample)
        self._judge(current, *self._now())
        return current

    def _judge(self, sample: ClockSample, host_us: int, true_us: int) -> None:
        said = sample.to_utc(host_us, host_us)
        if not said.t_min <= true_us <= said.t_max and len(self.wrong) < MOST_TOLD:
            self.wrong.append(
                f"a sample of {sample.host_us} says that {host_us} of the host's clock was in [{said.t_min}, {said.t_max}], "
                f"and it was {true_us}"
            )
