"""The parts of a board's agent one by one: reader, store, courier, configuration, flash, driver."""

import os
import random
import time
import tty

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.board_flash import CutFlash
from support.reader_frames import published
from whenabouts_edge.board import store as store_module
from whenabouts_edge.board.agent import Agent
from whenabouts_edge.board.batch import Batches
from whenabouts_edge.board.config import checked
from whenabouts_edge.board.courier import RESEND_US_MAX, WINDOW, Courier
from whenabouts_edge.board.draft import Draft
from whenabouts_edge.board.flash import Flash
from whenabouts_edge.board.mqtt import Mqtt
from whenabouts_edge.board.reader import BoardReader
from whenabouts_edge.board.ring import MESSAGE_BYTES_MAX, Ring
from whenabouts_edge.board.run import READ_BYTES, Board, Terminal
from whenabouts_edge.board.sntp import Clock, Sample
from whenabouts_edge.board.store import BATCH_MAX, WAITING_MAX, Store
from whenabouts_edge.clock import ClockSample
from whenabouts_edge.link import Link
from whenabouts_edge.port import Chunk
from whenabouts_edge.settings import LineConfig, ReaderConfig
from whenabouts_hardware.m6e_frames import START_CONTINUOUS, STOP, set_read_power, set_region
from whenabouts_protocol import Ack, decode_batch, encode_ack

S = 1_000_000
KINDS = ["rdm6300", "id12la", "m6e", "pn532", "uhfreader18", "yrm100", "line"]


def frames_of(kind):
    """All published frames of this protocol, good and bad."""
    names = {"id12la": ("id12la", "rdm6300")}.get(kind, (kind,))
    return [bytes.fromhex(v["hex"]) for v in published() if v["protocol"] in names]


@pytest.mark.parametrize("kind", KINDS)
def test_a_board_stamps_as_a_pc_does(kind):
    """The same bytes at the same times, through both: the same observations in the same windows, the same counters."""
    chance = random.Random(kind)
    frames = frames_of(kind)
    assert frames
    line = LineConfig("auto", (), None, None, "Cel") if kind == "line" else None
    theirs = Link(
        ReaderConfig("r", kind, "", "s", 9600, 5000, 70_000, False, line=line), "a", "b", lambda ns: ns // 1000
    )
    config = {"kind": kind, "stream": "s", "baud": 9600, "adapter_us": 5000, "latency_us": 70_000, "unit": "Cel"}
    ours = BoardReader(config, 0)
    if kind != "line":
        ours.unit = None
    clock, now, count = ClockSample(0, 0, 0, "bounded"), 10 * S, 0
    for _ in range(200):
        data = b"".join(chance.choice([*frames, b"\n", chance.randbytes(3)]) for _ in range(chance.randint(1, 4)))
        while data:
            before = now
            now += chance.randint(0, 300_000)
            for _ in range(3):
                assert ours.dialogue.due(now) == theirs.dialogue.due(now)
            cut = chance.randint(1, len(data))
            drafts = ours.took(data[:cut], before, now + 1)  # as the other rounds up
            expected = theirs.take(Chunk(data[:cut], before * 1000, now * 1000), clock)[0]
            data = data[cut:]
            if chance.random() < 0.3:
                now += chance.randint(0, 400_000)
                drafts += ours.silent(now)
                expected += theirs.silent(now, clock)[0]
                assert ours.clear_us == theirs.clear_us(now)
            found = [(d.kind, d.key, d.value, d.unit, d.attrs, (d.earliest_us, d.latest_us)) for d in drafts]
            assert found == [(e.kind, e.key, e.value, e.unit, e.attrs, e.window_us) for e in expected]
            count += len(found)
    assert count > 10
    assert ours.readings == count
    counters = ours.counters
    restarts = counters.pop("restarts")
    assert {**counters, "unfit": 0} == theirs.counters  # a board refuses what is unfit when it stores it
    assert (restarts, ours.complaint) == (theirs.dialogue.restarts, theirs.complaint)


def test_an_m6e_is_given_region_and_power_before_it_starts():
    """Behind STOP, without which it takes no command; a board that only listens says nothing."""
    config = {"kind": "m6e", "stream": "s", "region": 8, "read_power_cdbm": 2000}
    reader, said = BoardReader(config, 0), []
    while command := reader.dialogue.due(0):
        said.append(command)
    assert said[:3] == [STOP, set_region(8), set_read_power(2000)]
    assert said[-1] == START_CONTINUOUS
    assert BoardReader(config | {"listen_only": True}, 0).dialogue.due(0) == b""


