"""Bringing rules to gateways: reads the births that the broker retains, and retains what each gateway must run.

A gateway that has been born and gets no rule is sent an empty list, so that a rule taken out of the file stops running also
on a gateway that is offline now. Gateways that were never born are not known here.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from whenabouts_cloud.broker.connection import BrokerError, Credentials, stop_loop
from whenabouts_protocol import Birth, WireError, decode_birth, parse_topic, subscription, topic

CONNECT_TIMEOUT_S = 10.0
QUIET_S = 1.0  # retained births come at once; the last has come when none has for this long
BIRTHS_S_MAX = 30.0
MAX_GATEWAYS = 100_000
PUBLISHED_TIMEOUT_S = 30.0


@dataclass
class Births:
    """The retained births of a broker by (site, gateway), and how many messages were none."""

    known: dict[tuple[str, str], Birth] = field(default_factory=dict)
    refused: int = 0


class RulesClient:
    """A connection to the broker for one look and one round of messages; a context manager.

    Raises:
        BrokerError: on entering, the broker cannot be reached or refuses us.
    """

    def __init__(self, host: str, port: int, credentials: Credentials) -> None:
        self._where, self._address = f"broker {host}:{port}", (host, port)
        self._births = Births()
        self._answered = threading.Event()
        self._refused = ""
        self._heard_s = time.monotonic()
        client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv311)
        credentials.apply(client)
        client.on_connect, client.on_subscribe, client.on_message = self._connected, self._subscribed, self._message
        self._client = client

    def __enter__(self) -> "RulesClient":
        try:
            self._client.connect(*self._address)
        except (OSError, ValueError) as error:
            raise BrokerError(
                f"{self._where}: cannot connect ({error}); is it running, is the address right?"
            ) from None
        self._client.loop_start()
        if not self._answered.wait(CONNECT_TIMEOUT_S) or self._refused:
            stop_loop(self._client)
            raise BrokerError(f"{self._where}: refused: {self._refused or 'no answer'}")
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        stop_loop(self._client)

    def births(self) -> Births:
        """All births that are retained now; waits until no more come."""
        deadline_s = time.monotonic() + BIRTHS_S_MAX
        while time.monotonic() < min(deadline_s, self._heard_s + QUIET_S):
            time.sleep(0.05)
        return self._births

    def publish(self, messages: dict[tuple[str, str], bytes]) -> None:
        """Retain the rules of each gateway.

        Raises:
            BrokerError: the broker has not taken all of them in time.
        """
        sent = [
            self._client.publish(topic(*place, "rules"), payload, qos=1, retain=True)
            for place, payload in messages.items()
        ]
        deadline_s = time.monotonic() + PUBLISHED_TIMEOUT_S
        for info in sent:
            info.wait_for_publish(max(0.0, deadline_s - time.monotonic()))
        missing = sum(not info.is_published() for info in sent)
        if missing:
            raise BrokerError(
                f"{self._where}: found {missing} of {len(sent)} messages not taken after {PUBLISHED_TIMEOUT_S:.0f} s, "
                "expected none; publish again"
            )

    def _connected(self, client: mqtt.Client, _u: Any, _f: Any, reason: Any, _p: Any) -> None:
        if reason.is_failure:
            self._refused = str(reason)
            self._answered.set()
        else:
            client.subscribe(subscription("birth"), qos=1)

    def _subscribed(self, _c: mqtt.Client, _u: Any, _mid: int, reasons: list[Any], _p: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self._refused = f"reading {subscription('birth')} ({reasons[0]}); allow this user to"
        self._heard_s = time.monotonic()
        self._answered.set()

    def _message(self, _c: mqtt.Client, _u: Any, message: mqtt.MQTTMessage) -> None:
        self._heard_s = time.monotonic()
        place = parse_topic(message.topic)
        try:
            birth = decode_birth(bytes(message.payload))
        except WireError:
            birth = None
        known = self._births.known
        if birth is None or place is None or place[:2] != (birth.site, birth.gateway) or len(known) >= MAX_GATEWAYS:
            self._births.refused += 1
        else:
            known[birth.site, birth.gateway] = birth
