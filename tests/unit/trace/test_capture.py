"""Capturing a real pseudo-terminal, replaying it, surviving kill -9, and the two commands."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.files.own_captures import TRANSPORT
from support.paths import REPOSITORY
from whenabouts_edge.capture.capture import Recorder, capture, clock_pair
from whenabouts_edge.capture.command import capture as capture_command
from whenabouts_edge.capture.command import trace as trace_command
from whenabouts_edge.readers.port import Sent, open_port
from whenabouts_edge.trace import Head, Record, encode_head, encode_record, open_trace

MS = 1_000_000
PROGRAM = "from whenabouts_edge.capture.command import capture; capture()"


@pytest.fixture
def terminal():
    """(master descriptor, slave path) of a fresh pseudo-terminal."""
    master, slave = pty.openpty()
    yield master, os.ttyname(slave)
    os.close(slave)
    os.close(master)


def frames(count: int) -> list[bytes]:
    return [bytes([0xFF, index, *range(12)]) for index in range(count)]


def test_a_capture_of_a_terminal_replays_with_its_bytes_and_times(terminal, tmp_path):
    """Identical bytes; each frame was written inside its recorded bounds and is replayed no sooner than recorded."""
    master, path = terminal
    sent = frames(20)
    written_ns = []
    file = tmp_path / "t.trace"
    with open_port(path, 115_200) as port, file.open("xb") as sink:
        done = threading.Event()

        def talk() -> None:
            for frame in sent:
                written_ns.append((time.monotonic_ns(), os.write(master, frame), time.monotonic_ns()))
                time.sleep(0.015)  # the gap between two frames is the traffic, not a wait for an event
            done.set()

        thread = threading.Thread(target=talk)
        thread.start()
        captured = capture(
            port,
            sink,
            time.monotonic_ns,
            lambda: time.time_ns() // 1000,
            done.is_set,
            settings=Head(path, baud=115_200),
        )
        thread.join()
    records = list(open_trace(file).records())
    received = [record for record in records if record.data]
    assert b"".join(record.data for record in received) == b"".join(sent)
    assert (captured.reason, captured.rx_bytes, captured.chunks) == ("stopped", 14 * 20, len(received))
    assert captured.trace_bytes == file.stat().st_size
    place = 0
    for record in received:
        first, last = place // 14, (place + len(record.data) - 1) // 14
        # time:  entry <= write of the first frame returned ... write of the last frame begun <= return
        assert record.entry_ns <= written_ns[first][2]
        assert written_ns[last][0] <= record.return_ns
        place += len(record.data)

    opened_ns = time.monotonic_ns()
    replayed = b""
    with open_port(f"replay://{file}", 115_200) as port:
        while not port.replay_finished:
            chunk = port.read()
            if chunk is None:
                continue
            replayed += chunk.data
            passed, due_ns = 0, 0
            for record in received:
                if passed >= len(replayed):
                    break
                passed += len(record.data)
                due_ns = record.return_ns - records[0].entry_ns
            assert chunk.before_ns - opened_ns >= due_ns
    assert replayed == b"".join(sent)


def test_the_head_pairs_wall_and_monotonic_time_by_the_closest_try():
    """Of several tries the one that took least counts, at its middle."""
    times_ns = iter([0, 100, 200, 210, 300, 400, 500, 600, 700, 800])
    walls_us = iter([1, 2, 3, 4, 5])
    assert clock_pair(lambda: next(times_ns), lambda: next(walls_us)) == (205, 2)


def test_a_recorder_keeps_both_directions_in_order(tmp_path):
    """The agent can record its own dialogue; silence up to a known moment is a record without bytes."""
    with (tmp_path / "t").open("xb") as sink:
        recorder = Recorder(sink, Head("x"))
        recorder.tx(b"ask", Sent(10, 20))
        recorder.silence(15)
        recorder.silence(90)
        recorder.error("gone", 90, 95)
    assert list(open_trace(tmp_path / "t").records()) == [
        Record("tx", 10, 20, b"ask"),
        Record("rx", 20, 90),
        Record("error", 90, 95, error="gone"),
    ]


def test_a_full_disk_ends_a_capture_with_its_reason():
    """/dev/full refuses every write as a full disk does."""
    with open_port(f"replay://{TRANSPORT}?speed=max", 9600) as port, Path("/dev/full").open("wb", 0) as sink:
        done = capture(port, sink, time.monotonic_ns, lambda: 0, lambda: False, settings=Head("x"))
    assert done.reason == "disk"
    assert "No space left" in done.error
    assert "free space" in done.error


def start_capture(path: str, file: Path) -> subprocess.Popen:
    """A capture in a separate process that has opened port and file."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, path, str(file)],
        cwd=REPOSITORY / "edge",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "recording into" in [process.stderr.readline(), process.stderr.readline()][1]
    return process


