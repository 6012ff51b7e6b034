"""A board's store: commits, pending readings that wait for the time, and refused readings."""

import pytest

from support.board.flash import CutFlash
from whenabouts_edge.board import store as store_module
from whenabouts_edge.board.batch import Batches
from whenabouts_edge.board.flash_log import MESSAGE_BYTES_MAX, FlashLog
from whenabouts_edge.board.sntp import Clock, Sample
from whenabouts_edge.board.store import BATCH_MAX, WAITING_MAX, Store
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_protocol import decode_batch

S = 1_000_000


def stored(flash_log):
    """All readings in the flash log."""
    readings, at = [], None
    while (message := flash_log.after(at)) is not None:
        readings += decode_batch(message.payload)
        assert len(message.payload) <= MESSAGE_BYTES_MAX
        at = message.next
    return readings


def made(segments=2, segment_bytes=4096, known=True, commit_us=S):
    """A store with an empty flash log, its clock known or not."""
    clock, flash_log = Clock(), FlashLog(CutFlash(), segments, segment_bytes, 0)
    if known:
        clock.take(Sample(0, 1000 * S, 10))
    return Store("site", "gw", flash_log, clock, commit_us), flash_log, clock


def tags(count, at=0, **more):
    """Pending readings of one stream, one a microsecond."""
    return [PendingReading("s", "tag", at + n, at + n + 5, f"{n:08X}", **more) for n in range(count)]


def test_a_commit_takes_what_has_gathered_or_a_full_batch():
    """
    3 readings at 0 s   stored at 1 s, one write          32 more at once: stored at the next step
    """
    store, flash_log, _ = made()
    store.accept(tags(3), 0)
    store.step(S - 1)
    assert flash_log.readings == 0
    store.step(S)
    assert (flash_log.readings, store.settled) == (3, 3)
    store.accept(tags(BATCH_MAX + 1), S)
    store.step(S)
    assert flash_log.readings == 3 + BATCH_MAX
    store.step(S)
    assert flash_log.readings == 3 + BATCH_MAX
    store.step(S, flush=True)
    assert [r.seq for r in stored(flash_log)] == list(range(BATCH_MAX + 4))


def test_pending_readings_wait_for_the_time_and_are_then_dated():
    """A pending reading of 5 s is stamped with a sample of 60 s, the bound grown by 50 ppm of the time between."""
    store, flash_log, clock = made(known=False)
    store.accept(tags(1, 5 * S), 5 * S)
    store.step(50 * S)
    assert (flash_log.readings, store.settled) == (0, 0)
    clock.take(Sample(60 * S, 1000 * S, 10))
    store.step(60 * S)
    [r] = stored(flash_log)
    assert (r.t_min, r.t_max, r.clock_state) == (1005 * S - 10 - 2750, 1005 * S + 5 + 10 + 2750, "bounded")


@pytest.mark.parametrize(("count", "now"), [(WAITING_MAX, 6 * S), (1, 5 * S + store_module.UNDATED_US + 10)])
def test_pending_readings_that_are_never_dated_are_stored_undated(count, now):
    """When the room for them is full, or after ten minutes: with stamps of unknown time."""
    store, flash_log, _ = made(known=False)
    store.accept(tags(count, 5 * S), 5 * S)
    store.step(now)
    readings = stored(flash_log)
    assert len(readings) == min(count, BATCH_MAX)
    assert {r.clock_state for r in readings} == {"unbounded"}
    assert readings[0].t_max - readings[0].t_min > 10**14


def test_a_full_flash_log_refuses_and_a_gap_reports_it():
    """
    log full     61 refused           landed: room      the gap goes first, then the next reading
    """
    store, flash_log, _ = made()
    for n in range(1000):
        store.accept(tags(30, n * 100), 0)
        store.step(0, flush=True)
        if store.refused:
            break
    before = flash_log.readings
    lost = [*tags(30, 10**6), PendingReading("other", "tag", 5, 7)]
    store.accept(lost, 0)
    store.step(0, flush=True)
    assert (store.refused, store.gap_open, flash_log.readings) == (61, True, before)
    assert store.settled == store.accepted
    flash_log.landed(flash_log.boot, flash_log.next_seq - 1)
    store.step(0)
    assert store.gap_open
    store.step(2 * S)  # nothing waits: the gap is tried again after a second
    readings = stored(flash_log)
    assert [(r.stream, r.kind, r.value, r.unit) for r in readings] == [
        ("other", "gap", 1, "{readings}"),
        ("s", "gap", 60, "{readings}"),
    ]
    assert [r.seq for r in readings] == [before, before + 1]
    assert not store.gap_open


def test_too_many_at_once_are_refused_and_reported_before_the_next():
    """More than there is memory for, in one go."""
    store, flash_log, _ = made(segment_bytes=8192)
    store.accept(tags(WAITING_MAX + 5), 0)
    assert (store.refused, store.accepted) == (5, WAITING_MAX)
    for _ in range(5):
        store.step(0, flush=True)
    readings = stored(flash_log)
    assert [r.kind for r in readings] == ["gap"] + ["tag"] * WAITING_MAX
    assert (readings[0].value, store.settled) == (5, store.accepted)


