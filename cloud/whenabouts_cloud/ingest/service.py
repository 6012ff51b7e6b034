"""Driver of the bridge: an MQTT session that survives restarts, and one thread that lands messages of paho's thread.

Uses MQTT 5 where the broker supports it, for a large receive window (few, large files) and a bounded session. Otherwise uses
3.1.1, whose brokers often allow only some twenty unacknowledged messages, so a flush follows as soon as nothing more
arrives. Messages are acknowledged by hand, after the flush that made them durable. Messages of an earlier connection are not
acknowledged on a later one: the broker sends them again, and they count as repeats.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from whenabouts_cloud.broker.connection import BrokerError, Credentials
from whenabouts_cloud.ingest.bridge import Bridge, Flushed
from whenabouts_cloud.ingest.buffered_client import BufferedClient
from whenabouts_cloud.ingest.inbox import Inbox
from whenabouts_protocol import encode_ack, subscription, topic
from whenabouts_protocol.logs import Log

FLUSH_S = 0.5  # readings wait at most this long for a file
FLUSH_READINGS = 50_000
FLUSH_BYTES = 32 << 20  # of messages, readings and dead letters: bounds the memory for large or hostile ones
FLUSH_MESSAGES = 4000
IDLE_S = 0.05  # with a small receive window: flush after this long without a message
RECEIVE_WINDOW = 10_000  # unacknowledged messages in flight: more than one gateway may have waiting
MAX_PACKET_BYTES = 257 << 10  # with MQTT 5 the broker does not deliver larger ones: the largest message, and its topic
SESSION_EXPIRY_S = 7 * 86400  # how long the broker keeps messages for a stopped ingest
RETRY_S = 1.0
FULL_S = 0.1  # how often a message that waits for room in the full inbox checks for the end
LEAVE_S = 2.0  # longest wait for the last acknowledgements and the DISCONNECT, if the broker hangs
CONNECT_TIMEOUT_S = 10.0
CONNECT_5_TIMEOUT_S = 3.0  # a broker with only 3.1.1 may misread the packet as longer and wait for the rest
LEAVES = (("rules", 1), ("birth", 1), ("obs", 1), ("heartbeat", 0))

log = Log(__name__)


@dataclass(frozen=True, slots=True)
class _Token:
    """Identifies a received message to the broker, on one connection."""

    connection: int
    mid: int
    qos: int


class IngestService:
    """Connects a bridge to a broker and runs it. client_id names the session that the broker keeps."""

    def __init__(self, host: str, port: int, bridge: Bridge, client_id: str, credentials: Credentials) -> None:
        self._host, self._port, self._bridge = host, port, bridge
        self._client_id, self._credentials = client_id, credentials
        self._inbox: Inbox[tuple[str, bytes, _Token]] = Inbox()
        self._closing = False
        self._connection = 0
        self._refused = ""
        self._opened = threading.Event()  # connected, or failed
        self._answered = threading.Event()
        self._unreachable: Exception | None = None
        self._stopping = threading.Event()
        self._client: mqtt.Client | None = None
        self._large_window = True
        self.connected = False
        self.dropped = 0  # messages of QoS 0 that arrived at a full inbox

    def connect(self) -> None:
        """Connect with MQTT 5, or 3.1.1 if the broker supports no newer version. Returns early when stopped.

        Raises:
            BrokerError: it cannot be reached, or refuses the connection.
        """
        for version in (MQTTProtocolVersion.MQTTv5, MQTTProtocolVersion.MQTTv311):
            self._large_window = version == MQTTProtocolVersion.MQTTv5
            self._open(version)
            if self._stopping.is_set():
                return
            if self.connected:
                log.info("broker.connected", broker=f"{self._host}:{self._port}", version=version.name)
                return
            self._leave()
        raise BrokerError(f"broker {self._host}:{self._port}: refused the connection: {self._refused or 'no answer'}")

    def run(self, tick: Callable[[], None], tick_s: float) -> None:
        """Land messages until `stop`; calls tick about every tick_s seconds. Flushes before it returns.

        Messages received but not taken yet stay at the broker, which sends them to the next start.
        """
        flushed_s = ticked_s = time.monotonic()
        while not self._stopping.is_set():
            idle = not self._receive(0.02 if self._large_window else IDLE_S, flushed_s + FLUSH_S)
            now_s = time.monotonic()
            due = now_s - flushed_s >= FLUSH_S or self._full
            if due or (idle and not self._large_window and self._bridge.waiting):
                self._flush()
                flushed_s = time.monotonic()
            if now_s - ticked_s >= tick_s:
                ticked_s = now_s
                tick()
        self._flush()
        self.close()

    def stop(self) -> None:
        """Make `connect` and `run` end; callable from any thread, not from a signal handler."""
        self._stopping.set()
        self._opened.set()
        self._answered.set()

    def close(self) -> None:
        """Disconnect; the broker keeps the session."""
        self._closing = True
        self._leave()

    @property
    def _full(self) -> bool:
        bridge = self._bridge
        return (
            bridge.waiting_readings >= FLUSH_READINGS
            or bridge.waiting_bytes >= FLUSH_BYTES
            or bridge.waiting >= FLUSH_MESSAGES
        )

    def _receive(self, timeout_s: float, until_s: float) -> bool:
        """Take received messages until it is time to flush, waiting up to timeout_s for the first; True if any came.

        Takes none when full.
        """
        taken, message = False, None if self._full else self._inbox.get(timeout_s)
        while message is not None:
            self._bridge.take(*message)
            taken = True
            if self._full or self._stopping.is_set() or time.monotonic() >= until_s:
                break
            message = self._inbox.get()
        self._bridge.refused(self._inbox.take_refused())
        return taken

    def _flush(self) -> None:
        try:
            done = self._bridge.flush()
        except OSError as error:
            log.error("landing.unwritable", "nothing is acknowledged; tries again", error=error)
            self._stopping.wait(RETRY_S)
            return
        self._acknowledge(done)

    def _acknowledge(self, done: Flushed) -> None:
        client = self._client
        if client is None:
            return
        for token in done.tokens:
            if isinstance(token, _Token) and token.qos and token.connection == self._connection:
                client.ack(token.mid, token.qos)
        for ack in done.acks:
            if ack.landed:
                client.publish(topic(ack.site, ack.gateway, "ack"), encode_ack(ack), qos=1, retain=True)

    def _open(self, version: MQTTProtocolVersion) -> None:
        """Ask the broker for a session, and wait for its answer.

        Raises:
            BrokerError: it cannot be reached, or a certificate is unusable.
        """
        self._opened.clear()
        self._answered.clear()
        self._refused, self._unreachable = "", None
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
            self._answered.wait(CONNECT_5_TIMEOUT_S if self._large_window else CONNECT_TIMEOUT_S)

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
            ending = threading.Thread(target=_stop_loop, args=(client,), name="leave", daemon=True)
            ending.start()
            ending.join(LEAVE_S)
        self.connected = False

    def _make_client(self, version: MQTTProtocolVersion) -> mqtt.Client:
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
        client.on_message = self._on_message
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
            self._refused = str(reason)
        else:
            self._connection += 1
            self.connected = True
            client.subscribe([(subscription(leaf), qos) for leaf, qos in LEAVES])
        self._answered.set()

    def _on_subscribe(self, _c: mqtt.Client, _u: Any, _mid: int, reasons: list[Any], _p: Any) -> None:
        for (leaf, _), reason in zip(LEAVES, reasons, strict=False):
            if reason.is_failure:
                log.error("broker.refused", "allow this user to read it", topic=subscription(leaf), reason=reason)

    def _on_disconnect(self, _c: mqtt.Client, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
        if self.connected and not self._stopping.is_set():
            log.warning("broker.lost", "tries again", reason=reason)
        self.connected = False
        self._answered.set()

    def _on_message(self, client: mqtt.Client, _u: Any, message: mqtt.MQTTMessage) -> None:
        try:
            name = message.topic
        except UnicodeDecodeError:
            name = ""
        token = _Token(self._connection, message.mid, message.qos)
        if self._queued(name, bytes(message.payload), token):
            return
        if message.qos == 0:
            self.dropped += 1
        else:
            client.ack(message.mid, message.qos)  # not to the gateway: its spool keeps the message

    def _queued(self, name: str, payload: bytes, token: _Token) -> bool:
        """Put a message into the inbox; False if it is refused. A message that must not be lost waits for room."""
        while not self._closing:
            added = self._inbox.put(
                name.rpartition("/")[0], (name, payload, token), len(payload), FULL_S if token.qos else 0.0
            )
            if added is not None or not token.qos:
                return bool(added)
        return True  # left to the broker, which sends it to the next start


def _stop_loop(client: mqtt.Client) -> None:
    with contextlib.suppress(AttributeError):  # in paho: its thread may end between the check and the join
        client.loop_stop()
