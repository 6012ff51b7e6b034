"""The first of several sources that knows a bound, determined again at each sample; the default of a gateway.

The order is clock-bound's shared memory, chrony, systemd-timesyncd, the kernel's figure under chrony. A source without
a bound costs one read of a file or one short process a second; sources that have had no bound for a while are asked
once a minute.
"""

from collections.abc import Sequence

from whenabouts_edge.clock import ClockSample, ClockSource

PATIENCE = 10  # after this many samples in a row without a bound a source is asked only every RARELY samples
RARELY = 60


class FirstClock:
    """Asks the sources in order.

    Raises:
        ValueError: the list of sources is empty.
    """

    def __init__(self, sources: Sequence[ClockSource]) -> None:
        if not sources:
            raise ValueError("clock sources: found none, expected at least one")
        self._sources = tuple(sources)
        self._silent = [0] * len(self._sources)

    def host_us(self, monotonic_ns: int) -> int:
        return self._sources[0].host_us(monotonic_ns)

    def sample(self) -> ClockSample:
        sample = None
        for n, source in enumerate(self._sources):
            last = n == len(self._sources) - 1 and sample is None
            if self._silent[n] >= PATIENCE and self._silent[n] % RARELY and not last:
                self._silent[n] += 1
                continue
            sample = source.sample()
            if sample.bound_us is not None:
                self._silent[n] = 0
                return sample
            self._silent[n] += 1
        assert sample is not None  # the last source is always asked
        return sample
