"""The connection to the broker. Out: birth, status, heartbeats, batches, states. In: acknowledgements, rules, peers.

MQTT 5 at QoS 1, or 3.1.1 where the broker has no 5. paho's network loop runs in its own thread. Each connection is a new
client, because the spool, not the client, remembers what must be sent again; so renewed certificates are taken by
connecting anew. Reconnects with growing, jittered pauses. The last will is the status `offline`, an orderly end publishes
`stopped`; both are retained, as the birth is.
"""

import asyncio
import contextlib
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import MQTTProtocolVersion

from whenabouts_edge.backoff import Backoff
from whenabouts_edge.config.settings import BrokerConfig
from whenabouts_edge.events import set_within
from whenabouts_edge.mqtt_client import (
    MAX_PACKET_BYTES,
    BoundedClient,
    MakeClient,
    connect,
    made,
    protocol_name,
    stop_loop,
    unusable,
)
from whenabouts_edge.store.spool import Message
from whenabouts_edge.uplink import certificate
from whenabouts_edge.uplink.outbox import MAX_IN_FLIGHT, Outbox, Position
from whenabouts_edge.uplink.trouble import CALM_S, Troubles
from whenabouts_protocol import Ack, Birth, Status, WireError, decode_ack, encode_birth, encode_status, topic
from whenabouts_protocol.logs import Log

RECONNECT_US_MIN, RECONNECT_US_MAX = 500_000, 30_000_000
CONNECT_TIMEOUT_S = 10.0
UNLIMITED = 65535  # messages in flight, of a broker that names no limit
OTHERS_IN_FLIGHT = 3  # birth, status, state
MAX_WAITING = 64  # messages that came and are not handled yet
ROOM_S = 0.5  # how often a message that waits for room looks whether its connection has ended
LOOK_S = 2.0  # how often the files of the connection are looked at while it stands
UNSUPPORTED_VERSION, TAKEN_OVER = 0x84, 0x8E  # reasons of MQTT 5

log = Log(__name__)


class NoMqtt5(OSError):
    """The broker seems to have MQTT 3.1.1 only."""


class NoAnswer(TimeoutError):
    """The broker accepted the connection and was silent."""


def ignored(_topic: str, _payload: bytes) -> None:
    """Do nothing with a message."""