def test_an_unknown_reader_is_refused():
    """By name, with those that exist."""
    with pytest.raises(ValueError, match="found 'rfid', expected one of id12la"):
        BoardReader({"kind": "rfid", "stream": "s"}, 0)


# The store.


def stored(ring):
    """All readings in the ring."""
    found, at = [], None
    while (message := ring.after(at)) is not None:
        found += decode_batch(message.payload)
        assert len(message.payload) <= MESSAGE_BYTES_MAX
        at = message.next
    return found


def made(segments=2, segment_bytes=4096, known=True, commit_us=S):
    """A store with an empty ring, its clock known or not."""
    clock, ring = Clock(), Ring(CutFlash(), segments, segment_bytes, 0)
    if known:
        clock.take(Sample(0, 1000 * S, 10))
    return Store("site", "gw", ring, clock, commit_us), ring, clock


def tags(count, at=0, **more):
    """Drafts of one stream, one a microsecond."""
    return [Draft("s", "tag", at + n, at + n + 5, f"{n:08X}", **more) for n in range(count)]


def test_a_commit_takes_what_has_gathered_or_a_full_batch():
    """
    3 drafts at 0 s     stored at 1 s, one write          32 more at once: stored at the next step
    """
    store, ring, _ = made()
    store.accept(tags(3), 0)
    store.step(S - 1)
    assert ring.readings == 0
    store.step(S)
    assert (ring.readings, store.settled) == (3, 3)
    store.accept(tags(BATCH_MAX + 1), S)
    store.step(S)
    assert ring.readings == 3 + BATCH_MAX
    store.step(S)
    assert ring.readings == 3 + BATCH_MAX
    store.step(S, flush=True)
    assert [r.seq for r in stored(ring)] == list(range(BATCH_MAX + 4))


def test_drafts_wait_for_the_time_and_are_then_dated():
    """A draft of 5 s is stamped with a sample of 60 s, the bound grown by 50 ppm of what lies between."""
    store, ring, clock = made(known=False)
    store.accept(tags(1, 5 * S), 5 * S)
    store.step(50 * S)
    assert (ring.readings, store.settled) == (0, 0)
    clock.take(Sample(60 * S, 1000 * S, 10))
    store.step(60 * S)
    [r] = stored(ring)
    assert (r.t_min, r.t_max, r.clock_state) == (1005 * S - 10 - 2750, 1005 * S + 5 + 10 + 2750, "bounded")


@pytest.mark.parametrize(("count", "now"), [(WAITING_MAX, 6 * S), (1, 5 * S + store_module.UNDATED_US + 10)])
def test_drafts_that_nobody_dates_go_on_without(count, now):
    """When the room for them is full, or after ten minutes: with stamps that say that nothing is known."""
    store, ring, _ = made(known=False)
    store.accept(tags(count, 5 * S), 5 * S)
    store.step(now)
    found = stored(ring)
    assert len(found) == min(count, BATCH_MAX)
    assert {r.clock_state for r in found} == {"unbounded"}
    assert found[0].t_max - found[0].t_min > 10**14


def test_a_full_ring_refuses_and_a_gap_tells_of_it():
    """
    ring full    61 refused           landed: room      the gap goes first, then the next draft
    """
    store, ring, _ = made()
    for n in range(1000):
        store.accept(tags(30, n * 100), 0)
        store.step(0, flush=True)
        if store.refused:
            break
    before = ring.readings
    lost = [*tags(30, 10**6), Draft("other", "tag", 5, 7)]
    store.accept(lost, 0)
    store.step(0, flush=True)
    assert (store.refused, store.gap_open, ring.readings) == (61, True, before)
    assert store.settled == store.accepted
    ring.landed(ring.boot, ring.next_seq - 1)
    store.step(0)
    assert store.gap_open
    store.step(2 * S)  # nothing waits: the gap is tried again after a second
    found = stored(ring)
    assert [(r.stream, r.kind, r.value, r.unit) for r in found] == [
        ("other", "gap", 1, "{readings}"),
        ("s", "gap", 60, "{readings}"),
    ]
    assert [r.seq for r in found] == [before, before + 1]
    assert not store.gap_open


