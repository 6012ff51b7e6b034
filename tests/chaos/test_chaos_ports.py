"""Readers that are unplugged: what is lost then, and the law of ports."""

import asyncio
from types import SimpleNamespace

import pytest

from whenabouts_edge.readers.port import PortError
from whenabouts_hardware.readers import em4100
from whenabouts_sim.chaos.checks.gateways.ports import EVER_US, broken_ports, shut_spans
from whenabouts_sim.chaos.parts.gateway_part import STORED_US
from whenabouts_sim.chaos.parts.serial_line import Happened, SerialLine
from whenabouts_sim.readers.wire import Piece
from whenabouts_sim.world.world import SECOND_US, Sighting

KEY = "0A00000001"
FRAME = em4100.encode(0x0A, 1)


class Reader:
    """Gives pieces that a test puts in."""

    def __init__(self):
        self.coming = []

    def due(self, now_us):
        coming, self.coming = self.coming, []
        return coming

    def next_us(self):
        return None

    def feed(self, data, now_us):
        pass


def sighting(number):
    return Sighting(number, "dock", number, KEY)


def frame(number, data=FRAME, damaged=""):
    return Piece(0, data, True, sighting(number), damaged)


@pytest.fixture
def line():
    loop = SimpleNamespace(time=lambda: 0.0)
    one = SerialLine(Reader(), SimpleNamespace(true_us=5, behind_ns=None), loop)
    one.open()
    return one


def lost(line):
    return sorted(one.number for one in line.lost)


def test_what_comes_on_an_open_line_is_read_and_not_lost(line):
    line._reader.coming = [frame(1)]
    assert line.in_waiting == len(FRAME)
    assert line.read(4) + line.read(99) == FRAME
    line.unplug()
    assert lost(line) == []


def test_what_waits_or_comes_while_it_is_unplugged_is_lost(line):
    """Until it is opened again, which fails before it is back; reads of the old device fail for ever."""
    line._reader.coming = [frame(1)]
    line.read(len(FRAME) - 1)
    line.unplug()
    line._reader.coming = [frame(2)]
    for use in (lambda: line.read(1), lambda: line.in_waiting, lambda: line.write(b"x")):
        with pytest.raises(OSError, match="unplugged"):
            use()
    with pytest.raises(PortError, match="found no device"):
        line.open()
    line.plug()
    line._reader.coming = [frame(3)]
    with pytest.raises(OSError, match="unplugged"):
        line.read(1)
    line.open()
    line._reader.coming = [frame(4)]
    assert line.read(99) == FRAME
    assert lost(line) == [1, 2, 3]
    assert [one.what for one in line.history] == ["opened", "unplugged", "not found", "opened"]


def test_what_comes_on_a_line_that_nobody_opens_again_is_lost_at_the_end(line):
    line.unplug()
    line.plug()
    line._reader.coming = [frame(1)]
    assert lost(line) == []
    line.end()
    assert lost(line) == [1]


def test_a_frame_is_lost_with_its_first_piece(line):
    line.unplug()
    line._reader.coming = [Piece(0, FRAME[:3], False)]
    line.plug()
    line.open()
    line._reader.coming = [frame(1, FRAME[3:]), frame(2)]
    line.read(99)
    assert lost(line) == [1]


def test_damage_is_lost_unless_it_says_the_same(line):
    """The case of a digit says nothing."""
    line._reader.coming = [
        frame(1, FRAME.replace(b"A", b"a"), "flipped"), frame(2, FRAME.replace(b"1", b"3", 1), "flipped"),
        frame(3, FRAME[:-1], "glued"),
    ]  # fmt: skip
    line.read(99)
    assert lost(line) == [2, 3]


def test_a_wait_ends_when_the_line_is_unplugged(line):
    """Else it would last a day."""
    line.unplug()
    asyncio.run(asyncio.wait_for(line.wait(86_400.0), 10.0))


@pytest.mark.parametrize(
    ("history", "is_broken"),
    [
        ([(0, "opened")], False),
        ([(1.2, "opened")], True),
        ([], True),
        ([(0, "opened"), (2, "unplugged"), (3.1, "opened")], False),
        ([(0, "opened"), (2, "unplugged"), (3.3, "opened")], True),
        ([(0, "opened"), (2, "unplugged")], True),
        ([(0, "opened"), (2, "unplugged"), (3, "not found"), (3.5, "unplugged"), (4.6, "opened")], False),
        ([(0, "opened"), (2, "unplugged"), (3, "not found"), (4.8, "opened")], True),
        ([(0, "opened"), (59.5, "unplugged")], False),
    ],
)
def test_a_lost_port_is_tried_again_after_pauses_that_double(history, is_broken):
    """Half a second, then one, and so on, and half a second to notice; an agent that ends need not."""
    happened = [Happened(int(at_s * SECOND_US), what) for at_s, what in history]
    lives = [[0, 60 * SECOND_US + STORED_US]]
    assert len(list(broken_ports("dock", happened, lives, 200, 1 << 60))) == is_broken
    assert list(broken_ports("dock", happened, [[0, 100]], 200, 1 << 60)) == []


def test_a_port_is_shut_from_when_it_is_unplugged_until_it_is_opened():
    history = [(1, "opened"), (3, "unplugged"), (4, "not found"), (5, "unplugged"), (7, "opened"), (9, "unplugged")]
    assert shut_spans([Happened(*one) for one in history]) == [[3, 7], [9, EVER_US]]
