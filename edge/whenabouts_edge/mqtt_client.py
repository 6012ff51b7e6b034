"""A client of paho with a limit on the memory of one incoming packet, made as the configuration of the broker says.

With MQTT 5 the broker is told the limit and withholds larger packets. With 3.1.1 nothing can be told, and paho would read
a packet whole, whatever its length: here the middle of a packet that is too long is thrown away as it arrives, so that the
connection, and the delivery of readings, go on. The number of the message is near its beginning, so it is acknowledged.
"""

import contextlib
import select
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from whenabouts_edge.config.settings import BrokerConfig
from whenabouts_protocol.layout import MAX_MESSAGE_BYTES

MAX_PACKET_BYTES = MAX_MESSAGE_BYTES + 1024  # the longest message that is decoded, with its topic
CHUNK_BYTES = 16 << 10
CHUNKS = 64  # thrown away in a row, before packets to send have their turn


class BoundedClient(mqtt.Client):
    """fault: the error that ended reading, or None."""

    fault: OSError | None = None
    # True if the last attempt to receive gave nothing: TLS may hold a part of a record, which it does not show.
    _starved = False

    @property
    def empty(self) -> bool:
        """True if no byte has come that `on_message` has not had: in the kernel, in TLS, or in a packet read in part.

        Cost: one select without waiting.
        """
        connected = self._sock
        if connected is None or self._starved or self._in_packet["command"]:
            return False
        if isinstance(connected, ssl.SSLSocket) and connected.pending():
            return False
        return not select.select([connected], [], [], 0)[0]

    @property
    def too_long(self) -> int:
        """In `on_message`: length of the packet if it is beyond the limit, and the message therefore not whole; else 0."""
        length = int(self._in_packet["remaining_length"])
        return length if length > MAX_PACKET_BYTES else 0

    def _sock_recv(self, bufsize: int) -> bytes:
        """Receive for paho's `_packet_read`, which asks for all that is missing of a packet at once."""
        packet = self._in_packet
        try:
            if self.too_long and len(packet["packet"]) >= CHUNK_BYTES:
                for _ in range(CHUNKS):
                    if packet["to_process"] <= CHUNK_BYTES:
                        break
                    data = super()._sock_recv(min(CHUNK_BYTES, packet["to_process"] - CHUNK_BYTES))
                    if not data:
                        return data
                    packet["to_process"] -= len(data)
                else:
                    raise BlockingIOError
                bufsize = packet["to_process"]
            data = super()._sock_recv(min(bufsize, CHUNK_BYTES))
        except BlockingIOError:
            self._starved = True
            raise
        except OSError as error:
            self.fault = error
            raise
        self._starved = False
        return data


MakeClient = Callable[[BrokerConfig, MQTTProtocolVersion, str], BoundedClient]
"""Makes the client of one connection, as `made` does."""


def made(broker: BrokerConfig, version: MQTTProtocolVersion, client_id: str) -> BoundedClient:
    """A client for one connection, which is not made again when it ends.

    Raises:
        OSError, ValueError: a certificate, key or password cannot be read.
    """
    client = BoundedClient(CallbackAPIVersion.VERSION2, client_id, protocol=version, reconnect_on_failure=False)
    secure(client, broker)
    return client


def connect(client: mqtt.Client, broker: BrokerConfig) -> None:
    """Open the connection and send CONNECT; blocks up to the client's time-out. Raises OSError if it cannot."""
    properties = None
    if client.protocol == MQTTProtocolVersion.MQTTv5:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.MaximumPacketSize = MAX_PACKET_BYTES
    client.connect(broker.host, broker.port, broker.keepalive_s, properties=properties)


def stop_loop(client: mqtt.Client) -> None:
    """Wait for paho's thread to end."""
    with contextlib.suppress(AttributeError):  # in paho: its thread may end between the check and the join
        client.loop_stop()


def secure(client: mqtt.Client, broker: BrokerConfig) -> None:
    """Set TLS and login of a client as configured.

    Raises:
        OSError, ValueError: a certificate, key or password cannot be read.
    """
    if broker.tls:
        client.tls_set(broker.ca_file, broker.cert_file, broker.key_file)
    if broker.username:
        client.username_pw_set(broker.username, _password(broker.password_file) if broker.password_file else None)


def unusable(error: Exception, broker: BrokerConfig) -> str:
    """The reason why there is no connection, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        trusted = broker.ca_file or "the authorities of this system"
        return f"the broker's certificate is not believed by ca_file ({trusted}): {error.verify_message}"
    if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
        said = str(error.reason).split("ALERT_")[-1].lower().replace("_", " ")
        return f"the broker refuses this gateway's certificate, cert_file ({broker.cert_file}): {said}"
    if isinstance(error, FileNotFoundError) and not error.filename:  # of `ssl`
        return f"ca_file, cert_file or key_file: {error.strerror}"
    return str(error)


def protocol_name(client: Any) -> str:
    """The version of MQTT that a client speaks: 5 or 3.1.1."""
    return "5" if client.protocol == MQTTProtocolVersion.MQTTv5 else "3.1.1"


def _password(path: str) -> str:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0]:
        raise ValueError(f"password_file {path}: found no text on its first line, expected the password")
    return lines[0]
