"""Both brokers, really started and used by paho clients as the agent and the bridge use them."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import paho.mqtt.client as mqtt
import psutil
import pytest

from whenabouts_sim.stack.broker import (
    EMBEDDED_LACKS,
    HOST,
    BrokerError,
    RunningBroker,
    find_mosquitto,
    running_broker,
    which_broker,
)

MESSAGES_PER_S_MIN = 500


@pytest.fixture(params=["mosquitto", "embedded"])
def broker(request, tmp_path):
    if request.param == "mosquitto" and find_mosquitto() is None:
        pytest.fail("mosquitto: found none, expected the daemon; `make test` installs it, or apt-get install mosquitto")
    with running_broker(tmp_path / "broker", kind=request.param) as running:
        yield running


@pytest.fixture
def clients():
    made = []
    yield made
    for client in made:
        client.leave()


class Client(mqtt.Client):
    """A paho client, MQTT 3.1.1, that keeps what it gets and can be awaited."""

    def __init__(self, clients, port, client_id, *, clean=True, manual_ack=False, will=None, filters=()):
        super().__init__(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=client_id,
            clean_session=clean,
            protocol=mqtt.MQTTv311,
            manual_ack=manual_ack,
        )
        self.got = []
        self.news = threading.Condition()
        self.ready = threading.Event()
        self.on_connect = self._connected
        self.on_message = self._received
        self.on_subscribe = lambda *_: self.ready.set()
        self.max_inflight_messages_set(200)
        self._filters = [(topic, 1) for topic in filters]
        if will:
            self.will_set(*will)
        clients.append(self)
        self.connect(HOST, port, 30)
        self.loop_start()
        assert self.ready.wait(60), f"{client_id}: no connection or subscription"

    def _connected(self, _client, _userdata, flags, _reason, _properties):
        self.session_present = flags.session_present
        if self._filters:
            self.subscribe(self._filters)
        else:
            self.ready.set()

    def _received(self, _client, _userdata, message):
        with self.news:
            self.got.append(message)
            self.news.notify()

    def wait_for(self, count, timeout_s=15):
        """The payloads of the first `count` messages."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.got) >= count, timeout_s), f"{len(self.got)} of {count}"
            return [message.payload for message in self.got[:count]]

    def say(self, topic, payload, retain=False):
        """Publishes at QoS 1 and returns when it is acknowledged."""
        self.publish(topic, payload, 1, retain).wait_for_publish(5)

    def cut(self):
        """The connection breaks without a goodbye."""
        self.socket().shutdown(socket.SHUT_RDWR)
        self.loop_stop()

    def leave(self):
        self.disconnect()
        self.loop_stop()


def numbers(count, first=0):
    return [b"%d" % number for number in range(first, first + count)]


def test_messages_at_qos_1_arrive_in_order_and_fast_enough(broker, clients):
    """Two thousand messages, acknowledged on both sides, at 500 a second or better."""
    subscriber = Client(clients, broker.port, "bridge", filters=["wa/2/+/+/obs"])
    publisher = Client(clients, broker.port, "gateway")
    begin_s = time.monotonic()
    for payload in numbers(2000):
        publisher.publish("wa/2/shop/door-1/obs", payload, 1)
    assert subscriber.wait_for(2000) == numbers(2000)
    assert 2000 / (time.monotonic() - begin_s) > MESSAGES_PER_S_MIN
    assert {message.qos for message in subscriber.got} == {1}


def test_a_retained_message_greets_late_subscribers_until_cleared(broker, clients):
    """The last one is kept, with its flag; an empty one removes it."""
    publisher = Client(clients, broker.port, "cloud")
    publisher.say("wa/2/shop/door-1/ack", b"old", retain=True)
    publisher.say("wa/2/shop/door-1/ack", b"new", retain=True)
    late = Client(clients, broker.port, "late", filters=["wa/2/shop/door-1/ack"])
    assert late.wait_for(1) == [b"new"]
    assert late.got[0].retain
    publisher.say("wa/2/shop/door-1/ack", b"", retain=True)
    later = Client(clients, broker.port, "later", filters=["wa/2/shop/door-1/ack", "other"])
    publisher.say("other", b"end")
    assert later.wait_for(1) == [b"end"]


def test_the_last_will_is_sent_and_retained_when_a_client_vanishes(broker, clients):
    """Subscribers receive it at once, later ones as a retained message."""
    status = "wa/2/shop/door-1/status"
    watcher = Client(clients, broker.port, "watcher", filters=[status])
    Client(clients, broker.port, "door-1", will=(status, b"gone", 1, True)).cut()
    assert watcher.wait_for(1) == [b"gone"]
    assert Client(clients, broker.port, "late", filters=[status]).wait_for(1) == [b"gone"]


def test_a_clean_goodbye_sends_no_will(broker, clients):
    """After disconnect the watcher gets the next message, not the will."""
    watcher = Client(clients, broker.port, "watcher", filters=["status", "other"])
    Client(clients, broker.port, "door-1", will=("status", b"gone", 1, True)).leave()
    Client(clients, broker.port, "x").say("other", b"end")
    assert watcher.wait_for(1) == [b"end"]


def test_a_persistent_session_waits_for_its_client(broker, clients):
    """Five hundred messages published in its absence, longer than the second after which amqtt forgets by default."""
    away = Client(clients, broker.port, "bridge", clean=False, filters=["t/#"])
    away.leave()
    publisher = Client(clients, broker.port, "gateway")
    forgotten_at_s = time.monotonic() + 2.0
    for payload in numbers(500):
        publisher.say("t/obs", payload)
    while time.monotonic() < forgotten_at_s:
        publisher.say("nobody/listens", b"")
    back = Client(clients, broker.port, "bridge", clean=False)
    assert back.session_present
    assert back.wait_for(500) == numbers(500)


