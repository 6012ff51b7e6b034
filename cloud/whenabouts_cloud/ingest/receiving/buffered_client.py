"""paho's client, made fast enough for a flood: large reads, whole PUBLISH packets taken straight from what was read, and
acknowledgements written together.

paho asks the socket for a byte, then for the length, then for the rest of each packet; it makes objects of all that a packet
may hold; and it writes each acknowledgement, four bytes, by itself. That takes 100 us a message. A gateway that sends more
than 10 000 messages a second would fill the broker's queue, in which the messages of all others wait.
"""

from collections.abc import Callable, Iterable

import paho.mqtt.client as mqtt
from paho.mqtt.enums import MessageType, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.exception import MalformedPacket

READ_BYTES = 256 << 10
MAX_PACKET_BYTES = 257 << 10  # of the largest message, and its topic

Take = Callable[[bytes, bytes, int, int], None]


class BufferedClient(mqtt.Client):
    """Calls `take` with topic, payload, number and QoS of each message instead of `on_message`, and `after_read` after the
    messages of one read. Acknowledges nothing by itself; QoS 2 is not supported. Of a longer message than MAX_PACKET_BYTES,
    which only brokers without MQTT 5 send, the rest is thrown away as it arrives.
    """

    take: Take
    after_read: Callable[[], None]
    _read = b""
    _at = _skip = 0
    _ended: OSError | None = None

    def loop_read(self, max_packets: int = 1) -> MQTTErrorCode:
        """Process what has arrived, and all that is buffered: the socket is not seen as readable for that."""
        self._fill()
        try:
            result = self._process(max_packets)
        except MalformedPacket:
            result = self._loop_rc_handle(MQTTErrorCode.MQTT_ERR_PROTOCOL)
        self.after_read()
        return result

    def reconnect(self) -> MQTTErrorCode:
        """Connect again; nothing of the earlier connection is left."""
        self._read, self._at, self._skip, self._ended = b"", 0, 0, None
        return super().reconnect()

    def acknowledge(self, mids: Iterable[int]) -> None:
        """Send PUBACK for all these messages, together."""
        packets = b"".join(b"\x40\x02" + mid.to_bytes(2) for mid in mids)
        if packets:
            self._packet_queue(MessageType.PUBACK, packets, 0, 1)

    def _fill(self) -> None:
        """Read what the socket has. A TLS connection gives at most a record at a time, often a single message."""
        pieces, size = [self._read[self._at :]], 0
        while size < READ_BYTES and self._ended is None:
            try:
                pieces.append(super()._sock_recv(READ_BYTES))
            except BlockingIOError:
                break
            except OSError as error:
                self._ended = error
            else:
                size += len(pieces[-1])
                if not pieces[-1]:
                    self._ended = ConnectionResetError("the broker has closed the connection")
        self._read, self._at = b"".join(pieces), 0

    def _process(self, max_packets: int) -> MQTTErrorCode:
        """Take PUBLISH packets, leave others to paho; the start of an incomplete PUBLISH packet stays in the buffer."""
        result = MQTTErrorCode.MQTT_ERR_SUCCESS
        while result == MQTTErrorCode.MQTT_ERR_SUCCESS and self._at < len(self._read):
            if self._skip:
                self._skip_rest()
            elif self._in_packet["command"] or self._read[self._at] >> 4 != MessageType.PUBLISH >> 4:
                result = super().loop_read(max_packets)
            elif not self._take_next():
                break
        if self._ended is not None and result == MQTTErrorCode.MQTT_ERR_SUCCESS:
            self._at = len(self._read)
            result = super().loop_read(max_packets)
        return result

    def _take_next(self) -> bool:
        """Take the PUBLISH packet that begins here; False if more of it must be read.

        Raises:
            MalformedPacket: its length does not end, or parts are missing.
        """
        start, length = _variable(self._read, self._at + 1)
        if not start and self._at + 5 <= len(self._read):
            raise MalformedPacket("the length of a packet does not end")
        kept = start + min(length, MAX_PACKET_BYTES)
        if not start or kept > len(self._read):
            return False
        command, body = self._read[self._at], self._read[start:kept]
        self._at, self._skip = kept, start + length - kept
        self._take_body(command, body)
        return True

    def _skip_rest(self) -> None:
        skipped = min(self._skip, len(self._read) - self._at)
        self._at += skipped
        self._skip -= skipped

    def _take_body(self, command: int, body: bytes) -> None:
        """Take a PUBLISH packet without its fixed header: topic, number unless QoS is 0, properties with MQTT 5, payload.

        Raises:
            MalformedPacket: parts are missing.
        """
        qos = command >> 1 & 3
        at = 2 + int.from_bytes(body[:2])
        topic = body[2:at]
        mid = 0
        if qos:
            mid = int.from_bytes(body[at : at + 2])
            at += 2
        if self._protocol == MQTTProtocolVersion.MQTTv5:
            at, length = _variable(body, at)
            at = at + length if at else len(body) + 1
        if at > len(body):
            raise MalformedPacket("a PUBLISH packet ends too early")
        self.take(topic, body[at:], mid, qos)

    def _sock_recv(self, bufsize: int) -> bytes:
        if self._at >= len(self._read):
            raise BlockingIOError if self._ended is None else self._ended
        piece = self._read[self._at : self._at + bufsize]
        self._at += len(piece)
        return piece


def _variable(packet: bytes, at: int) -> tuple[int, int]:
    """The place behind a variable byte integer that begins at `at`, and its value; 0 and 0 if it does not end."""
    value = shift = 0
    for place in range(at, min(at + 4, len(packet))):
        value |= (packet[place] & 127) << shift
        if packet[place] < 128:
            return place + 1, value
        shift += 7
    return 0, 0
