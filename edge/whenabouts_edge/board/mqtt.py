"""A client of MQTT 3.1.1 without a socket: takes bytes and the time, returns packets and events.

It has only the functions that a gateway needs: a clean session with a will, publishing at QoS 0 and 1 with several
messages in flight, subscribing at QoS 1, pings. It repeats nothing itself: a connection that ends is replaced by a new
client, and the messages still in the flash log are sent again.

Every wait is limited: for CONNACK, PUBACK, SUBACK, PINGRESP, and for a packet to leave. Any input that violates the
standard, or comes too late, ends the connection; `ended` gives the reason, and nothing is done after that. Each packet is
one bytes object, to be written at once: its pieces would wait for each other's acknowledgement on the way.

Events of `feed`, as tuples: ("connected",), ("subscribed", packet id, granted), ("taken", packet id) for a PUBACK,
("message", topic, payload, retained), ("oversized", topic, length) for a message whose payload was discarded.
"""

from whenabouts_protocol.utf8 import text_of, utf8

CONNECT, CONNACK, PUBLISH, PUBACK = 1, 2, 3, 4
SUBSCRIBE, SUBACK, PINGREQ, PINGRESP, DISCONNECT = 8, 9, 12, 13, 14

ANSWER_US = 15_000_000  # time limit of the peer's answers, and of writing a packet
PAYLOAD_BYTES_MAX = 3072  # with its topic it fits in a block of 4 kB; a larger message is discarded and reported
TOPIC_BYTES_MAX = 512
IN_FLIGHT_MAX = 16
_REFUSALS = (
    "",
    "protocol version",
    "client identifier",
    "server unavailable",
    "user name or password",
    "not authorised",
)
_LENGTH_MAX = 268_435_455  # four bytes of length (section 2.2.3)


