"""An agent's clock and stamper in a simulated world: every stamp with its true time, and the parts of its width."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from support.clock.world import BASE_US, PICO, SECOND_US, Chronyd, Host, Network, Service, Timesyncd, crystal
from whenabouts_edge.clock import UNBOUNDED_US, ClockSample, ClockSource
from whenabouts_edge.clock.clockbound import ClockBoundClock
from whenabouts_edge.clock.kernel import MARGIN_US, KernelClock
from whenabouts_edge.clock.pace import PacedClock
from whenabouts_edge.clock.system import ChronyClock, FixedClock
from whenabouts_edge.clock.timesyncd import TimesyncdClock
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.readers.stamp import Stamper
from whenabouts_edge.store.undated import Undated
from whenabouts_protocol import Interval

SOURCES = ("chrony", "timesyncd", "adjtimex", "clockbound", "fixed")
BAUD, FRAME_BYTES, KEEPALIVE_BYTES, CYCLE_US = 115_200, 47, 7, 1_000_000
LATENCIES_US = (0, 30_000, 400_000, 1_000_000)
ADAPTERS_US = (0, 1_000, 16_000)
POLL_US = 20_000
FIXED_BOUND_US = 50_000


@dataclass
class Stamped:
    """One reading: its true time, its stamp, and the parts of its width in us."""

    true_us: int
    t_min: int
    t_max: int
    state: str
    window_us: int  # from reader, wire, adapter and the look at the port
    promised_us: int  # of that from the configured latency and adapter
    source_us: int  # both sides' bound as the source gave it
    pushed_us: int  # both sides' widening by slewing, sleep, queries
    drift_us: int  # both sides' drift since the sample

    @property
    def holds(self) -> bool:
        """True if the stamp contains the true time."""
        return self.t_min <= BASE_US + self.true_us <= self.t_max


class Watch:
    """A world of a seed; `run` gives its stamps."""

    def __init__(self, seed: int, crystal_family: str, network: str, source: str, duration_s: int = 150) -> None:
        self.chance = chance = Random(f"{seed}/{crystal_family}/{network}/{source}")
        self._until_us = duration_s * SECOND_US
        sleep = (0, 0)
        wrong_us = chance.choice([0, chance.randint(-300_000, 300_000), -chance.randrange(10**14)])
        if source == "fixed":
            wrong_us = chance.randint(-FIXED_BOUND_US // 2, FIXED_BOUND_US // 2)
            if chance.random() < 0.5:
                sleep = (60 * SECOND_US, (60 + chance.randint(1, 30)) * SECOND_US)
        if source == "adjtimex":
            wrong_us = chance.randint(-MARGIN_US // 4, MARGIN_US // 4)
        self._sleep = sleep
        rates = crystal(crystal_family, chance, self._until_us)
        self.host = Host(rates, chance.randrange(10**12), wrong_us, sleep)
        ways = Network(network, chance)
        if source == "adjtimex":  # its margin is assumed: in this network corrections stay below it
            ways._one_way_us = min(ways._one_way_us, 150)
        kind = Timesyncd if source == "timesyncd" else Chronyd
        first_us = chance.choice([0, chance.randint(0, self._until_us // 2)])
        self.service: Service | None = None if source == "fixed" else kind(self.host, ways, chance, first_us)
        self.now_us = self._opened_us = 0
        self._said: ClockSample | None = None
        self.clock = PacedClock(_Reported(self._source(source), self), lambda: self.host.pace(self._tick(0)))
        self._undated = Undated()
        self._kept: dict[str, tuple[int, int]] = {}
        self.latency_us, self.adapter_us = chance.choice(LATENCIES_US), chance.choice(ADAPTERS_US)
        self.stamps: list[Stamped] = []

    def run(self) -> list[Stamped]:
        """Samples each second, readings in between."""
        chance, sample = self.chance, None
        while self.now_us < self._until_us:
            begin_us, previous = self.now_us, sample
            sample = self.clock.sample()
            if previous is None:
                self._opened_us = self.now_us  # an agent knows its clock before it opens its ports
            if self._undated:
                self._date(self.clock.current(sample))
            moments = sorted(chance.randint(1, SECOND_US) for _ in range(chance.choice([0, 1, 3])))
            for after_us in moments:
                if self._is_awake(self.now_us, begin_us + after_us):
                    self._tick(max(0, begin_us + after_us - self.now_us))
                    # A slow sample is not available yet.
                    self._read(previous if previous is not None and chance.random() < 0.2 else sample)
            self._tick(max(0, begin_us + SECOND_US - self.now_us))
            self._wake()
        return self.stamps

    def _is_awake(self, *moments_us: int) -> bool:
        return not any(self._sleep[0] <= at_us < self._sleep[1] for at_us in moments_us)

    def _wake(self) -> None:
        """Nothing runs while the host sleeps; readings come before the next sample."""
        if not self._is_awake(self.now_us):
            self.now_us = self._sleep[1] + 1

    def _tick(self, by_us: int) -> int:
        self.now_us += by_us
        if self.service is not None:
            self.service.run_until(self.now_us)
        return self.now_us

    def _source(self, name: str) -> ClockSource:
        host, service, chance = self.host, self.service, self.chance

        def clocks() -> tuple[int, int, int]:
            return host.clocks(self._tick(0))

        def asked(answer: Callable[[int], object]) -> Callable[[], object]:
            def ask() -> object:
                """The answer may be from any moment of the time that the query takes."""
                takes_us = chance.choice([0, 0, 2_000, chance.randint(0, 1_500_000)])
                early_us = chance.randint(0, takes_us)
                self._tick(early_us)
                reply = answer(self.now_us)
                self._tick(takes_us - early_us)
                return reply

            return ask

        if isinstance(service, Timesyncd):
            return TimesyncdClock(asked(lambda _: service.message()), clocks)  # type: ignore[arg-type]
        if isinstance(service, Chronyd) and name == "chrony":
            return ChronyClock(asked(service.report), clocks)  # type: ignore[arg-type]
        if isinstance(service, Chronyd) and name == "adjtimex":
            return KernelClock(asked(service.maxerror_us), clocks)  # type: ignore[arg-type]
        if isinstance(service, Chronyd):
            return ClockBoundClock(
                lambda: service.segment(self.now_us), clocks, lambda: host.monotonic(self.now_us) // 1000
            )
        return FixedClock(FIXED_BOUND_US, clocks)

    def _host_us(self, true_us: int) -> int:
        return self.host.monotonic(true_us) // PICO

    def _read(self, sample: ClockSample) -> None:
        """Take a frame that is complete now: sighted, sent, held in the adapter, seen at a look."""
        chance, read_us = self.chance, self.now_us
        wire_us = -(-FRAME_BYTES * 10_000_000 // BAUD)
        held_us = chance.choice([0, self.adapter_us])
        looked_us = chance.choice([0, 1, chance.randint(0, POLL_US)])
        first_bit_us = read_us - looked_us - held_us - wire_us
        event_us = first_bit_us - chance.choice([0, self.latency_us, chance.randint(0, self.latency_us)])
        first_byte_us = first_bit_us + wire_us // FRAME_BYTES + chance.choice([0, held_us])
        empty_us = max(first_bit_us, first_byte_us - chance.choice([1, chance.randint(1, POLL_US)]))
        if event_us < 0 or not self._is_awake(event_us, read_us) or event_us < self._sleep[0] < read_us:
            return
        stamper = Stamper(BAUD, self.latency_us, self.adapter_us, CYCLE_US)
        since_us = None
        reported_soon = first_bit_us - event_us <= CYCLE_US // 2 - 60_000  # as a reader that counts in cycles does
        if reported_soon and chance.random() < 0.5 and event_us - CYCLE_US > self._opened_us:
            since_us = self._keep_alive(stamper, event_us)
        stamper.arrived(FRAME_BYTES, self._host_us(empty_us), self._host_us(read_us) + 1)
        begin = 0 if since_us is None else KEEPALIVE_BYTES
        window = stamper.window(begin, begin + FRAME_BYTES)
        if since_us is not None:
            window = stamper.narrowed(window, since_us // 1000)
        now = self.clock.current(sample)
        if self._undated or now.bound_us is None:
            name = str(len(self._kept))
            self._kept[name] = event_us, window[1] - window[0]
            self._undated.keep([PendingReading("", "tag", *window, name)])
            return
        self._add(event_us, window, now, now.state, now.to_utc(*window))

    def _keep_alive(self, stamper: Stamper, event_us: int) -> int | None:
        """Announce the reader's cycle; return its own count of microseconds since then, None if the host slept."""
        since_us = self.chance.randrange(CYCLE_US)
        cycle_us = event_us - since_us
        if not self._is_awake(cycle_us) or cycle_us < self._sleep[1] <= event_us:
            return None
        arrived_us = cycle_us - (-KEEPALIVE_BYTES * 10_000_000 // BAUD) + self.chance.choice([0, self.adapter_us])
        stamper.arrived(KEEPALIVE_BYTES, self._host_us(cycle_us), self._host_us(arrived_us) + 1)
        stamper.cycle_started(0, KEEPALIVE_BYTES)
        return since_us * 1_000_000 // (1_000_000 + self.chance.choice([-50, 0, 50]))

    def _date(self, sample: ClockSample) -> None:
        for one in self._undated.released(sample, self._host_us(self.now_us)):
            event_us, _ = self._kept[str(one.key)]
            assert one.stamp is not None
            t_min, t_max, state = one.stamp
            self._add(event_us, (one.earliest_us, one.latest_us), sample, state, Interval(t_min, t_max))

    def _add(self, event_us: int, window: tuple[int, int], sample: ClockSample, state: str, stamp: Interval) -> None:
        t_min, t_max = stamp.t_min, stamp.t_max
        window_us, ends = window[1] - window[0], [sample.bound_at(at_us) for at_us in window]
        said_us = self._said.bound_us if self._said is not None and self._said.bound_us is not None else 0
        bound_us = sample.bound_us or 0
        drift_us = sum(-(-abs(at_us - sample.host_us) * 50 // 10**6) for at_us in window)
        pushed_us = sum(ends) - drift_us - 2 * min(said_us, bound_us)
        self.stamps.append(
            Stamped(
                event_us, t_min, t_max, state if max(ends) < UNBOUNDED_US else "unbounded", window_us,
                min(window_us, self.latency_us + self.adapter_us), 2 * min(said_us, bound_us), pushed_us, drift_us,
            )
        )  # fmt: skip


class _Reported:
    """Remembers the sample of the source before the pace widens it."""

    def __init__(self, source: ClockSource, watch: Watch) -> None:
        self._source, self._watch = source, watch

    def host_us(self, monotonic_ns: int) -> int:
        return self._source.host_us(monotonic_ns)

    def sample(self) -> ClockSample:
        self._watch._said = sample = self._source.sample()
        return sample
