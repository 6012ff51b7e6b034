"""Results as JSON messages of a topic, at least once: QoS 1, a result a message, repeats with the same `result_id`.

    mqtt://USER@HOST:1883/TOPIC?password_file=FILE    mqtts://HOST:8883/TOPIC?ca_file=FILE&cert_file=FILE&key_file=FILE

`{rule}` in the topic is the name of the result's rule.
"""

import json
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from whenabouts_cloud.broker.connection import BrokerError, Credentials, stop_loop
from whenabouts_cloud.delivery.published import Batch
from whenabouts_cloud.delivery.uri import Address, TargetError, scheme_of, secret_in, shown

PORT, TLS_PORT = 1883, 8883
FILES = ("ca_file", "cert_file", "key_file")
WAIT_S = 30.0  # for the connection, and for the acknowledgement of each part
IN_FLIGHT = 100


class Mqtt:
    """One topic. The connection is made at the first batch and kept; a lost one fails the batch, which is then repeated."""

    def __init__(self, uri: str, unit: str) -> None:
        tls = scheme_of(uri) == "mqtts"
        address = Address(
            uri, TLS_PORT if tls else PORT, "mqtt://HOST:PORT/TOPIC", {"password_file", *(FILES if tls else ())}
        )
        if any(sign in address.path for sign in "+#"):
            raise TargetError(f"{shown(uri)}: found a wildcard in topic {address.path}, expected one topic")
        file = address.parameters.get("password_file")
        files = {name: address.parameters.get(name) for name in FILES}
        self._credentials = Credentials(address.user, secret_in(file) if file else address.password, **files)
        self._tls, self._address, self._topic = tls, (address.host, address.port), address.path
        self._client: mqtt.Client | None = None

    def deliver(self, batch: Batch) -> int:
        client, sent = self._connected(), 0
        for part in batch.parts():
            messages = [client.publish(*self._message(row), qos=1) for row in part]
            for message in messages:
                message.wait_for_publish(WAIT_S)
            missing = sum(not message.is_published() for message in messages)
            if missing:
                raise BrokerError(
                    f"found {missing} of {len(part)} messages without acknowledgement after {WAIT_S:.0f} s"
                )
            sent += len(part)
        return sent

    def close(self) -> None:
        if self._client is not None:
            self._client.disconnect()
            stop_loop(self._client)
        self._client = None

    def _connected(self) -> mqtt.Client:
        if self._client is not None and self._client.is_connected():
            return self._client
        self.close()
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5, reconnect_on_failure=False
        )
        if self._tls and not (self._credentials.ca_file or self._credentials.cert_file):
            client.tls_set()
        self._credentials.apply(client)
        client.max_inflight_messages_set(IN_FLIGHT)
        client.connect_timeout = WAIT_S
        refused: list[Any] = []
        client.on_connect = lambda _c, _u, _f, reason, _p: refused.append(reason) if reason.is_failure else None
        client.connect(*self._address)
        while not client.is_connected() and not refused:
            if client.loop(timeout=WAIT_S) != mqtt.MQTT_ERR_SUCCESS:
                break
        if not client.is_connected():
            raise BrokerError(f"the broker refuses: {refused[0] if refused else 'it closed the connection'}")
        client.loop_start()
        self._client = client
        return client

    def _message(self, row: dict[str, Any]) -> tuple[str, str]:
        return self._topic.replace("{rule}", row["rule"]), json.dumps(row, separators=(",", ":"))
