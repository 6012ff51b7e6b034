"""The ingest ends when it is asked to, whatever it is doing, and acknowledges nothing that is not durable."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from support.cloud.ingest import at, batch, files, identities
from support.edge.mqtt_gateway import MqttGateway
from whenabouts_cloud.broker.connection import Credentials
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.receiving.reception import Reception, Token
from whenabouts_cloud.ingest.service import IngestService
from whenabouts_cloud.orderly_end import EXIT_HUNG
from whenabouts_sim.stack.stack import Stack

LIMIT_S = 90.0  # far above what any step takes

# The command with a shorter time for its end: the result would be the same after 15 s.
IMPATIENT = "import whenabouts_cloud.commands.ingest as c; c.END_S = 1; from whenabouts_cloud.cli import main; main()"


@contextmanager
def service(folder, port: int = 1) -> Iterator[IngestService]:
    """An ingest that is not connected yet, and receives in its own process."""
    landing = Landing(folder)
    made = IngestService(Reception("127.0.0.1", port, "id", Credentials()), Bridge(landing), "broker")
    try:
        yield made
    finally:
        landing.close()


@contextmanager
def listener() -> Iterator[socket.socket]:
    """A broker's port behind which nobody answers."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen(8)
        made.settimeout(LIMIT_S)
        yield made


def ended(thread: threading.Thread) -> bool:
    """True if the thread ends in time."""
    thread.join(LIMIT_S)
    return not thread.is_alive()


def block_next_file(landing: Path) -> None:
    """Put pipes where the next files are written, in this hour and the next."""
    numbers = [int(path.stem.removeprefix("part-")) for path in files(landing)]
    now = datetime.now(UTC)
    for hour in (now, now + timedelta(hours=1)):
        folder = landing / f"hour={hour:%Y-%m-%dT%H}"
        folder.mkdir(exist_ok=True)
        for number in range(max(numbers) + 2, max(numbers) + 20):  # the one right behind may be under way
            os.mkfifo(folder / f".part-{number:08d}.parquet")


def waits_for_a_reader(pid: int) -> bool:
    """True if the main thread of a process is blocked in opening a pipe; fs/pipe.c of Linux, proc_pid_wchan(5)."""
    return Path(f"/proc/{pid}/wchan").read_text() == "wait_for_partner"


def test_what_was_received_and_not_taken_is_left_to_the_broker(tmp_path):
    """At the end the messages taken are made durable and no more are taken, however many have come: an inbox that never gets
    empty would keep the end waiting."""
    with service(tmp_path) as ingest:
        inbox = ingest._source._inbox
        for n in range(1000):
            message = (at("g0"), batch("g0", 0, n * 10, 10), Token(0, n + 1, 1))
            assert inbox.put("g0", message, 1000, 0.0)
        take = ingest._bridge.take

        def take_and_be_asked_to_end(*message):
            take(*message)
            ingest.stop()

        ingest._bridge.take = take_and_be_asked_to_end
        ingest.run(lambda: None, 1.0)
        assert identities(tmp_path) == [("g0", 0, seq) for seq in range(10)]
        assert inbox.get() is not None


def test_a_broker_that_accepts_and_stays_silent_is_not_waited_for(tmp_path):
    """Asked to end while it waits for an answer: no second attempt with MQTT 3.1.1, no error."""
    with listener() as port, service(tmp_path, port.getsockname()[1]) as ingest:
        connecting = threading.Thread(target=ingest.connect)
        connecting.start()
        connection, _ = port.accept()
        with connection:
            assert connection.recv(1) == b"\x10"  # CONNECT
            ingest.stop()
            assert ended(connecting)
            ingest.run(lambda: None, 1.0)
            port.setblocking(False)
            with pytest.raises(BlockingIOError):
                port.accept()


def test_a_name_server_that_does_not_answer_is_not_waited_for(tmp_path, monkeypatch):
    """Asked to end while the broker's name is looked up."""
    asked, answer = threading.Event(), threading.Event()

    def look_up(*_: object, **__: object) -> list:
        asked.set()
        answer.wait()
        raise socket.gaierror("late")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with service(tmp_path) as ingest:
        connecting = threading.Thread(target=ingest.connect)
        connecting.start()
        try:
            assert asked.wait(LIMIT_S)
            ingest.stop()
            assert ended(connecting)
        finally:
            answer.set()


def test_a_client_whose_thread_does_not_end_is_left(tmp_path):
    """paho waits for its own thread without a limit; the ingest does not."""
    busy, free = threading.Event(), threading.Event()
    with Stack(tmp_path / "stack") as stack:
        stack.broker.start()
        with service(tmp_path / "landing", stack.broker.port) as ingest:
            ingest.connect()
            ingest._source._client.take = lambda *_: (busy.set(), free.wait())
            sender = mqtt.Client(CallbackAPIVersion.VERSION2)
            sender.connect("127.0.0.1", stack.broker.port)
            sender.loop_start()
            sender.publish(at("g0", "birth"), b"?", qos=1, retain=True)  # retained: also for who subscribes after it
            try:
                assert busy.wait(LIMIT_S)
                ingest.stop()
                running = threading.Thread(target=ingest.run, args=(lambda: None, 1.0), daemon=True)
                running.start()
                assert ended(running)
            finally:
                free.set()
                sender.disconnect()
                sender.loop_stop()


def test_a_disk_that_stands_still_is_not_waited_for_and_nothing_acknowledged_is_lost(tmp_path):
    """The file of the next flush is a pipe that nobody reads, so that opening it stands still as a dead disk does. Asked to
    end, the ingest logs where it stands and exits with a distinct code; the next one lands every reading once."""
    with Stack(tmp_path) as stack:
        stack.broker.start()
        address = f"127.0.0.1:{stack.broker.port}"
        command = [sys.executable, "-c", IMPATIENT, "ingest", "--broker", address, "--landing", str(stack.landing)]
        part = stack.start("ingest", command)
        stack.wait("connected", lambda: part.said("broker.connected"), LIMIT_S)
        gateway = MqttGateway("g0", stack.broker.port, 2000, 20)
        try:
            stack.wait("landed", lambda: gateway.acked > 0, LIMIT_S)
            assert not gateway.done, "all was over before the disk stood still"
            block_next_file(stack.landing)
            stack.wait("disk stands still", lambda: waits_for_a_reader(part.process.pid), LIMIT_S)
            part.process.send_signal(signal.SIGTERM)
            assert part.process.wait(LIMIT_S) == EXIT_HUNG
            assert "in appearing" in part.tail()
            acknowledged = gateway.acked
            assert len(identities(stack.landing)) >= acknowledged + 1
            stack.start_ingest()
            stack.wait("all acknowledged", lambda: gateway.done, LIMIT_S)
        finally:
            gateway.close()
        assert sorted(identities(stack.landing)) == [("g0", 0, seq) for seq in range(2000)]
