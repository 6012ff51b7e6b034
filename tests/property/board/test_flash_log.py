"""The flash log of a board, cut at every byte of every write: nothing durable is lost or invented, no boot repeated."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.board.flash import TORN, CutFlash, PowerCut
from support.search import examples
from whenabouts_edge.board import flash_log as flash_log_module
from whenabouts_edge.board.flash_log import FlashLog

SEGMENTS, SEGMENT_BYTES = 3, 150


@pytest.fixture(autouse=True, scope="module")
def small_messages():
    """Segments that three messages fill, so that few operations wrap around."""
    kept, flash_log_module.MESSAGE_BYTES_MAX = flash_log_module.MESSAGE_BYTES_MAX, 60
    yield
    flash_log_module.MESSAGE_BYTES_MAX = kept


class Life:
    """A board through its boots: the messages whose append returned, and the acknowledgements of the cloud."""

    def __init__(self, flash):
        self.flash = flash
        self.durable = []  # (boot, first, count, payload) whose append returned
        self.trying = None  # the one whose append did not
        self.acked = {}  # boot -> highest number that landed
        self.boots = []
        self.flash_log = None

    def open(self):
        self.flash_log = FlashLog(self.flash, SEGMENTS, SEGMENT_BYTES, 7)
        assert all(self.flash_log.boot > boot for boot in self.boots)
        self.boots.append(self.flash_log.boot)

    def run(self, script):
        self.open()
        for op, argument in script:
            if op == "append":
                self.append(argument)
            elif op == "ack":
                self.acknowledge(argument)
            elif op == "save":
                self.flash_log.save()
            else:
                self.open()

    def append(self, size):
        payload = bytes([len(self.durable) % 251]) * size
        self.trying = (self.flash_log.boot, self.flash_log.next_seq, 1 + size % 5, payload)
        if self.flash_log.append(1 + size % 5, payload) is not None:
            self.durable.append(self.trying)
        self.trying = None

    def acknowledge(self, share):
        """The cloud has landed the oldest `share` tenths of the waiting messages."""
        waiting = self.waiting()
        for boot, first, count, _ in waiting[: len(waiting) * share // 10]:
            self.acked[boot] = first + count - 1
        for boot in sorted(self.acked):
            self.flash_log.landed(boot, self.acked[boot])

    def waiting(self):
        return [m for m in self.durable if self.acked.get(m[0], -1) < m[1] + m[2] - 1]

    def found(self):
        stored, at = [], None
        while (message := self.flash_log.after(at)) is not None:
            stored.append((message.boot, message.first_seq, message.count, message.payload))
            at = message.next
        return stored

    def check(self):
        """All waiting messages are stored, in order; besides them only landed ones, or the one being written."""
        stored = self.found()
        own = self.waiting()
        assert [m for m in stored if m in own] == own
        others = [m for m in stored if m not in own]
        assert all(m in self.durable or m == self.trying for m in others)
        assert stored == sorted(stored, key=lambda m: m[:2])
        assert self.flash_log.readings == sum(m[2] for m in stored)
        assert self.flash_log.payload_bytes == sum(len(m[3]) for m in stored)
        ranges = {}
        for boot, first, count, _ in stored:
            ranges[boot] = (ranges.get(boot, (first,))[0], first + count - 1)
        assert {b: r for b, r in self.flash_log.numbers().items() if r[0] <= r[1]} == ranges


scripts = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 60)),
        st.tuples(st.just("append"), st.integers(1, 60)),
        st.tuples(st.just("ack"), st.integers(0, 10)),
        st.tuples(st.just("save"), st.none()),
        st.tuples(st.just("boot"), st.none()),
    ),
    max_size=25,
)


@given(scripts)
def test_without_cuts_all_that_waits_is_there(script):
    """Any sequence of appends, acknowledgements, saves and boots."""
    life = Life(CutFlash())
    life.run(script)
    life.check()
    life.open()
    life.check()


@settings(max_examples=examples(150))
@given(scripts, st.sampled_from(TORN), st.data())
def test_a_cut_at_every_byte_of_every_write_loses_nothing(script, torn, data):
    """
    script     append  append  ack  append ...      after it
    cut          ^^^^^^^^^^^^^^^^^^^^^^ at each byte, then boot, then once more a cut while booting, then it goes on
    """
    whole = Life(CutFlash())
    whole.run(script)
    total = sum(whole.flash.writes)
    second = data.draw(st.integers(0, 40))
    for cut in range(total):
        life = Life(CutFlash(budget=cut, torn=torn))
        with pytest.raises(PowerCut):
            life.run(script)
        life.flash.budget = second  # and again within the first writes of the next boot
        try:
            life.open()
            if life.trying in life.found():  # it was whole: from now on it is as durable as any
                life.durable.append(life.trying)
                life.trying = None
            life.check()
            life.append(20)
        except PowerCut:
            pass
        life.flash.budget = None
        life.open()
        life.check()
        if life.trying in life.found():
            life.durable.append(life.trying)
        life.trying = None
        for size in (60, 1, 33, 60, 60):
            life.append(size)
        life.check()
        life.acknowledge(10)
        assert life.found() == []
        life.append(60)  # all has landed: there is room
        assert len(life.found()) == 1
        life.open()
        life.check()


@given(scripts, st.sampled_from(TORN[1:]), st.sets(st.integers(0, 30)))
def test_failed_writes_use_up_no_number(script, torn, failing):
    """After a write reported as failed, whether stored or not, the next message is the only one with its numbers.

    write      0  1  2  3        the third is reported as failed, but may be stored
    numbers    0  3  5  5
    """
    life = Life(CutFlash(torn=torn))
    life.open()
    life.flash.fails = lambda: len(life.flash.writes) in failing
    for op, argument in script:
        try:
            if op == "append":
                life.append(argument)
            elif op == "ack":
                life.acknowledge(argument)
            elif op == "save":
                life.flash_log.save()
        except OSError:
            life.trying = None
    life.flash.fails = lambda: False
    life.check()
    life.append(60)
    life.open()
    life.check()


def test_what_a_failed_write_left_is_wiped_before_its_numbers_are_given_again():
    """
    segment 1   | 60 bytes | 20 bytes, reported as failed    |      numbers 1..
    segment 2   | 60 bytes that did not fit behind it         |      the same numbers
    """
    life = Life(CutFlash())
    life.open()
    life.append(60)
    life.flash.fails = lambda: True
    with pytest.raises(OSError, match="simulated"):
        life.append(20)
    life.flash.fails = lambda: False
    life.append(60)
    life.open()
    assert life.found() == life.durable
    assert life.durable[0][0] == life.durable[1][0]


def test_a_full_flash_log_refuses_the_newest_and_counts():
    """Three segments of two messages: the seventh finds no room until the first two have landed."""
    life = Life(CutFlash())
    life.open()
    for _ in range(9):
        life.append(40)
    assert (len(life.durable), life.flash_log.refused) == (6, 3)
    life.check()
    boot, first, count, _ = life.durable[1]
    assert life.flash_log.landed(boot, first + count - 1) == 2
    life.acked[boot] = first + count - 1
    life.append(40)
    assert (len(life.durable), life.flash_log.refused) == (7, 3)
    life.check()


def test_a_lost_slot_does_not_repeat_a_boot():
    """Both slots gone: the boot counter goes on behind the highest that a stored message names."""
    life = Life(CutFlash())
    for _ in range(5):
        life.open()
        life.append(10)
    for name in ("slot0", "slot1"):
        life.flash.files[name] = b"\xff" * 24
    life.open()
    assert life.flash_log.boot >> 32 == 6
    life.check()


@given(st.integers(0, 149), st.integers(1, 255))
def test_rot_hides_the_rest_of_its_segment_and_nothing_else(at, change):
    """A changed byte in the first of three segments: the others are whole, and the cloud waits for no lost message."""
    life = Life(CutFlash())
    life.open()
    for _ in range(6):
        life.append(40)
    rotten = bytearray(life.flash.files["log1"])
    if at >= len(rotten):
        return
    rotten[at] ^= change
    life.flash.files["log1"] = bytes(rotten)
    life.open()
    stored = life.found()
    assert stored[-4:] == life.durable[2:]
    assert stored[:-4] == life.durable[: len(stored) - 4]
    assert len(stored) < 6
    boot, first, count, _ = life.durable[-1]
    if len(stored) == 5:
        life.flash_log.landed(boot, count - 1)
    assert life.flash_log.numbers()[boot] == (life.durable[2][1], first + count - 1)
    life.flash_log.landed(boot, first + count - 1)
    assert life.flash_log.readings == 0


def test_segments_lost_with_their_slots_kept_are_not_numbered_again():
    """The slots name a position beyond all stored messages: later messages are not mistaken for landed ones."""
    life = Life(CutFlash())
    life.open()
    for _ in range(5):
        life.append(40)
    life.acknowledge(10)
    life.flash_log.save()
    for name in ("log0", "log1", "log2"):
        life.flash.files.pop(name)
    life.open()
    life.append(40)
    life.open()
    assert life.found() == life.durable[-1:]


@pytest.mark.parametrize(("segments", "size"), [(1, 150), (2, 80)])
def test_a_flash_log_that_cannot_wrap_around_is_refused(segments, size):
    """One segment, or less than one message in each."""
    with pytest.raises(ValueError, match="expected at least 2 of"):
        FlashLog(CutFlash(), segments, size, 0)


def test_what_does_not_fit_is_the_callers_fault():
    """Empty or oversized messages, and none or too many readings."""
    flash_log = FlashLog(CutFlash(), 2, 150, 0)
    for count, size in ((1, 0), (1, 61), (0, 5), (0x10000, 5)):
        with pytest.raises(ValueError, match="expected some in at most 60"):
            flash_log.append(count, bytes(size))
