"""A board's duties beside readings: Wi-Fi, lamp, watchdog, and devices that only boards have, simulated here."""

import random
import sys
import time
import types
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.board.flash import CutFlash
from whenabouts_edge.board.flash_log import FlashLog
from whenabouts_edge.board.machine import device, lamp
from whenabouts_edge.board.machine.watch import STUCK_US, Watch
from whenabouts_edge.board.machine.wifi import JOIN_US, PAUSE_US_MAX, PAUSE_US_MIN, STABLE_US, Wifi
from whenabouts_edge.board.run import opened
from whenabouts_edge.board.sntp import Clock, Sample
from whenabouts_edge.board.store import Store
from whenabouts_edge.readers.pending import PendingReading

S = 1_000_000


# Wi-Fi.


def test_a_board_joins_loses_and_joins_again():
    """
    network   ......|==================|......|=====
    said      join                      leave, a second later join
    """
    wifi = Wifi(0, 0)
    assert [wifi.step(0, False), wifi.step(1, False)] == ["join", ""]
    assert wifi.step(3 * S, True) == ""
    assert (wifi.is_up, wifi.joins) == (True, 1)
    wifi.step(3 * S + STABLE_US, True)
    assert wifi.step(60 * S, False) == "leave"
    assert (wifi.is_up, wifi.losses) == (False, 1)
    assert wifi.step(60 * S + PAUSE_US_MIN - 1, False) == ""
    assert wifi.step(60 * S + PAUSE_US_MIN, False) == "join"
    assert wifi.step(62 * S, True) == ""
    assert (wifi.is_up, wifi.joins) == (True, 2)


