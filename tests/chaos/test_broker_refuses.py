"""A broker that refuses messages: nobody gets them, their sender is told, and others' pass."""

import asyncio
from random import Random

from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.network.broker_model import Broker, Message


class Client:
    """Notes what it learns."""

    def __init__(self):
        self.got = []

    def came(self, message, mid):
        self.got.append(message.topic)

    def taken(self, mid):
        self.got.append(mid)

    def refused(self, mid):
        self.got.append(-mid)

    def lost(self):
        self.got.append("lost")


def test_a_refused_message_reaches_nobody_and_is_told_to_its_sender():
    loop = VirtualLoop(0)
    broker, witnessed, arrived, links = Broker(loop, Random(1)), [], [], []
    broker.witness = lambda _name, message: witnessed.append(message.topic)
    broker.arrived = lambda name, message: arrived.append((name, message.topic))
    broker.linked = lambda name, is_up: links.append((name, is_up))
    clients = {name: Client() for name in ("a", "b", "c")}
    at = {name: broker.connect(name, one, None, keep=False) for name, one in clients.items()}
    at["c"].subscribe({"#": 1})
    broker.refuses["a"] = 1.0
    for name, qos, topic in (("a", 1, "x"), ("a", 0, "y"), ("b", 1, "z")):
        at[name].publish(Message(topic, b"", qos, True), 7)

    async def settle():
        await asyncio.sleep(5)
        broker.stall("b")
        broker.release("b")
        broker.cut("c")
        at["a"].disconnect()
        await asyncio.sleep(5)
        broker.restart(False, False)

    loop.run_until_complete(settle())
    loop.close()
    assert sorted(witnessed) == ["y", "z"]
    assert sorted(arrived) == [("c", "y"), ("c", "z")]
    assert clients["a"].got == [-7]
    assert clients["b"].got == [7]
    assert set(clients["c"].got) == {"y", "z", "lost"}
    begun = [("a", True), ("b", True), ("c", True)]
    assert links == [*begun, ("b", False), ("b", True), ("c", False), ("a", False), ("b", False)]
