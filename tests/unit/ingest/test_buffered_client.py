"""The client that takes messages straight from large reads (`whenabouts_cloud.ingest.receiving.buffered_client`)."""

import socket
import threading

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from whenabouts_cloud.ingest.receiving.buffered_client import MAX_PACKET_BYTES, BufferedClient
from whenabouts_sim.stack.broker import RunningBroker

WAIT_S = 30.0
CONNACK, SUBACK = b"\x20\x02\x00\x00", b"\x90\x03\x00\x01\x01"


class Listener:
    """A client that subscribes to x, keeps what it takes, and acknowledges it after each read."""

    def __init__(self, port: int, version: MQTTProtocolVersion = MQTTProtocolVersion.MQTTv311) -> None:
        self.heard, self.ended, self.subscribed, self.lost = [], threading.Event(), threading.Event(), threading.Event()
        self._mids: list[int] = []
        self.client = client = BufferedClient(CallbackAPIVersion.VERSION2, protocol=version, manual_ack=True)
        client.on_connect = lambda c, *_: c.subscribe("x", qos=1)
        client.on_subscribe = lambda *_: self.subscribed.set()
        client.on_disconnect = lambda *_: self.lost.set()
        client.take, client.after_read = self._take, self._acknowledge
        client.connect("127.0.0.1", port)
        client.loop_start()
        assert self.subscribed.wait(WAIT_S)

    def _take(self, topic: bytes, payload: bytes, mid: int, qos: int) -> None:
        assert (topic, qos) == (b"x", 1)
        self.heard.append(payload)
        self._mids.append(mid)
        if payload == b"end":
            self.ended.set()

    def _acknowledge(self) -> None:
        self.client.acknowledge(self._mids)
        self._mids.clear()

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture
def broker(tmp_path):
    """A broker that ends with the test."""
    running = RunningBroker(tmp_path)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def sender(broker):
    """A client of paho's that publishes."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    yield client
    client.disconnect()
    client.loop_stop()


@pytest.mark.parametrize("version", [MQTTProtocolVersion.MQTTv311, MQTTProtocolVersion.MQTTv5], ids=lambda v: v.name)
def test_messages_of_all_sizes_arrive_in_order_and_again_after_a_reconnection(broker, sender, version):
    """Several in one piece, and one in many pieces; what was buffered of an earlier connection does not disturb. More come
    than a broker sends without acknowledgements: those sent together count."""
    listener = Listener(broker.port, version)
    sent = [bytes([n % 251]) * size for n, size in enumerate([0, 1, 127, 128, 5000, 200_000, 2] * 20)]
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = ("name", "value")
    for _ in range(2):
        assert listener.subscribed.wait(WAIT_S)
        listener.heard.clear()
        listener.ended.clear()
        for payload in (*sent, b"end"):
            sender.publish("x", payload, qos=1, properties=properties).wait_for_publish(WAIT_S)
        assert listener.ended.wait(WAIT_S)
        assert listener.heard == [*sent, b"end"]
        listener.subscribed.clear()
        listener.client.reconnect()
    listener.close()


def test_of_a_packet_over_the_limit_the_rest_is_thrown_away(broker, sender):
    """A broker with 3.1.1 sends packets of any size: they are cut, and the next one is whole."""
    listener = Listener(broker.port)
    for payload in (bytes(5 << 20), b"next", bytes(MAX_PACKET_BYTES), b"end"):
        sender.publish("x", payload, qos=1).wait_for_publish(WAIT_S)
    assert listener.ended.wait(WAIT_S)
    whole = MAX_PACKET_BYTES - len(b"..x..")  # behind the topic and the number
    assert [len(payload) for payload in listener.heard] == [whole, 4, whole, 3]
    listener.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x32\x07\x00\x01x\x00",
        b"\x32",
        b"\x32\xff\xff\xff\xff\xff",
        b"\x32\x02\x00\x09",
        b"\x32\x80\x80\x80\x02\x00\x01x\x00\x01",
    ],
    ids=["part of a packet", "no length", "endless length", "topic too short", "part of one over the limit"],
)
def test_a_connection_that_ends_within_a_packet_is_lost_and_opened_again(sent):
    """Also after bytes that are no MQTT; nothing is taken of them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        accepted = []

        def serve() -> None:
            for last in (sent, b"\x32\x08\x00\x01x\x00\x01end"):
                connection, _ = server.accept()
                accepted.append(connection)
                connection.recv(1000)  # CONNECT
                connection.sendall(CONNACK)
                connection.recv(1000)  # SUBSCRIBE
                connection.sendall(SUBACK + last)
                if last is sent:
                    connection.shutdown(socket.SHUT_WR)

        serving = threading.Thread(target=serve)
        serving.start()
        listener = Listener(server.getsockname()[1])
        assert listener.lost.wait(WAIT_S)
        assert listener.ended.wait(WAIT_S)
        assert listener.heard == [b"end"]
        serving.join(WAIT_S)
        listener.close()
        for connection in accepted:
            connection.close()
