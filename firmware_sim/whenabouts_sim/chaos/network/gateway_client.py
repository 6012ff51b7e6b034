"""The face of paho that a gateway's uplink sees, over a simulated connection."""

import contextlib
from collections.abc import Callable, Sequence
from contextvars import Context
from types import SimpleNamespace
from typing import Any, NamedTuple

import paho.mqtt.client as mqtt
from paho.mqtt.enums import MQTTProtocolVersion

from whenabouts_edge.config.settings import BrokerConfig
from whenabouts_sim.chaos.machine.process import Process
from whenabouts_sim.chaos.network.broker_model import Broker, Connection, Message
from whenabouts_sim.chaos.network.next_version import next_topic, understood, upgraded

WINDOW = 20  # messages in flight that the broker allows


class Reason(NamedTuple):
    """As in paho."""

    value: int
    text: str = ""

    @property
    def is_failure(self) -> bool:
        """True for an error."""
        return self.value >= 128

    def __str__(self) -> str:
        return self.text


class Info(NamedTuple):
    """What `publish` returns."""

    mid: int
    rc: int

    def wait_for_publish(self, _timeout_s: float) -> None:
        """Nobody waits in a simulation."""


GOOD, GONE, TOO_MANY = Reason(0), Reason(136, "the connection was lost"), Reason(151, "Quota exceeded")


class GatewayClient:
    """One connection of an agent, by the names that `Uplink` uses. is_next: it speaks the next version of the wire."""

    fault: OSError | None = None
    too_long = 0
    connect_timeout = 0.0
    on_socket_open: Any = None

    def __init__(
        self, broker: Broker, process: Process, version: MQTTProtocolVersion, name: str, is_next: bool = False
    ) -> None:
        self._is_next = is_next
        self._broker, self._process, self.protocol, self._name = broker, process, version, name
        self._context: Context = process.context
        self._connection: Connection | None = None
        self._will: Message | None = None
        self._mid = 0
        self.on_connect: Any = None
        self.on_disconnect: Any = None
        self.on_publish: Any = None
        self.on_message: Any = None
        self.on_subscribe: Any = None
        process.ended.append(self._died)

    def max_inflight_messages_set(self, _most: int) -> None:
        """The uplink keeps to its own window."""

    def will_set(self, topic: str, payload: bytes, qos: int, retain: bool) -> None:
        """Note the last will."""
        self._will = self._worded(Message(topic, payload, qos, retain))

    def connect(self, _host: str, _port: int, _keepalive_s: int, properties: object = None) -> None:
        """Open the connection.

        Raises:
            OSError: the broker cannot be reached.
        """
        self._connection = self._broker.connect(self._name, self, self._will, keep=False)

    def loop_start(self) -> None:
        """The broker answers."""
        properties = SimpleNamespace(ReceiveMaximum=WINDOW)
        self._soon(lambda: self.on_connect(self, None, None, GOOD, properties))

    def loop_stop(self) -> None:
        """There is no thread."""
        self._leave()

    def socket(self) -> None:
        """There is no socket."""

    def publish(self, topic: str, payload: bytes, qos: int, retain: bool = False) -> Info:
        """Send a message."""
        self._mid += 1
        if self._connection is None or self._connection.broken:
            return Info(self._mid, mqtt.MQTT_ERR_NO_CONN)
        if self._process.alive:
            self._connection.publish(self._worded(Message(topic, bytes(payload), qos, retain)), self._mid)
        return Info(self._mid, mqtt.MQTT_ERR_SUCCESS)

    def subscribe(self, filters: Sequence[tuple[str, int]]) -> None:
        """Ask for messages."""
        if self._connection is not None and self._process.alive:
            self._connection.subscribe({next_topic(name) if self._is_next else name: qos for name, qos in filters})
            self._soon(lambda: self.on_subscribe(self, None, 0, [GOOD for _ in filters], None))

    def disconnect(self) -> None:
        """End in order."""
        if self._connection is not None and self._process.alive:
            self._connection.disconnect()
        if self.on_disconnect is not None:
            self.on_disconnect(self, None, None, GOOD, None)

    def came(self, message: Message, mid: int) -> None:
        """A message came; paho acknowledges it when `on_message` has returned."""

        def handle() -> None:
            self.on_message(self, None, understood(message) if self._is_next else message)
            if mid and self._connection is not None:
                self._connection.acknowledge(mid)

        self._soon(handle)

    def taken(self, mid: int) -> None:
        """The broker has taken a message."""
        self._soon(lambda: self.on_publish(self, None, mid, GOOD, None))

    def refused(self, mid: int) -> None:
        """The broker has refused a message, as MQTT 5 lets it."""
        self._soon(lambda: self.on_publish(self, None, mid, TOO_MANY, None))

    def lost(self) -> None:
        """The connection has broken."""

        def tell() -> None:
            if self.on_disconnect is not None:
                self.on_disconnect(self, None, None, GONE, None)

        self._soon(tell)

    def _worded(self, message: Message) -> Message:
        return upgraded(message) if self._is_next else message

    def _died(self) -> None:
        """Its process was killed: the broker notices, for the system closes its socket."""
        connection = self._connection
        if connection is not None and not connection.broken:
            connection.broken = True
            self._broker.cut(self._name)

    def _leave(self) -> None:
        if self._connection is not None and not self._connection.broken:
            self._connection.broken = True
            self._broker.cut(self._name)
        with contextlib.suppress(ValueError):
            self._process.ended.remove(self._died)

    def _soon(self, callback: Callable[[], None]) -> None:
        if self._process.alive:
            self._broker.loop.call_soon(callback, context=self._context)


def maker(
    broker: Broker, process: Process, is_next: bool = False
) -> Callable[[BrokerConfig, MQTTProtocolVersion, str], Any]:
    """Makes the clients of a process."""
    return lambda config, version, name: GatewayClient(broker, process, version, name, is_next)
