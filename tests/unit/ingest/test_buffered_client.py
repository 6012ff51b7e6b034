"""The client that reads its socket in large pieces (`whenabouts_cloud.ingest.buffered_client`), on a real broker."""

import threading

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from whenabouts_cloud.ingest.buffered_client import BufferedClient
from whenabouts_sim.stack.broker import RunningBroker

WAIT_S = 30.0


@pytest.fixture
def broker(tmp_path):
    """A broker that ends with the test."""
    running = RunningBroker(tmp_path)
    running.start()
    yield running
    running.stop()


def test_messages_of_all_sizes_arrive_in_order_and_again_after_a_reconnection(broker):
    """Several in one piece, and one in many pieces; what was buffered of an earlier connection does not disturb."""
    heard, came = [], threading.Event()
    client = BufferedClient(CallbackAPIVersion.VERSION2)
    subscribed = threading.Event()
    client.on_connect = lambda c, *_: c.subscribe("x", qos=1)
    client.on_subscribe = lambda *_: subscribed.set()
    client.on_message = lambda _c, _u, message: (
        heard.append(message.payload),
        message.payload == b"end" and came.set(),
    )
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    sender = mqtt.Client(CallbackAPIVersion.VERSION2)
    sender.connect("127.0.0.1", broker.port)
    sender.loop_start()
    sent = [bytes([n % 251]) * size for n, size in enumerate([0, 1, 127, 128, 5000, 900_000, 2] * 20)]
    for _ in range(2):
        assert subscribed.wait(WAIT_S)
        heard.clear()
        came.clear()
        for payload in (*sent, b"end"):
            sender.publish("x", payload, qos=1).wait_for_publish(WAIT_S)
        assert came.wait(WAIT_S)
        assert heard == [*sent, b"end"]
        subscribed.clear()
        client.reconnect()
    for one in (client, sender):
        one.disconnect()
        one.loop_stop()
