"""An agent process, its broker and a subscriber that keeps every message in order, for the tests of the agent."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from whenabouts_protocol import (
    Ack,
    Heartbeat,
    Reading,
    decode_batch,
    decode_heartbeat,
    decode_status,
    encode_ack,
    parse_topic,
    topic,
)
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.stack.stack import Stack
from whenabouts_sim.world.clocks import EPOCH_US, GatewayClock, SimClock
from whenabouts_sim.world.world import GATE, Sighting

CLOCK = GatewayClock(EPOCH_US, offset_us=150_000, drift_ppm=-40, base_bound_us=160_000)
WAIT_S = 60.0
PASS_S = 60.0


@dataclass
class Witness:
    """A subscriber to everything of all gateways: (leaf, payload, retained) in the order of the broker."""

    port: int
    seen: list[tuple[str, bytes, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._subscribed = threading.Event()
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv311)
        self.client.reconnect_delay_set(1, 1)
        self.client.on_connect = lambda client, *_: client.subscribe("wa/#", qos=1)
        self.client.on_subscribe = lambda *_: self._subscribed.set()
        self.client.on_message = self._take
        self.client.connect("127.0.0.1", self.port)
        self.client.loop_start()
        assert self._subscribed.wait(WAIT_S)

    def _take(self, _client: mqtt.Client, _userdata: object, message: mqtt.MQTTMessage) -> None:
        with self._changed:
            self.seen.append((parse_topic(message.topic)[2], message.payload, message.retain))
            self._changed.notify_all()

    def wait(self, what: str, condition: Callable[[], object], timeout_s: float = WAIT_S) -> None:
        """Wait until the messages seen so far satisfy the condition."""
        with self._changed:
            assert self._changed.wait_for(condition, timeout_s), f"{what}: not so within {timeout_s} s"

    def readings(self) -> list[Reading]:
        """Every reading as it came, repeats included."""
        return [r for leaf, payload, _ in list(self.seen) if leaf == "obs" for r in decode_batch(payload)]

    def keys(self) -> set[str | None]:
        """Keys of all readings."""
        return {r.key for r in self.readings()}

    def heartbeats(self) -> list[Heartbeat]:
        """Every heartbeat."""
        return [decode_heartbeat(payload) for leaf, payload, _ in list(self.seen) if leaf == "heartbeat"]

    def conditions(self) -> list[str]:
        """Conditions published on the status topic, in order."""
        return [decode_status(payload).condition for leaf, payload, _ in list(self.seen) if leaf == "status"]

    def acknowledge(
        self, landed: dict[int, int], site: str = "bench", gateway: str = "gw", retain: bool = False
    ) -> None:
        """Publish, as the cloud does, what has landed; returns when the broker has it."""
        self.send_ack(encode_ack(Ack(site, gateway, landed)), retain)

    def send_ack(self, payload: bytes, retain: bool = False) -> None:
        """Publish any bytes on the acknowledgement topic of the gateway."""
        self.client.publish(topic("bench", "gw", "ack"), payload, qos=1, retain=retain).wait_for_publish(WAIT_S)

    def stop(self) -> None:
        """Disconnect."""
        self.client.disconnect()
        self.client.loop_stop()


def highest(readings: list[Reading]) -> dict[int, int]:
    """The highest number among the readings, by boot."""
    numbers: dict[int, int] = {}
    for r in readings:
        numbers[r.boot] = max(r.seq, numbers.get(r.boot, 0))
    return numbers


@contextmanager
def witness(port: int) -> Iterator[Witness]:
    """A witness that is stopped at the end."""
    watching = Witness(port)
    try:
        yield watching
    finally:
        watching.stop()


class Bench(Stack):
    """A stack with one gateway `gw` of site `bench`, and methods for tests to inspect it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sim_clock = SimClock(EPOCH_US, time.monotonic_ns())

    def configure(self, *readers: dict[str, str | int | bool], resend_s: int = 30) -> Path:
        """Write the gateway's configuration."""
        return self.configure_agent("bench", "gw", readers, CLOCK, self.sim_clock, resend_s)

    def true_us(self) -> int:
        """True time now."""
        return self.sim_clock.true_us(time.monotonic_ns())

    def agent_status(self) -> dict:
        """The agent's status file, empty before it is written."""
        return self.status("gw") or {}

    def wait_status(self, what: str, condition: Callable[[dict], object], timeout_s: float = WAIT_S) -> dict:
        """Wait until the agent's own status satisfies the condition; returns that status."""
        self.wait(what, lambda: bool((s := self.agent_status()) and condition(s)), timeout_s)
        return self.agent_status()


def badges(bench: Bench, count: int, first: int = 0, after_us: int = 300_000, every_us: int = 70_000) -> list[Sighting]:
    """Badges that pass the gate one after the other; the key is the number."""
    start_us = bench.true_us() + after_us
    return [Sighting(start_us + i * every_us, GATE.name, first + i, f"{first + i:010X}") for i in range(count)]


def passed(bench: Bench, link: PtyLink, sightings: Sequence[Sighting]) -> set[str]:
    """Let these sightings happen until the reader has reported each of them undamaged; return their keys.

    A simulated reader that this machine runs too late withholds its frame, or misses the tag: such tags pass once more.
    """
    keys, deadline_s = {s.key for s in sightings}, time.monotonic() + PASS_S
    while sightings:
        assert time.monotonic() < deadline_s, f"not reported whole within {PASS_S} s: {sightings}"
        done = len(link.emitted) + link.unseen + len(sightings)
        link.go(sightings)
        bench.wait("reported", lambda done=done: len(link.emitted) + link.unseen >= done, PASS_S)
        whole = {e.key for e in link.emitted if not e.damaged}
        later_us = bench.true_us() + 300_000 - sightings[0].true_us
        sightings = [replace(s, true_us=s.true_us + later_us) for s in sightings if s.key not in whole]
    return keys


def check_capture_published(bench: Bench, capture: Path) -> None:
    """The agent reads a capture of an M6e through replay:// and publishes its tags."""
    bench.broker.start()
    bench.configure({"name": "tape", "kind": "m6e", "port": f"replay://{capture}?speed=max", "listen_only": True})
    with witness(bench.broker.port) as seen:
        bench.start_agent("gw")
        seen.wait("tags of the capture", lambda: len(seen.readings()) > 0, 60)
        bench.wait_status("end of the tape", lambda s: s["readers"]["tape"]["state"] == "finished")
        assert all(r.key and len(r.key) % 4 == 0 for r in seen.readings())
        assert {r.stream for r in seen.readings()} == {"tape/tags"}
