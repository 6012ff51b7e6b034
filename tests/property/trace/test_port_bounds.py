"""Chunk bounds hold for every arrival schedule and every scheduling delay, against a simulated port and clock.

The simulation knows when each byte truly reached the buffer. Every call takes time before and after the moment at
which it looks at the buffer.
"""

from bisect import bisect_right
from itertools import cycle
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_edge.readers.port import CHUNK_BYTES_MAX, Port

POLL_MS = 20
POLL_NS = POLL_MS * 1_000_000


class SimulatedDevice:
    """A serial port whose every byte has a known arrival; `delays_ns` is the time each step of the host takes."""

    def __init__(self, arrivals_ns: list[int], delays_ns: list[int], counts: bool) -> None:
        self.timeout: float | None = None
        self.now_ns = 0
        self.taken = 0
        self._arrivals_ns = arrivals_ns
        self._delays_ns = cycle(delays_ns)
        self._counts = counts

    def monotonic_ns(self) -> int:
        self._pass()
        seen_ns = self.now_ns
        self._pass()
        return seen_ns

    def read(self, size: int) -> bytes:
        """Like pyserial: looks, sleeps until a byte is there or the time-out expires, and looks once more."""
        self._pass()
        expiry_ns = self.now_ns + int(self.timeout * 1e9)
        data = b""
        while True:
            available = min(size - len(data), self._here() - self.taken)
            data += self._bytes(available)
            if len(data) == size or self.now_ns >= expiry_ns:
                break
            following = self._arrivals_ns[self.taken : self.taken + 1]
            self.now_ns = max(self.now_ns, min([expiry_ns, *following]))
            self._pass()  # woken late
        self._pass()
        return data

    @property
    def in_waiting(self) -> int:
        self._pass()
        waiting = self._here() - self.taken
        self._pass()
        return waiting if self._counts else min(waiting, 1)

    def _here(self) -> int:
        return bisect_right(self._arrivals_ns, self.now_ns)

    def _bytes(self, count: int) -> bytes:
        data = bytes(index % 256 for index in range(self.taken, self.taken + count))
        self.taken += count
        return data

    def _pass(self) -> None:
        self.now_ns += next(self._delays_ns)


# Seeds instead of lists: hypothesis keeps lists short and small, races need long schedules with delays of all sizes.
seeds = st.integers(0, 2**32)


def schedule(seed: int) -> tuple[list[int], list[int]]:
    """(arrivals, delays of the host's steps): ties, bursts and silences, delays from nothing to two poll periods."""
    random = Random(seed)
    arrivals_ns = [0]
    for _ in range(random.randrange(1, 40)):
        gap_ns = random.choice([0, random.randrange(200_000), random.randrange(3 * POLL_NS), POLL_NS])
        arrivals_ns.append(arrivals_ns[-1] + gap_ns)
    slow_ns = random.choice([10_000, POLL_NS, 2 * POLL_NS])
    delays_ns = [random.choice([0, random.randrange(5_000), random.randrange(slow_ns)]) for _ in range(20)]
    return arrivals_ns, [*delays_ns, 1]


@settings(max_examples=examples(400), deadline=None)
@given(seed=seeds, counts=st.booleans())
def test_every_byte_arrived_within_its_chunk(seed: int, counts: bool) -> None:
    """after_ns <= arrival of the first byte, arrival of the last byte <= before_ns, and no byte is lost or repeated."""
    arrivals_ns, delays_ns = schedule(seed)
    device = SimulatedDevice(arrivals_ns, delays_ns, counts)
    port = Port(device, "simulated", device.monotonic_ns, opened_ns=0, poll_ms=POLL_MS, waiting_exact=counts)

    place = 0
    while place < len(arrivals_ns):
        chunk = port.read()
        assert port.empty_ns <= device.now_ns
        unread_ns = arrivals_ns[device.taken :]
        # time:  empty_ns ......... first unread byte arrives (perhaps already waiting)
        assert not unread_ns or port.empty_ns <= unread_ns[0]
        if chunk is None:
            continue
        assert chunk.data == bytes(index % 256 for index in range(place, place + len(chunk.data)))
        # time:  after_ns ... first byte ... last byte ... before_ns
        assert chunk.after_ns <= arrivals_ns[place]
        place += len(chunk.data)
        assert arrivals_ns[place - 1] <= chunk.before_ns


@settings(max_examples=examples(20), deadline=None)
@given(extra=st.integers(-2, 2), counts=st.booleans())
def test_a_burst_longer_than_a_chunk_keeps_its_lower_bound(extra: int, counts: bool) -> None:
    """Bytes that do not fit into one chunk are bounded from below by the last moment the buffer was empty."""
    arrivals_ns = [1000] * (CHUNK_BYTES_MAX + extra)
    device = SimulatedDevice(arrivals_ns, [10], counts)
    port = Port(device, "simulated", device.monotonic_ns, opened_ns=0, waiting_exact=counts)
    first = port.read()
    assert len(first.data) == min(CHUNK_BYTES_MAX, len(arrivals_ns))
    while device.taken < len(arrivals_ns):
        chunk = port.read()
        assert chunk.after_ns <= 1000 <= chunk.before_ns


def test_bounds_are_tight_when_the_host_is_quick() -> None:
    """With 1 us for each step a byte after silence is bounded to a poll period, one soon after another to that gap."""
    device = SimulatedDevice([100_000_000, 100_500_000], [1000], counts=True)
    port = Port(device, "simulated", device.monotonic_ns, opened_ns=0)
    chunks = []
    while len(chunks) < 2:
        chunk = port.read()
        if chunk is not None:
            chunks.append(chunk)
    # time:  ...expiry --- <= poll --- byte | chunk 1 | --- 0.5 ms --- byte | chunk 2 |
    assert chunks[0].before_ns - chunks[0].after_ns <= POLL_NS + 20_000
    assert chunks[1].before_ns - chunks[1].after_ns <= 520_000
