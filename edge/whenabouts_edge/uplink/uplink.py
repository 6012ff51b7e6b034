"""The connection to the broker. Out: birth, status, heartbeats, batches, states. In: acknowledgements, rules, peers.

MQTT 3.1.1 at QoS 1, which every broker supports. paho's network loop runs in its own thread. Each connection is a new
client, because the spool, not the client, remembers what must be sent again. Reconnects with growing, jittered pauses.
The last will is the status `offline`, an orderly end publishes `stopped`; both are retained, as the birth is.
"""

import asyncio
import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from whenabouts_edge.backoff import Backoff
from whenabouts_edge.config.settings import BrokerConfig
from whenabouts_edge.store.spool import Message
from whenabouts_edge.uplink.outbox import Outbox, Position
from whenabouts_protocol import Ack, Birth, Status, WireError, decode_ack, encode_birth, encode_status, topic
from whenabouts_protocol.logs import Log

RECONNECT_US_MIN, RECONNECT_US_MAX = 500_000, 30_000_000
CONNECT_TIMEOUT_S = 10.0

log = Log(__name__)


class Uplink:
    """One gateway's connection to the broker. All methods belong to the event loop's thread.

    on_ack is called with each acknowledgement from the cloud, on_rules with the payload of each rules message (empty when
    the rules are removed), on_change whenever more may be sent, on_heard with topic and payload of each message on
    `listen`.
    """

    def __init__(
        self,
        broker: BrokerConfig,
        birth: Birth,
        on_ack: Callable[[Ack], None],
        on_change: Callable[[], None],
        on_rules: Callable[[bytes], None],
        listen: Sequence[str] = (),
        on_heard: Callable[[str, bytes], None] = lambda topic, payload: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._broker, self._birth = broker, birth
        self._on_ack, self._on_change, self._on_rules, self._now_s = on_ack, on_change, on_rules, now_s
        self._listen, self._on_heard = list(listen), on_heard
        self._state: bytes | None = None
        self._loop = asyncio.get_running_loop()
        self._client: mqtt.Client | None = None
        self._on_way: dict[int, Position] = {}
        self._lost = asyncio.Event()
        self.outbox = Outbox(broker.resend_s)
        self.connected = False
        self.problem = "not connected yet"
        self.connections = 0
        self.acks_refused = 0

    async def run(self) -> None:
        """Stay connected until cancelled."""
        backoff = Backoff(RECONNECT_US_MIN, RECONNECT_US_MAX)
        while True:
            began_s = self._now_s()
            try:
                await self._connect()
                await self._lost.wait()
            except (OSError, ValueError, TimeoutError, mqtt.WebsocketConnectionError) as error:
                reason = str(error) or f"no answer within {CONNECT_TIMEOUT_S:.0f} s"
                self._say(f"{self._broker.host}:{self._broker.port}: {reason}")
            finally:
                await self._forget_client()
            if (self._now_s() - began_s) * 1e6 > RECONNECT_US_MAX:
                backoff.reset()
            await asyncio.sleep(backoff.pause_us(random.getrandbits(8)) / 1e6)

    def send(self, message: Message) -> bool:
        """Hand a stored message to the connection; False when there is none."""
        if self._client is None or not self.connected:
            return False
        info = self._client.publish(self._topic("obs"), message.payload, qos=1)
        if info.rc != mqtt.MQTT_ERR_SUCCESS:
            return False
        self._on_way[info.mid] = message.position
        self.outbox.sent(message, self._now_s())
        return True

    def heartbeat(self, payload: bytes) -> None:
        """Publish a heartbeat; a lost one is replaced by the next."""
        if self._client is not None and self.connected:
            self._client.publish(self._topic("heartbeat"), payload, qos=0)

    def announce(self, birth: Birth) -> None:
        """Publish a changed birth, now if connected, and on every new connection."""
        self._birth = birth
        if self._client is not None and self.connected:
            self._client.publish(self._topic("birth"), encode_birth(birth), qos=1, retain=True)

    def publish(self, state: bytes) -> None:
        """Publish a state for the peers, now if connected; every new connection publishes the newest again."""
        self._state = state
        self.publish_again()

    def publish_again(self) -> None:
        """Publish the newest state once more, for a peer that was away."""
        if self._client is not None and self.connected and self._state is not None:
            self._client.publish(self._topic("state"), self._state, qos=1)

    async def close(self, timeout_s: float = 2.0) -> None:
        """Publish `stopped`, and disconnect so that the last will is not sent."""
        client = self._client
        if client is None:
            return
        if self.connected:
            info = client.publish(self._topic("status"), self._status("stopped"), qos=1, retain=True)
            await asyncio.to_thread(_wait, info, timeout_s)
        left = threading.Event()
        client.on_disconnect = lambda *_: left.set()
        client.disconnect()
        await asyncio.to_thread(left.wait, timeout_s)  # the DISCONNECT must be out before the socket is cut
        await self._forget_client()

    async def _connect(self) -> None:
        self._lost.clear()
        self._on_way.clear()
        client = self._make_client()
        self._client = client
        answered: asyncio.Future[None] = self._loop.create_future()

        def on_connect(_c: Any, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
            self._soon(self._answered, client, answered, reason)

        def on_disconnect(_c: Any, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
            self._soon(self._disconnected, client, str(reason))

        def on_publish(_c: Any, _u: Any, mid: int, _r: Any, _p: Any) -> None:
            self._soon(self._taken, client, mid)

        def on_message(_c: Any, _u: Any, message: mqtt.MQTTMessage) -> None:
            if message.topic == self._topic("rules"):
                self._soon(self._ruled, client, bytes(message.payload))
            elif message.topic == self._topic("ack"):
                self._soon(self._acknowledged, client, bytes(message.payload))
            else:
                self._soon(self._heard, client, message.topic, bytes(message.payload))

        client.on_connect, client.on_disconnect = on_connect, on_disconnect
        client.on_publish, client.on_message = on_publish, on_message
        client.on_socket_open = _without_delay
        await asyncio.to_thread(client.connect, self._broker.host, self._broker.port, self._broker.keepalive_s)
        client.loop_start()
        await asyncio.wait_for(answered, CONNECT_TIMEOUT_S)

    def _make_client(self) -> mqtt.Client:
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=f"wa-{self._birth.gateway}",
            protocol=mqtt.MQTTv311,
            reconnect_on_failure=False,  # a connection that is lost is replaced, see `run`
        )
        client.max_inflight_messages_set(0)  # the outbox limits the messages in flight
        client.connect_timeout = CONNECT_TIMEOUT_S
        client.will_set(self._topic("status"), self._status("offline"), qos=1, retain=True)
        secure(client, self._broker)
        return client

    def _answered(self, client: mqtt.Client, answered: "asyncio.Future[None]", reason: Any) -> None:
        if client is not self._client or answered.done():
            return
        if reason.is_failure:
            answered.set_exception(ConnectionRefusedError(f"the broker refused the connection: {reason}"))
            return
        answered.set_result(None)
        self.connected, self.problem = True, ""
        self.connections += 1
        self.outbox.restart()
        # Subscribe before the birth is sent: peers answer it with their newest states.
        client.subscribe([(name, 1) for name in (self._topic("ack"), self._topic("rules"), *self._listen)])
        client.publish(self._topic("birth"), encode_birth(self._birth), qos=1, retain=True)
        client.publish(self._topic("status"), self._status("online"), qos=1, retain=True)
        self.publish_again()
        log.info("broker.connected", broker=f"{self._broker.host}:{self._broker.port}")
        self._on_change()

    def _disconnected(self, client: mqtt.Client, reason: str) -> None:
        if client is self._client:
            self._say(f"connection lost: {reason}")
            self._lost.set()

    def _taken(self, client: mqtt.Client, mid: int) -> None:
        position = self._on_way.pop(mid, None) if client is self._client else None
        if position is not None:
            self.outbox.taken(position)
            self._on_change()

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

    def _say(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("broker.lost", "tries again", reason=problem)
        self.problem = problem

    def _soon(self, callback: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the loop has ended: nothing is left to call
            log.debug("uplink.too_late", "a callback after the end of the agent was dropped")

    def _topic(self, leaf: str) -> str:
        return topic(self._birth.site, self._birth.gateway, leaf)

    def _status(self, condition: str) -> bytes:
        return encode_status(Status(self._birth.site, self._birth.gateway, self._birth.boot, condition))


def secure(client: mqtt.Client, broker: BrokerConfig) -> None:
    """Set TLS and login of a client as configured.

    Raises:
        OSError, ValueError: a certificate, key or password cannot be read.
    """
    if broker.ca_file or broker.cert_file:
        client.tls_set(broker.ca_file, broker.cert_file, broker.key_file)
    if broker.username:
        client.username_pw_set(broker.username, _password(broker.password_file) if broker.password_file else None)


def _end(client: mqtt.Client) -> None:
    """Cut the connection, if there still is one, and wait for paho's thread to end.

    Sends no DISCONNECT: unless `close` sent one, the others should receive the last will. paho's thread would not end by
    itself while messages wait for the broker, hence the shutdown.
    """
    sock: Any = client.socket()
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
    client.loop_stop()
    if sock is not None:
        sock.close()


def _password(path: str) -> str:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0]:
        raise ValueError(f"password_file {path}: found no text on its first line, expected the password")
    return lines[0]


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
