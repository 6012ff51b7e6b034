"""Opening, reading, writing and losing a real pseudo-terminal, and the texts of errors."""

import contextlib
import os
import pty
import socket
import threading
import time
from pathlib import Path

import pytest

from whenabouts_edge.readers.port import EARLY_READS_MAX, Port, PortError, open_port


@pytest.fixture
def terminal():
    """(master descriptor, slave path) of a fresh pseudo-terminal."""
    master, slave = pty.openpty()
    path = os.ttyname(slave)
    yield master, path
    for descriptor in (master, slave):
        with contextlib.suppress(OSError):  # the test has closed it
            os.close(descriptor)


def read_until(port: Port, length: int) -> list:
    chunks = []
    while sum(len(chunk.data) for chunk in chunks) < length:
        chunk = port.read()
        if chunk is not None:
            chunks.append(chunk)
    return chunks


def test_bytes_of_a_terminal_come_with_bounds_round_their_writing(terminal):
    """A chunk's bounds enclose the moment at which the other side wrote."""
    master, path = terminal
    with open_port(path, 115_200) as port:
        for text in (b"one", b"two", b"three"):
            before_ns = time.monotonic_ns()
            os.write(master, text)
            chunks = read_until(port, len(text))
            assert b"".join(chunk.data for chunk in chunks) == text
            # time:  after_ns ..... write ... before_ns, and the write was after before_ns of this test
            assert chunks[-1].before_ns >= before_ns
            assert chunks[0].after_ns <= time.monotonic_ns()
            assert all(chunk.after_ns <= chunk.before_ns for chunk in chunks)


def test_what_waited_before_opening_is_dropped(terminal):
    """Bytes older than the port are no evidence of anything and are not given."""
    master, path = terminal
    with open_port(path, 115_200):
        pass
    os.write(master, b"old")
    with open_port(path, 115_200) as port:
        os.write(master, b"new")
        assert read_until(port, 3)[0].data == b"new"


def test_silence_moves_the_lower_bound(terminal):
    """A poll period without a byte gives None and a later moment at which the buffer was empty."""
    _, path = terminal
    with open_port(path, 115_200) as port:
        opened_ns = port.empty_ns
        assert port.read() is None
        assert port.empty_ns > opened_ns


def test_writing_gives_entry_and_return(terminal):
    """Written bytes arrive at the other side, and their times enclose the hand-over."""
    master, path = terminal
    with open_port(path, 115_200) as port:
        sent = port.write(b"\xff\x00\x03\x1d\x0c")
        assert os.read(master, 100) == b"\xff\x00\x03\x1d\x0c"
        assert sent.entry_ns <= sent.return_ns


def test_a_device_that_vanishes_ends_reading_with_an_error(terminal):
    """Every read after the loss raises, none spins."""
    master, path = terminal
    port = open_port(path, 115_200)
    os.close(master)
    for _ in range(3):
        with pytest.raises(PortError, match="check plug and power"):
            read_until(port, 1)
    port.close()


def test_a_port_closed_by_another_thread_ends_reading_with_an_error(terminal):
    """The reading thread gets a PortError, whatever pyserial stumbles over."""
    _, path = terminal
    port = open_port(path, 115_200)
    errors: list[BaseException] = []
    reading = threading.Event()

    def run() -> None:
        try:
            while True:
                reading.set()
                port.read()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    reading.wait()
    port.close()
    thread.join(10)
    assert [type(error) for error in errors] == [PortError]


def test_a_port_that_returns_nothing_without_waiting_is_at_its_end():
    """Reads that return at once with nothing are an error after a limit, not an endless busy loop."""

    class Ended:
        timeout = None
        in_waiting = 0

        def read(self, size: int) -> bytes:
            return b""

        def cancel_read(self) -> None: ...
        def close(self) -> None: ...

    port = Port(Ended(), "ended", lambda: 0, 0)
    for _ in range(EARLY_READS_MAX):
        assert port.read() is None
    assert port.empty_ns == 0
    for _ in range(3):
        with pytest.raises(PortError, match="without waiting"):
            port.read()


def test_a_cancelled_read_proves_nothing_about_the_buffer(terminal):
    """cancel() ends a read early; the lower bound does not move into the future."""
    _, path = terminal
    port = open_port(path, 115_200, poll_ms=60_000)
    opened_ns = port.empty_ns
    threading.Timer(0.05, port.cancel).start()
    assert port.read() is None
    assert port.empty_ns == opened_ns
    port.close()


def test_no_such_port_names_the_place_and_what_to_do(tmp_path: Path):
    """The text has the path, what was found and where to look."""
    with pytest.raises(PortError, match=r"ttyNONE: no such port; serial ports found: .*; plug the reader in"):
        open_port(str(tmp_path / "ttyNONE"), 9600)


def test_a_port_in_use_is_called_busy(terminal):
    """The second opening is refused while the first has the port."""
    _, path = terminal
    with open_port(path, 9600), pytest.raises(PortError, match=rf"port {path}: busy.*fuser -v {path}"):
        open_port(path, 9600)


def test_no_permission_names_the_group(terminal, monkeypatch):
    """The text names the group that helps; the refusal is made up, as root is never refused."""
    _, path = terminal

    def refuse(*args: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PortError, match=r"no permission, expected membership of group \w+; run `sudo usermod -aG"):
        open_port(path, 9600)


@pytest.mark.parametrize("url", ["nothing://here", "replay://x?speed=fast", "replay:///no/such/file", "/dev/null", "/"])
def test_what_cannot_be_a_port_is_refused_by_name(url):
    """Unknown protocols, bad options, missing traces, other devices and folders all end as PortError."""
    with pytest.raises(PortError, match=f"port {url.split('?')[0]}"):
        open_port(url, 9600)


def test_a_poll_period_of_nothing_is_refused():
    """A port that never waits would be a busy loop."""
    with pytest.raises(ValueError, match="poll period 0 ms, expected more than 0"):
        open_port("loop://", 9600, poll_ms=0)


def test_a_socket_port_reads_everything_in_order():
    """socket:// counts at most one waiting byte; nothing is lost by that."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, number = server.getsockname()
        with open_port(f"socket://{host}:{number}", 9600) as port:
            peer, _ = server.accept()
            sent = bytes(range(256)) * 4
            peer.sendall(sent)
            chunks = read_until(port, len(sent))
            assert b"".join(chunk.data for chunk in chunks) == sent
            peer.close()
            with pytest.raises(PortError):
                read_until(port, 1)


def test_a_driver_without_low_latency_mode_is_noted(terminal):
    """A pseudo-terminal has no such mode: the port works and reports it."""
    _, path = terminal
    with open_port(path, 9600) as port:
        assert port.notes
        assert "low-latency" in port.notes[0]
