"""The time of a board: ticks that never wrap, and bounds that hold whatever crystal, network and server do."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenabouts_edge.board import sntp
from whenabouts_edge.board.machine.ticks import Ticks
from whenabouts_edge.board.sntp import Clock, Exchange, SntpError, drift_us, parse, request

NOW_US = 1_790_000_000_000_000
COOKIE = b"\x00\x01\x80\xffcook"


@given(st.sampled_from([4, 256, 1 << 30]), st.integers(0, 1 << 31), st.data())
def test_unwrapped_ticks_follow_the_true_count(period, begin, data):
    """Looks less than half a period apart, and moments from a little before the last look.

    raw    250 .. 255 0 .. 4         true   250 .. 255 256 .. 260
    """
    ticks, true = Ticks(period), begin
    assert ticks.at(true % period) == 0
    for step in data.draw(st.lists(st.integers(0, period // 2 - 1), max_size=20)):
        true += step
        assert ticks.at(true % period) == true - begin
        back = data.draw(st.integers(0, period // 2))
        assert ticks.at((true - back) % period) == true - back - begin


@pytest.mark.parametrize("period", [0, 1, 3, 1000])
def test_a_period_that_is_no_power_of_two_is_refused(period):
    """Masks would be wrong."""
    with pytest.raises(ValueError, match="power of two"):
        Ticks(period)


def ntp(us, up=False):
    """The NTP timestamp of a time in microseconds since 1970."""
    seconds, part = divmod(us, 1_000_000)
    return struct.pack(">II", (seconds + 2_208_988_800) % (1 << 32), (part << 32) // 1_000_000 + up)


def answer(received_us, sent_us, cookie=COOKIE, head=0x24, stratum=2, delay=0, dispersion=0, precision=-20):
    """A server's packet; delay and dispersion in units of 2^-16 s."""
    start = struct.pack(">BBbbII4s", head, stratum, 6, precision, delay, dispersion, b"RATE")
    return start + bytes(8) + cookie + ntp(received_us, True) + ntp(sent_us)


@st.composite
def boards(draw):
    """A crystal within the assumed drift, and exchanges with a server that is wrong by less than it states."""
    ppm = draw(st.integers(-50, 50))
    exchanges = draw(
        st.lists(
            st.tuples(
                st.integers(0, 400_000_000),  # pause before
                st.integers(0, 900_000),  # way there
                st.integers(0, 50_000),  # at the server
                st.integers(0, 900_000),  # way back
                st.integers(0, 3000),  # the dispersion that the server states, in 2^-16 s
                st.integers(-100, 100),  # how wrong it is, percent of that
            ),
            min_size=1,
            max_size=6,
        )
    )
    return ppm, exchanges


@given(boards(), st.integers(0, 4_000_000_000), st.integers(0, 10_000_000_000))
def test_the_true_time_is_in_every_stamp(board, begin, ask_us):
    """Before, between and after the exchanges, however uneven the ways and however the crystal runs.

    true   |---way there---|--server--|-way back-|          the bound grows by 50 ppm from here, to both sides
    board  sent                             received
    """
    ppm, exchanges = board

    def host(true):
        return begin + true + true * ppm // 1_000_000

    clock, true = Clock(), 0
    for pause, there, inside, back, says, wrong in exchanges:
        true += pause
        error = wrong * says * 1_000_000 // (65536 * 100)
        sent = host(true)
        received = true + there
        left = received + inside
        packet = answer(NOW_US + received + error, NOW_US + left + error, dispersion=says)
        true = left + back
        clock.take(parse(packet, COOKIE, sent, host(true) + 1))
        for moment in (0, true, ask_us, true + 1_000_000_000):
            t_min, t_max = clock.to_utc(host(moment), host(moment))
            assert t_min <= NOW_US + moment <= t_max + 1  # host() rounds by less than a microsecond
    assert clock.contradictions == 0
    bound = clock.bound_us(host(true))
    assert bound <= (there + back + inside) // 2 + 2 * says * 16 + drift_us(2_000_000) + 5
    assert clock.bound_us(host(true) + 1_000_000_000) >= bound + 49_999


def test_what_two_exchanges_allow_is_kept_and_a_contradiction_is_counted():
    """
    first    |------------|            a second that overlaps narrows it; a third beside it replaces it
    second        |------------|
    third                              |----|
    """
    clock = Clock()
    clock.take(sntp.Sample(1_000_000, 100, 40))
    clock.take(sntp.Sample(1_000_000, 150, 30))
    assert (clock.sample.offset_us, clock.sample.bound_us, clock.contradictions) == (130, 10, 0)
    clock.take(sntp.Sample(1_000_000, 400, 5))
    assert (clock.sample.offset_us, clock.sample.bound_us, clock.contradictions) == (400, 5, 1)