def test_a_client_that_is_back_before_its_loss_was_noticed_gets_its_messages(broker, clients):
    """The new connection takes over the persistent session; the end of the old one does not silence it."""
    stale = Client(clients, broker.port, "bridge", clean=False, filters=["t/#"])
    stale.loop_stop()  # it neither sends nor receives any more, but its connection stands
    back = Client(clients, broker.port, "bridge", clean=False)
    publisher = Client(clients, broker.port, "gateway")
    for payload in numbers(20):
        publisher.say("t/obs", payload)
    assert back.wait_for(20) == numbers(20)


def test_a_broker_killed_comes_back_on_the_same_port(broker, clients):
    """Clients connect again by themselves."""
    subscriber = Client(clients, broker.port, "bridge", filters=["t/#"])
    port, pid = broker.port, broker.pid
    broker.kill()
    assert broker.pid is None
    subscriber.ready.clear()
    broker.start()
    assert broker.port == port
    assert broker.pid not in (None, pid)
    assert subscriber.ready.wait(60), "not connected and subscribed again"
    Client(clients, broker.port, "gateway").say("t/obs", b"after")
    assert subscriber.wait_for(1) == [b"after"]


def test_mosquitto_delivers_again_what_was_not_acknowledged(tmp_path, clients):
    """A bridge that ends before its files are durable gets the batch again, whole and in order.

    An acknowledgement that is still in the client when it disconnects is lost, so some of the first five may come too.
    """
    assert find_mosquitto() is not None, "mosquitto: found none, expected the daemon; `make test` installs it"
    with running_broker(tmp_path, kind="mosquitto") as broker:
        dies = Client(clients, broker.port, "bridge", clean=False, manual_ack=True, filters=["t/#"])
        publisher = Client(clients, broker.port, "gateway")
        for payload in numbers(20):
            publisher.say("t/obs", payload)
        dies.wait_for(20)
        for message in dies.got[:5]:
            dies.ack(message.mid, message.qos)
        dies.leave()
        back = Client(clients, broker.port, "bridge", clean=False)
        publisher.say("t/obs", b"end")
        back.wait_for(16)
        with back.news:
            assert back.news.wait_for(lambda: back.got[-1].payload == b"end", 15)
        again = back.got[:-1]
        assert [message.payload for message in again] == numbers(len(again), first=20 - len(again))
        assert 15 <= len(again) <= 20
        assert all(message.dup for message in again)


def test_saved_state_survives_a_kill_where_the_broker_has_any(broker, clients):
    """mosquitto keeps sessions, their queues and retained messages through SIGKILL; the embedded one states it cannot."""
    if broker.kind == "embedded":
        with pytest.raises(BrokerError, match="expected a running mosquitto"):
            broker.save()
        assert any(lack.startswith("persistence") for lack in EMBEDDED_LACKS)
        return
    Client(clients, broker.port, "bridge", clean=False, filters=["t/#"]).leave()
    Client(clients, broker.port, "gateway").say("t/obs", b"kept", retain=True)
    broker.save()
    broker.kill()
    broker.start()
    back = Client(clients, broker.port, "bridge", clean=False)
    assert back.session_present
    assert back.wait_for(1) == [b"kept"]
    assert Client(clients, broker.port, "late", filters=["t/obs"]).wait_for(1) == [b"kept"]


def test_a_port_that_is_taken_is_refused(broker, tmp_path):
    """The program that has the port would answer in the new broker's place and hide that it never started."""
    with pytest.raises(BrokerError, match=f"port {broker.port} .* already in use"):
        RunningBroker(tmp_path / "second", broker.port, broker.kind).start()


def test_a_broker_that_ends_at_once_is_reported_with_its_log(tmp_path, monkeypatch):
    """The error quotes the log instead of waiting for an answer that never comes."""
    broker = RunningBroker(tmp_path, kind="embedded")
    monkeypatch.setattr(broker, "_command", lambda: [sys.executable, "-c", "raise SystemExit('no luck today')"])
    with pytest.raises(BrokerError, match=f"port {broker.port}: ended with code 1(.|\n)*no luck today"):
        broker.start()
    assert broker.pid is None


PARENT = """
import sys, pathlib, whenabouts_sim.stack.broker as broker
running = broker.RunningBroker(pathlib.Path(sys.argv[1]), kind=sys.argv[2])
running.start()
print(running.pid, flush=True)
sys.stdin.read()
"""


def test_a_broker_dies_with_its_parent_however_that_ends(broker, tmp_path):
    """SIGKILL leaves the parent no chance to clean up; the broker ends all the same."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "child"), broker.kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    child = psutil.Process(int(parent.stdout.readline()))
    assert child.is_running()
    end = os.pidfd_open(child.pid)  # readable when the broker has ended
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    ended, _, _ = select.select([end], [], [], 5)
    os.close(end)
    assert ended, "the broker outlived its parent"


def test_the_default_is_mosquitto_where_there_is_one(tmp_path):
    """`which_broker` returns the kind of a broker started without a choice."""
    expected = "mosquitto" if find_mosquitto() else "embedded"
    with running_broker(tmp_path) as running:
        assert running.kind == which_broker() == expected
