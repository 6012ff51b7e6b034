"""A host whose clocks are wrong, a network, and a time service that corrects them: everything that stamps depend on.

Times are exact: true time is whole microseconds since BASE_US, clocks count in picoseconds, so that a bound that is off by
one rounding fails. A crystal is a list of (begin, ppm); CLOCK_MONOTONIC_RAW counts it, CLOCK_MONOTONIC is slewed beside it,
UTC is CLOCK_MONOTONIC plus the steps of its settings; both monotonic clocks stand still while the host sleeps, UTC goes on.
"""

from bisect import bisect_right
from random import Random

from whenabouts_edge.clock import Pace
from whenabouts_edge.clock.clockbound import LAYOUT, MAGIC

BASE_US = 1_790_000_000_000_000
PICO = 1_000_000  # picoseconds a microsecond
MEAN_PPM_MAX = 50
SECOND_US = 1_000_000

CRYSTALS = ("linear", "periodic", "step", "noisy")
NETWORKS = ("symmetric", "asymmetric", "jittery")


def crystal(family: str, chance: Random, until_us: int) -> list[tuple[int, int]]:
    """(begin, ppm) of a crystal that is never off by more than 50 ppm.

    linear: one error. periodic: swings between two, as with day and night. step: jumps once or twice, as when a fan
    starts. noisy: another error each second or so.
    """
    worst = chance.choice([MEAN_PPM_MAX, MEAN_PPM_MAX, chance.randint(0, MEAN_PPM_MAX)])
    if family == "linear":
        return [(0, chance.choice([-worst, worst]))]
    if family == "step":
        moments = sorted(chance.randrange(1, until_us) for _ in range(chance.randint(1, 2)))
        return [(at_us, chance.randint(-worst, worst)) for at_us in (0, *moments)]
    if family == "periodic":
        half_us = chance.randint(SECOND_US // 2, until_us)
        return [(at_us, worst * (-1) ** n) for n, at_us in enumerate(range(0, until_us, half_us))]
    rates, at_us = [], 0
    while at_us < until_us:
        rates.append((at_us, chance.choice([-worst, worst, chance.randint(-worst, worst)])))
        at_us += chance.randint(SECOND_US // 3, 20 * SECOND_US)
    return rates


class Integral:
    """The integral of a rate that is constant between moments, in picoseconds."""

    def __init__(self, rates: list[tuple[int, int]]) -> None:
        self.begins, self.ppm, self.sums = [0], [0], [0]
        for begin_us, ppm in rates:
            self.turn(begin_us, ppm)

    def turn(self, at_us: int, ppm: int) -> None:
        """Set another rate from at_us on; turns set for later are dropped."""
        while self.begins[-1] > at_us:
            del self.begins[-1], self.ppm[-1], self.sums[-1]
        self.sums.append(self.at(at_us))
        self.begins.append(at_us)
        self.ppm.append(ppm)

    def at(self, true_us: int) -> int:
        """Sum of ppm times microseconds."""
        n = bisect_right(self.begins, true_us) - 1
        return self.sums[n] + self.ppm[n] * (true_us - self.begins[n])


class Host:
    """The clocks of one gateway. begin_us: its monotonic clock at true time 0; wrong_us: the error of UTC then."""

    def __init__(
        self, rates: list[tuple[int, int]], begin_us: int, wrong_us: int, sleep: tuple[int, int] = (0, 0)
    ) -> None:
        self._crystal, self._slew = Integral(rates), Integral([])
        self._begin = begin_us * PICO
        self._set = [(-1, (BASE_US - begin_us + wrong_us) * PICO)]
        self._sleep = sleep

    def _asleep(self, true_us: int) -> int:
        begin_us, end_us = self._sleep
        return max(0, min(true_us, end_us) - begin_us) * PICO if end_us > begin_us else 0

    def raw(self, true_us: int) -> int:
        """CLOCK_MONOTONIC_RAW; all in picoseconds."""
        return self._begin + true_us * PICO + self._crystal.at(true_us) - self._asleep(true_us)

    def monotonic(self, true_us: int) -> int:
        """CLOCK_MONOTONIC."""
        return self.raw(true_us) + self._slew.at(true_us)

    def utc(self, true_us: int) -> int:
        """CLOCK_REALTIME."""
        return (
            self.monotonic(true_us) + self._asleep(true_us) + next(s for at, s in reversed(self._set) if at <= true_us)
        )

    def slew(self, at_us: int, ppm: int) -> None:
        """Let the monotonic clock and UTC run faster by this rate from at_us on."""
        self._slew.turn(at_us, ppm)

    def slewed(self, true_us: int) -> int:
        """Sum of all slewing until then."""
        return self._slew.at(true_us)

    def step(self, at_us: int, by: int) -> None:
        """Set UTC forward by this many picoseconds."""
        self._set.append((at_us, self._set[-1][1] + by))

    def clocks(self, true_us: int) -> tuple[int, int, int]:
        """The clocks as `read_clocks` gives them, with nothing between the readings."""
        return self.utc(true_us) // PICO, self.monotonic(true_us) // 1000, 2

    def pace(self, true_us: int) -> Pace:
        """The pace as `read_pace` gives it."""
        return Pace((self.monotonic(true_us) - self.raw(true_us)) // PICO, self._asleep(true_us) // PICO, 2)


class Network:
    """The ways to a server and back, and the server's error, which is never more than its claim."""

    def __init__(self, family: str, chance: Random) -> None:
        self._family, self._chance = family, chance
        self._one_way_us = chance.choice([150, 5_000, 40_000, 400_000])

    def ways(self) -> tuple[int, int]:
        """Microseconds there and back: equal; all in one direction; or anything."""
        chance, way_us = self._chance, self._one_way_us
        if self._family == "symmetric":
            return way_us, way_us
        if self._family == "asymmetric":
            return (2 * way_us, 0) if chance.random() < 0.5 else (0, 2 * way_us)
        return chance.randint(0, way_us), chance.choice([chance.randint(0, way_us), 10 * way_us])

    def server(self) -> tuple[int, int, int]:
        """(root delay, root dispersion, error), the error within these two."""
        delay_us, dispersion_us = self._chance.choice([(0, 0), (300, 50), (4000, 1000)])
        most_us = delay_us // 2 + dispersion_us
        return (
            delay_us,
            dispersion_us,
            self._chance.choice([-most_us, most_us, self._chance.randint(-most_us, most_us)]),
        )


class Service:
    """A time service: asks at intervals, corrects UTC by jumps or by slewing. `run_until` runs it up to a moment."""

    poll_us = 64 * SECOND_US

    def __init__(self, host: Host, network: Network, chance: Random, first_us: int) -> None:
        self.host, self.network, self.chance = host, network, chance
        self.updates = 0
        self._next_us = first_us

    def run_until(self, true_us: int) -> None:
        """Do everything that happens by then, in order."""
        while self._next_us <= true_us:
            at_us = self._next_us
            self._next_us = at_us + self._happens(at_us)

    def _happens(self, at_us: int) -> int:
        """Do what is due, and return the time until the next action."""
        raise NotImplementedError

    def exchange(self, sent_us: int) -> tuple[int, int, int, int, int, int]:
        """(sent, received, answered, back, root delay, root dispersion): the server's moments by its own clock, in us."""
        there_us, back_us = self.network.ways()
        inside_us = self.chance.randint(0, 500)
        delay_us, dispersion_us, error_us = self.network.server()
        received_us = sent_us + there_us
        answered_us = received_us + inside_us
        return sent_us, received_us + error_us, answered_us + error_us, answered_us + back_us, delay_us, dispersion_us


class Chronyd(Service):
    """Measures by its own undisturbed scale; jumps by more than a second in the first three updates, else slews.

    The bound after an update is |error left| + dispersion + delay / 2, and grows by 1 ppm as configured by default.
    """

    def __init__(self, host: Host, network: Network, chance: Random, first_us: int) -> None:
        super().__init__(host, network, chance, first_us)
        self.rate_ppm = chance.choice([100, 5_000, 83_333])
        self._pending: tuple[int, int, int, int, int] | None = None
        self._at_us = self._until_us = 0
        self._delay_us = self._dispersion_us = 0
        self._goal = 0  # of all slewing so far, picoseconds

    def _happens(self, at_us: int) -> int:
        if self._pending is None:
            sent_us, received_us, answered_us, back_us, delay_us, dispersion_us = self.exchange(at_us)
            trip = self.host.raw(back_us) - self.host.raw(sent_us)
            delay = trip - (answered_us - received_us) * PICO
            now = (BASE_US + answered_us) * PICO + delay // 2  # UTC at back_us by this exchange
            unsure_us = dispersion_us + 1 + trip * MEAN_PPM_MAX // PICO // PICO + 1
            self._pending = now, back_us, at_us, delay_us + delay // PICO + 2, unsure_us
            return max(1, back_us - at_us)
        now, back_us, asked_us, self._delay_us, self._dispersion_us = self._pending
        self._pending = None
        self.updates += 1
        self._at_us = back_us
        error = now - self.host.utc(back_us)
        slewed = self.host.slewed(back_us)
        if abs(error) > SECOND_US * PICO and self.updates <= 3:
            self.host.step(back_us, error)
            error = 0
        self._goal = slewed + error
        # A slew in whole microseconds ends a little short of the goal: the report gives the difference.
        self._until_us = back_us + abs(error) // self.rate_ppm
        self.host.slew(back_us, self.rate_ppm if error > 0 else -self.rate_ppm)
        self.host.slew(self._until_us, 0)
        return max(SECOND_US, self.poll_us - (back_us - asked_us))

    def left(self, true_us: int) -> int:
        """The error that is left to correct, in picoseconds."""
        return self._goal - self.host.slewed(true_us)

    def report(self, true_us: int) -> str:
        """`chronyc -c tracking`; not synchronised before the first update."""
        if not self.updates:
            return "7F7F0101,,0,0,0,0,0,0,0,0,1,1,0,Not synchronised"
        dispersion_us = self._dispersion_us + (true_us - self._at_us) * 1 // PICO + 1
        left_us = -(-abs(self.left(true_us)) // PICO)
        reference = (BASE_US + self._at_us) / 1e6
        return (
            f"C0A80001,time,2,{reference:.9f},{left_us / 1e6:.9f},0,0,0,0,0,{self._delay_us / 1e6:.9f},"
            f"{dispersion_us / 1e6:.9f},{self.poll_us / 1e6:.1f},Normal"
        )

    def maxerror_us(self, true_us: int) -> int | None:
        """The error bound that it gave the kernel, grown by 500 ppm, without the error left to correct."""
        if not self.updates:
            return None
        return self._delay_us // 2 + 1 + self._dispersion_us - (-(true_us - self._at_us) * 500 // PICO)

    def segment(self, true_us: int) -> bytes:
        """The segment that a clock-bound daemon writes each second."""
        at_us = max(self._at_us, true_us // SECOND_US * SECOND_US)
        dispersion_us = self._dispersion_us + (true_us - self._at_us) * 50 // PICO + 1
        bound_ns = (self._delay_us // 2 + 1 + dispersion_us - (-abs(self.left(at_us)) // PICO)) * 1000
        as_of_s, as_of_ns = divmod(self.host.monotonic(at_us) // 1000, 10**9)
        status = 1 if self.updates else 0
        return LAYOUT.pack(
            MAGIC, LAYOUT.size, 2, 2, as_of_s, as_of_ns, as_of_s + 1000, as_of_ns, bound_ns, 0, 1000, status, 0
        )


class Timesyncd(Service):
    """Measures by UTC as it is, jumps by more than 0.4 s; of smaller errors the kernel corrects a part each second."""

    poll_us = 32 * SECOND_US

    def __init__(self, host: Host, network: Network, chance: Random, first_us: int) -> None:
        super().__init__(host, network, chance, first_us)
        self._pending: tuple[int, ...] | None = None
        self._message: tuple[int, ...] | None = None
        self._ask_us = first_us
        self._left = 0  # picoseconds

    def _happens(self, at_us: int) -> int:
        if self._pending is not None and at_us >= self._pending[3]:
            self._take(self._pending)
            self._pending = None
        if self._pending is None and at_us >= self._ask_us:
            self._pending = self.exchange(at_us)
            self._sent_utc_us = self.host.utc(at_us) // PICO
            self._ask_us = at_us + self.poll_us
        part = self._left // 8
        self._left -= part
        self.host.slew(at_us, part // SECOND_US)
        second_us = SECOND_US if self._pending is None else min(SECOND_US, self._pending[3] - at_us)
        if second_us < SECOND_US:  # not a whole second: the part not slewed by then is still left
            self._left += part // SECOND_US * (SECOND_US - second_us)
        return max(1, second_us)

    def _take(self, exchange: tuple[int, ...]) -> None:
        _, received_us, answered_us, back_us, delay_us, dispersion_us = exchange
        back_utc_us = self.host.utc(back_us) // PICO + 1
        t2, t3 = BASE_US + received_us, BASE_US + answered_us
        self.updates += 1
        offset_us = ((t2 - self._sent_utc_us) + (t3 - back_utc_us)) // 2
        self._message = (self._sent_utc_us, t2, t3, back_utc_us, delay_us, dispersion_us)
        if abs(offset_us) > 400_000:
            self.host.step(back_us, offset_us * PICO)
            self._left = 0
        else:
            self._left = offset_us * PICO

    def message(self) -> str:
        """NTPMessage as busctl prints it."""
        if self._message is None:
            return ""
        sent, received, answered, back, delay_us, dispersion_us = self._message
        fields = [
            0,
            4,
            4,
            2,
            -20,
            delay_us,
            dispersion_us,
            '""',
            sent,
            received,
            answered,
            back,
            "false",
            self.updates,
            0,
        ]
        return '{"type":"(uuuuittayttttbtt)","data":[' + ",".join(map(str, fields)) + "]}"
