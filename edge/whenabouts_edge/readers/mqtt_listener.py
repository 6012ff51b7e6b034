"""A port that takes the messages of one topic of the broker, to which a reader publishes by itself.

The reader's own thread turns paho's loop, one poll period a turn. Each turn first asks whether anything has come that is not
read yet, without waiting; a message came after the last moment at which nothing had, also if it comes in pieces, or if
others come all the time. What the broker keeps would come later than anybody can bound: the session is clean, retained
messages are passed over, and QoS is 0, whose messages a broker does not hold back for an acknowledgement.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Self

import paho.mqtt.client as mqtt
from paho.mqtt.enums import MQTTErrorCode, MQTTProtocolVersion

from whenabouts_edge.config.settings import BrokerConfig
from whenabouts_edge.mqtt_client import MakeClient, connect, made, unusable
from whenabouts_edge.readers.port import POLL_MS, Chunk, PortError, Sent
from whenabouts_hardware.network.documents import MESSAGE_BYTES_MAX, message
from whenabouts_protocol.logs import Log

CONNECT_NS = 5_000_000_000

log = Log(__name__)


class MqttListener:
    """The messages of a topic as chunks."""

    replay_start_ns: int | None = None
    replay_finished = False

    def __init__(
        self,
        topic: str,
        broker: BrokerConfig,
        client_id: str,
        poll_ms: int = POLL_MS,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        make: MakeClient = made,
    ) -> None:
        """Connect and subscribe.

        Raises:
            PortError: there is no connection, or the broker refuses the topic.
        """
        self.name = f"mqtt:{topic}"
        self.left_out = 0  # messages that are retained or too long
        self._topic = topic
        self._monotonic_ns, self._poll_s = monotonic_ns, poll_ms / 1000
        self._empty_ns = self._opened_ns = monotonic_ns()
        self._ready: deque[Chunk] = deque()
        self._subscribed = False
        self._fault = ""
        try:
            self._client = make(broker, MQTTProtocolVersion.MQTTv311, client_id)
            self._client.on_connect, self._client.on_subscribe = self._connected, self._took
            self._client.on_message = self._message
            connect(self._client, broker)
        except (OSError, ValueError) as error:
            raise PortError(f"port {self.name}: no connection to the broker: {unusable(error, broker)}") from error
        while not self._subscribed:
            self._turn()
            if monotonic_ns() - self._opened_ns > CONNECT_NS:
                raise PortError(f"port {self.name}: found no answer of the broker, expected one within 5 s")

    @property
    def empty_ns(self) -> int:
        """No later chunk begins to arrive before this moment."""
        return self._ready[0].after_ns if self._ready else self._empty_ns

    @property
    def has_ready(self) -> bool:
        """True while chunks are kept that `read` has not returned."""
        return bool(self._ready)

    def read(self) -> Chunk | None:
        """The next message, or None when a poll period passed without one.

        Raises:
            PortError: the connection was lost.
        """
        if not self._ready:
            self._turn()
        return self._ready.popleft() if self._ready else None

    def write(self, data: bytes) -> Sent:
        """Refuse: nothing is sent to a reader that publishes by itself."""
        raise PortError(f"port {self.name}: found {len(data)} bytes to send, expected none")

    def close(self) -> None:
        """End the connection."""
        self._client.disconnect()
        self._client.loop(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _turn(self) -> None:
        asked_ns = self._monotonic_ns()
        if self._client.empty:
            self._empty_ns = asked_ns
        code = self._client.loop(self._poll_s)
        if self._fault or code != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise PortError(f"port {self.name}: {self._fault or mqtt.error_string(code)}; connecting again")

    def _connected(self, client: mqtt.Client, _userdata: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        if reason.is_failure:
            self._fault = f"the broker refused the connection, found {reason}"
        else:
            client.subscribe(self._topic, qos=0)

    def _took(self, _client: Any, _userdata: Any, _mid: Any, reasons: Any, _properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self._fault = f"the broker refused topic {self._topic}; allow it for this gateway"
        self._subscribed = True

    def _message(self, client: Any, _userdata: Any, received: mqtt.MQTTMessage) -> None:
        if received.retain or client.too_long or len(received.payload) > MESSAGE_BYTES_MAX:
            if not self.left_out:
                why = (
                    "it is retained, of an unknown time"
                    if received.retain
                    else f"longer than {MESSAGE_BYTES_MAX} bytes"
                )
                log.warning(
                    "reader.left_out", f"a message is left out, later ones are only counted: {why}", port=self.name
                )
            self.left_out += 1
        else:
            self._ready.append(Chunk(message(bytes(received.payload)), self._empty_ns, self._monotonic_ns()))
