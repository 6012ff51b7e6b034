"""replay:// as a pyserial port: order, timing, ends, matching of writes, URLs, and two threads."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import serial

from support.files.own_captures import TRANSPORT
from support.files.trace_checks import check_dialogue
from support.paths import REPOSITORY
from whenabouts_edge import serial_handlers
from whenabouts_edge.readers.port import PortError, open_port
from whenabouts_edge.serial_handlers.protocol_replay import parse_url
from whenabouts_edge.trace import Head, Record, encode_head, encode_record, open_trace

MS = 1_000_000


@pytest.fixture(autouse=True)
def registered():
    """The handlers are known, as after opening any port of ours."""
    serial_handlers.register()


def make(tmp_path: Path, *records: Record, name: str = "t.trace") -> Path:
    path = tmp_path / name
    path.write_bytes(encode_head(Head("x")) + b"".join(map(encode_record, records)))
    return path


def rx(at_ms: int, data: bytes, entry_ms: int | None = None) -> Record:
    return Record("rx", (at_ms if entry_ms is None else entry_ms) * MS, at_ms * MS, data)


def open_replay(path: Path, query: str = "", **kwargs) -> serial.SerialBase:
    return serial.serial_for_url(f"replay://{path}?{query}", **kwargs)


def test_any_program_gets_replay_by_appending_the_package(tmp_path):
    """A fresh interpreter that only appends the package name can open replay://."""
    path = make(tmp_path, rx(0, b"hello"))
    program = (
        "import serial; serial.protocol_handler_packages.append('whenabouts_edge.serial_handlers');"
        f"print(serial.serial_for_url('REPLAY://{path}', timeout=5).read(5))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=REPOSITORY / "edge",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("b'hello'\n", "")


def test_registering_twice_adds_one_package():
    """The list that pyserial searches does not grow."""
    serial_handlers.register()
    assert serial.protocol_handler_packages.count("whenabouts_edge.serial_handlers") == 1


class Held:
    """A clock that shows 0 and, from its call number `turn` on, `at_ns`: the thread was held up before that."""

    def __init__(self, turn: int, at_ns: int) -> None:
        self.turn, self.at_ns, self.asked = turn, at_ns, 0

    def __call__(self) -> int:
        self.asked += 1
        return self.at_ns if self.asked >= self.turn else 0


@pytest.mark.parametrize("turn", range(2, 8))
def test_a_read_that_ends_at_its_deadline_had_nothing_until_then(tmp_path, monkeypatch, turn):
    """
    ms      0          30   50         60
    read    |---------------| deadline
    trace              a               the thread is held up from some moment on until here
    """
    with open_replay(make(tmp_path, rx(0, b"", entry_ms=0), rx(30, b"a")), timeout=0.05) as port:
        monkeypatch.setattr(port, "replay_start_ns", 0)
        port._player._base_ns = port._player._due_ns = 0
        port._player.advance(0)
        clock = Held(turn, 60 * MS)
        monkeypatch.setattr("whenabouts_edge.serial_handlers.protocol_replay.time.monotonic_ns", clock)
        assert port.read(1) == b"a"


def test_bytes_are_never_available_before_their_time(tmp_path):
    """Each record comes no sooner than its distance from the first entry, divided by the speed, after the reported start."""
    path = make(tmp_path, rx(1000, b"a", entry_ms=980), rx(1040, b"b"), rx(1040, b"c"), rx(1300, b"d"))
    for speed in (1, 2.5):
        opened_ns = time.monotonic_ns()
        with open_replay(path, f"speed={speed}", timeout=30) as port:
            # time:  980 first entry | 1000 a | 1040 b c | 1300 d
            for byte, after_ms in ((b"a", 20), (b"b", 60), (b"c", 60), (b"d", 320)):
                assert port.read(1) == byte
                assert opened_ns <= port.replay_start_ns <= time.monotonic_ns() - after_ms * MS / speed
            assert port.replay_finished


def test_speed_max_leaves_no_time(tmp_path):
    """A trace of a day is there at once."""
    with open_replay(make(tmp_path, rx(0, b"a"), rx(86_400_000, b"b")), "speed=max", timeout=0) as port:
        assert port.in_waiting == 2
        assert port.read(5) == b"ab"
        assert port.replay_finished


def test_time_outs_are_those_of_any_port(tmp_path):
    """0 gives what is there, more waits that long, and a full read returns at once."""
    path = make(tmp_path, rx(0, b"ab"), rx(3_600_000, b"c"))
    with open_replay(path, timeout=0) as port:
        assert port.read(1) == b"a"
        assert port.read(9) == b"b"
        assert port.read(1) == b""
        port.timeout = 0.05
        start_ns = time.monotonic_ns()
        assert port.read(1) == b""
        assert time.monotonic_ns() - start_ns >= 50 * MS
        assert not port.replay_finished


def test_end_block_waits_like_a_silent_device(tmp_path):
    """After the last byte a read waits out its time-out, and one without time-out until it is cancelled or closed."""
    with open_replay(make(tmp_path, rx(0, b"a")), "end=block", timeout=0.05) as port:
        assert port.read(1) == b"a"
        start_ns = time.monotonic_ns()
        assert port.read(1) == b""
        assert time.monotonic_ns() - start_ns >= 50 * MS
        assert port.replay_finished
        port.timeout = None
        for end in (port.cancel_read, port.close):
            threading.Timer(0.05, end).start()
            assert port.read(1) == b""


def test_end_empty_returns_nothing_at_once(tmp_path):
    """Like the end of a file, even for a read without time-out; a short rest comes first."""
    with open_replay(make(tmp_path, rx(0, b"abc")), "end=empty", timeout=None) as port:
        assert port.read(2) == b"ab"
        assert port.read(2) == b"c"
        assert port.read(2) == b""


def test_end_disconnect_raises_after_the_last_byte(tmp_path):
    """Reading, asking and writing all meet the loss, and our port turns it into its own error."""
    path = make(tmp_path, rx(0, b"abc"))
    with open_replay(path, "end=disconnect", timeout=None) as port:
        assert port.read(2) == b"ab"
        assert port.read(2) == b"c"
        for action in (lambda: port.read(1), lambda: port.in_waiting, lambda: port.write(b"x")):
            with pytest.raises(serial.SerialException, match=r"^device disconnected$"):
                action()
    with open_port(f"replay://{path}?end=disconnect", 9600) as port:
        assert port.read().data == b"abc"
        with pytest.raises(PortError, match="device disconnected"):
            port.read()


def test_end_loop_begins_again(tmp_path):
    """The trace repeats in its own time without end, and is never finished."""
    path = make(tmp_path, rx(1000, b"a"), rx(1010, b"b"))
    opened_ns = time.monotonic_ns()
    with open_replay(path, "end=loop", timeout=30) as port:
        assert port.read(9) == b"ababababa"
        assert time.monotonic_ns() - opened_ns >= 40 * MS
        assert not port.replay_finished
        assert port.replay_records_played >= 9
    with open_replay(path, "end=loop&speed=max", timeout=30) as port:
        assert port.read(20_000) == b"ab" * 10_000


def test_a_loop_without_any_byte_ends(tmp_path):
    """A trace without a byte to give ends instead of looping."""
    for records in ((), (Record("tx", 0, 0, b"x"),)):
        with open_replay(make(tmp_path, *records), "end=loop&speed=max", timeout=0) as port:
            assert port.read(1) == b""
            assert port.replay_finished


def test_a_recorded_error_is_raised_once_after_the_bytes_before_it(tmp_path):
    """The replaying program meets the errors that the recording one met; then the trace goes on."""
    path = make(tmp_path, rx(0, b"ab"), Record("error", 0, 0, error="read failed"), rx(0, b"c"))
    with open_replay(path, "speed=max", timeout=30) as port:
        assert port.read(9) == b"ab"
        with pytest.raises(serial.SerialException, match=r"^read failed$"):
            port.read(1)
        assert port.read(1) == b"c"


def test_progress_counts_records(tmp_path):
    """Total, played and finished follow the trace."""
    with open_replay(make(tmp_path, rx(0, b"a"), rx(3_600_000, b"b")), timeout=30) as port:
        port.read(1)
        assert (port.replay_records_total, port.replay_records_played, port.replay_finished) == (2, 1, False)
        port.reset_input_buffer()
    with open_replay(make(tmp_path, rx(0, b"a"), rx(1, b"b")), "speed=max", timeout=30) as port:
        assert (port.in_waiting, port.replay_records_played, port.replay_finished) == (2, 2, False)
        port.reset_input_buffer()
        assert (port.in_waiting, port.replay_finished) == (0, True)


def test_opening_again_starts_again(tmp_path):
    """A reopened port plays from the beginning; a closed one refuses to be used."""
    port = open_replay(make(tmp_path, rx(0, b"ab")), timeout=30)
    assert port.read(2) == b"ab"
    port.close()
    for action in (lambda: port.read(1), lambda: port.write(b""), lambda: port.in_waiting, port.reset_input_buffer):
        with pytest.raises(serial.PortNotOpenError):
            action()
    port.open()
    assert port.read(2) == b"ab"
    with pytest.raises(serial.SerialException, match="already open"):
        port.open()
    port.close()


def test_settings_and_lines_are_accepted(tmp_path):
    """All calls of drivers on a port at its start work."""
    with open_replay(make(tmp_path, rx(0, b"a")), timeout=30, baudrate=9600, exclusive=True, rtscts=True) as port:
        port.baudrate, port.parity, port.dtr, port.rts = 115_200, "E", False, True
        port.break_condition = True
        port.flush()
        port.reset_output_buffer()
        port.cancel_write()
        assert (port.cts, port.dsr, port.ri, port.cd, port.out_waiting) == (True, True, False, True, 0)
        assert port.write(bytearray(b"abc")) == 3
        assert port.read(1) == b"a"


def dialogue() -> list[Record]:
    return list(open_trace(TRANSPORT).records())


@pytest.mark.parametrize("speed", ["max", "50"])
def test_a_program_that_sends_the_recorded_commands_gets_the_recorded_answers(speed):
    """The capture answers each command with its own answer and no sooner."""
    check_dialogue(TRANSPORT, speed)


def test_a_program_that_sends_other_commands_gets_nothing_and_a_count():
    """No answer is released, and the count shows the reason."""
    first = dialogue()[0].data
    with open_replay(TRANSPORT, "match=tx&speed=max", timeout=0.02) as port:
        for count in (1, 2):
            port.write(b"\xff\x00\x04\x1d\x0b")
            assert port.read(1) == b""
            assert port.replay_mismatches == count
        assert port.replay_last_mismatch == (first, b"\xff\x00\x04\x1d\x0b")
        assert not port.replay_finished
        port.write(first)
        assert port.read(1) == b"\xff"


def test_commands_may_come_in_pieces_joined_or_early(tmp_path):
    """Writes are compared as one stream, also those that come before the trace is at their place."""
    path = make(
        tmp_path, rx(0, b"hi"), Record("tx", 0, 0, b"one"), rx(1, b"1"), Record("tx", 1, 1, b"two"), rx(2, b"2")
    )
    with open_replay(path, "match=tx&speed=max", timeout=0) as port:
        assert port.read(9) == b"hi"
        port.write(b"o")
        port.write(b"n")
        assert port.read(9) == b""
        port.write(b"etw")
        assert port.read(9) == b"1"
        port.write(b"o")
        assert port.read(9) == b"2"
        assert port.replay_mismatches == 0
        port.write(b"more")
        assert port.replay_last_mismatch == (b"", b"more")


def test_a_command_sent_again_after_a_broken_one_counts_once(tmp_path):
    """The broken beginning is dropped and counted, the whole command after it matches."""
    with open_replay(make(tmp_path, Record("tx", 0, 0, b"one"), rx(1, b"1")), "match=tx&speed=max", timeout=0) as port:
        port.write(b"on")
        port.write(b"one")
        assert port.read(9) == b"1"
        assert (port.replay_mismatches, port.replay_last_mismatch) == (1, (b"one", b"on"))


def test_an_answer_comes_as_long_after_its_command_as_recorded(tmp_path):
    """A late command delays its answer, and an early one does not wait for the recorded hour."""
    path = make(tmp_path, rx(0, b"hi"), Record("tx", 3_600_000 * MS, 3_600_000 * MS, b"one"), rx(3_600_080, b"1"))
    with open_replay(path, "match=tx", timeout=30) as port:
        assert port.read(2) == b"hi"
        start_ns = time.monotonic_ns()
        port.write(b"one")
        assert port.read(1) == b"1"
        assert 80 * MS <= time.monotonic_ns() - start_ns < 20_000 * MS


def test_a_write_in_one_thread_wakes_a_read_in_another():
    """The waiting read gets the answer as soon as the other thread has written the command."""
    commands = [record.data for record in dialogue() if record.direction == "tx"]
    answers = b"".join(record.data for record in dialogue() if record.direction == "rx")
    with open_replay(TRANSPORT, "match=tx&speed=max", timeout=30) as port:
        thread = threading.Thread(target=lambda: [port.write(command) for command in commands])
        thread.start()
        assert port.read(len(answers)) == answers
        thread.join()
        assert port.replay_finished


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("replay://x?sped=1", "expected speed, end or match"),
        ("replay://x?speed=0", "or max"),
        ("replay://x?speed=-1", "or max"),
        ("replay://x?speed=nan", "or max"),
        ("replay://x?speed=inf", "or max"),
        ("replay://x?speed=", "or max"),
        ("replay://x?speed=1e-900", "or max"),
        ("replay://x?end=stop", "expected block, empty, disconnect or loop"),
        ("replay://x?match=rx", "expected tx"),
        ("replay://x?speed=1&speed=2", "twice"),
        ("replay://?speed=1", "expected replay://PATH"),
        ("replay://", "expected replay://PATH"),
    ],
)
def test_a_bad_url_is_refused_with_what_is_allowed(url, text):
    """Keys and values are checked at opening, and the text names the allowed ones."""
    with pytest.raises(ValueError, match=text) as caught:
        serial.serial_for_url(url)
    assert not isinstance(caught.value, OSError)


def test_paths_may_be_relative_and_hold_odd_characters(tmp_path, monkeypatch):
    """Relative paths start at the working directory; a question mark is written %3F."""
    (tmp_path / "Sub").mkdir()
    make(tmp_path / "Sub", rx(0, b"a"), name="what #1?.trace")
    monkeypatch.chdir(tmp_path)
    for path in ("Sub/what #1%3F.trace", f"{tmp_path}/Sub/what%20%231%3F.trace"):
        with serial.serial_for_url(f"replay://{path}?end=empty", timeout=30) as port:
            assert port.read(2) == b"a"
    assert parse_url("replay:///a?speed=10&end=loop&match=tx").match_tx


def test_a_missing_or_wrong_file_is_a_serial_exception(tmp_path):
    """Programs that handle a missing port handle a missing trace."""
    other = tmp_path / "other"
    other.write_text("hello\n")
    with pytest.raises(serial.SerialException, match="could not open trace"):
        open_replay(tmp_path / "none")
    with pytest.raises(serial.SerialException, match="found b'hello'"):
        open_replay(other)
    with pytest.raises(serial.SerialException, match="could not open trace"):
        open_replay(tmp_path)