class Mqtt:
    """One connection. keepalive_s: 0 for none. will: topic and payload, retained, QoS 1.

    in_flight: publications that wait for their PUBACK. `ended`: None, or why the connection is over.
    """

    def __init__(
        self,
        client_id: str,
        keepalive_s: int,
        will: "tuple[str, bytes] | None" = None,
        username: "str | None" = None,
        password: "bytes | None" = None,
        first_id: int = 1,
    ) -> None:
        self._connect = _connect(client_id, keepalive_s, will, username, password)
        self._keepalive_us = keepalive_s * 1_000_000
        self._next_id = first_id
        self._taken: dict[int, int] = {}  # packet id -> deadline of its PUBACK
        self._granted: dict[int, tuple[int, int]] = {}  # packet id -> number of filters, deadline of its SUBACK
        self._out: list[bytes] = []
        self._left_us = 0  # when the last packet left, or the oldest waiting one began to wait
        self._heard_us = 0
        self._held = bytearray()
        self._skip = 0  # bytes of an oversized message still to discard
        self._deadline_us: int | None = None  # of CONNACK or PINGRESP
        self.connected = False
        self.ended: str | None = None

    @property
    def in_flight(self) -> int:
        """Publications that wait for their PUBACK."""
        return len(self._taken)

    @property
    def waiting_bytes(self) -> int:
        """Bytes that the connection has not taken yet."""
        return sum([len(packet) for packet in self._out])

    @property
    def room(self) -> int:
        """Number of publications that may be handed over now."""
        return IN_FLIGHT_MAX - len(self._taken) if self.connected and self.ended is None else 0

    # Out.

    def begin(self, now_us: int) -> None:
        """Send CONNECT on an open connection."""
        self._send(self._connect, now_us)
        self._deadline_us = now_us + ANSWER_US

    def publish(self, topic: str, payload: bytes, now_us: int, qos: int = 1, retain: bool = False) -> int:
        """Hand over a publication; returns its packet id, 0 at QoS 0.

        Raises:
            ValueError: not connected, no room at QoS 1, or a message that cannot be encoded.
        """
        if not self.connected or self.ended is not None or (qos and not self.room):
            raise ValueError(f"mqtt publish: found {self.in_flight} in flight, expected a connection with room")
        packet_id = self._new_id() if qos else 0
        head = _text(topic) + (packet_id.to_bytes(2, "big") if qos else b"")
        self._send(_packet(PUBLISH << 4 | qos << 1 | retain, head, payload), now_us)
        if qos:
            self._taken[packet_id] = now_us + ANSWER_US
        return packet_id

    def subscribe(self, filters: "list[str]", now_us: int) -> int:
        """Subscribe to topics at QoS 1; returns the packet id. Raises ValueError when not connected."""
        if not self.connected or self.ended is not None:
            raise ValueError("mqtt subscribe: found no connection")
        packet_id = self._new_id()
        body = packet_id.to_bytes(2, "big") + b"".join([_text(name) + b"\x01" for name in filters])
        self._send(_packet(SUBSCRIBE << 4 | 2, body), now_us)
        self._granted[packet_id] = (len(filters), now_us + ANSWER_US)
        return packet_id

    def disconnect(self, now_us: int) -> None:
        """Send DISCONNECT, so that the will is not sent. Packets handed over before go out before it."""
        if self.connected and self.ended is None:
            self._send(_packet(DISCONNECT << 4, b""), now_us)

    def to_write(self) -> bytes:
        """The packet to write next, or the rest of it; b"" if there is none."""
        return self._out[0] if self._out else b""

    def wrote(self, count: int, now_us: int) -> None:
        """Note that the connection took count bytes of `to_write`."""
        if count:
            self._left_us = now_us
            if count < len(self._out[0]):
                self._out[0] = self._out[0][count:]
            else:
                self._out.pop(0)

    # Time.

    def advance(self, now_us: int) -> None:
        """Send a ping when one is due, and end the connection when an answer is overdue."""
        if self.ended is not None:
            return
        if self._deadline_us is not None and now_us >= self._deadline_us:
            self._end("no answer to a ping" if self.connected else "no CONNACK")
        elif self._out and now_us - self._left_us >= ANSWER_US:
            self._end("nothing can be written")
        elif any(now_us >= at for at in self._taken.values()):
            self._end("no PUBACK")
        elif any(now_us >= at for _, at in self._granted.values()):
            self._end("no SUBACK")
        elif self._is_quiet(now_us):
            self._send(_packet(PINGREQ << 4, b""), now_us)
            self._deadline_us = now_us + ANSWER_US

    def _is_quiet(self, now_us: int) -> bool:
        """Return True if a ping is due: nothing was sent, or nothing was received, for half the keep-alive."""
        if not self.connected or not self._keepalive_us or self._out or self._deadline_us is not None:
            return False
        return now_us - min(self._left_us, self._heard_us) >= self._keepalive_us // 2

    def lost(self, reason: str) -> None:
        """End the client, as the connection is gone."""
        self._end(reason)

    # In.

    def feed(self, data: bytes, now_us: int) -> "list[tuple[object, ...]]":
        """Take in bytes; returns the events that they complete."""
        events: list[tuple[object, ...]] = []
        self._heard_us = now_us
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            data = data[skipped:]
        self._held.extend(data)
        while self.ended is None and not self._skip:
            used = self._packet_in(events, now_us)
            if not used:
                break
            self._held = self._held[used:]
        return events

    def _packet_in(self, events: "list[tuple[object, ...]]", now_us: int) -> int:
        """Take one packet off the held bytes; returns its size, 0 if it is not whole or the connection ended."""
        held = self._held
        length = shift = 0
        at = 1
        while True:
            if at > 4:
                return self._end("malformed length")
            if at >= len(held):
                return 0
            length |= (held[at] & 127) << shift
            shift += 7
            at += 1
            if held[at - 1] < 128:
                break
        kind, flags = held[0] >> 4, held[0] & 15
        if kind == PUBLISH and length > PAYLOAD_BYTES_MAX + TOPIC_BYTES_MAX:
            return self._oversized(at, length, flags, events, now_us)
        if kind != PUBLISH and length > 2 + 64:  # a SUBACK is the longest of the others
            return self._end(f"packet of type {kind} with {length} bytes")
        if len(held) < at + length:
            return 0
        body = bytes(held[at : at + length])
        if kind == PUBLISH:
            self._message(body, flags, events, now_us)
        elif flags:
            self._end(f"packet of type {kind} with flags {flags}")
        else:
            self._answer(kind, body, events)
        return 0 if self.ended is not None else at + length

    def _answer(self, kind: int, body: bytes, events: "list[tuple[object, ...]]") -> None:
        number = int.from_bytes(body[:2], "big")
        if self.connected == (kind == CONNACK):
            self._end(f"packet of type {kind} at the wrong time")
        elif kind == CONNACK:
            if len(body) != 2 or body[0] & 0xFE or body[1] >= len(_REFUSALS) or (body[0] and not body[1]):
                self._end("malformed CONNACK")
            elif body[1]:
                self._end("refused: " + _REFUSALS[body[1]])
            else:
                self.connected, self._deadline_us = True, None
                events.append(("connected",))
        elif kind == PUBACK:
            if len(body) != 2 or self._taken.pop(number, None) is None:
                self._end("PUBACK for nothing in flight")
            else:
                events.append(("taken", number))
        elif kind == SUBACK:
            count = self._granted.pop(number, (0, 0))[0]
            if not count or len(body) != 2 + count or any(code not in (0, 1, 2, 128) for code in body[2:]):
                self._end("SUBACK that answers no subscription")
            else:
                events.append(("subscribed", number, all(code < 128 for code in body[2:])))
        elif kind == PINGRESP and not body and self._deadline_us is not None:
            self._deadline_us = None
        else:
            self._end(f"unexpected packet of type {kind}")

    def _message(self, body: bytes, flags: int, events: "list[tuple[object, ...]]", now_us: int) -> None:
        head = self._publish_head(body, flags)
        if head is None:
            return
        topic, packet_id, at = head
        if packet_id:
            self._send(_packet(PUBACK << 4, packet_id.to_bytes(2, "big")), now_us)
        if len(body) - at > PAYLOAD_BYTES_MAX:
            events.append(("oversized", topic, len(body) - at))
        else:
            events.append(("message", topic, body[at:], bool(flags & 1)))

    def _oversized(self, at: int, length: int, flags: int, events: "list[tuple[object, ...]]", now_us: int) -> int:
        """Acknowledge a message that is too large, and discard it as it arrives."""
        held = self._held
        if len(held) < at + 2 or len(held) < at + 4 + min(TOPIC_BYTES_MAX, int.from_bytes(held[at : at + 2], "big")):
            return 0
        head = self._publish_head(bytes(held[at : at + 4 + TOPIC_BYTES_MAX]), flags)
        if head is None:
            return 0
        topic, packet_id, begin = head
        if packet_id:
            self._send(_packet(PUBACK << 4, packet_id.to_bytes(2, "big")), now_us)
        events.append(("oversized", topic, length - begin))
        used = min(len(held), at + length)
        self._skip = at + length - used
        return used

    def _publish_head(self, body: bytes, flags: int) -> "tuple[str, int, int] | None":
        """Topic, packet id and start of the payload; None if they are invalid, which ends the connection."""
        qos, size = flags >> 1 & 3, int.from_bytes(body[:2], "big")
        begin = 2 + size + (2 if qos else 0)
        packet_id = int.from_bytes(body[2 + size : begin], "big") if qos else 0
        if not self.connected:
            self._end("message before CONNACK")
        elif qos > 1 or (qos == 0 and flags & 8):
            self._end(f"message with flags {flags}, expected QoS 0 or 1")
        elif not 0 < size <= TOPIC_BYTES_MAX or len(body) < begin or (qos and not packet_id):
            self._end("malformed message")
        else:
            try:
                topic = text_of(body[2 : 2 + size])
            except UnicodeError:
                topic = "#"
            if not any(c in "#+\0" for c in topic):
                return topic, packet_id, begin
            self._end("invalid topic")
        return None

    # Both.

    def _send(self, packet: bytes, now_us: int) -> None:
        if not self._out:
            self._left_us = now_us
        self._out.append(packet)

    def _new_id(self) -> int:
        """The next packet id that is not in use: 1 to 65535, then 1 again."""
        while self._next_id in self._taken or self._next_id in self._granted:
            self._next_id = self._next_id % 0xFFFF + 1
        packet_id = self._next_id
        self._next_id = packet_id % 0xFFFF + 1
        return packet_id

    def _end(self, reason: str) -> int:
        if self.ended is None:
            self.ended = reason
            self.connected = False
        return 0


