"""A board's configuration, files and driver: whole steps with ports, short memory, no network."""

import os
import time
import tty

import pytest

from support.board.config import config
from whenabouts_edge.board.batch import Batches
from whenabouts_edge.board.config import checked
from whenabouts_edge.board.machine.flash import Flash
from whenabouts_edge.board.machine.terminal import READ_BYTES, Terminal
from whenabouts_edge.board.run import opened
from whenabouts_edge.board.sntp import Sample
from whenabouts_edge.board.store import BATCH_MAX, WAITING_MAX, Store

S = 1_000_000


def test_configuration_has_defaults_and_refuses_what_it_does_not_know():
    """Every key is known or refused, by name."""
    filled = checked(config())
    assert (filled["broker"]["port"], filled["ntp"]["port"], filled["heartbeat_ms"]) == (1883, 123, 5000)
    assert filled["flash_log"] == {"folder": "/spool", "segments": 8, "segment_bytes": 32768}
    for wrong, reason in (
        ({"sight": "a"}, "config: found 'sight', expected one of broker"),
        ({"site": 5}, "config site: found int, expected str"),
        ({"broker": {}}, "broker host: found nothing"),
        ({"broker": {"host": "b", "ca_file": "c", "key_file": "k"}}, "broker: found cert_file or key_file, expected"),
        ({"broker": {"host": "b", "cert_file": "c", "key_file": "k"}}, "expected both and ca_file"),
        ({"ntp": {"host": "n", "prot": 1}}, "ntp: found 'prot'"),
        ({"readers": []}, "config readers: found none"),
        ({"readers": ["x"]}, "reader: found str, expected a map"),
        ({"heartbeat_ms": 1}, "config heartbeat_ms: found 1, expected at least 100"),
    ):
        with pytest.raises(ValueError, match=reason):
            checked(config(**wrong))
    with pytest.raises(ValueError, match="config gateway: found nothing"):
        checked({k: v for k, v in config().items() if k != "gateway"})


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


def with_reader(slave, tmp_path):
    """A configuration with a badge reader at this terminal, whose readings are stored at once."""
    return config(
        readers=[{"port": os.ttyname(slave), "kind": "rdm6300", "stream": "s"}], commit_ms=0,
        flash_log={"folder": str(tmp_path / "flash"), "segments": 2, "segment_bytes": 4096},
    )  # fmt: skip


def test_memory_that_runs_out_once_loses_nothing_that_waits(tmp_path, monkeypatch):
    """The write that found no memory is tried again; the step ends as it should, and the fault is counted."""
    master, slave = os.openpty()
    tty.setraw(slave)
    board = opened(with_reader(slave, tmp_path))
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
    while board.flash_log.readings < 5 and time.monotonic() < until:
        board.step()
    assert (failed, board.faults, board.flash_log.readings, board.agent.store.refused) == ([True], 1, 5, 0)
    os.close(master)
    os.close(slave)


def stepped(board):
    """Until something ends it."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        board.step()


class Line:
    """A connection that is open."""

    closed = False

    def close(self):
        self.closed = True


def test_an_interrupt_amid_a_step_ends_the_board_by_closing_its_line(tmp_path, monkeypatch):
    """Stored readings stay, others are lost as by a power cut; the broker publishes that the board is offline."""
    master, slave = os.openpty()
    tty.setraw(slave)
    board = opened(with_reader(slave, tmp_path))
    board.agent.clock.take(Sample(0, 1000 * S, 10))
    board._ask_time = board._serve_broker = lambda: None
    line = board._tcp = Line()

    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "_settle", interrupted)
    os.write(master, b"\x02100086F44426\x03")
    with pytest.raises(KeyboardInterrupt):
        stepped(board)
    assert list(board.stop()) == []
    assert line.closed
    assert board.flash_log.readings == 1
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
        flash_log={"folder": str(tmp_path / "flash"), "segments": 2, "segment_bytes": 4096},
    )
    board = opened(given)
    os.write(master, b"\x02100086F44426\x03" * 100)
    until = time.monotonic() + 20
    while not board.flash_log.readings and time.monotonic() < until:
        board.step()
    assert board.flash_log.readings >= BATCH_MAX  # no time for them, and no more room in memory
    assert board.agent.readers[0].readings >= WAITING_MAX
    assert board.faults == 1  # one look-up of a name
    assert "refused" in board.agent.problem
    assert isinstance(board._ports[0], Terminal)
    while board._ports[0].read():
        pass  # what it had no time for
    os.write(master, bytes(READ_BYTES + 10))
    assert [len(board._ports[0].read()) for _ in range(3)] == [READ_BYTES, 10, 0]
    os.close(master)
    os.close(slave)
