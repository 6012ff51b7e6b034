"""`whenabouts-edge replay`: a recording out of a pseudo-terminal, out of a port and through the agent."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tty
from decimal import Decimal
from pathlib import Path

import pytest
import serial
from click.testing import CliRunner

from support.files.own_captures import TRACE
from whenabouts_edge.capture.playback import PortEnd, PtyEnd, play
from whenabouts_edge.capture.replay_command import replay
from whenabouts_edge.cli import main
from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.settings import ReaderConfig
from whenabouts_edge.readers.port import open_port
from whenabouts_edge.readers.thread import ReaderThread
from whenabouts_edge.trace import Head, Record, encode_head, encode_record, open_trace
from whenabouts_edge.trace.player import Player
from whenabouts_hardware import READERS, decoder

MS = 1_000_000


def make(folder, *records, baud=115200):
    path = folder / "t.trace"
    path.write_bytes(encode_head(Head("x", baud=baud)) + b"".join(map(encode_record, records)))
    return path


def rx(at_ms, data):
    return Record("rx", at_ms * MS, at_ms * MS, data)


def player(path, speed=Decimal(1), match=False):
    return lambda start_ns: Player(open_trace(path).records, start_ns, speed=speed, match_tx=match)


class Host(threading.Thread):
    """A program that opens the terminal like any port and reads: (moment, byte)."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.read = path, []

    def run(self):
        while not self.path.exists():
            time.sleep(0.01)
        with serial.Serial(str(self.path), 115200, timeout=0.05) as port:
            try:
                for _ in range(1200):
                    data = port.read(1)
                    if data:
                        self.read.append((time.monotonic_ns(), data))
            except serial.SerialException:
                return

    @property
    def data(self):
        return b"".join(data for _, data in self.read)


def test_a_terminal_gives_every_byte_not_before_its_time_and_then_goes(tmp_path):
    """
    trace   0 a     40 bc              300 d
    host    opens, and each comes no earlier after the first than recorded
    """
    path, port = make(tmp_path, rx(0, b"a"), rx(40, b"bc"), rx(300, b"d")), tmp_path / "port"
    host = Host(port)
    host.start()
    far = PtyEnd(port)
    played = play(player(path), far, threading.Event())
    far.close()
    host.join(20)
    assert host.data == b"abcd"
    start_ns = host.read[0][0]
    # The first byte may be seen late, which only makes the distances to it shorter: by no more than the replay was late.
    assert host.read[3][0] - start_ns >= 300 * MS - played.late_us_max * 1000 - 100 * MS
    assert (played.ended, played.records, played.sent_bytes, played.lost_bytes) == ("end of trace", 3, 4, 0)
    assert not port.is_symlink()


def test_a_long_recording_at_full_speed_loses_nothing(tmp_path):
    """A terminal holds 4 kB: what does not fit waits until the program has read."""
    data = [bytes([i % 251]) * 1000 for i in range(60)]
    path, port = make(tmp_path, *[rx(i, block) for i, block in enumerate(data)]), tmp_path / "port"
    far = PtyEnd(port)
    got = bytearray()

    def read():
        with serial.Serial(str(port), 115200, timeout=5) as host:
            while len(got) < 60_000:
                got.extend(host.read(500))

    reader = threading.Thread(target=read)
    reader.start()
    played = play(player(path, None), far, threading.Event())
    reader.join(30)
    far.close()
    assert bytes(got) == b"".join(data)
    assert (played.sent_bytes, played.lost_bytes) == (60_000, 0)


def test_with_match_an_answer_waits_for_its_command(tmp_path):
    """
    program   go         of    on
    replay       yes?             .     what differs is counted and answered by nothing
    """
    path = make(
        tmp_path,
        Record("tx", 0, 0, b"go"),
        rx(5, b"yes?"),
        Record("tx", 900 * MS, 900 * MS, b"on"),
        rx(901, b"."),
    )
    far, stopped, results = PtyEnd(tmp_path / "port"), threading.Event(), []
    runner = threading.Thread(target=lambda: results.append(play(player(path, match=True), far, stopped)))
    runner.start()
    with serial.Serial(str(tmp_path / "port"), 115200, timeout=10) as host:
        host.write(b"go")
        assert host.read(4) == b"yes?"
        host.write(b"of")
        host.timeout = 0.3
        assert host.read(1) == b""
        host.timeout = 10
        host.write(b"on")
        assert host.read(1) == b"."
        runner.join(10)
        stopped.set()
    runner.join(10)
    far.close()
    [played] = results
    assert (played.received_bytes, played.mismatches, played.ended) == (6, 1, "end of trace")