def test_too_many_at_once_are_refused_and_told_before_the_next():
    """More than there is memory for, in one go."""
    store, ring, _ = made(segment_bytes=8192)
    store.accept(tags(WAITING_MAX + 5), 0)
    assert (store.refused, store.accepted) == (5, WAITING_MAX)
    for _ in range(5):
        store.step(0, flush=True)
    found = stored(ring)
    assert [r.kind for r in found] == ["gap"] + ["tag"] * WAITING_MAX
    assert (found[0].value, store.settled) == (5, store.accepted)


def test_what_waits_is_not_settled_because_later_ones_were_refused():
    """
    accepted   96, which wait      100 more: refused at once, told with the first message
    settled    0                   32: a promise for the 96 is not due yet
    """
    store, _, _ = made(segment_bytes=16384)
    store.accept(tags(WAITING_MAX), 0)
    promised = store.accepted
    store.accept(tags(100), 0)
    store.step(S, flush=True)
    assert (store.settled, store.gap_open) == (BATCH_MAX, False)
    assert store.settled < promised
    store.step(S, flush=True)
    store.step(S, flush=True)
    assert store.settled == promised == store.accepted


def test_readings_that_have_no_wire_form_are_refused_alone():
    """A key that is too long among good ones; and readings that fill more than one message."""
    store, ring, _ = made(segment_bytes=16384)
    drafts = tags(8)
    drafts[3].key = "x" * 5000
    big = [Draft("b", "measure", n, n, value="v" * 900) for n in range(8)]
    store.accept(drafts + big, 0)
    store.step(0, flush=True)
    store.step(0, flush=True)
    found = stored(ring)
    assert [r.key for r in found if r.kind == "tag"] == [d.key for n, d in enumerate(drafts) if n != 3]
    assert [r.value for r in found if r.stream == "b"] == ["v" * 900] * 8
    assert [r.value for r in found if r.kind == "gap"] == [1]
    assert [r.seq for r in found] == list(range(16))


def test_no_more_is_encoded_at_once_than_fits_a_block(monkeypatch):
    """Eight texts of 900 characters: at most four in one attempt, whatever comes of it."""
    store, ring, _ = made(segment_bytes=16384)
    tried, write = [], Batches._write
    monkeypatch.setattr(
        Batches, "_write", lambda self, drafts, *more: (tried.append(len(drafts)), write(self, drafts, *more))
    )
    store.accept([Draft("b", "measure", n, n, value="v" * 900, attrs={"probe": "n"}) for n in range(8)], 0)
    store.step(0, flush=True)
    assert len(stored(ring)) == 8
    assert max(tried) <= 4


def test_a_flash_that_fails_is_like_a_full_ring():
    """Counted, refused, told by a gap when it works again."""
    store, ring, _ = made()
    flash = ring._flash
    flash.fails = lambda: True
    store.accept(tags(2), 0)
    store.step(0, flush=True)
    assert (store.faults, store.refused, ring.readings) == (1, 2, 0)
    flash.fails = lambda: False
    store.step(0, flush=True)
    assert [(r.kind, r.value) for r in stored(ring)] == [("gap", 2)]


# The courier.


def online():
    """A client that is connected."""
    mqtt = Mqtt("gw", 0)
    mqtt.begin(0)
    mqtt.feed(b"\x20\x02\x00\x00", 0)
    return mqtt


