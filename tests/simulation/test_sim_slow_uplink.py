"""A line that is cut holds the bytes it was given and loses none."""

import contextlib
import socket
import threading

import pytest

from whenabouts_sim.stack.slow_uplink import SlowUplink

TIMEOUT_S = 10


@pytest.fixture
def line():
    """(uplink, near end, far end), connected."""
    listener = socket.create_server(("127.0.0.1", 0))
    uplink = SlowUplink(listener.getsockname()[1])
    near = socket.create_connection(("127.0.0.1", uplink.port), TIMEOUT_S)
    far, _ = listener.accept()
    far.settimeout(TIMEOUT_S)
    yield uplink, near, far
    uplink.stop()
    for one in (near, far, listener):
        one.close()


def received(one, size):
    data = b""
    while len(data) < size:
        data += one.recv(65536)
    return data


def test_both_directions_go_through(line):
    """Bytes arrive as they were sent."""
    _, near, far = line
    near.sendall(b"up")
    assert received(far, 2) == b"up"
    far.sendall(b"down")
    assert received(near, 4) == b"down"


def test_what_is_sent_during_a_cut_arrives_after_it_in_order(line):
    """Nothing comes while it is cut, everything afterwards, more than one buffer of it."""
    uplink, near, far = line
    near.sendall(b"before")
    assert received(far, 6) == b"before"
    uplink.cut()
    data = bytes(range(256)) * 4000
    sender = threading.Thread(target=near.sendall, args=(data,), daemon=True)
    sender.start()
    far.settimeout(0.2)
    with pytest.raises(TimeoutError):
        far.recv(1)
    far.settimeout(TIMEOUT_S)
    uplink.mend()
    assert received(far, len(data)) == data
    sender.join(TIMEOUT_S)
    assert not sender.is_alive()


def test_an_end_during_a_cut_arrives_after_it(line):
    """An end that sees only the line cannot know that the other has gone."""
    uplink, near, far = line
    uplink.cut()
    near.close()
    far.settimeout(0.2)
    with pytest.raises(TimeoutError):
        far.recv(1)
    far.settimeout(TIMEOUT_S)
    uplink.mend()
    assert far.recv(1) == b""


def test_a_line_stopped_while_somebody_connects_closes_that_connection_too():
    """Stopped at any moment of the connecting: before, between and behind the two ends."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    for _ in range(200):
        uplink = SlowUplink(listener.getsockname()[1])
        near = socket.create_connection(("127.0.0.1", uplink.port), TIMEOUT_S)
        uplink.stop()
        with contextlib.suppress(ConnectionResetError):
            assert near.recv(1) == b""
        near.close()
    listener.close()


def test_a_closed_end_closes_the_other(line):
    """Also a line that is stopped while it is cut."""
    uplink, near, far = line
    uplink.cut()
    uplink.stop()
    assert far.recv(1) == b""
    assert near.recv(1) == b""
