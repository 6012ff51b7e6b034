"""One reader's thread: faults that must not silence it, its reports while its port is closed; the uplink's password."""

import threading
import time

import pytest

from support.files.own_captures import TRANSPORT
from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.settings import LineConfig, ReaderConfig
from whenabouts_edge.mqtt_client import _password
from whenabouts_edge.readers.host_session import Batch, HostSession
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.readers.port import Chunk
from whenabouts_edge.readers.thread import Pace, ReaderThread
from whenabouts_hardware.readers.m6e_frames import KEEPALIVE, answer, tag_notice

CLOCK = ClockSample(0, 0, 0, "bounded")
EPC = bytes.fromhex("30" + "11" * 11)


def notice(ts_ms: int) -> bytes:
    """A record of one tag, so many milliseconds into its cycle."""
    return tag_notice(EPC, rssi=-50, antenna="1/1", freq_khz=902_750, ts_ms=ts_ms)


def reader(port: str) -> ReaderConfig:
    return ReaderConfig("r", "m6e", port, "r/tags", 115200, 1000, 1_000_000, True)


class Deliveries:
    """The batches of a thread; waits for a condition on them."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self._changed = threading.Condition()

    def take(self, batch: Batch) -> None:
        with self._changed:
            self.batches.append(batch)
            self._changed.notify_all()

    def wait(self, condition) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, 10)

    @property
    def readings(self) -> int:
        return sum(len(b.readings) for b in self.batches)


def run(port: str, deliveries: Deliveries, **pace) -> ReaderThread:
    thread = ReaderThread(
        reader(port), "bench", "gw", lambda ns: ns // 1000, lambda: CLOCK, deliveries.take, Pace(**pace)
    )
    thread.start()
    return thread


def test_fault_of_the_agent_with_some_bytes_is_logged_and_the_port_opened_again(monkeypatch, caplog):
    """An error in decoding or stamping takes the reader down for a pause, not permanently."""
    take, faults = HostSession.take, [ZeroDivisionError("made up")]

    def fail_once(self, chunk, clock):
        if faults:
            raise faults.pop()
        return take(self, chunk, clock)

    monkeypatch.setattr(HostSession, "take", fail_once)
    deliveries = Deliveries()
    thread = run(f"replay://{TRANSPORT}?speed=max", deliveries, reopen_us=(50_000, 50_000))
    deliveries.wait(lambda: deliveries.readings > 0)
    thread.stop()
    thread.join(5)
    assert thread.reader_state.opened == 2
    assert "fault in the agent" in caplog.text
    assert "made up" in caplog.text


def test_closed_port_keeps_reporting_that_nothing_comes(tmp_path):
    """While a reader is away the time up to which it is known keeps growing."""
    deliveries = Deliveries()
    thread = run(
        str(tmp_path / "no-such-port"), deliveries, closed_clear_ns=20_000_000, reopen_us=(5_000_000, 5_000_000)
    )
    deliveries.wait(lambda: len(deliveries.batches) >= 5)
    thread.stop()
    thread.join(5)
    assert not thread.is_alive()
    clear = [b.clear_us for b in deliveries.batches]
    assert clear == sorted(set(clear))
    assert clear[-1] <= time.monotonic_ns() // 1000
    assert deliveries.readings == 0
    assert thread.reader_state.state == "lost"
    assert "no such port" in thread.reader_state.problem


def _stamps(frame: bytes, at_us: int) -> list[tuple[int, int]]:
    """Stamps of the readings of a frame that is read at a moment after a keep-alive at 0."""
    link = HostSession(reader("x"), "bench", "gw", lambda ns: ns // 1000)
    link.take(Chunk(KEEPALIVE, 0, 700_000), CLOCK)
    pending, good = link.take(Chunk(frame, (at_us - 5000) * 1000, at_us * 1000), CLOCK)
    assert good
    return [one.stamp[:2] for one in pending]


def test_streamed_record_is_narrowed_by_the_readers_time():
    """A record with 480 ms, read at 500 ms after the keep-alive, happened then to within some milliseconds."""
    [(t_min, t_max)] = _stamps(notice(480), 500_000)
    assert 475_000 < t_min <= t_max < 485_000


def test_record_out_of_a_tag_buffer_is_not_narrowed():
    """Its milliseconds count from a search that no keep-alive announced."""
    record = notice(480)[11:-2]
    stamps = _stamps(answer(0x29, 0, bytes.fromhex("01ff0001") + record), 500_000)
    assert len(stamps) == 1
    assert stamps[0][1] - stamps[0][0] > 900_000


def test_silence_ends_half_a_frame_and_frees_the_clear_time():
    """Half a record holds the clear time back until the line has been silent for long enough."""
    link = HostSession(reader("x"), "bench", "gw", lambda ns: ns // 1000)
    link.take(Chunk(notice(1)[:20], 10_000_000, 11_000_000), CLOCK)
    assert link.session.clear(50_000) == 10_000
    assert link.silent(100_000, CLOCK) == ([], False)
    assert link.session.clear(100_000) == 10_000
    link.silent(300_000, CLOCK)
    assert link.session.clear(300_000) == 300_000
    assert link.session.counters["lost_end"] == 1


@pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (3, [3]), (4, [3, 1]), (6, [3, 3])])
def test_only_the_last_part_of_a_batch_says_more_of_the_port(count, sizes):
    readings = [PendingReading("dock", "tag", n, n, str(n)) for n in range(count)]
    before, batch = Batch([], 10, 11, 12), Batch(readings, 20, 21, 22)
    *first, last = batch.parts(3, before)
    assert [len(one.readings) for one in [*first, last]] == sizes
    assert [reading for one in [*first, last] for reading in one.readings] == readings
    assert all((one.clear_us, one.since_us, one.looked_us) == (10, 11, 12) for one in first)
    assert (last.clear_us, last.since_us, last.looked_us) == (20, 21, 22)


def test_password_is_the_first_line_of_its_file(tmp_path):
    """An empty file is reported by name; the password itself never."""
    path = tmp_path / "password"
    path.write_text("secret\nmore\n")
    assert _password(str(path)) == "secret"
    path.write_text("")
    with pytest.raises(ValueError, match=r"password_file .*password: found no text on its first line"):
        _password(str(path))


INVALID_LINES = {
    "number": b'{"probe": "north", "t": 123456789012345678901234567890}',
    "key": b'{"probe": "", "t": 1}',
    "names": b'{"probe": "north", ' + b", ".join(b'"a%d": 1' % n for n in range(40)) + b', "t": 1}',
    "text": b'{"probe": "north", "t": "\\ud800"}',
}


@pytest.mark.parametrize("line", INVALID_LINES.values(), ids=INVALID_LINES)
def test_line_that_is_good_json_and_no_reading_is_left_out_and_counted(line, caplog):
    """A sensor may send a value that no reading can hold; the lines around it are read as usual."""
    said = LineConfig(form="json", key_field="probe", value_field="t")
    config = ReaderConfig("r", "line", "x", "r/values", 9600, 1000, 1000, True, line=said)
    link = HostSession(config, "bench", "gw", lambda ns: ns // 1000)
    good = b'{"probe": "north", "t": 21.5}'
    pending, _ = link.take(Chunk(b"\n".join([good, line, good, line, b""]), 10**9, 2 * 10**9), CLOCK)
    assert [one.numbered(1, n).value for n, one in enumerate(pending)] == [21.5, 21.5]
    assert link.invalid == 2
    assert link.session.complaint.startswith("reading ")
    assert caplog.text.count("left out") == 1


def test_stamp_beyond_the_times_of_readings_is_left_out_and_counted():
    """A clock that is wrong beyond all measure must not end the agent."""
    link = HostSession(reader("x"), "bench", "gw", lambda ns: ns // 1000)
    ages = ClockSample(0, 1 << 62, 0, "bounded")
    link.take(Chunk(KEEPALIVE, 0, 700_000), ages)
    assert link.take(Chunk(notice(480), 495_000_000, 500_000_000), ages)[0] == []
    assert link.invalid == 1