class Uplink:
    """One gateway's connection to the broker. All methods belong to the event loop's thread.

    on_ack is called with each acknowledgement from the cloud, on_rules with the payload of each rules message (empty when
    the rules are removed), on_change whenever more may be sent, on_heard with topic and payload of each message on
    `listen`. client: makes the client of each connection.
    """

    def __init__(
        self,
        broker: BrokerConfig,
        birth: Birth,
        on_ack: Callable[[Ack], None],
        on_change: Callable[[], None],
        on_rules: Callable[[bytes], None],
        listen: Sequence[str] = (),
        on_heard: Callable[[str, bytes], None] = ignored,
        now_s: Callable[[], float] = time.monotonic,
        client: MakeClient = made,
    ) -> None:
        self._broker, self._birth = broker, birth
        self._on_ack, self._on_change, self._on_rules, self._now_s = on_ack, on_change, on_rules, now_s
        self._listen, self._on_heard = list(listen), on_heard
        self._made = client
        self._state: bytes | None = None
        self._loop = asyncio.get_running_loop()
        self._client: BoundedClient | None = None
        self._only_3 = False  # the broker took 3.1.1 only, last time
        self._files: certificate.Stamp = ()  # those in use, or found to be unusable
        self._on_way: dict[int, tuple[str, Position | None]] = {}  # leaf, and position of stored readings
        self._refused: set[str] = set()  # leaves of which the broker refused the newest message
        self._lost = asyncio.Event()
        self._room = threading.Semaphore(MAX_WAITING)
        self._connected_s = 0.0
        self.outbox = Outbox(broker.resend_s)
        self.connected = False
        self.problem = "not connected yet"
        self.connections = 0
        self.acks_refused = 0
        self.troubles = Troubles(broker.client_id)
        self.certificate_end_s: int | None = None

    async def run(self) -> None:
        """Stay connected until cancelled."""
        backoff = Backoff(RECONNECT_US_MIN, RECONNECT_US_MAX)
        while True:
            began_s = self._now_s()
            renewed = False
            try:
                await self._connect()
                renewed = await self._stay()
            except (OSError, ValueError, TimeoutError, mqtt.WebsocketConnectionError) as error:
                reason = unusable(error, self._broker) or f"no answer within {CONNECT_TIMEOUT_S:.0f} s"
                self._say(f"{self._broker.host}:{self._broker.port}: {reason}")
            finally:
                await self._forget_client()
            if renewed:
                continue
            if (self._now_s() - began_s) * 1e6 > RECONNECT_US_MAX:
                backoff.reset()
            await asyncio.sleep(backoff.pause_us(random.getrandbits(8)) / 1e6)

    async def _stay(self) -> bool:
        """Wait until the connection is lost, or ended because its files were renewed: then returns True."""
        began_s = self._now_s()
        while not await set_within(self._lost, LOOK_S):
            if self._now_s() - began_s >= CALM_S:
                self.troubles.calm()
            self._publish_refused()
            if await self._renewed():
                log.info("broker.renewed", "connects with the renewed files", broker=self._broker.host)
                await self._part()
                return True
        return False

    async def _renewed(self) -> bool:
        """Return True if files of the connection have changed and can be used."""
        files = await asyncio.to_thread(certificate.stamp, self._broker)
        if files == self._files:
            return False
        self._files = files
        fault = await asyncio.to_thread(certificate.fault, self._broker)
        self._complain(self.troubles.stale_files(fault))
        return not fault

    def send(self, message: Message) -> bool:
        """Hand a stored message to the connection; False when there is none."""
        if self._client is None or not self.connected:
            return False
        if not self._publish("obs", message.payload, position=message.position):
            return False
        self.outbox.sent(message, self._now_s())
        return True

    def heartbeat(self, payload: bytes) -> None:
        """Publish a heartbeat; a lost one is replaced by the next."""
        if self._client is not None and self.connected:
            self._client.publish(self._topic("heartbeat"), payload, qos=0)

    def announce(self, birth: Birth) -> None:
        """Publish a changed birth, now if connected, and on every new connection."""
        self._birth = birth
        if self.connected:
            self._publish("birth", encode_birth(birth), retain=True)

    def publish(self, state: bytes) -> None:
        """Publish a state for the peers, now if connected; every new connection publishes the newest again."""
        self._state = state
        self.publish_again()

    def publish_again(self) -> None:
        """Publish the newest state once more, for a peer that was away."""
        if self.connected and self._state is not None:
            self._publish("state", self._state)

    def _publish_refused(self) -> None:
        """Publish again what the broker refused: without its birth nobody trusts a gateway's watermarks."""
        refused, self._refused = self._refused, set()
        if not self.connected:
            return
        if "birth" in refused:
            self._publish("birth", encode_birth(self._birth), retain=True)
        if "status" in refused:
            self._publish("status", self._status("online"), retain=True)
        if "state" in refused:
            self.publish_again()

    async def close(self, timeout_s: float = 2.0) -> None:
        """Publish `stopped`, and disconnect so that the last will is not sent."""
        client = self._client
        if client is None:
            return
        if self.connected:
            info = client.publish(self._topic("status"), self._status("stopped"), qos=1, retain=True)
            await asyncio.to_thread(_wait, info, timeout_s)
        await self._part(timeout_s)

    async def _part(self, timeout_s: float = 2.0) -> None:
        """Disconnect in order: the broker does not publish the last will."""
        client = self._client
        if client is None:
            return
        left = threading.Event()
        client.on_disconnect = lambda *_: left.set()
        client.disconnect()
        await asyncio.to_thread(left.wait, timeout_s)  # the DISCONNECT must be out before the socket is cut
        await self._forget_client()

    def _publish(self, leaf: str, payload: bytes, retain: bool = False, position: Position | None = None) -> bool:
        """Hand a message of QoS 1 to the connection; False if it does not take it."""
        assert self._client is not None
        info = self._client.publish(self._topic(leaf), payload, qos=1, retain=retain)
        if info.rc != mqtt.MQTT_ERR_SUCCESS:
            return False
        self._on_way[info.mid] = leaf, position
        return True

    async def _connect(self) -> None:
        """Connect with MQTT 5, or 3.1.1 if the broker seems to have no 5."""
        self._files = await asyncio.to_thread(certificate.stamp, self._broker)
        self.certificate_end_s = await asyncio.to_thread(_end_of, self._broker.cert_file)
        only_3, self._only_3 = self._only_3, False  # if 3.1.1 fails, 5 is tried again
        if not only_3:
            try:
                await self._open(MQTTProtocolVersion.MQTTv5)
            except NoMqtt5:
                only_3 = True
            except NoAnswer:  # from a slow broker, or one that misreads the packet and waits for the rest
                log.debug("broker.silent", "no answer to MQTT 5; tries 3.1.1")
            else:
                return
            await self._forget_client()
        await self._open(MQTTProtocolVersion.MQTTv311)
        self._only_3 = only_3

    async def _open(self, version: MQTTProtocolVersion) -> None:
        self._lost.clear()
        self._on_way.clear()
        self._refused.clear()
        client = self._make_client(version)
        self._client = client
        answered: asyncio.Future[None] = self._loop.create_future()

        def on_connect(_c: Any, _u: Any, _f: Any, reason: Any, properties: Any) -> None:
            self._soon(self._answered, client, answered, reason, getattr(properties, "ReceiveMaximum", UNLIMITED))

        def on_disconnect(_c: Any, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
            self._soon(self._disconnected, client, answered, reason)

        def on_publish(_c: Any, _u: Any, mid: int, reason: Any, _p: Any) -> None:
            self._soon(self._taken, client, mid, reason)

        def on_subscribe(_c: Any, _u: Any, _mid: int, reasons: Any, _p: Any) -> None:
            self._soon(self._granted, client, reasons)

        def on_message(_c: Any, _u: Any, message: mqtt.MQTTMessage) -> None:
            if client.too_long:
                self._came(client, self._too_long, message.topic, client.too_long)
            elif message.topic == self._topic("rules"):
                self._came(client, self._ruled, bytes(message.payload))
            elif message.topic == self._topic("ack"):
                self._came(client, self._acknowledged, bytes(message.payload))
            else:
                self._came(client, self._heard, message.topic, bytes(message.payload))

        client.on_connect, client.on_disconnect = on_connect, on_disconnect
        client.on_publish, client.on_message, client.on_subscribe = on_publish, on_message, on_subscribe
        client.on_socket_open = _without_delay
        await asyncio.to_thread(connect, client, self._broker)
        client.loop_start()
        await asyncio.wait([answered], timeout=CONNECT_TIMEOUT_S)
        if not answered.done():
            answered.cancel()
            raise NoAnswer
        answered.result()

    def _make_client(self, version: MQTTProtocolVersion) -> BoundedClient:
        client = self._made(self._broker, version, self._broker.client_id)
        client.max_inflight_messages_set(MAX_IN_FLIGHT)  # of all kinds; brokers usually permit no more
        client.connect_timeout = CONNECT_TIMEOUT_S
        client.will_set(self._topic("status"), self._status("offline"), qos=1, retain=True)
        return client

    def _answered(
        self, client: BoundedClient, answered: "asyncio.Future[None]", reason: Any, receive_maximum: int
    ) -> None:
        if client is not self._client or answered.done():
            return
        if reason.is_failure:
            kind = NoMqtt5 if reason.value == UNSUPPORTED_VERSION else ConnectionRefusedError
            answered.set_exception(kind(f"the broker refused the connection: {reason}"))
            return
        answered.set_result(None)
        self.connected, self.problem = True, ""
        self.connections += 1
        self._connected_s = self._now_s()
        self.troubles.connected()
        self.outbox.restart()
        self.outbox.window = max(1, min(MAX_IN_FLIGHT, receive_maximum - OTHERS_IN_FLIGHT))
        # Subscribe before the birth is sent: peers answer it with their newest states.
        client.subscribe([(name, 1) for name in self._topics])
        self._publish("birth", encode_birth(self._birth), retain=True)
        self._publish("status", self._status("online"), retain=True)
        self.publish_again()
        broker = f"{self._broker.host}:{self._broker.port}"
        log.info("broker.connected", broker=broker, version=client.protocol.name, client=self._broker.client_id)
        self._on_change()

    def _disconnected(self, client: BoundedClient, answered: "asyncio.Future[None]", reason: Any) -> None:
        if client is not self._client:
            return
        if not answered.done():
            is_5 = client.protocol == MQTTProtocolVersion.MQTTv5
            closed = NoMqtt5 if is_5 else ConnectionAbortedError
            answered.set_exception(
                client.fault
                if isinstance(client.fault, ssl.SSLError)
                else closed(f"the broker closed the connection without an answer: {client.fault or reason}")
            )
            return
        self.troubles.lost(self._now_s() - self._connected_s, reason.value == TAKEN_OVER)
        self._say("; ".join([f"connection lost: {client.fault or reason}", *self.troubles.texts]))
        self._lost.set()

    def _taken(self, client: BoundedClient, mid: int, reason: Any) -> None:
        leaf, position = self._on_way.pop(mid, ("", None)) if client is self._client else ("", None)
        if reason.is_failure and leaf:
            self._complain(self.troubles.not_published(self._topic(leaf), str(reason)))
            if position is not None:
                self.outbox.refused(position)
            else:
                self._refused.add(leaf)
        elif leaf:
            self.troubles.published(self._topic(leaf))
            if position is not None:
                self.outbox.taken(position)
                self._on_change()

    def _granted(self, client: BoundedClient, reasons: Sequence[Any]) -> None:
        if client is self._client:
            for name, reason in zip(self._topics, reasons, strict=False):
                if reason.is_failure:
                    self._complain(self.troubles.not_subscribed(name, str(reason)))

    def _too_long(self, client: BoundedClient, name: str, length: int) -> None:
        if client is self._client:
            self._complain(self.troubles.too_long(name, length, MAX_PACKET_BYTES))

    @property
    def _topics(self) -> list[str]:
        """Those that it reads."""
        return [self._topic("ack"), self._topic("rules"), *self._listen]

    def _acknowledged(self, client: mqtt.Client, payload: bytes) -> None:
        if client is not self._client:
            return
        try:
            ack = decode_ack(payload)
        except WireError as error:
            self.acks_refused += 1
            log.warning("ack.refused", str(error))
            return
        if (ack.site, ack.gateway) != (self._birth.site, self._birth.gateway):
            self.acks_refused += 1
            return
        self._on_ack(ack)

    def _ruled(self, client: mqtt.Client, payload: bytes) -> None:
        if client is self._client:
            self._on_rules(payload)

    def _heard(self, client: mqtt.Client, name: str, payload: bytes) -> None:
        if client is self._client:
            self._on_heard(name, payload)

    async def _forget_client(self) -> None:
        client, self._client, self.connected = self._client, None, False
        if client is not None:
            client.on_disconnect = None
            await asyncio.to_thread(_end, client)

    def status(self) -> dict[str, Any]:
        """Fields of the status file."""
        return {
            "connected": self.connected,
            "problem": self.problem,
            "mqtt": protocol_name(self._client) if self._client is not None and self.connected else None,
            "client_id": self._broker.client_id,
            "troubles": self.troubles.texts,
            "certificate_end_s": self.certificate_end_s,
            "connections": self.connections,
            "resends": self.outbox.resends,
            "acks_refused": self.acks_refused,
            "refused": self.troubles.refused,
            "oversized": self.troubles.oversized,
        }

    def _complain(self, text: str) -> None:
        if text:
            log.warning("broker.trouble", text)

    def _say(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("broker.lost", "tries again", reason=problem)
        self.problem = problem

    def _came(self, client: BoundedClient, callback: Callable[..., None], *args: Any) -> None:
        """Call back with a message, from paho's thread; waits while MAX_WAITING are not handled, and leaves the rest to the
        broker.
        """
        while not self._room.acquire(timeout=ROOM_S):
            if client is not self._client:
                return
        self._soon(self._handle, callback, client, *args)

    def _handle(self, callback: Callable[..., None], *args: Any) -> None:
        self._room.release()
        callback(*args)

    def _soon(self, callback: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the loop has ended: nothing is left to call
            log.debug("uplink.too_late", "a callback after the end of the agent was dropped")

    def _topic(self, leaf: str) -> str:
        return topic(self._birth.site, self._birth.gateway, leaf)

    def _status(self, condition: str) -> bytes:
        return encode_status(Status(self._birth.site, self._birth.gateway, self._birth.boot, condition))


def _end(client: mqtt.Client) -> None:
    """Cut the connection, if there still is one, and wait for paho's thread to end.

    Sends no DISCONNECT: unless `close` sent one, the others should receive the last will. paho's thread would not end by
    itself while messages wait for the broker, hence the shutdown.
    """
    sock: Any = client.socket()
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
    stop_loop(client)
    if sock is not None:
        sock.close()


def _end_of(cert_file: str | None) -> int | None:
    """The end of this gateway's certificate, None without one."""
    try:
        return max(0, certificate.ends(cert_file)[0]) if cert_file else None
    except (OSError, ValueError):  # told by the connection, which needs it too
        return None


def _wait(info: mqtt.MQTTMessageInfo, timeout_s: float) -> None:
    try:
        info.wait_for_publish(timeout_s)
    except (RuntimeError, ValueError):
        log.debug("uplink.ended", "the connection ended before `stopped` was taken")


def _without_delay(_client: Any, _userdata: Any, sock: Any) -> None:
    """Disable Nagle's algorithm: small packets must not wait for the acknowledgement of the packet before."""
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (OSError, AttributeError):
        log.debug("uplink.delays", "TCP_NODELAY is not available on this connection")
