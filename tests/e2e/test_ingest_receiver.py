"""The process that receives for the ingest (`whenabouts_cloud.ingest.receiving.receiver_main`): it ends with the ingest, and
another takes its place if it ends itself."""

import os
import signal
import socket
import threading

import psutil
import pytest

from support.cloud.ingest import identities
from support.edge.mqtt_gateway import MqttGateway
from whenabouts_cloud.broker.connection import BrokerError, Credentials
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.receiving import receiver as receiver_module
from whenabouts_cloud.ingest.receiving.receiver import Receiver, ReceiverLost
from whenabouts_cloud.ingest.service import IngestService
from whenabouts_sim.stack.stack import Stack

LIMIT_S = 90.0  # far above what any step takes
READINGS = 3000


def receiving(ingest) -> psutil.Process:
    """The only process that the ingest started, once it serves."""
    (process,) = psutil.Process(ingest.process.pid).children()
    return process


def test_a_receiving_process_that_is_killed_is_replaced_and_no_reading_is_lost_or_doubled(tmp_path):
    """Killed again and again while readings come; the log says so."""
    with Stack(tmp_path) as stack:
        stack.broker.start()
        ingest = stack.start_ingest()
        stack.wait("connected", lambda: ingest.said("broker.connected"), LIMIT_S)
        gateway = MqttGateway("g0", stack.broker.port, READINGS, 20)
        try:
            for goal in (1, READINGS // 3, READINGS * 2 // 3):
                stack.wait("some landed", lambda goal=goal: gateway.acked >= goal, LIMIT_S)
                killed = receiving(ingest)
                killed.kill()
                stack.wait("another", lambda killed=killed: killed.pid not in
                           [p.pid for p in psutil.Process(ingest.process.pid).children()], LIMIT_S)  # fmt: skip
                stack.wait("another serves", lambda: psutil.Process(ingest.process.pid).children() != [], LIMIT_S)
            stack.wait("all acknowledged", lambda: gateway.done, LIMIT_S)
        finally:
            gateway.close()
        assert ingest.stop() == 0, ingest.tail()
        assert ingest.log.read_text().count("receiver.ended") == 3
        assert sorted(identities(stack.landing)) == [("g0", 0, seq) for seq in range(READINGS)]


def test_a_receiving_process_that_is_killed_before_it_was_asked_for_messages_is_replaced(tmp_path):
    """The ingest goes on with another, and lands."""
    with Stack(tmp_path) as stack:
        stack.broker.start()
        receiver, landing = Receiver("127.0.0.1", stack.broker.port, "id", Credentials()), Landing(stack.landing)
        service = IngestService(receiver, Bridge(landing), "broker")
        service.connect()
        os.kill(receiver.pid, signal.SIGKILL)
        running = threading.Thread(target=service.run, args=(lambda: None, 1.0))
        running.start()
        gateway = MqttGateway("g0", stack.broker.port, 100, 20)
        try:
            stack.wait("all acknowledged", lambda: gateway.done, LIMIT_S)
        finally:
            gateway.close()
            service.stop()
            running.join(LIMIT_S)
            landing.close()
        assert sorted(identities(stack.landing)) == [("g0", 0, seq) for seq in range(100)]


def test_a_receiving_process_that_cannot_start_is_an_error_of_the_broker(monkeypatch):
    """Here its module is missing; the command reports it in a line."""
    monkeypatch.setattr(receiver_module, "MODULE", "whenabouts_cloud.missing")
    receiver = Receiver("127.0.0.1", 1, "id", Credentials())
    with pytest.raises(BrokerError, match="the receiving process has ended"):
        receiver.connect()
    receiver.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_receiving_process_ends_with_the_ingest(tmp_path, number):
    """Also when nobody could tell it: nothing keeps the session from the next ingest."""
    with Stack(tmp_path) as stack:
        stack.broker.start()
        ingest = stack.start_ingest()
        stack.wait("connected", lambda: ingest.said("broker.connected"), LIMIT_S)
        process = receiving(ingest)
        ingest.process.send_signal(number)
        ingest.process.wait(LIMIT_S)
        psutil.wait_procs([process], LIMIT_S)
        assert not process.is_running()
        del stack.parts["ingest"]


def test_signals_that_a_service_manager_sends_to_all_processes_leave_receiving_to_the_last_flush(tmp_path):
    """SIGTERM and SIGINT do not end the receiving process: the ingest ends it, after what it took is acknowledged."""
    with Stack(tmp_path) as stack:
        stack.broker.start()
        ingest = stack.start_ingest()
        stack.wait("connected", lambda: ingest.said("broker.connected"), LIMIT_S)
        process = receiving(ingest)
        for number in (signal.SIGTERM, signal.SIGINT):
            process.send_signal(number)
        gateway = MqttGateway("g0", stack.broker.port, 100, 20)
        stack.wait("all acknowledged", lambda: gateway.done, LIMIT_S)
        gateway.close()
        assert process.is_running()
        assert "receiver.ended" not in ingest.log.read_text()


def test_a_broker_that_is_not_there_is_an_error_of_the_caller():
    """As without a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    receiver = Receiver("127.0.0.1", port, "id", Credentials())
    with pytest.raises(BrokerError, match="cannot connect"):
        receiver.connect()
    receiver.close()


def test_a_receiver_asked_to_stop_ends_its_process_at_once():
    """While it waits for a broker that does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        receiver = Receiver("127.0.0.1", server.getsockname()[1], "id", Credentials())
        answers: list[str] = []
        connecting = threading.Thread(target=lambda: answers.append(receiver.connect()))
        connecting.start()
        connection, _ = server.accept()
        pid = receiver.pid
        receiver.stop()
        connecting.join(LIMIT_S)
        connection.close()
    assert answers == [""]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_receiver_without_a_process_says_so():
    """Before `connect`, and after `close`."""
    receiver = Receiver("127.0.0.1", 1, "id", Credentials())
    with pytest.raises(ReceiverLost):
        receiver.take(0.0)
    receiver.close()
