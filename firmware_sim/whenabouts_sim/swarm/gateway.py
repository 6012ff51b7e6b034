"""A gateway without ports and disk: readings, group commits, the protocol's own messages, and its own connection.

The agent's `Outbox` decides what is sent when, and what is sent again; the connection is the boards' MQTT client. Unlike an
agent it decodes nothing, and its spool is in memory: two hundred spools on one disk would measure that disk.
"""

import asyncio
import contextlib
import time
from array import array
from collections.abc import Callable

from whenabouts_edge.board.mqtt import Mqtt
from whenabouts_edge.store.spool import Message
from whenabouts_edge.uplink.outbox import Outbox, Position
from whenabouts_protocol import (
    Birth,
    Heartbeat,
    Reading,
    Status,
    decode_ack,
    encode_batch,
    encode_birth,
    encode_heartbeat,
    encode_status,
    topic,
)  # fmt: skip

SITE = "swarm"
STREAM = "dock/tags"
BOOT = 1 << 32 | 1
BATCH_MAX = 100  # readings of one commit, as in an agent
RESEND_S = 10.0
RECONNECT_S = 1.0
KEEPALIVE_S = 30
# Stamps as from a badge reader behind an adapter that holds bytes back: the event is up to this long before its first byte.
LATENCY_US = 116_000
CLOCK_BOUND_US = 2_000
TAGS = 50  # different tags at one gateway

ACK = "ack"


def now_us() -> int:
    """True time: all parts are on one machine."""
    return time.time_ns() // 1000


def key_of(gateway: int, seq: int) -> str:
    """The tag of a reading."""
    return f"E2003412{gateway % 0x10000:04X}{seq % TAGS:012X}"