def test_attempts_come_later_and_later_and_differ_from_board_to_board():
    """A pause from the end of an attempt to the next one: one second, doubled up to a minute, less up to half."""
    for bits, factor in ((0, 512), (255, 257)):
        wifi, now, pauses = Wifi(bits, 0), 0, []
        for _ in range(8):
            assert wifi.step(now, False) == "join"
            now += JOIN_US
            assert wifi.step(now, False) == "leave"
            left = now
            while wifi.step(now + 1000, False) != "join":
                now += 1000
            now += 1000
            pauses.append(now - left)
            wifi._until_us = now  # undo the look
        wanted = [min(PAUSE_US_MAX, PAUSE_US_MIN << n) * factor // 512 for n in range(8)]
        assert all(w <= p <= w + 1000 for p, w in zip(pauses, wanted, strict=True))


def test_a_network_that_does_not_hold_does_not_shorten_the_pause():
    """Up for a second each time: the pauses still grow, and start again from the shortest when it has held."""
    wifi, now, pauses = Wifi(0, 0), 0, []
    for _ in range(4):
        while wifi.step(now, False) != "join":
            now += 1000
        wifi.step(now, True)
        now += S
        assert wifi.step(now, False) == "leave"
        pauses.append(wifi._until_us - now)
    assert pauses == [S, 2 * S, 4 * S, 8 * S]
    wifi.step(now, True)
    wifi.step(now + STABLE_US, True)
    now += 2 * STABLE_US
    assert wifi.step(now, False) == "leave"
    assert wifi._until_us - now == S


@given(st.lists(st.tuples(st.integers(0, 40 * S), st.booleans()), max_size=60), st.integers(0, 255))
def test_whatever_the_network_does(looks, bits):
    """Never two joins without a leave or a success between them, never a join while it is up, and each event is reported."""
    wifi, now, joining = Wifi(bits, 0), 0, False
    for step, is_up in looks:
        now += step
        said = wifi.step(now, is_up)
        assert wifi.is_up == is_up
        if is_up:
            assert said == ""
            joining = False
        elif said == "join":
            assert not joining
            joining = True
        elif said == "leave":
            joining = False
    now += PAUSE_US_MAX + JOIN_US
    said = [wifi.step(now + n * PAUSE_US_MAX, False) for n in range(3)]
    assert "join" in said  # it never gives up


# Lamp.


def drawn(shown):
    """Two seconds of the lamp, a tenth of a second each."""
    return "".join("#" if lamp.is_lit(shown, at) else "." for at in range(0, 2 * S, S // 10))


@pytest.mark.parametrize(
    ("shown", "pattern"),
    [
        (lamp.FAULT, "#.#.#.#.#.#.#.#.#.#."),
        (lamp.NO_WIFI, "#..................."),
        (lamp.NO_CLOCK, "#..#................"),
        (lamp.NO_BROKER, "#..#..#............."),
        (lamp.RUNNING, ".###################"),
    ],
)
def test_each_condition_has_its_pattern(shown, pattern):
    """Repeated without end, at any time."""
    assert drawn(shown) == pattern
    assert [lamp.is_lit(shown, at) for at in (5, 10**15 + 5)] == [lamp.is_lit(shown, 5)] * 2


def test_the_first_condition_that_holds_is_shown():
    """A fault before all, then what the next depends on."""
    assert lamp.condition(True, False, False, False) == lamp.FAULT
    assert lamp.condition(False, False, True, True) == lamp.NO_WIFI
    assert lamp.condition(False, True, False, True) == lamp.NO_CLOCK
    assert lamp.condition(False, True, True, False) == lamp.NO_BROKER
    assert lamp.condition(False, True, True, True) == lamp.RUNNING


# Watchdog.


def test_the_watchdog_is_fed_while_readings_get_stored_or_refused():
    """
    due        ----  ---------------------  a store that does nothing for a minute
    settled    1  2  2  3  4  5 5 5 5 5 5   x
    """
    watch = Watch(0)
    assert watch.feeds(0, True, False, 0)
    for n in range(100):  # always something due, always progress
        assert watch.feeds(n * S, True, True, n)
    assert watch.feeds(99 * S + STUCK_US - 1, True, True, 99)
    assert not watch.feeds(99 * S + STUCK_US, True, True, 99)
    assert watch.feeds(99 * S + STUCK_US, True, False, 99)


def test_the_watchdog_is_not_fed_when_flash_fails_for_long():
    """A fault now and then does no harm."""
    watch = Watch(0)
    for n in range(200):
        assert watch.feeds(n * S, n % 10 == 0, False, n)
    assert not watch.feeds(300 * S, False, False, 1)
    assert watch.feeds(301 * S, True, False, 1)


def test_readings_that_wait_for_the_time_are_not_due_and_a_full_flash_log_is_no_standstill():
    """A restart cures neither."""
    flash = CutFlash()
    store = Store("a", "b", FlashLog(flash, 2, 4096, 0), clock := Clock(), S)
    watch, now = Watch(0), 0
    store.accept([PendingReading("s", "tag", n, n, "E1") for n in range(10)], 0)
    for now in range(0, 120 * S, S):
        store.step(now)
        assert watch.feeds(now, not store.fails, store.is_due(now), store.settled)
    assert store.settled == 0
    clock.take(Sample(now, 10, 10))
    for n in range(500):  # until there is no room, and long after
        now += S
        store.accept([PendingReading("s", "tag", now, now, f"{n:04}{i:04}") for i in range(30)], now)
        store.step(now)
        assert watch.feeds(now, not store.fails, store.is_due(now), store.settled)
    assert store.refused > 1000
    flash.fails = lambda: True
    store._flash_log.landed(store._flash_log.boot, store._flash_log.next_seq - 1)
    fed = []
    for _ in range(100):
        now += S
        store.accept([PendingReading("s", "tag", now, now, "E1")], now)
        store.step(now)
        fed.append(watch.feeds(now, not store.fails, store.is_due(now), store.settled))
    assert fed[0]
    assert not fed[-1]


# The devices.


class Pin:
    OUT = 1
    made: ClassVar["list[Pin]"] = []

    def __init__(self, name, mode):
        self.name, self.mode, self.values = name, mode, []
        Pin.made.append(self)

    def value(self, value):
        self.values.append(value)


class Wdt:
    made: ClassVar["list[Wdt]"] = []

    def __init__(self, timeout):
        self.timeout, self.fed = timeout, 0
        Wdt.made.append(self)

    def feed(self):
        self.fed += 1


class Rtc:
    reported: ClassVar[list[tuple]] = []

    def datetime(self, value):
        Rtc.reported.append(value)


class Wlan:
    there = False

    def __init__(self, interface):
        assert interface == "station"
        self.is_active, self.joined, Wlan.now = False, [], self

    def active(self, wanted):
        self.is_active = wanted

    def isconnected(self):
        return Wlan.there and bool(self.joined)

    def connect(self, ssid, password):
        self.joined = [ssid, password]

    def disconnect(self):
        self.joined = []


@pytest.fixture
def board_modules(monkeypatch):
    """The modules `machine` and `network` as boards have them, as far as they are used."""
    for made in (Pin.made, Wdt.made, Rtc.reported):
        made.clear()
    monkeypatch.setattr(Wlan, "there", False)
    machine = types.SimpleNamespace(Pin=Pin, WDT=Wdt, RTC=Rtc)
    network = types.SimpleNamespace(WLAN=Wlan, STA_IF="station")
    monkeypatch.setitem(sys.modules, "machine", machine)
    monkeypatch.setitem(sys.modules, "network", network)


def test_the_clock_of_a_board_is_set_in_its_own_epoch(board_modules, monkeypatch):
    """Boards count seconds from 1970 or from 2000."""
    utc_us = 1_790_000_000_000_000
    device.set_real_time_clock(utc_us)
    whole = time.gmtime
    monkeypatch.setattr(time, "gmtime", lambda s: whole(s + 946_684_800))
    device.set_real_time_clock(utc_us)
    assert Rtc.reported == [(2026, 9, 21, 0, 14, 13, 20, 0)] * 2


def test_a_board_with_devices_goes_through_its_conditions(board_modules, tmp_path):
    """
    Wi-Fi      ......|=============|....
    lamp       no wifi   no clock    no wifi     (there is no time server)
    watchdog   fed after every step
    """
    board = opened({
        "site": "a", "gateway": "b", "broker": {"host": "127.0.0.1", "port": 1}, "ntp": {"host": "127.0.0.1", "port": 9},
        "readers": [{"port": "/dev/null", "kind": "rdm6300", "stream": "s"}], "led": "LED", "watchdog_s": 8,
        "wifi": {"ssid": "hall", "password": "secret"}, "flash_log": {"folder": str(tmp_path / "f"), "segment_bytes": 4096},
    })  # fmt: skip
    board._ports = [types.SimpleNamespace(read=lambda: b"", write=lambda data: None)]
    now = [board.now_us() // (2 * S) * 2 * S + 4 * S]
    board.now_us = lambda: now[0]

    def shown(seconds=2):
        """The lamp's changes in so many seconds."""
        pin, lit = Pin.made[0], ""
        for _ in range(seconds * 10):
            board.step()
            lit += "#" if pin.values[-1] else "."
            now[0] += S // 10
        return lit

    assert shown() == "#..................."
    assert Wlan.now.joined == ["hall", "secret"]
    assert board._udp is None
    Wlan.there = True
    shown()
    assert shown() == "#..#................"
    assert board._udp is not None
    assert "refused" in board.agent.problem
    Wlan.there = False
    shown()
    assert shown() == "#..................."
    assert (board._udp, board._tcp, board.agent.mqtt) == (None, None, None)
    [dog] = Wdt.made
    assert (dog.timeout, dog.fed) == (8000, 100)
    assert len(Pin.made[0].values) < 30  # only changes go to the pin


def test_a_lamp_shows_faults_and_refused_readings(board_modules, tmp_path):
    """For ten seconds; a watchdog that is not fed bites."""
    board = opened({
        "site": "a", "gateway": "b", "broker": {"host": "127.0.0.1", "port": 1}, "ntp": {"host": "127.0.0.1", "port": 9},
        "readers": [{"port": "/dev/null", "kind": "rdm6300", "stream": "s"}], "led": 2, "watchdog_s": 1,
        "flash_log": {"folder": str(tmp_path / "f"), "segments": 2, "segment_bytes": 4096},
    })  # fmt: skip
    board._ports = [types.SimpleNamespace(read=lambda: b"", write=lambda data: None)]
    now = [board.now_us() // (2 * S) * 2 * S + 4 * S]
    board.now_us = lambda: now[0]
    board.step()
    board.agent.store.accept([PendingReading("s", "tag", n, n, f"{n}") for n in range(100)], 0)
    lit = ""
    for _ in range(110):
        board.step()
        lit += "#" if Pin.made[0].values[-1] else "."
        now[0] += S // 10
    assert lit[:20] == "#." * 10
    assert lit[104:] == "......"

    def broken():
        raise OSError(5, "the flash is gone")

    board.agent.step = lambda now_us: broken()
    for _ in range(70):
        fed = Wdt.made[0].fed
        board.step()
        now[0] += S
    assert Wdt.made[0].fed == fed
    assert board.faults >= 70


def test_random_bits_make_boards_differ():
    """Two boards with other bits do not join in the same moment."""
    chance = random.Random(1)
    pauses = set()
    for _ in range(20):
        wifi = Wifi(chance.getrandbits(32), 0)
        wifi.step(0, False)
        wifi.step(JOIN_US, False)
        pauses.add(wifi._until_us)
    assert len(pauses) > 10