def test_an_agents_reader_on_the_terminal_reads_every_tag_of_a_capture(tmp_path):
    """Its decoder gets what the recording holds, and its stamps are of now."""
    records = list(open_trace(TRACE).records())
    lines = decoder("m6e", mode="reader")
    frames = [frame for record in records if record.direction == "rx" for frame in lines.feed(record.data)]
    tags = [s.key for frame in frames + lines.flush() if frame.ok for s in READERS["m6e"].sightings(frame)]
    assert tags
    far, readings, begun_us = PtyEnd(tmp_path / "port"), [], time.monotonic_ns() // 1000
    config = ReaderConfig("r", "m6e", str(tmp_path / "port"), "r/tags", 115200, 1000, 1_000_000, True)
    sample = ClockSample(0, 0, 0, "bounded")
    thread = ReaderThread(
        config, "s", "g", lambda ns: ns // 1000, lambda: sample, lambda b: readings.extend(b.readings)
    )
    thread.start()
    played = play(player(TRACE, Decimal(5)), far, threading.Event())
    until = time.monotonic() + 20
    while len(readings) < len(tags) and time.monotonic() < until:
        time.sleep(0.01)
    thread.stop()
    thread.join(5)
    far.close()
    assert played.ended == "end of trace"
    assert [one.key for one in readings] == tags
    assert all(begun_us - 4_000_000 < one.earliest_us <= one.latest_us for one in readings)


def test_out_of_a_port(tmp_path):
    """Another program's side of the line sees the bytes; with match it is listened to."""
    path = make(tmp_path, rx(0, b"abc"), Record("tx", 1, 1, b"x"), rx(10, b"def"))
    master, slave = os.openpty()
    tty.setraw(slave)
    for match in (False, True):
        if match:
            os.write(master, b"x")
        stopped = threading.Event()
        with open_port(os.ttyname(slave), 115200, poll_ms=5) as port:
            if match:
                os.write(master, b"x")
            played = play(player(path, match=match), PortEnd(port, match, stopped), stopped)
        got = b""
        while len(got) < 6:
            got += os.read(master, 6)
        assert got == b"abcdef"
        assert (played.mismatches, played.received_bytes) == (0, int(match))
    for end in (master, slave):
        os.close(end)


def edge(*args, **kwargs):
    return subprocess.Popen(
        [sys.executable, "-m", "whenabouts_edge.cli", "replay", *map(str, args)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **kwargs,
    )


def test_the_command_ends_clean_at_ctrl_c(tmp_path):
    """While it waits for a program: exit code 0, a summary, no traceback, and the terminal is gone."""
    port = tmp_path / "port"
    child = edge(TRACE, "--pty", port, "--json")
    assert "waiting for a program" in child.stderr.readline()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 0, err
    assert json.loads(out)["ended"] == "stopped"
    assert "Traceback" not in err
    assert not port.is_symlink()


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        ([], 2, "expected one of --pty, --port and --config"),
        (["--pty", "a", "--port", "b"], 2, "expected one of --pty, --port and --config"),
        (["--pty", "a", "--reader", "b"], 2, "--reader belongs to --config"),
        (["--pty", "a", "--baud", "9600"], 2, "--baud belongs to --port"),
        (["--pty", "a", "--speed", "0"], 2, "found speed=0, expected a number from 0.000001 to 1000000, or max"),
        (["--pty", "there"], 1, "found an existing file, expected none"),
        (["--port", "/dev/no-such-port", "--baud", "9600"], 1, "no such port"),
        (["--config", "edge.toml", "--reader", "x"], 2, "found 'x', expected one of one, two"),
        (["--config", "edge.toml"], 2, "found readers one, two"),
        (["--help"], 0, "dock.trace --pty /tmp/dock"),
    ],
)
def test_wrong_use_is_reported(tmp_path, monkeypatch, args, code, says):
    """With its exit code; and the help has examples."""
    (tmp_path / "there").touch()
    tables = [f'[[reader]]\nname="{name}"\nkind="m6e"\nport="{name}"\n' for name in ("one", "two")]
    (tmp_path / "edge.toml").write_text('site="s"\ngateway="g"\n' + "".join(tables))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["replay", str(TRACE), *args])
    assert (done.exit_code, says in done.output) == (code, True), done.output


def test_every_option_has_a_help_text():
    """In the help of the command."""
    assert [option.name for option in replay.params[1:] if not option.help] == []


def test_through_the_agent_every_tag_of_the_recording_is_stored(tmp_path):
    """A capture of a reader: as many readings as tags in it, in the spool of the configuration."""
    (tmp_path / "edge.toml").write_text(
        f'site="s"\ngateway="g"\nstate_dir="{tmp_path / "state"}"\n[broker]\nport=1\nhost="127.0.0.1"\n'
        '[clock]\nsource="fixed"\nbound_us=1000\n[[reader]]\nname="dock"\nkind="m6e"\nport="/dev/nowhere"\n'
    )
    child = edge(TRACE, "--config", tmp_path / "edge.toml", "--speed", "max", "--json")
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    summary = json.loads(out)
    assert summary["ended"] == "end of trace"
    assert summary["readings"] == summary["waiting"] > 0
    assert Path(tmp_path / "state" / "spool.sqlite").exists()