class LightGateway(asyncio.Protocol):
    """Number `number` of a swarm. `truth[seq]` is when reading seq's first byte came, in true microseconds.

    `landed` is called with these moments when the cloud has confirmed their readings.
    """

    def __init__(self, number: int, port: int, landed: Callable[[list[int]], None]) -> None:
        self.number, self.name = number, f"g{number:05d}"
        self.truth = array("q")
        self.reconnects = self.messages = 0
        self._port, self._landed = port, landed
        self._pending: list[int] = []
        self._outbox = Outbox(RESEND_S)
        self._stored: list[Message] = []  # not landed; the first `_sent` of them are on their way or acknowledged
        self._sent = 0
        self._positions: dict[int, Position] = {}
        self._acked = -1
        self._mqtt: Mqtt | None = None
        self._transport: asyncio.Transport | None = None
        self._lost = asyncio.Event()
        self._topics = {leaf: topic(SITE, self.name, leaf) for leaf in ("obs", "heartbeat", "birth", "status", ACK)}

    @property
    def outstanding(self) -> int:
        """Number of readings made and not confirmed by the cloud."""
        return len(self._pending) + len(self.truth) - 1 - self._acked

    @property
    def connected(self) -> bool:
        """True if the broker has accepted the connection."""
        return self._mqtt is not None and self._mqtt.connected

    @property
    def not_taken(self) -> int:
        """Number of messages that the broker has not acknowledged."""
        return len(self._stored) - self._sent + len(self._positions)

    async def run(self) -> None:
        """Stay connected until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._lost.clear()
            with contextlib.suppress(OSError):
                await loop.create_connection(lambda: self, "127.0.0.1", self._port)
                await self._lost.wait()
            self.reconnects += 1
            await asyncio.sleep(RECONNECT_S)

    # Readings.

    def read(self, event_us: int) -> bool:
        """Add a reading whose first byte came at event_us; True if it begins a commit, due a commit period later."""
        self._pending.append(event_us)
        if len(self._pending) == BATCH_MAX:
            self.commit()
            return False
        return len(self._pending) == 1

    def commit(self) -> None:
        """Store the collected readings as one message, and send the messages that may be sent."""
        if not self._pending:
            return
        events, self._pending = self._pending, []
        first = len(self.truth)
        self.truth.extend(events)
        payload = encode_batch([self._reading(first + n, at_us) for n, at_us in enumerate(events)])
        self._stored.append(Message(BOOT, first, len(self.truth) - 1, payload))
        self.messages += 1
        self._send()

    def tick(self, clear_us: int) -> None:
        """Once a second: the heartbeat, the connection's deadlines, repeats. Later readings come after clear_us."""
        mqtt = self._mqtt
        if mqtt is None:
            return
        if self._outbox.overdue(time.monotonic()):
            self._sent = 0
        if mqtt.connected:
            newest = len(self.truth) - 1
            published = {BOOT: (self._acked + 1, newest)} if newest >= 0 and not self._pending else {}
            frontier_us = clear_us if published and not self.not_taken else None
            heartbeat = Heartbeat(
                SITE, self.name, BOOT, frontier_us, published, "bounded", CLOCK_BOUND_US, self.outstanding
            )
            mqtt.publish(self._topics["heartbeat"], encode_heartbeat(heartbeat), _clock_us(), qos=0)
        mqtt.advance(_clock_us())
        self._send()

    def _reading(self, seq: int, event_us: int) -> Reading:
        return Reading(
            site=SITE, gateway=self.name, boot=BOOT, seq=seq, stream=STREAM, kind="tag", key=key_of(self.number, seq),
            attrs={"antenna": 1, "rssi": -60 - seq % 9}, t_min=event_us - LATENCY_US - CLOCK_BOUND_US,
            t_max=event_us + CLOCK_BOUND_US, vclock=(0,),
        )  # fmt: skip

    # Connection.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        will = self._topics["status"], encode_status(Status(SITE, self.name, BOOT, "offline"))
        self._mqtt = Mqtt(f"{SITE}/{self.name}", KEEPALIVE_S, will)
        self._mqtt.begin(_clock_us())
        self._write()

    def connection_lost(self, _error: Exception | None) -> None:
        self._mqtt = self._transport = None
        self._positions.clear()
        self._lost.set()

    def data_received(self, data: bytes) -> None:
        assert self._mqtt is not None
        for event in self._mqtt.feed(data, _clock_us()):
            if event[0] == "connected":
                self._connected(self._mqtt)
            elif event[0] == "taken" and (position := self._positions.pop(int(str(event[1])), None)):
                self._outbox.taken(position)
            elif event[0] == "message" and event[1] == self._topics[ACK] and isinstance(event[2], bytes):
                self._confirmed(decode_ack(event[2]).landed.get(BOOT, -1))
        self._send()

    def _connected(self, mqtt: Mqtt) -> None:
        self._outbox.restart()
        self._sent = 0
        mqtt.subscribe([self._topics[ACK]], _clock_us())
        birth = Birth(SITE, self.name, BOOT, [(STREAM, "tag", None, 5_000_000, 5_000_000)])
        mqtt.publish(self._topics["birth"], encode_birth(birth), _clock_us(), retain=True)
        online = encode_status(Status(SITE, self.name, BOOT, "online"))
        mqtt.publish(self._topics["status"], online, _clock_us(), retain=True)

    def _confirmed(self, upto: int) -> None:
        upto = min(upto, len(self.truth) - 1)
        if upto <= self._acked:
            return
        self._landed(self.truth[self._acked + 1 : upto + 1].tolist())
        self._acked = upto
        self._outbox.landed(BOOT, upto, time.monotonic())
        done = 0
        while done < len(self._stored) and self._stored[done].last_seq <= upto:
            done += 1
        del self._stored[:done]
        self._sent = max(0, self._sent - done)

    def _send(self) -> None:
        mqtt = self._mqtt
        if mqtt is not None and mqtt.connected:
            room = min(self._outbox.room(), mqtt.room)
            for message in self._stored[self._sent : self._sent + room]:
                self._positions[mqtt.publish(self._topics["obs"], message.payload, _clock_us())] = message.position
                self._outbox.sent(message, time.monotonic())
                self._sent += 1
        self._write()

    def _write(self) -> None:
        mqtt, transport = self._mqtt, self._transport
        if mqtt is None or transport is None:
            return
        while packet := mqtt.to_write():
            transport.write(packet)
            mqtt.wrote(len(packet), _clock_us())
        if mqtt.ended is not None:
            transport.close()


def _clock_us() -> int:
    return time.monotonic_ns() // 1000
