"""Messages to the service manager, and when the watchdog may be fed."""

import os
import socket

import pytest

from whenabouts_edge.health.notify import STUCK_S, Flow, Notifier, summary
from whenabouts_edge.store.spool import Spool


@pytest.mark.parametrize("abstract", [False, True])
def test_messages_reach_the_socket_that_the_environment_names(tmp_path, abstract):
    """By path and by abstract name; a text is sent when it changes, in one line."""
    name = f"@whenabouts-{os.getpid()}" if abstract else str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind("\0" + name[1:] if abstract else name)
        end.settimeout(5)
        notifier = Notifier({"NOTIFY_SOCKET": name})
        notifier.ready()
        notifier.say("fine\nREADY=0")
        notifier.say("fine\nREADY=0")
        notifier.feed()
        notifier.stopping()
        assert [end.recv(100) for _ in range(4)] == [b"READY=1", b"STATUS=fine READY=0", b"WATCHDOG=1", b"STOPPING=1"]


@pytest.mark.parametrize("name", [None, "", "vsock:2:1234", "/nowhere/notify"])
def test_without_a_service_manager_nothing_is_sent_and_nothing_fails(name):
    """By hand, under another kind of socket, or when the manager has gone."""
    notifier = Notifier({} if name is None else {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "x"})
    notifier.ready()
    notifier.feed()
    assert notifier.watchdog_s is None


@pytest.mark.parametrize(
    ("environment", "period_s"),
    [
        ({}, None), ({"WATCHDOG_USEC": "0"}, None), ({"WATCHDOG_USEC": "-5"}, None), ({"WATCHDOG_USEC": "\u0665"}, None),
        ({"WATCHDOG_USEC": "1500000"}, 1.5),
        ({"WATCHDOG_USEC": "1500000", "WATCHDOG_PID": str(os.getpid())}, 1.5),
        ({"WATCHDOG_USEC": "1500000", "WATCHDOG_PID": "1"}, None),
    ],
)  # fmt: skip
def test_the_watchdog_is_this_process_s_own(environment, period_s):
    """A period meant for another process, as a child inherits it, is none."""
    assert Notifier({"NOTIFY_SOCKET": "/nowhere/notify", **environment}).watchdog_s == period_s
    assert Notifier(environment).watchdog_s is None


def test_readings_flow_while_any_gets_settled():
    """Nothing to do is fine, a queue that moves is fine, one that does not move is not, until it moves again.

    accepted  0    5 ................. 9
    settled   0    0 ....... 1 .......................... 2
    flows     +    +         +    +         - after STUCK_S   +
    """
    flow = Flow()
    assert flow.moves(0, 0, 0)
    assert flow.moves(1000, 0, 0)
    assert flow.moves(1000 + STUCK_S / 2, 5, 0)
    assert flow.moves(1000 + STUCK_S, 5, 1)
    assert flow.moves(1000 + 2 * STUCK_S - 1, 9, 1)
    assert not flow.moves(1000 + 2 * STUCK_S, 9, 1)
    assert not flow.moves(1000 + 9 * STUCK_S, 9, 1)
    assert flow.moves(1000 + 9 * STUCK_S, 9, 2)
    assert flow.moves(9000, 9, 9)


def test_a_transaction_that_writes_nothing_shows_that_the_spool_can_commit(tmp_path):
    """The files stay as they are, and the next reading gets the number it would have got."""
    spool = Spool(tmp_path / "spool.sqlite", 1 << 20)
    wal = tmp_path / "spool.sqlite-wal"
    before = wal.read_bytes()
    assert spool.can_commit()
    assert wal.read_bytes() == before
    assert spool.state.next_seq == 0
    spool.close()


def test_summary_is_one_line():
    """How many readers read, whether the broker is there, whether readings were refused."""
    status = {
        "readers": {"a": {"state": "reading"}, "b": {"state": "lost"}},
        "broker": {"connected": True},
        "clock": {"state": "bounded"},
        "refused": 0,
    }
    assert summary(status) == "1 of 2 readers reading, broker connected, clock bounded"
    assert summary({**status, "refused": 3}).endswith("bounded, 3 readings refused")