def wait_for_bytes(file: Path, count: int) -> list[Record]:
    """The records once the file holds so many received bytes."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if file.exists() and file.stat().st_size:
            records = list(open_trace(file).records())
            if sum(len(record.data) for record in records) >= count:
                return records
        time.sleep(0.01)
    raise AssertionError(f"{file} did not get {count} bytes in 30 s")


def test_kill_9_loses_nothing_that_was_recorded(terminal, tmp_path):
    """Each record is in the file as soon as it was read; a killed capture reads without damage."""
    master, path = terminal
    file = tmp_path / "t.trace"
    process = start_capture(path, file)
    for frame in frames(5):
        os.write(master, frame)
    wait_for_bytes(file, 70)
    process.kill()
    process.communicate()
    trace = open_trace(file)
    assert b"".join(record.data for record in trace.records()) == b"".join(frames(5))
    assert trace.warnings == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_a_capture_with_a_summary(terminal, tmp_path, number):
    """The file is whole, the summary is on standard output, the exit code is 0."""
    master, path = terminal
    file = tmp_path / "t.trace"
    process = start_capture(path, file)
    os.write(master, b"hello")
    wait_for_bytes(file, 5)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith(f"{file}: 5 bytes in ")
    assert out.endswith("ended: stopped\n")
    assert open_trace(file).head.port == path


def test_capture_records_settings_and_gives_json(terminal, tmp_path):
    """Framing and baud are in the head, the numbers on standard output are machine-readable."""
    _, path = terminal
    file = tmp_path / "t.trace"
    done = CliRunner().invoke(
        capture_command, [path, str(file), "--baud", "9600", "--framing", "8N2", "--duration", "0.05", "--json"]
    )
    assert done.exit_code == 0
    fields = json.loads(done.stdout)
    assert (fields["file"], fields["reason"], fields["rx_bytes"]) == (str(file), "stopped", 0)
    assert fields["duration_s"] >= 0.05
    head = open_trace(file).head
    assert (head.port, head.baud, head.bytesize, head.parity, head.stopbits) == (path, 9600, 8, "N", 2)
    assert abs(head.wall_us - time.time() * 1e6) < 600e6


def test_capture_of_a_replay_makes_a_trace_of_our_format(tmp_path):
    """A capture ends when a replay has given everything; so another format becomes ours."""
    file = tmp_path / "t.trace"
    done = CliRunner().invoke(capture_command, [f"replay://{TRANSPORT}?speed=max", str(file)])
    assert (done.exit_code, open_trace(file).format) == (0, "whenabouts")
    ours = b"".join(record.data for record in open_trace(file).records())
    assert ours == b"".join(record.data for record in open_trace(TRANSPORT).records() if record.direction == "rx")


def test_capture_does_not_overwrite_without_force(terminal, tmp_path):
    """An existing file is wrong usage and stays as it was; --force replaces it."""
    _, path = terminal
    file = tmp_path / "t.trace"
    file.write_text("precious")
    arguments = [path, str(file), "--duration", "0.01"]
    done = CliRunner().invoke(capture_command, arguments)
    assert (done.exit_code, file.read_text()) == (2, "precious")
    assert "--force" in done.stderr
    assert CliRunner().invoke(capture_command, [*arguments, "--force"]).exit_code == 0
    assert open_trace(file).format == "whenabouts"


def test_capture_at_its_size_limit_reports_it(tmp_path):
    """Exit code 1, the limit in the text, a whole file below it."""
    file = tmp_path / "t.trace"
    done = CliRunner().invoke(
        capture_command, [f"replay://{TRANSPORT}?end=loop&speed=max", str(file), "--bytes-max", "20000"]
    )
    assert done.exit_code == 1
    assert "its limit is 20000" in done.stderr
    assert file.stat().st_size <= 20_000
    assert list(open_trace(file).records())


def test_a_lost_port_ends_a_capture_with_an_error_record(tmp_path):
    """The bytes read are there, the last record names how the port was lost, the exit code is 1."""
    file = tmp_path / "t.trace"
    done = CliRunner().invoke(capture_command, [f"replay://{TRANSPORT}?end=disconnect&speed=max", str(file)])
    assert done.exit_code == 1
    assert "device disconnected" in done.stderr
    assert list(open_trace(file).records())[-1].direction == "error"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["/dev/ttyNONE", "new"], 1, "no such port"),
        (["loop://", "no/such/folder/new", "--duration", "1"], 1, "cannot be written"),
        (["loop://", "new", "--framing", "9N1"], 2, "as in 8N1"),
        (["loop://", "new", "--baud", "0"], 2, "baud"),
        (["--help"], 0, "whenabouts-edge capture /dev/ttyUSB0 dock.trace"),
    ],
)
def test_wrong_use_of_capture_is_distinguished_from_trouble(tmp_path, monkeypatch, arguments, code, text):
    """2 for wrong usage, 1 for trouble with port or disk, help with an example; no file is left behind."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(capture_command, arguments)
    assert done.exit_code == code
    assert text in done.output
    assert list(tmp_path.iterdir()) == []


