"""A gateway with a certificate of its own that tries to speak as others, and to hear what is theirs.

MQTT 5: the broker answers each message with a reason code, so what it lets through can be counted.
"""

import itertools
import ssl
import threading
import time
from collections.abc import Iterator, Sequence

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.reasoncodes import ReasonCode

from whenabouts_protocol import Ack, Heartbeat, Reading, encode_ack, encode_batch, encode_heartbeat, topic
from whenabouts_protocol.messages.compiled_rule import encode_rules
from whenabouts_sim.judge.judgement import Lies

EVERY_S = 0.1
ANSWERED_S = 5.0
QOS = 1
NOT_AUTHORIZED = 0x87
FAR_US = 10**15


class Liar:
    """Lies from `start` to `stop`. name and victims: (site, gateway). context: None for a broker without TLS."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext | None, name: tuple[str, str],
                 victims: Sequence[tuple[str, str]]) -> None:  # fmt: skip
        self._own = f"{topic(*name, 'ack').removesuffix('ack')}"
        self._lies = itertools.cycle(list(_lies(victims)))
        self._attempts = self._denied = self._let_through = self._overheard = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._lie, daemon=True)
        victim = "/".join(victims[0])  # its client id: without the broker's care the victim would lose its connection
        client = self._client = mqtt.Client(CallbackAPIVersion.VERSION2, victim, protocol=mqtt.MQTTv5)
        if context is not None:
            client.tls_set_context(context)
        client.on_connect, client.on_publish, client.on_message = self._connected, self._answered, self._heard
        self._wanted = [("#", QOS), *((topic(*victim, "ack"), QOS) for victim in victims)]
        self._address = address

    def start(self) -> None:
        """Connect and begin; returns at once. Raises OSError when the broker does not answer."""
        self._client.connect(*self._address)
        self._client.loop_start()
        self._thread.start()

    def stop(self) -> Lies:
        """End, wait for the last answers, and tell what came of it."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
            deadline_s = time.monotonic() + ANSWERED_S
            while self._denied + self._let_through < self._attempts and time.monotonic() < deadline_s:
                time.sleep(EVERY_S)
            self._client.disconnect()
            self._client.loop_stop()
        return Lies(self._attempts, self._denied, self._let_through, self._overheard)

    def _lie(self) -> None:
        while not self._stopping.wait(EVERY_S):
            name, payload, retain = next(self._lies)
            self._attempts += 1
            self._client.publish(name, payload, qos=QOS, retain=retain)

    def _connected(self, client: mqtt.Client, _u: object, _f: object, _r: object, _p: object) -> None:
        client.subscribe(self._wanted)

    def _answered(self, _c: mqtt.Client, _u: object, _mid: int, reason: ReasonCode, _p: object) -> None:
        if reason.value == NOT_AUTHORIZED:
            self._denied += 1
        else:
            self._let_through += 1

    def _heard(self, _c: mqtt.Client, _u: object, message: mqtt.MQTTMessage) -> None:
        self._overheard += not message.topic.startswith(self._own)


def _lies(victims: Sequence[tuple[str, str]]) -> Iterator[tuple[str, bytes, bool]]:
    """Topic, payload and retain flag of valid messages that would each do harm: erase, end the wait, invent, stop rules."""
    for site, gateway in victims:
        yield topic(site, gateway, "ack"), encode_ack(Ack(site, gateway, {0: FAR_US})), True
        beat = Heartbeat(site, gateway, 0, FAR_US, {0: (FAR_US, FAR_US)}, "bounded", 1)
        yield topic(site, gateway, "heartbeat"), encode_heartbeat(beat), False
        lie = Reading(
            site=site, gateway=gateway, boot=0, seq=0, stream="lie", kind="tag", key="lie", t_min=FAR_US, t_max=FAR_US
        )
        yield topic(site, gateway, "obs"), encode_batch([lie]), False
        yield topic(site, gateway, "rules"), encode_rules(site, gateway, []), True