def test_what_waits_is_not_settled_because_later_ones_were_refused():
    """
    accepted   96, which wait      100 more: refused at once, reported with the first message
    settled    0                   32: a watermark for the 96 is not due yet
    """
    store, _, _ = made(segment_bytes=16384)
    store.accept(tags(WAITING_MAX), 0)
    watermarked = store.accepted
    store.accept(tags(100), 0)
    store.step(S, flush=True)
    assert (store.settled, store.gap_open) == (BATCH_MAX, False)
    assert store.settled < watermarked
    store.step(S, flush=True)
    store.step(S, flush=True)
    assert store.settled == watermarked == store.accepted


def test_only_readings_without_a_wire_form_are_refused():
    """A key that is too long among good ones; and readings that fill more than one message."""
    store, flash_log, _ = made(segment_bytes=16384)
    pending_readings = tags(8)
    pending_readings[3].key = "x" * 5000
    big = [PendingReading("b", "measure", n, n, value="v" * 900) for n in range(8)]
    store.accept(pending_readings + big, 0)
    store.step(0, flush=True)
    store.step(0, flush=True)
    readings = stored(flash_log)
    assert [r.key for r in readings if r.kind == "tag"] == [d.key for n, d in enumerate(pending_readings) if n != 3]
    assert [r.value for r in readings if r.stream == "b"] == ["v" * 900] * 8
    assert [r.value for r in readings if r.kind == "gap"] == [1]
    assert [r.seq for r in readings] == list(range(16))


def test_no_more_is_encoded_at_once_than_fits_a_block(monkeypatch):
    """Eight texts of 900 characters: at most four in one attempt, whatever comes of it."""
    store, flash_log, _ = made(segment_bytes=16384)
    tried, write = [], Batches._write
    monkeypatch.setattr(
        Batches,
        "_write",
        lambda self, pending_readings, *more: (
            tried.append(len(pending_readings)),
            write(self, pending_readings, *more),
        ),
    )
    store.accept([PendingReading("b", "measure", n, n, value="v" * 900, attrs={"probe": "n"}) for n in range(8)], 0)
    store.step(0, flush=True)
    assert len(stored(flash_log)) == 8
    assert max(tried) <= 4


def test_a_flash_that_fails_is_like_a_full_flash_log():
    """Counted, refused, reported by a gap when it works again."""
    store, flash_log, _ = made()
    flash = flash_log._flash
    flash.fails = lambda: True
    store.accept(tags(2), 0)
    store.step(0, flush=True)
    assert (store.faults, store.refused, flash_log.readings) == (1, 2, 0)
    flash.fails = lambda: False
    store.step(0, flush=True)
    assert [(r.kind, r.value) for r in stored(flash_log)] == [("gap", 2)]


def once_without_memory(monkeypatch, owner, name, call):
    """Let this call of a method, counted from 0, fail for want of memory."""
    work, calls = getattr(owner, name), []

    def fails(*given):
        calls.append(given)
        if len(calls) == call + 1:
            raise MemoryError
        return work(*given)

    monkeypatch.setattr(owner, name, fails)


def test_what_is_stored_is_not_stored_again_when_memory_runs_out_behind_it(monkeypatch):
    """3 readings are durable, and then their rules find no memory: a watermark may count them, and waits for the next."""
    store, flash_log, _ = made()
    store.on_stored = lambda *_: None
    once_without_memory(monkeypatch, store, "on_stored", 0)
    store.accept(tags(3), 0)
    with pytest.raises(MemoryError):
        store.step(S)
    assert (store.settled, store.accepted) == (3, 3)
    store.accept(tags(2, 10), S)
    store.step(S + 1)
    assert store.settled == 3
    store.step(3 * S)
    assert [r.seq for r in stored(flash_log)] == list(range(5))
    assert (store.settled, store.accepted) == (5, 5)


def test_only_the_rest_of_a_batch_is_stored_again_when_memory_runs_out_between_two_messages(monkeypatch):
    """A tag and eight texts of 900 characters need three messages; the second one finds memory in the next step."""
    store, flash_log, _ = made(segment_bytes=16384)
    store.accept([*tags(1, 1), *[PendingReading("b", "measure", n, n, value=f"{n}" * 900) for n in range(8)]], 0)
    once_without_memory(monkeypatch, Batches, "encoded", 1)
    with pytest.raises(MemoryError):
        store.step(0, flush=True)
    assert 0 < store.settled < store.accepted
    store.step(0, flush=True)
    readings = stored(flash_log)
    assert [r.value for r in readings[1:]] == [f"{n}" * 900 for n in range(8)]
    assert (readings[0].key, store.settled, store.accepted) == ("00000000", 9, 9)
