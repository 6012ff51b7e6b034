"""The board's MQTT client, byte by byte: packets as the standard has them, waits that end, and no belief in wrong bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenabouts_edge.board.mqtt import ANSWER_US, IN_FLIGHT_MAX, PAYLOAD_BYTES_MAX, Mqtt

CONNACK = b"\x20\x02\x00\x00"
S = 1_000_000


def client(**options):
    """A connected client at time 0, its CONNECT written."""
    made = Mqtt("wa-gw", 60, **options)
    made.begin(0)
    written(made, 0)
    assert made.feed(CONNACK, 0) == [("connected",)]
    return made


def written(made, now):
    """All packets that wait, written."""
    packets = []
    while packet := made.to_write():
        packets.append(packet)
        made.wrote(len(packet), now)
    return packets


def message(topic, payload, packet_id=0, retain=0):
    """A PUBLISH of a broker."""
    body = len(topic).to_bytes(2, "big") + topic + (packet_id.to_bytes(2, "big") if packet_id else b"") + payload
    length = len(body)
    head = bytes([0x30 | bool(packet_id) << 1 | retain])
    while True:
        head += bytes([length & 127 | (128 if length > 127 else 0)])
        length >>= 7
        if not length:
            return head + body


def test_packets_are_those_of_the_standard():
    """CONNECT with will, user and password; PUBLISH at both levels; SUBSCRIBE; DISCONNECT: one bytes object each."""
    made = Mqtt("gw", 258, ("w", b"off"), "u", b"p")
    made.begin(0)
    assert written(made, 0) == [b"\x10\x1c\x00\x04MQTT\x04\xee\x01\x02\x00\x02gw\x00\x01w\x00\x03off\x00\x01u\x00\x01p"]
    made.feed(CONNACK, 0)
    assert made.publish("a/b", b"x" * 130, 0) == 1
    assert made.publish("a", b"", 0, qos=0, retain=True) == 0
    assert made.subscribe(["a/+", "b"], 0) == 2
    made.disconnect(0)
    assert written(made, 0) == [
        b"\x32\x89\x01\x00\x03a/b\x00\x01" + b"x" * 130,
        b"\x31\x03\x00\x01a",
        b"\x82\x0c\x00\x02\x00\x03a/+\x01\x00\x01b\x01",
        b"\xe0\x00",
    ]


def test_several_are_on_their_way_and_answers_come_in_any_order():
    """Room for sixteen; an acknowledged message is reported by its packet id, and makes room."""
    made = client()
    ids = [made.publish("t", bytes([n]), 0) for n in range(IN_FLIGHT_MAX)]
    assert made.room == 0
    with pytest.raises(ValueError, match="expected a connection with room"):
        made.publish("t", b"", 0)
    for packet_id in reversed(ids):
        assert made.feed(b"\x40\x02" + packet_id.to_bytes(2, "big"), 0) == [("taken", packet_id)]
    assert (made.room, made.in_flight) == (IN_FLIGHT_MAX, 0)


def test_packet_ids_wrap_and_pass_over_those_on_their_way():
    """... 65534 65535 1 2 ...: never 0, and not 1 while 1 is on its way."""
    made = client(first_id=1)
    assert made.publish("t", b"", 0) == 1
    for expected in range(2, 65536):
        assert made.publish("t", b"", 0) == expected
        made.feed(b"\x40\x02" + expected.to_bytes(2, "big"), 0)
        written(made, 0)
    assert [made.publish("t", b"", 0) for _ in range(2)] == [2, 3]


def test_a_packet_that_leaves_in_pieces():
    """The line takes what it can; the rest is next."""
    made = client()
    made.publish("topic", b"payload", 0)
    packet, pieces = made.to_write(), b""
    for _ in range(len(packet)):
        pieces += made.to_write()[:1]
        made.wrote(1, 0)
    assert (pieces, made.to_write()) == (packet, b"")


@pytest.mark.parametrize(
    ("doing", "reason"),
    [
        (lambda m: m.publish("t", b"", 0), "no PUBACK"),
        (lambda m: m.subscribe(["t"], 0), "no SUBACK"),
    ],
)
def test_every_answer_has_its_time(doing, reason):
    """Just before it nothing happens, then the connection is over."""
    made = client()
    doing(made)
    written(made, 0)
    made.advance(ANSWER_US - 1)
    assert made.ended is None
    made.advance(ANSWER_US)
    assert made.ended == reason
    assert (made.room, made.feed(b"\x40\x02\x00\x01", ANSWER_US)) == (0, [])


def test_a_connection_that_is_not_answered_or_cannot_be_written_ends():
    """CONNACK must come; and a line that takes nothing is as good as gone."""
    silent = Mqtt("gw", 60)
    silent.begin(0)
    written(silent, 0)
    silent.advance(ANSWER_US)
    assert silent.ended == "no CONNACK"
    stuck = client()
    stuck.publish("t", b"", S, qos=0)
    stuck.advance(S + ANSWER_US - 1)
    assert stuck.ended is None
    stuck.advance(S + ANSWER_US)
    assert stuck.ended == "nothing can be written"


def test_pings_when_nothing_was_received_or_sent():
    """
    0 s connected     30 s ping, answered        60 s ping, no answer     75 s over
    heartbeats at QoS 0 every second do not keep a dead line alive
    """
    made = client()
    pings = []
    for second in range(1, 80):
        if made.ended is None:
            made.publish("heartbeat", b"", second * S, qos=0)
            written(made, second * S)
        made.advance(second * S)
        if written(made, second * S) == [b"\xc0\x00"]:
            pings.append(second)
            if len(pings) == 1:
                made.feed(b"\xd0\x00", second * S)
        if made.ended:
            break
    assert pings == [30, 60]
    assert (second, made.ended) == (75, "no answer to a ping")


def test_messages_are_reported_and_acknowledged():
    """At QoS 0 and 1, retained or not; an oversized one is dropped, but acknowledged."""
    made = client()
    made.subscribe(["t/#"], 0)
    written(made, 0)
    big = message(b"t/big", bytes(PAYLOAD_BYTES_MAX + 1000), 9)
    data = b"\x90\x03\x00\x01\x01" + message(b"t/a", b"one") + message(b"t/b", b"", 7, 1) + big + message(b"t/c", b"x")
    expected = [
        ("subscribed", 1, True),
        ("message", "t/a", b"one", False),
        ("message", "t/b", b"", True),
        ("oversized", "t/big", PAYLOAD_BYTES_MAX + 1000),
        ("message", "t/c", b"x", False),
    ]
    assert made.feed(data, 0) == expected
    assert written(made, 0) == [b"\x40\x02\x00\x07", b"\x40\x02\x00\x09"]
    for size in (1, 7, 1000):
        again = client()
        again.subscribe(["t/#"], 0)
        events = [e for at in range(0, len(data), size) for e in again.feed(data[at : at + size], 0)]
        assert events == expected
        assert again.ended is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x20\x02\x00\x00", "wrong time"),
        (b"\x30\xff\xff\xff\xff\x01", "malformed length"),
        (b"\x40\xc8\x01", "200 bytes"),
        (b"\x42\x02\x00\x01", "flags 2"),
        (b"\x40\x02\x00\x05", "nothing in flight"),
        (b"\x40\x01\x00", "nothing in flight"),
        (b"\x90\x03\x00\x05\x01", "no subscription"),
        (b"\xd0\x00", "unexpected packet of type 13"),
        (b"\x10\x00", "unexpected packet of type 1"),
        (b"\x00\x00", "unexpected packet of type 0"),
        (b"\x34\x05\x00\x01t\x00\x01", "flags 4"),
        (b"\x38\x03\x00\x01t", "flags 8"),
        (b"\x30\x01\x00", "malformed message"),
        (b"\x30\x02\x00\x00", "malformed message"),
        (b"\x30\x03\x00\x02t", "malformed message"),
        (b"\x32\x05\x00\x01t\x00\x00", "malformed message"),
        (b"\x30\x03\x00\x01#", "invalid topic"),
        (b"\x30\x04\x00\x02\xc0\x80", "invalid topic"),
        (b"\x30\x80\x80\x04\xff\xff" + b"t" * 600, "malformed message"),
    ],
)
def test_wrong_bytes_end_the_connection_with_a_reason(data, reason):
    """Whole or byte by byte; bytes behind them are not read."""
    for size in (1, 1000):
        made = client()
        for at in range(0, len(data), size):
            assert made.feed(data[at : at + size], 0) == []
        assert reason in made.ended
        assert made.feed(message(b"t", b"x"), 0) == []
        assert not made.connected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x20\x02\x00\x05", "refused: not authorised"),
        (b"\x20\x02\x01\x00", "malformed CONNACK"),
        (b"\x20\x02\x00\x06", "malformed CONNACK"),
        (b"\x20\x01\x00", "malformed CONNACK"),
        (b"\x30\x03\x00\x01t", "before CONNACK"),
        (b"\x40\x02\x00\x01", "wrong time"),
    ],
)
def test_connections_that_do_not_begin(data, reason):
    """A clean session has no past: a session that is present is a fault."""
    made = Mqtt("gw", 60)
    made.begin(0)
    made.feed(data, 0)
    assert reason in made.ended


@given(st.lists(st.binary(max_size=30), max_size=10), st.booleans())
def test_any_bytes_in_any_pieces_do_no_harm(pieces, connected):
    """No exception, the same events whatever the pieces, and never more held than one message."""
    whole, parts = [client() if connected else Mqtt("gw", 0) for _ in range(2)]
    data = b"".join(pieces)
    events = whole.feed(data, 0)
    assert [e for piece in pieces for e in parts.feed(piece, 0)] == events
    assert parts.ended == whole.ended
    whole.advance(S)


def test_a_broken_connection_is_reported_once():
    """The first reason stays."""
    made = client()
    made.lost("connection reset")
    made.lost("again")
    made.advance(10 * ANSWER_US)
    made.disconnect(0)
    assert (made.ended, made.to_write()) == ("connection reset", b"")
    with pytest.raises(ValueError, match="no connection"):
        made.subscribe(["t"], 0)
