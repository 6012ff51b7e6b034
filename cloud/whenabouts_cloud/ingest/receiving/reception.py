"""The side of the ingest that faces the broker: an MQTT session that survives restarts, and what came and is not taken yet.

Uses MQTT 5 where the broker supports it, for a large receive window (few, large files) and a bounded session. Otherwise uses
3.1.1, whose brokers often allow only some twenty unacknowledged messages. Messages are acknowledged by hand, after the flush
that made them durable. Messages of an earlier connection are not acknowledged on a later one: the broker sends them again,
and they count as repeats.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from whenabouts_cloud.broker.connection import BrokerError, Credentials, stop_loop
from whenabouts_cloud.ingest.receiving.buffered_client import MAX_PACKET_BYTES, BufferedClient
from whenabouts_cloud.ingest.receiving.inbox import Inbox
from whenabouts_protocol.logs import Log
from whenabouts_protocol.topics import subscription

RECEIVE_WINDOW = 10_000  # unacknowledged messages in flight: more than one gateway may have waiting
SESSION_EXPIRY_S = 7 * 86400  # how long the broker keeps messages for a stopped ingest
TAKEN_BYTES, TAKEN_MESSAGES = 64 << 10, 100  # handed over at once: a message more than this waits for all of these
FULL_S = 0.1  # how often a message that waits for room in the full inbox checks for the end
LEAVE_S = 2.0  # longest wait for the last acknowledgements and the DISCONNECT, if the broker hangs
CONNECT_TIMEOUT_S = 10.0
CONNECT_5_TIMEOUT_S = 3.0  # a broker with only 3.1.1 may misread the packet as longer and wait for the rest
LEAVES = (("rules", 1), ("birth", 1), ("status", 1), ("obs", 1), ("heartbeat", 0))

log = Log(__name__)


class Token(NamedTuple):
    """Identifies a received message to the broker, on one connection."""

    connection: int
    mid: int
    qos: int


class Received(NamedTuple):
    """Messages as (topic, payload, token), and what else happened since the last time."""

    messages: list[tuple[str, bytes, Token]]
    refused: dict[str, int]  # number of messages, by topic of the gateway
    dropped: int  # messages of QoS 0 that arrived at a full inbox
    connected: bool


@dataclass(slots=True)
class Confirmed:
    """What became durable: messages to acknowledge to the broker, and retained messages (topic, payload) to gateways."""

    tokens: list[Token] = field(default_factory=list)
    acks: list[tuple[str, bytes]] = field(default_factory=list)


class Source(Protocol):
    """Where the ingest gets its messages; all but `stop` are called by one thread."""

    def connect(self) -> str:
        """Connect; returns the version of MQTT in use, or nothing if stopped.

        Raises:
            BrokerError: the broker cannot be reached, or refuses the connection.
        """

    def take(self, timeout_s: float) -> Received:
        """What came, waiting up to timeout_s for the first message."""

    def confirm(self, confirmed: Confirmed) -> None:
        """Acknowledge messages to the broker, and send acknowledgements to gateways."""

    def stop(self) -> None:
        """Make `connect` return; callable from any thread."""

    def close(self) -> None:
        """Disconnect; the broker keeps the session."""


class Reception:
    """Receives in a thread of paho's into an inbox. client_id names the session that the broker keeps.

    sites: whose messages are asked for; none: those of all.
    """

    def __init__(
        self, host: str, port: int, client_id: str, credentials: Credentials, sites: Sequence[str] = ()
    ) -> None:
        self._host, self._port = host, port
        self._filters = [(subscription(leaf, site), qos) for site in sites or ("+",) for leaf, qos in LEAVES]
        self._client_id, self._credentials = client_id, credentials
        self._inbox: Inbox[tuple[str, bytes, Token]] = Inbox()
        self._closing = False
        self._connection = 0
        self._refusal = ""
        self._opened = threading.Event()  # connected, or failed
        self._answered = threading.Event()
        self._unreachable: Exception | None = None
        self._stopping = threading.Event()
        self._client: BufferedClient | None = None
        self._connected = False
        self._dropped = self._told_dropped = 0
        self._refused_mids: list[int] = []

    def connect(self) -> str:
        """Connect with MQTT 5, or 3.1.1 if the broker supports no newer version; returns its name, or nothing if stopped.

        Raises:
            BrokerError: it cannot be reached, or refuses the connection.
        """
        for version in (MQTTProtocolVersion.MQTTv5, MQTTProtocolVersion.MQTTv311):
            self._open(version)
            if self._stopping.is_set():
                return ""
            if self._connected:
                return version.name
            self._leave()
        raise BrokerError(f"broker {self._host}:{self._port}: refused the connection: {self._refusal or 'no answer'}")

    def take(self, timeout_s: float) -> Received:
        """What came, by turns of the gateways, waiting up to timeout_s for the first message."""
        messages, size = [], 0
        message = self._inbox.get(timeout_s)
        while message is not None:
            messages.append(message)
            size += len(message[1])
            if size >= TAKEN_BYTES or len(messages) >= TAKEN_MESSAGES:
                break
            message = self._inbox.get()
        all_dropped, told = self._dropped, self._told_dropped  # the other thread counts on meanwhile
        self._told_dropped = all_dropped
        return Received(messages, self._inbox.take_refused(), all_dropped - told, self._connected)

    def confirm(self, confirmed: Confirmed) -> None:
        """Acknowledge messages to the broker, and send acknowledgements to gateways."""
        client = self._client
        if client is None:
            return
        client.acknowledge(t.mid for t in confirmed.tokens if t.qos and t.connection == self._connection)
        for topic, payload in confirmed.acks:
            client.publish(topic, payload, qos=1, retain=True)

    def stop(self) -> None:
        """Make `connect` return; callable from any thread, not from a signal handler."""
        self._stopping.set()
        self._opened.set()
        self._answered.set()

    def close(self) -> None:
        """Disconnect; the broker keeps the session, with what was received and not taken."""
        self._closing = True
        self._leave()

    def _open(self, version: MQTTProtocolVersion) -> None:
        """Ask the broker for a session, and wait for its answer.

        Raises:
            BrokerError: it cannot be reached, or a certificate is unusable.
        """
        self._opened.clear()
        self._answered.clear()
        self._refusal, self._unreachable = "", None
        if self._stopping.is_set():  # checked after the clearing: `stop` sets the events just cleared
            return
        # In a thread, so that stopping need not wait for a name server or a handshake.
        threading.Thread(target=self._dial, args=(version,), name="dial", daemon=True).start()
        self._opened.wait()
        if self._unreachable is not None:
            raise BrokerError(
                f"broker {self._host}:{self._port}: cannot connect ({self._unreachable}); is it running, are address, port "
                "and certificates right?"
            )
        if self._client is not None and not self._stopping.is_set():
            self._client.loop_start()
            newest = version == MQTTProtocolVersion.MQTTv5
            self._answered.wait(CONNECT_5_TIMEOUT_S if newest else CONNECT_TIMEOUT_S)

    def _dial(self, version: MQTTProtocolVersion) -> None:
        try:
            client = self._make_client(version)
            self._connect(client, version)
            self._client = client
        except (OSError, ValueError) as error:
            self._unreachable = error
        self._opened.set()

    def _leave(self) -> None:
        """End the connection, if there is one.

        paho's `loop_stop` waits for its thread, which a hanging broker can block for more than a minute.
        """
        client, self._client = self._client, None
        if client is not None:
            client.disconnect()
            ending = threading.Thread(target=stop_loop, args=(client,), name="leave", daemon=True)
            ending.start()
            ending.join(LEAVE_S)
        self._connected = False

    def _make_client(self, version: MQTTProtocolVersion) -> BufferedClient:
        client = BufferedClient(
            CallbackAPIVersion.VERSION2,
            client_id=self._client_id,
            protocol=version,
            manual_ack=True,
            clean_session=None if version == MQTTProtocolVersion.MQTTv5 else False,
        )
        self._credentials.apply(client)
        client.reconnect_delay_set(1, 30)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.take, client.after_read = self._take, self._after_read
        client.on_subscribe = self._on_subscribe
        return client

    def _connect(self, client: mqtt.Client, version: MQTTProtocolVersion) -> None:
        if version != MQTTProtocolVersion.MQTTv5:
            client.connect(self._host, self._port)
            return
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = SESSION_EXPIRY_S
        properties.ReceiveMaximum = RECEIVE_WINDOW
        properties.MaximumPacketSize = MAX_PACKET_BYTES
        client.connect(self._host, self._port, clean_start=False, properties=properties)

    def _on_connect(self, client: mqtt.Client, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
        if reason.is_failure:
            self._refusal = str(reason)
        else:
            self._refused_mids.clear()
            self._connection = time.monotonic_ns()  # differs from those of an earlier process on this machine, too
            self._connected = True
            client.subscribe(self._filters)
        self._answered.set()

    def _on_subscribe(self, _c: mqtt.Client, _u: Any, _mid: int, reasons: Sequence[Any], _p: Any) -> None:
        for (name, _), reason in zip(self._filters, reasons, strict=False):
            if reason.is_failure:
                log.error("broker.refused", "allow this user to read it", topic=name, reason=reason)

    def _on_disconnect(self, client: mqtt.Client, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
        if self._connected and not self._closing and not self._stopping.is_set():
            log.warning("broker.lost", "tries again", reason=reason)
        self._connected = False
        if client is self._client:
            self._connection = 0  # while it connects again, an acknowledgement would go out before CONNECT
        self._answered.set()

    def _take(self, topic: bytes, payload: bytes, mid: int, qos: int) -> None:
        token = Token(self._connection, mid, qos)
        if self._queued(topic.decode(errors="replace"), payload, token):
            return
        if qos == 0:
            self._dropped += 1
        else:
            self._refused_mids.append(mid)

    def _after_read(self) -> None:
        """Acknowledge refused messages to the broker; not to the gateway, whose spool keeps them."""
        if self._refused_mids and self._client is not None:
            self._client.acknowledge(self._refused_mids)
            self._refused_mids.clear()

    def _queued(self, name: str, payload: bytes, token: Token) -> bool:
        """Put a message into the inbox; False if it is refused. A message that must not be lost waits for room."""
        while not self._closing:
            added = self._inbox.put(
                name.rpartition("/")[0], (name, payload, token), len(payload), FULL_S if token.qos else 0.0
            )
            if added is not None or not token.qos:
                return bool(added)
        return True  # left to the broker, which sends it to the next start
