"""Results as JSON messages of a Kafka topic with `result_id` as key, at least once: repeats have the same key.

    kafka://HOST:9092/TOPIC?NAME=VALUE    each NAME is a setting of librdkafka, such as security.protocol

The brokers acknowledge with all replicas, and the producer is idempotent: only a batch that is repeated after a failure
gives repeats. `sasl.password_file=FILE` is a file with the password; USER in the URI is `sasl.username`.
"""

import json
from typing import Any

from whenabouts_cloud.delivery.published import Batch
from whenabouts_cloud.delivery.target import client_library
from whenabouts_cloud.delivery.uri import Address, TargetError, secret_in, shown

PORT = 9092
WAIT_S = 30.0
PASSWORD, PASSWORD_FILE = "sasl.password", "sasl.password_file"


class NotAcknowledgedError(Exception):
    """The brokers have not acknowledged messages in time, or refuse them."""


class Kafka:
    """One topic. The producer is made at the first batch and kept; a failed batch discards it with all that it holds."""

    def __init__(self, uri: str, unit: str) -> None:
        self._library = client_library("confluent_kafka", "kafka")
        address = Address(uri, PORT, "kafka://HOST:PORT/TOPIC", None)
        settings: dict[str, Any] = dict(address.parameters)
        if PASSWORD_FILE in settings:
            settings[PASSWORD] = secret_in(settings.pop(PASSWORD_FILE))
        if address.user is not None:
            settings = {"sasl.username": address.user, **settings}
        if address.password is not None:
            settings = {PASSWORD: address.password, **settings}
        self._settings = {
            "message.timeout.ms": round(WAIT_S * 1000), "linger.ms": 5, "log_level": 0, **settings, "acks": "all",
            "enable.idempotence": True, "bootstrap.servers": f"{address.host}:{address.port}",
        }  # fmt: skip
        self._topic = address.path
        self._producer: Any = None
        try:
            self._library.Producer(self._settings)
        except self._library.KafkaException as error:
            raise TargetError(f"{shown(uri)}: found {error.args[0].str()}, expected settings of librdkafka") from None

    def deliver(self, batch: Batch) -> int:
        if self._producer is None:
            self._producer = self._library.Producer(self._settings)
        sent = 0
        failures: list[str] = []

        def acknowledged(error: Any, _message: Any) -> None:
            if error is not None:
                failures.append(str(error))

        for part in batch.parts():
            for row in part:
                text = json.dumps(row, separators=(",", ":"))
                self._producer.produce(self._topic, text, row["result_id"], on_delivery=acknowledged)
            left = self._producer.flush(WAIT_S)
            if left or failures:
                what = failures[0] if failures else f"{left} messages without acknowledgement after {WAIT_S:.0f} s"
                raise NotAcknowledgedError(f"found {what}, expected the acknowledgement of {len(part)} messages")
            sent += len(part)
        return sent

    def close(self) -> None:
        if self._producer is not None:
            self._producer.purge()
        self._producer = None