def test_messages_go_in_order_a_few_at_a_time_and_again_when_they_do_not_land():
    """
    sent 0 1 2 3   taken   4 5 taken   silence of the cloud: 2 s  all again   4 s  all again   landed: 2 s again
    """
    ring, mqtt = Ring(CutFlash(), 2, 4096, 0), online()
    for n in range(6):
        ring.append(1, bytes([n]))
    courier = Courier(ring, 2 * S)
    times = []

    def step(now):
        before = mqtt.in_flight
        courier.step(mqtt, "t", now)
        return mqtt.in_flight - before

    assert step(0) == WINDOW
    assert step(0) == 0
    assert not courier.is_published(ring.end)
    for packet_id in (2, 1, 3, 4):
        courier.taken(packet_id)
        mqtt.feed(b"\x40\x02" + packet_id.to_bytes(2, "big"), 0)
    assert step(0) == 2
    for packet_id in (5, 6):
        courier.taken(packet_id)
        mqtt.feed(b"\x40\x02" + packet_id.to_bytes(2, "big"), 0)
    assert courier.is_published(ring.end)
    assert [packet[-1] for packet in mqtt._out[1:]] == [0, 1, 2, 3, 4, 5]
    now, next_id = 0, 7
    while len(times) < 3:
        now += S
        while count := step(now):
            times += [now] if now not in times else []
            for _ in range(count):
                courier.taken(next_id)
                mqtt.feed(b"\x40\x02" + next_id.to_bytes(2, "big"), now)
                next_id += 1
    assert [t // S for t in times] == [2, 6, 14]
    assert courier.resends == 3
    ring.landed(ring.boot, ring.next_seq - 1)
    courier.landed(now)
    assert step(now + RESEND_US_MAX) == 0
    assert courier.is_published(ring.end)


def test_no_more_is_read_than_the_line_takes():
    """Messages of 1.5 kB: two wait at a slow line, the next one is read when it has taken one."""
    ring, mqtt = Ring(CutFlash(), 2, 16384, 0), online()
    for n in range(4):
        ring.append(1, bytes([n]) * 1500)
    courier = Courier(ring, 2 * S)
    mqtt.wrote(len(mqtt.to_write()), 0)
    courier.step(mqtt, "t", 0)
    assert (mqtt.in_flight, len(mqtt._out)) == (2, 2)
    courier.step(mqtt, "t", 0)
    assert mqtt.in_flight == 2
    mqtt.wrote(len(mqtt.to_write()), 0)
    courier.step(mqtt, "t", 0)
    assert mqtt.in_flight == 3


# The rest.


def config(**more):
    return {
        "site": "a", "gateway": "b", "broker": {"host": "h"}, "ntp": {"host": "n"},
        "readers": [{"port": 1, "kind": "rdm6300", "stream": "s"}], **more,
    }  # fmt: skip


def test_configuration_has_defaults_and_refuses_what_it_does_not_know():
    """Every key is known or refused, by name."""
    found = checked(config())
    assert (found["broker"]["port"], found["ntp"]["port"], found["beat_ms"]) == (1883, 123, 5000)
    assert found["ring"] == {"folder": "/spool", "segments": 8, "segment_bytes": 32768}
    for wrong, reason in (
        ({"sight": "a"}, "config: found 'sight', expected one of beat_ms"),
        ({"site": 5}, "config site: found int, expected str"),
        ({"broker": {}}, "broker host: found nothing"),
        ({"ntp": {"host": "n", "prot": 1}}, "ntp: found 'prot'"),
        ({"readers": []}, "config readers: found none"),
        ({"readers": ["x"]}, "reader: found str, expected a map"),
        ({"beat_ms": 1}, "config beat_ms: found 1, expected at least 100"),
    ):
        with pytest.raises(ValueError, match=reason):
            checked(config(**wrong))
    with pytest.raises(ValueError, match="config gateway: found nothing"):
        checked({k: v for k, v in config().items() if k != "gateway"})


def test_acknowledgements_of_others_and_of_numbers_never_given_are_refused():
    """They delete nothing."""
    ring = Ring(CutFlash(), 2, 4096, 0)
    agent = Agent(checked(config()), ring, 0)
    ring.append(3, b"x")
    agent._acknowledged(b"no ack", 0)
    agent._acknowledged(encode_ack(Ack("a", "c", {ring.boot: 2})), 0)
    agent._acknowledged(encode_ack(Ack("a", "b", {ring.boot: 3})), 0)
    agent._acknowledged(encode_ack(Ack("a", "b", {ring.boot + 5: 2, ring.boot: 1})), 0)
    assert (agent.acks_refused, ring.readings) == (3, 3)
    agent._acknowledged(encode_ack(Ack("a", "b", {ring.boot: 2})), 0)
    assert (agent.acks_refused, ring.readings) == (3, 0)


@given(st.lists(st.binary(max_size=20), max_size=8), st.booleans())
def test_a_broker_that_sends_anything_does_no_harm(pieces, welcome):
    """Right behind its welcome or at once: the line ends with a reason, or goes on."""
    agent = Agent(checked(config()), Ring(CutFlash(), 2, 4096, 0), 0)
    agent.begin(0)
    agent.heard(b"".join([b"\x20\x02\x00\x00" * welcome, *pieces[:1]]), 1)
    for n, piece in enumerate(pieces[1:]):
        agent.heard(piece, n)
        agent.step(n * S)
    agent.step(100 * S)
    assert (agent.mqtt is None) == bool(agent.problem)


def test_reconnects_come_later_and_later():
    """Half a second, doubled up to thirty; less a part that differs from board to board."""
    pauses = []
    for bits in (0, 255):
        agent = Agent(checked(config()), Ring(CutFlash(), 2, 4096, bits), 0)
        now, found = 0, []
        for _ in range(9):
            assert agent.wants_line(now)
            agent.lost("nobody", now)
            began = now
            while not agent.wants_line(now):
                now += 100_000
            found.append((now - began) // 100_000)
        pauses.append(found)
    assert pauses[0] == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    assert all(b <= a // 2 + 1 for a, b in zip(*pauses, strict=True))


def test_files_are_synced_before_a_write_returns(tmp_path, monkeypatch):
    """The file, and its folder when the file is new; what is not there reads as nothing."""
    flash, synced, sync = Flash(str(tmp_path)), [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.readlink(f"/proc/self/fd/{fd}")), sync(fd))[1])
    assert flash.read("f", 0, 10) == b""
    flash.write("f", 0, b"hello world")
    flash.write("f", 6, b"W")
    assert flash.read("f", 5, 100) == b" World"
    assert [os.path.relpath(path, tmp_path) for path in synced] == ["f", ".", "f"]
    flash.write("f", 0, b"x")
    assert flash.read("f", 0, 100) == b"x"
    with pytest.raises(OSError, match="No such file"):
        Flash(str(tmp_path / "none")).write("f", 0, b"x")


def test_memory_that_runs_out_once_loses_nothing_that_waits(tmp_path, monkeypatch):
    """The write that found no memory is tried again; the step ends as it should, and the fault is counted."""
    master, slave = os.openpty()
    tty.setraw(slave)
    board = Board(config(
        readers=[{"port": os.ttyname(slave), "kind": "rdm6300", "stream": "s"}], commit_ms=0,
        ring={"folder": str(tmp_path / "flash"), "segments": 2, "segment_bytes": 4096},
    ))  # fmt: skip
    board.agent.clock.take(Sample(0, 1000 * S, 10))
    board._ask_time = board._serve_broker = lambda: None
    write, failed = Batches._write, []

    def short(self, *arguments):
        if not failed:
            failed.append(True)
            raise MemoryError
        return write(self, *arguments)

    monkeypatch.setattr(Batches, "_write", short)
    os.write(master, b"\x02100086F44426\x03" * 5)
    until = time.monotonic() + 20
    while board.ring.readings < 5 and time.monotonic() < until:
        board.step()
    assert (failed, board.faults, board.ring.readings, board.agent.store.refused) == ([True], 1, 5, 0)
    os.close(master)
    os.close(slave)


def test_a_board_goes_on_without_network(tmp_path):
    """No name server, no broker, no time: it reads, and keeps what it can."""
    master, slave = os.openpty()
    tty.setraw(slave)
    given = config(
        readers=[{"port": os.ttyname(slave), "kind": "rdm6300", "stream": "s"}],
        broker={"host": "127.0.0.1", "port": 1},
        ntp={"host": "nowhere.invalid"},
        ring={"folder": str(tmp_path / "flash"), "segments": 2, "segment_bytes": 4096},
    )
    board = Board(given)
    os.write(master, b"\x02100086F44426\x03" * 100)
    until = time.monotonic() + 20
    while not board.ring.readings and time.monotonic() < until:
        board.step()
    assert board.ring.readings >= BATCH_MAX  # no time for them, and no more room in memory
    assert board.agent.readers[0].readings >= WAITING_MAX
    assert board.faults == 1  # one look-up of a name
    assert "refused" in board.agent.problem
    assert isinstance(board._ports[0], Terminal)
    os.write(master, bytes(READ_BYTES + 10))
    assert [len(board._ports[0].read()) for _ in range(3)] == [READ_BYTES, 10, 0]
    os.close(master)
    os.close(slave)
