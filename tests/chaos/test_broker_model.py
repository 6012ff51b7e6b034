"""The simulated broker and mosquitto: the same scenarios give the same messages."""

import threading
import time
from random import Random

import paho.mqtt.client as mqtt
import pytest

from support.waiting import until
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.network.broker_model import Broker, Message
from whenabouts_sim.stack.broker import HOST, running_broker

QUIET_S = 0.3  # mosquitto has sent all by then


class Simulated:
    """A client of the simulated broker."""

    def __init__(self, world, name, keep=False, will=None, answers=True):
        self.world, self.name, self.answers = world, name, answers
        self.got, self.taken_mids, self.is_lost = [], [], False
        self.connection = world.broker.connect(name, self, will and Message(*will, 1, False), keep)

    def came(self, message, mid):
        self.got.append((message.topic, message.payload, message.qos))
        if mid and self.answers:
            self.connection.acknowledge(mid)

    def taken(self, mid):
        self.taken_mids.append(mid)

    def lost(self):
        self.is_lost = True

    def subscribe(self, *filters):
        self.connection.subscribe(dict(filters))
        self.world.settle()

    def publish(self, topic, payload, qos=1, retain=False):
        self.connection.publish(Message(topic, payload, qos, retain), 1)
        self.world.settle()

    def leave(self):
        self.connection.disconnect()
        self.world.settle()

    def break_off(self):
        self.world.broker.cut(self.name)
        self.world.settle()


class SimulatedWorld:
    def __init__(self, _folder):
        self.loop = VirtualLoop(0)
        self.broker = Broker(self.loop, Random(1))

    def client(self, name, **options):
        one = Simulated(self, name, **options)
        self.settle()
        return one

    def settle(self):
        async def wait():
            import asyncio

            await asyncio.sleep(5)

        self.loop.run_until_complete(wait())

    def close(self):
        self.loop.close()


class Real:
    """A client of mosquitto, MQTT 3.1.1."""

    def __init__(self, port, name, keep=False, will=None, answers=True):
        self.got, self.is_lost, self._ready = [], False, threading.Event()
        self._granted = threading.Event()
        self.client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, name, clean_session=not keep, protocol=mqtt.MQTTv311, manual_ack=True,
            reconnect_on_failure=False,
        )  # fmt: skip
        if will:
            self.client.will_set(*will, qos=1)
        self.client.on_connect = lambda *_: self._ready.set()
        self.client.on_subscribe = lambda *_: self._granted.set()
        self.client.on_disconnect = lambda *_: setattr(self, "is_lost", True)

        def came(client, _userdata, message):
            self.got.append((message.topic, message.payload, message.qos))
            if message.qos and answers:
                client.ack(message.mid, message.qos)

        self.client.on_message = came
        self.client.connect(HOST, port)
        self.client.loop_start()
        assert self._ready.wait(10)

    def subscribe(self, *filters):
        self._granted.clear()
        self.client.subscribe(list(filters))
        assert self._granted.wait(10)

    def publish(self, topic, payload, qos=1, retain=False):
        self.client.publish(topic, payload, qos, retain).wait_for_publish(10)

    def leave(self):
        self.client.disconnect()
        until(lambda: self.is_lost, "the end of the connection")

    def break_off(self):
        self.client.socket().shutdown(2)
        until(lambda: self.is_lost, "the end of the connection")


class RealWorld:
    def __init__(self, folder):
        self._running = running_broker(folder, kind="mosquitto")
        self._port, self._clients = self._running.__enter__().port, []

    def client(self, name, **options):
        one = Real(self._port, name, **options)
        self._clients.append(one)
        return one

    def settle(self):
        time.sleep(QUIET_S)  # nothing tells that no more messages come

    def close(self):
        for one in self._clients:
            one.client.disconnect()
            one.client.loop_stop()
        self._running.__exit__(None, None, None)


def kept_session(world):
    """Messages of QoS 1 wait for a kept session, in order; those of QoS 0 do not; what is not acknowledged comes again."""
    reader = world.client("reader", keep=True, answers=False)
    reader.subscribe(("wa/#", 1))
    reader.leave()
    writer = world.client("writer")
    for n in range(3):
        writer.publish("wa/a", b"%d" % n)
    writer.publish("wa/a", b"lost", qos=0)
    again = world.client("reader", keep=True, answers=False)
    world.settle()
    once_more = world.client("reader", keep=True)
    world.settle()
    last = world.client("reader", keep=True)
    world.settle()
    return [again.got, once_more.got, last.got, again.is_lost]


def forgotten_session(world):
    """Without a kept session nothing waits."""
    reader = world.client("reader")
    reader.subscribe(("wa/+/a", 1))
    reader.leave()
    writer = world.client("writer")
    writer.publish("wa/x/a", b"1")
    again = world.client("reader")
    again.subscribe(("wa/+/a", 1))
    writer.publish("wa/x/a", b"2")
    writer.publish("wa/x/y/a", b"3")
    world.settle()
    return [again.got]


def retained(world):
    """A retained message comes with each subscription; an empty one removes it; the lower QoS counts."""
    writer = world.client("writer")
    writer.publish("wa/a", b"first", retain=True)
    writer.publish("wa/a", b"second", retain=True)
    writer.publish("wa/b", b"gone", retain=True)
    writer.publish("wa/b", b"", retain=True)
    reader = world.client("reader")
    reader.subscribe(("wa/#", 0))
    reader.subscribe(("wa/a", 1))
    world.settle()
    return [sorted(reader.got)]


def will(world):
    """A will is published when a connection breaks or another one takes its name, not at an orderly end."""
    reader = world.client("reader")
    reader.subscribe(("wa/#", 1))
    world.client("one", will=("wa/one", b"broken")).break_off()
    world.client("two", will=("wa/two", b"broken")).leave()
    world.client("three", will=("wa/three", b"taken over"))
    world.client("three")
    world.settle()
    return [sorted(reader.got)]


@pytest.mark.parametrize("scenario", [kept_session, forgotten_session, retained, will])
def test_the_simulated_broker_sends_what_mosquitto_sends(scenario, tmp_path):
    results = []
    for kind in (SimulatedWorld, RealWorld):
        world = kind(tmp_path / kind.__name__)
        try:
            results.append(scenario(world))
        finally:
            world.close()
    assert results[0] == results[1]
    assert any(results[0])
