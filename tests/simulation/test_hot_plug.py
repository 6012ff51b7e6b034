"""Ports by id that come, go and come back as another terminal, on real pseudo-terminals; one dead reader stops nothing."""

import os
import threading
import tty

import pytest

from support.edge.agent import Bench, witness
from support.waiting import until
from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.settings import LineConfig, ReaderConfig
from whenabouts_edge.readers import thread as reader_thread
from whenabouts_edge.readers.port import device_of
from whenabouts_edge.readers.thread import Pace, ReaderThread

CLOCK = ClockSample(0, 0, 0, "bounded")


class Adapter:
    """A serial adapter: plugged in it is a numbered terminal, and the link by id leads there."""

    def __init__(self, path):
        self.path, self.ends = path, []

    def plug(self):
        master, slave = os.openpty()
        tty.setraw(slave)
        self.ends = [master, slave]
        beside = self.path.with_name(self.path.name + ".new")
        beside.symlink_to(os.ttyname(slave))
        beside.replace(self.path)
        return os.ttyname(slave)

    def unplug(self):
        self.path.unlink(missing_ok=True)
        for end in self.ends:
            os.close(end)
        self.ends = []

    def say(self, text):
        """A line; a reader that was opened midway drops everything before the first line end."""
        os.write(self.ends[0], b"\n" + text + b"\n")