def test_trace_sums_up_any_format(tmp_path):
    """Format, duration, bytes both ways and errors, as text and as JSON."""
    done = CliRunner().invoke(trace_command, [str(TRANSPORT), "--json"])
    fields = json.loads(done.stdout)
    records = list(open_trace(TRANSPORT).records())
    assert (done.exit_code, fields["format"], fields["records"]) == (0, "transport", len(records))
    assert fields["rx_bytes"] == sum(len(record.data) for record in records if record.direction == "rx")
    assert fields["tx_records"] == sum(record.direction == "tx" for record in records)
    assert fields["duration_s"] == pytest.approx((records[-1].return_ns - records[0].return_ns) / 1e9)

    file = tmp_path / "t"
    file.write_bytes(
        encode_head(Head("/dev/x", baud=9600))
        + encode_record(Record("rx", 0, 10**9, b"abc"))
        + encode_record(Record("error", 10**9, 2 * 10**9, error="gone"))
        + b'{"d":"r'
    )
    done = CliRunner().invoke(trace_command, [str(file)])
    assert done.stdout.splitlines() == [
        f"{file}: whenabouts trace of /dev/x, 9600 Bd",
        "  2 records in 2.000 s",
        "  received 3 bytes in 1 records",
        "  sent     0 bytes in 0 records",
        "  error: gone",
    ]
    assert "the file ends inside it" in done.stderr


def test_trace_prints_spy_text(tmp_path):
    """--spy gives what pyserial's spy:// would have written, counted from the first entry."""
    done = CliRunner().invoke(trace_command, [str(TRANSPORT), "--spy"])
    lines = done.stdout.splitlines()
    assert lines[0].startswith("000000.000 TX   0000  FF 03 2F 00 00 02 5E 86 ")
    assert lines[1].startswith("000000.001 RX   0000  FF 01 2F 00 00 02 ")
    again = tmp_path / "spy.txt"
    again.write_text(done.stdout)
    both = [[(r.direction, r.data) for r in open_trace(path).records()] for path in (again, TRANSPORT)]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("content", "options", "code", "text"),
    [
        ("hello\n", [], 1, "found b'hello'"),
        ("", [], 1, "empty file"),
        ("x", ["--json", "--spy"], 2, "exclude"),
        ("x", ["--spy", "--transport"], 2, "exclude"),
    ],
)
def test_trace_refuses_what_is_none(tmp_path, content, options, code, text):
    """1 for a file that is no trace, 2 for options that exclude each other."""
    file = tmp_path / "t"
    file.write_text(content)
    done = CliRunner().invoke(trace_command, [str(file), *options])
    assert done.exit_code == code
    assert text in done.stderr
