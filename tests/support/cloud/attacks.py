"""What one gateway with a valid certificate can send to hurt others, and an honest gateway beside it."""

import itertools
import random
import ssl
import threading
import time

import paho.mqtt.client as mqtt
import psutil
from paho.mqtt.enums import CallbackAPIVersion

from support.cloud.ingest import at, birth, heartbeat, reading
from whenabouts_protocol import Reading, decode_ack, encode_batch

LIMIT_S = 120.0  # far above what any step takes
RESEND_S = 2.0
PREPARED = 12  # different messages of an attack
EVIL, HONEST = "evil", "honest"  # names of the gateways
NAMES = {f"{n:02d}" + "n" * 250: n for n in range(32)}


def long_readings(seqs, boot: int, value: object) -> bytes:
    readings = [reading("evil", boot, seq, now_us(), value) for seq in seqs]
    for one in readings:
        one.attrs = NAMES
    return encode_batch(readings)


def now_us() -> int:
    return time.time_ns() // 1000


def conflicts():
    """2000 readings a message that contradict those sent before, with long names that all of them share."""
    for value in itertools.cycle(range(7)):
        yield "obs", long_readings(range(2000), 0, value)


def gaps():
    """Messages in which no number follows another, of ever new boots."""
    for boot in itertools.count():
        yield "obs", encode_batch([reading("evil", boot, 2 * n, now_us()) for n in range(2000)])


def new_readings():
    """Messages whose readings land, and take thirty times their size when they are written."""
    for boot in itertools.count():
        yield "obs", long_readings(range(2000), boot, boot)


def small_messages():
    """As many as the broker passes on."""
    chance = random.Random(1)
    for _ in itertools.count():
        yield "obs", chance.randbytes(60)


def large_messages():
    """Of the largest size that the ingest accepts."""
    payload = bytes(250 << 10)
    while True:
        yield "obs", payload


def future():
    """Readings stamped ten years ahead."""
    for boot in itertools.count():
        yield "obs", encode_batch([reading("evil", boot, n, now_us() + 10**14 * 3) for n in range(2000)])


def wide():
    """Readings that begin now, or long ago, and end in ten years."""
    for boot in itertools.count():
        made = [reading("evil", boot, n, now_us()) for n in range(2000)]
        for one in made:
            one.t_min, one.t_max = one.t_min - boot % 2 * 3 * 10**14, one.t_max + 3 * 10**14
        yield "obs", encode_batch(made)


def past():
    """Readings as old as the wire allows, of the last numbers that there are."""
    for boot in itertools.count():
        yield "obs", encode_batch([reading("evil", 2**62 + boot, 2**63 - 3000 + n, 2000 - 2**62) for n in range(2000)])


def births_and_heartbeats():
    """Heartbeats that name 64 new boots each."""
    for first in itertools.count(step=64):
        yield "birth", birth("evil")
        yield "heartbeat", heartbeat("evil", 0, now_us(), dict.fromkeys(range(first, first + 64), (0, 1)))


ATTACKS = (conflicts, gaps, new_readings, small_messages, large_messages, future, wide, past, births_and_heartbeats)


def memory_bytes(process: psutil.Process) -> int:
    """Resident memory of a process and of those it started."""
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))


class Attacker:
    """Publishes what an attack makes, again and again, as fast as the broker takes it, in a thread of its own."""

    def __init__(self, port: int, messages, tls: ssl.SSLContext | None = None) -> None:
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        if tls is not None:
            self._client.tls_set_context(tls)
        self._client.max_inflight_messages_set(100)
        self._client.max_queued_messages_set(200)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        # Made before and sent again and again: the ingest, not the sender, shall be what is busy.
        self._messages = itertools.cycle(list(itertools.islice(messages, PREPARED)))
        self._stopping, self.sent = threading.Event(), 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for leaf, payload in self._messages:
            info = self._client.publish(at("evil", leaf), payload, qos=1)
            while info.rc == mqtt.MQTT_ERR_QUEUE_SIZE and not self._stopping.wait(0.002):
                info = self._client.publish(at("evil", leaf), payload, qos=1)
            if self._stopping.is_set():
                return
            self.sent += 1

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._client.disconnect()
        self._client.loop_stop()


class Honest:
    """A gateway that publishes a message at a time, each again every two seconds until it is confirmed, as an agent does."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None, name: str = HONEST) -> None:
        self._name = name
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        if tls is not None:
            self._client.tls_set_context(tls)
        self._client.on_connect = lambda client, *_: client.subscribe(at(name, "ack"), qos=1)
        self._client.on_message = self._on_message
        self._landed: dict[int, int] = {}
        self._changed = threading.Condition()
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._next = 0

    def _on_message(self, _c, _u, message) -> None:
        with self._changed:
            self._landed = decode_ack(message.payload).landed
            self._changed.notify_all()

    def land(self) -> float:
        """Publish one more reading; seconds until it is confirmed."""
        seq = self._next
        self._next += 1
        return self.confirmed([reading(self._name, 0, seq, now_us())])

    def confirmed(self, readings: list[Reading]) -> float:
        """Publish readings of one boot, the last with the highest number; seconds until they are confirmed."""
        began_s, payload, last = time.monotonic(), encode_batch(readings), readings[-1]
        while time.monotonic() - began_s < LIMIT_S:
            self._client.publish(at(self._name), payload, qos=1)
            with self._changed:
                if self._changed.wait_for(lambda: self._landed.get(last.boot, -1) >= last.seq, RESEND_S):
                    return time.monotonic() - began_s
        raise AssertionError(f"reading {last.seq} was not confirmed within {LIMIT_S} s")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