def _connect(
    client_id: str,
    keepalive_s: int,
    will: "tuple[str, bytes] | None",
    username: "str | None",
    password: "bytes | None",
) -> bytes:
    flags = 2  # clean session
    payload = _text(client_id)
    if will is not None:
        flags |= 0x04 | 1 << 3 | 0x20
        payload += _text(will[0]) + len(will[1]).to_bytes(2, "big") + will[1]
    if username is not None:
        flags |= 0x80
        payload += _text(username)
        if password is not None:
            flags |= 0x40
            payload += len(password).to_bytes(2, "big") + password
    return _packet(CONNECT << 4, b"\x00\x04MQTT\x04" + bytes([flags]) + keepalive_s.to_bytes(2, "big") + payload)


def _packet(first: int, body: bytes, payload: bytes = b"") -> bytes:
    length = len(body) + len(payload)
    if length > _LENGTH_MAX:
        raise ValueError(f"mqtt packet: found {length} bytes, expected at most {_LENGTH_MAX}")
    head = bytearray([first])
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    head.append(length)
    return b"".join([bytes(head), body, payload])  # one copy: memory is short


def _text(text: str) -> bytes:
    data = utf8(text)
    if len(data) > 0xFFFF:
        raise ValueError(f"mqtt text: found {len(data)} bytes, expected at most 65535")
    return len(data).to_bytes(2, "big") + data
