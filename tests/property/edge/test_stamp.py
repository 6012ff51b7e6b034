"""Stamper: the true event time lies in every window, whatever reader, adapter, wire and reading do within their bounds."""

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.edge.wire import Frame, arrivals, begins, reads
from support.search import examples
from whenabouts_edge.readers.stamp import (
    CYCLE_SLIP_US,
    DRIFT_PPM,
    MAX_CHUNKS,
    Stamper,
    after_question,
    host_us_max,
    wire_us,
)

CYCLE_US = 1_000_000
KEEPALIVE_BYTES, RECORD_BYTES = 7, 47


class World:
    """A run of one reader: cycles announced, some of them not heard, records that come late, reads of any size."""

    def __init__(self, seed: int, baud: int, latency_us: int, adapter_us: int, lost: int, stall_us: int) -> None:
        self.chance = chance = Random(seed)
        self.baud, self.latency_us, self.adapter_us = baud, latency_us, adapter_us
        report_us_max = min(latency_us, CYCLE_US // 2 - 60_000)  # the line may be busy before the first bit leaves
        sent: list[tuple[Fraction, str, Fraction, int, int]] = []
        cycle_us = Fraction(chance.randint(0, CYCLE_US))
        for _ in range(chance.randint(1, 6)):
            if chance.randrange(100) >= lost:
                sent.append((cycle_us, "keepalive", cycle_us, 0, KEEPALIVE_BYTES))
            for _ in range(chance.choice([0, 1, 1, 3])):
                event_us = cycle_us + Fraction(chance.randrange(10 * CYCLE_US), 10)
                delay_us = chance.choice([0, report_us_max, chance.randint(0, report_us_max)])
                ms = int((event_us - cycle_us) // 1000) + chance.choice([0, 0, 1])
                sent.append((event_us + delay_us, "tag", event_us, ms, RECORD_BYTES))
            # What was in the way of the next announcement makes its cycle late.
            cycle_us += CYCLE_US + chance.choice([0, 0, chance.randint(0, CYCLE_SLIP_US)])
        sent.sort(key=lambda s: (s[0], s[2]))
        lines = [(at_us, length) for at_us, _, _, _, length in sent]
        # The time at which a keep-alive leaves marks the begin of its cycle, so it must not have waited for the line.
        self.begin_us = begins(lines, baud)
        at = 0
        self.frames = []
        for (_, kind, event_us, ms, length), begin_us in zip(sent, self.begin_us, strict=True):
            waited = kind == "keepalive" and begin_us != event_us
            self.frames.append(Frame("noise" if waited else kind, event_us, ms, at, at + length))
            at += length
        self.times = arrivals(lines, baud, adapter_us, chance)
        self.reads = reads(self.times, chance, stall_us)

    def stamper(self) -> Stamper:
        """As the agent makes it for this reader; the line's own queue counts as the reader's latency."""
        queue_us = max((int(b - f.event_us) + 1 for b, f in zip(self.begin_us, self.frames, strict=True)), default=0)
        return Stamper(self.baud, max(self.latency_us, queue_us), self.adapter_us, CYCLE_US)


worlds = st.builds(
    World,
    seed=st.integers(0, 2**32),
    baud=st.sampled_from([0, 9600, 57600, 115200, 921600]),
    latency_us=st.sampled_from([0, 1, 30_000, 400_000, 1_000_000]),
    adapter_us=st.sampled_from([0, 1, 1000, 16_000]),
    lost=st.sampled_from([0, 30, 70]),
    stall_us=st.sampled_from([0, 30_000, 700_000, 5_000_000]),
)


def replay(world: World, stamper: Stamper):
    """Feed the reads; yields each frame when it is complete, as a decoder would, with what came before forgotten."""
    frames = list(world.frames)
    fed = 0
    for read in world.reads:
        stamper.arrived(read.length, read.after_us, read.before_us)
        fed += read.length
        while frames and frames[0].end <= fed:
            yield frames.pop(0)
        pending = frames[0].start if frames else fed
        stamper.forget(min(pending, fed))
        yield stamper.pending_since(), fed


@settings(max_examples=examples(300), deadline=None)
@given(worlds)
def test_true_time_lies_in_the_window_and_in_the_narrowed_one(world):
    """However reads split and merge, keep-alives get lost and records come late: truth is inside, narrowing only narrows.

    event            first bit         last bit      last byte read
      |---- latency ----|---- wire ------|-- adapter --|
    [earliest ................. latest]
    """
    stamper = world.stamper()
    for frame in replay(world, stamper):
        if not isinstance(frame, Frame):
            continue
        low, high = stamper.window(frame.start, frame.end)
        if frame.kind == "keepalive":
            stamper.cycle_started(frame.start, frame.end)
        if frame.kind != "tag":
            continue
        assert low <= frame.event_us <= high
        narrow_low, narrow_high = stamper.narrowed((low, high), frame.reader_ms)
        assert low <= narrow_low <= narrow_high <= high
        assert narrow_low <= frame.event_us <= narrow_high


@settings(max_examples=examples(150), deadline=None)
@given(worlds)
def test_clear_time_is_before_every_later_frame(world):
    """No byte of what is still undecided or to come was in the host's buffer before pending_since."""
    stamper = world.stamper()
    later = list(world.frames)
    for step in replay(world, stamper):
        if isinstance(step, Frame):
            later.remove(step)
            continue
        since_us, fed = step
        if since_us is None:
            assert not later or later[0].start >= fed
        else:
            assert later
            assert world.times[later[0].start] >= since_us


@settings(max_examples=examples(200), deadline=None)
@given(worlds, st.integers(0, 2**32))
def test_wrong_reader_time_never_widens_or_empties_and_is_counted_when_refused(world, seed):
    """Any number a reader may give leaves a part of the window, or the window itself and one more refusal."""
    chance = Random(seed)
    stamper = world.stamper()
    announced = False
    for frame in replay(world, stamper):
        if not isinstance(frame, Frame):
            continue
        if frame.kind == "keepalive":
            stamper.cycle_started(frame.start, frame.end)
            announced = True
        window = stamper.window(frame.start, frame.end)
        refused = stamper.reader_time_refused
        ms = chance.choice([0, chance.randrange(1200), chance.randrange(2**32)])
        low, high = stamper.narrowed(window, ms)
        assert window[0] <= low <= high <= window[1]
        if not announced:
            assert ((low, high), stamper.reader_time_refused) == (window, refused)
        if stamper.reader_time_refused != refused:
            assert (low, high) == window
            assert stamper.reader_time_refused == refused + 1
        if ms > CYCLE_US // 1000 + CYCLE_SLIP_US // 1000 + 1 and announced:
            assert stamper.reader_time_refused == refused + 1


def test_time_that_fits_no_cycle_is_refused():
    """A record half a second after its keep-alive that claims 900 ms is not believed; 480 ms is.

    keep-alive 0          record read at 500 000
       |----------------------|      900 ms would be the future, -100 ms the past beyond half a cycle
    """
    stamper = Stamper(115200, 1_000_000, 1000, CYCLE_US)
    stamper.arrived(7, 0, 700)
    stamper.cycle_started(0, 7)
    stamper.arrived(47, 495_000, 500_000)
    window = stamper.window(7, 54)
    assert stamper.narrowed(window, 480)[1] - stamper.narrowed(window, 480)[0] < 5000
    assert stamper.reader_time_refused == 0
    assert stamper.narrowed(window, 700) == window
    assert stamper.reader_time_refused == 1


def test_two_lost_keepalives_in_a_row_are_not_guessed():
    """When the last announcement is two cycles old the reader's time is refused, however the read was stalled."""
    stamper = Stamper(115200, 1_000_000, 1000, CYCLE_US)
    stamper.arrived(7, 0, 700)
    stamper.cycle_started(0, 7)
    stamper.arrived(47, 1_200_000, 2_450_000)  # a stall: any of two cycles
    window = stamper.window(7, 54)
    assert stamper.narrowed(window, 400) == window
    assert stamper.reader_time_refused == 1


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5000), st.integers(0, 50)), min_size=1, max_size=300),
    st.data(),
)
def test_merged_chunks_only_widen(steps, data):
    """With more chunks than are kept a window contains the one that unlimited memory would give."""
    stamper = Stamper(9600, 10, 10)
    exact = []
    now = 0
    for length, gap, width in steps:
        after, now = now, now + gap + width
        stamper.arrived(length, after, now)
        exact += [(after, now)] * length
    start = data.draw(st.integers(0, len(exact) - 1))
    end = data.draw(st.integers(start + 1, len(exact)))
    low, high = stamper.window(start, end)
    on_wire = wire_us(end - start, 9600)
    want_high = exact[end - 1][1] - on_wire - (-on_wire * DRIFT_PPM // 10**6)
    want_low = min(exact[start][0] - host_us_max(20 + on_wire + 1), want_high)
    assert low <= want_low
    assert want_high <= high
    if len(steps) <= MAX_CHUNKS:
        assert (low, high) == (want_low, want_high)
    assert stamper.pending_since() == 0


def test_bytes_that_never_came_have_no_window():
    """A frame outside of what arrived, or of what was forgotten entirely, is a mistake of the caller."""
    stamper = Stamper(9600, 10, 10)
    stamper.arrived(4, 0, 5)
    with pytest.raises(ValueError, match="byte 4 of the stream: found only 4 bytes arrived"):
        stamper.window(2, 5)
    stamper.forget(4)
    assert stamper.pending_since() is None
    with pytest.raises(ValueError, match="byte 1 of the stream"):
        stamper.window(1, 3)


def test_noise_that_looks_like_the_first_byte_of_a_frame_does_not_bound_its_event():
    """It came in by 1 ms; the frame lost its first byte, and the event was at 120 ms.

    start byte |0|1                event 120    |........ 13 bytes ........| 150
    """
    stamper = Stamper(9600, 30_000, 0)
    stamper.arrived(1, 0, 1_000)
    stamper.arrived(13, 1_000, 150_000)
    earliest_us, latest_us = stamper.window(0, 14)
    assert earliest_us <= 120_000 <= latest_us
    assert latest_us == 150_000 - wire_us(14, 9600) + 1


def test_without_a_wire_the_first_byte_bounds_the_event():
    """A connection of which messages have checksums has no noise; a message may come in pieces."""
    stamper = Stamper(0, 30_000, 0)
    stamper.arrived(1, 0, 1_000)
    stamper.arrived(13, 1_000, 150_000)
    assert stamper.window(0, 14)[1] == 1_000


def test_a_frame_that_began_before_a_question_is_no_answer_to_it():
    """Its last byte came after the question; its event, at 10 ms, may have been before."""
    stamper = Stamper(9600, 30_000, 0)
    stamper.arrived(7, 0, 20_000)
    stamper.arrived(7, 20_000, 60_000)
    window = stamper.window(0, 14)
    assert after_question(window, stamper.begun_by(0), 30_000) == window
    assert after_question(window, stamper.begun_by(0), 5_000) == (5_000, window[1])