def test_states_of_the_clock():
    """Unbounded until the first exchange, free-running when the last one is long ago; stamps stay true through all."""
    clock = Clock()
    assert (clock.state(0), clock.bound_us(0)) == ("unbounded", None)
    assert clock.to_utc(5, 7) == (5 - sntp.UNBOUNDED_US, 7 + sntp.UNBOUNDED_US)
    clock.take(sntp.Sample(1000, 10, 3))
    assert clock.state(1000 + sntp.FREE_RUNNING_US - 1) == "bounded"
    assert clock.state(1000 + sntp.FREE_RUNNING_US) == "free-running"


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (answer(NOW_US, NOW_US)[:47], "47 bytes"),
        (answer(NOW_US, NOW_US, cookie=b"another!"), "another request"),
        (answer(NOW_US, NOW_US, head=0x23), "mode 3 of version 4"),
        (answer(NOW_US, NOW_US, head=0x14), "mode 4 of version 2"),
        (answer(NOW_US, NOW_US, stratum=0), "refuses: RATE"),
        (answer(NOW_US, NOW_US, stratum=16), "not synchronised"),
        (answer(NOW_US, NOW_US, head=0xE4), "not synchronised"),
        (answer(NOW_US, NOW_US)[:40] + bytes(8), "no time"),
        (answer(NOW_US, NOW_US + 5000), "longer than the whole round trip"),
    ],
)
def test_unusable_answers_are_refused_with_their_reason(packet, reason):
    """Each for what is wrong with it; a round trip of 1 ms."""
    with pytest.raises(SntpError, match=reason):
        parse(packet, COOKIE, 10_000, 11_000)


@given(st.binary(max_size=60))
def test_any_packet_is_a_sample_or_an_error(data):
    """Nothing else comes out, whatever the bytes."""
    for packet in (data, data[:24].ljust(24, b"\x24") + COOKIE + data[32:].ljust(16, b"\x80")):
        with suppress(SntpError):
            assert parse(packet, COOKIE, 0, 10).bound_us >= 0


def test_seconds_go_on_after_2036():
    """The field of seconds wraps on 2036-02-07; what has a clear top bit is later."""
    for us in (2_085_978_495_000_000, 2_085_978_497_000_000, 2_200_000_000_000_000):
        sample = parse(answer(us, us), COOKIE, 0, 10)
        assert abs(sample.host_us + sample.offset_us - us) <= sample.bound_us


def test_exchange_asks_waits_gives_up_and_asks_again_later():
    """
    0 s ask   2 s given up   6 s ask  (pause 4 s)   8 s   16 s ask (pause 8 s)   answered   +64 s ask
    """
    clock = Clock()
    exchange = Exchange(clock)
    asked = []
    for second in range(17):
        packet = exchange.due(second * 1_000_000, COOKIE)
        if packet:
            assert packet == request(COOKIE)
            assert len(packet) == 48
            asked.append(second)
    assert asked == [0, 6, 16]
    assert "no answer within 2000 ms" in exchange.problem
    exchange.heard(answer(NOW_US, NOW_US, cookie=b"forged!!"), 16_100_000)
    assert (clock.state(0), exchange.answered) == ("unbounded", 0)
    exchange.heard(answer(NOW_US, NOW_US), 16_200_000)
    assert (clock.state(16_200_000), exchange.answered, exchange.problem) == ("bounded", 1, "")
    exchange.heard(answer(NOW_US, NOW_US), 16_300_000)
    assert exchange.answered == 1
    assert exchange.due(16_200_000 + sntp.POLL_US - 1, COOKIE) == b""
    assert exchange.due(16_200_000 + sntp.POLL_US, COOKIE) != b""


def test_a_refusal_makes_the_pause_longer():
    """A server that answers RATE is queried less and less often, at most every 64 s."""
    exchange, now, pauses = Exchange(Clock()), 0, []
    assert exchange.due(now, COOKIE)
    for _ in range(7):
        exchange.heard(answer(NOW_US, NOW_US, stratum=0), now)
        assert "RATE" in exchange.problem
        refused = now
        while not exchange.due(now, COOKIE):
            now += 1_000_000
        pauses.append((now - refused) // 1_000_000)
    assert pauses == [4, 8, 16, 32, 64, 64, 64]