class Host:
    """A reader thread of the agent and the readings it has delivered."""

    def __init__(self, port, **pace):
        line = LineConfig("csv", ("v",), None, "v", None)
        config = ReaderConfig("one", "line", str(port), "one/values", 9600, 0, 1000, False, line=line)
        self.values, self.changed = [], threading.Condition()
        self.thread = ReaderThread(config, "hall", "gw", lambda ns: ns // 1000, lambda: CLOCK, self.take, Pace(**pace))
        self.state = self.thread.reader_state

    def take(self, batch):
        with self.changed:
            self.values += [one.value for one in batch.readings]
            self.changed.notify_all()

    def wait(self, condition, what):
        until(condition, lambda: f"{what}; {self.state}", 20, every_s=0.005)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.stop()
        self.thread.join(5)


@pytest.fixture
def adapter(tmp_path):
    usb_adapter = Adapter(tmp_path / "usb-FTDI-if00")
    yield usb_adapter
    usb_adapter.unplug()


def is_reading(host, device):
    return host.state.state == "reading" and host.state.device == device


def test_a_device_that_comes_back_under_another_name_is_opened_at_once(adapter):
    """
    by-id link   none        pts/1        none      pts/2       with pauses of a minute between attempts
    reader       lost        reading      lost      reading
    """
    with Host(adapter.path, reopen_us=(60_000_000, 60_000_000)) as host:
        host.wait(lambda: host.state.state == "lost", "the missing port to be noticed")
        assert "no such port" in host.state.problem
        devices = []
        for number in range(3):
            devices.append(adapter.plug())
            host.wait(lambda: is_reading(host, devices[-1]), "the port to be opened")
            adapter.say(b"%d" % number)
            host.wait(lambda: number in host.values, "the value")  # noqa: B023
            adapter.unplug()
            host.wait(lambda: host.state.state == "lost", "the loss")
    assert (host.values, host.state.opened) == ([0, 1, 2], 3)


def test_a_link_that_leads_elsewhere_is_followed_although_the_old_device_is_open(adapter):
    """The old terminal goes on without an error and without a byte; the new one is read within a second or so."""
    with Host(adapter.path, moved_ns=50_000_000, reopen_us=(50_000, 30_000_000)) as host:
        first = adapter.plug()
        host.wait(lambda: is_reading(host, first), "the port")
        old = adapter.ends
        second = adapter.plug()
        host.wait(lambda: is_reading(host, second), "the other device")
        # Again and again: opening a port may discard earlier bytes.
        host.wait(lambda: adapter.say(b"7") or 7 in host.values, "the value")
        assert set(host.values) == {7}
        for end in old:
            os.close(end)


def test_a_device_that_came_while_its_port_was_opened_is_followed_too(adapter, monkeypatch):
    """
    path      nothing | leads to the first | to the second
    thread    looks   | opens              | looks again
    """
    look, nothing_yet = reader_thread.device_of, [None]
    monkeypatch.setattr(reader_thread, "device_of", lambda url: nothing_yet.pop() if nothing_yet else look(url))
    first = adapter.plug()
    with Host(adapter.path, moved_ns=50_000_000, reopen_us=(50_000, 30_000_000)) as host:
        host.wait(lambda: is_reading(host, first), "the port")
        old, second = adapter.ends, adapter.plug()
        host.wait(lambda: is_reading(host, second), "the other device")
        for end in old:
            os.close(end)


def test_attempts_on_a_port_that_fails_at_once_grow_apart_and_are_counted(tmp_path, monkeypatch):
    """A file that is no terminal: pauses double up to the longest."""
    pauses = []
    pause = ReaderThread._pause
    monkeypatch.setattr(ReaderThread, "_pause", lambda self, us, d: pauses.append(us) or pause(self, us, d))
    (tmp_path / "file").write_text("no terminal")
    with Host(tmp_path / "file", reopen_us=(10_000, 80_000)) as host:
        host.wait(lambda: len(pauses) >= 7, "attempts")
    for number, pause_us in enumerate(pauses):
        longest_us = min(80_000, 10_000 * 2**number)
        assert longest_us / 2 <= pause_us <= longest_us
    assert host.state.failed >= 7


def test_the_device_behind_a_path(adapter):
    """Nothing, a terminal, a URL."""
    assert device_of(str(adapter.path)) is None
    name = adapter.plug()
    assert device_of(str(adapter.path)) == (os.stat(name).st_rdev, name)
    assert device_of("socket://localhost:1") is None


def test_one_dead_reader_stops_nothing(tmp_path):
    """
    reader a   plugged in, unplugged, plugged in as another terminal
    reader b   never there
    reader c   reads all the time; watermarks go on
    """
    adapters = {name: Adapter(tmp_path / f"by-id-{name}") for name in "abc"}
    with Bench(tmp_path / "stack") as bench:
        bench.broker.start()
        table = {"kind": "line", "baud": 9600, "latency_us": 1000, "form": "csv", "columns": ["v"], "value_field": "v"}
        bench.configure(*[{"name": name, "port": str(a.path), **table} for name, a in adapters.items()])
        with witness(bench.broker.port) as seen:
            first = adapters["a"].plug()
            adapters["c"].plug()
            bench.start_agent("gw")
            states = {"a": "reading", "b": "lost", "c": "reading"}
            bench.wait_status("ports", lambda s: {n: r["state"] for n, r in s["readers"].items()} == states)
            adapters["a"].say(b"1")
            adapters["c"].say(b"2")
            seen.wait("both", lambda: {r.value for r in seen.readings()} == {1, 2})
            adapters["a"].unplug()
            bench.wait_status("lost", lambda s: s["readers"]["a"]["state"] == "lost")
            watermarked = seen.heartbeats()[-1].frontier_us
            adapters["c"].say(b"3")
            seen.wait("only c", lambda: 3 in {r.value for r in seen.readings()})
            seen.wait("a watermark", lambda: (seen.heartbeats()[-1].frontier_us or 0) > (watermarked or 0))
            kept = list(os.openpty())
            while len(kept) < 16 and os.ttyname(kept[-1]) != first:  # until one has the number that became free
                kept += os.openpty()
            second = adapters["a"].plug()
            assert second != first
            status = bench.wait_status("back", lambda s: s["readers"]["a"]["device"] == second)
            adapters["a"].say(b"4")
            seen.wait("back", lambda: 4 in {r.value for r in seen.readings()})
    assert (status["readers"]["a"]["opened"], status["readers"]["b"]["opened"]) == (2, 0)
    assert status["readers"]["b"]["failed"] >= 2
    assert "no such port" in status["readers"]["b"]["problem"]
    for name in "ac":
        adapters[name].unplug()
    for end in kept:
        os.close(end)
