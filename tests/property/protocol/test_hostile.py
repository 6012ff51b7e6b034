"""Hostile bytes and damaged readings: a value or WireError, never another exception, in bounded time and memory."""

import time
import tracemalloc

import cbor2
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import whenabouts_protocol as protocol
from property import strategies as some
from support.files.vectors import rows
from support.search import examples
from whenabouts_protocol import Ack, Birth, Heartbeat, Status
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.messages.batch import MAX_MESSAGE_BYTES, decode_batch, encode_batch
from whenabouts_protocol.reading import FIELDS, Reading

CODERS = [
    (encode_batch, decode_batch),
    (protocol.encode_birth, protocol.decode_birth),
    (protocol.encode_status, protocol.decode_status),
    (protocol.encode_heartbeat, protocol.decode_heartbeat),
    (protocol.encode_ack, protocol.decode_ack),
]
GOLDEN = [bytes.fromhex(row["hex"]) for row in rows("batches.json") + rows("messages.json")]
GOLDEN_SMALL = [data for data in GOLDEN if len(data) < 600]

# Measured on CPython 3.11: 106 times the message for maps of one entry nested as deep as they may, 83 for maps of one
# text key, 73 for empty maps, 65 for empty arrays, 20 or less for everything else. So 28 MB is the most that one message
# can take. Time is 0.2 s at most on a 2-core machine, ten times that under the tracing.
PEAK_BYTES_PER_BYTE = 120
SECONDS_MAX = 60  # of the processor, memory being traced: distinguishes linear from quadratic, not fast from slow


def decode_all(data):
    """Every decoder on data; an accepted value can be encoded again, and then always in the same bytes."""
    for encode, decode in CODERS:
        try:
            value = decode(data)
        except WireError:
            continue
        if len(data) < MAX_MESSAGE_BYTES // 4:  # short floats grow when they are encoded again
            again = encode(value)
            assert decode(again) == value
            assert encode(decode(again)) == again


def walk(value, path=()):
    """The places of a structure, the outermost first."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in inner:
        yield from walk(item, (*path, step))


def replaced(value, path, new):
    """The structure with `new` at path."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@settings(max_examples=examples(500), deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes(data):
    """Arbitrary bytes end in WireError or a value."""
    decode_all(data)


@settings(max_examples=examples(300), deadline=None)
@given(some.cbor_values())
def test_any_cbor(value):
    """Arbitrary CBOR ends in WireError or a value."""
    decode_all(cbor2.dumps(value))


@settings(max_examples=examples(800), deadline=None)
@given(st.sampled_from(GOLDEN_SMALL), st.data())
def test_a_good_message_with_bytes_flipped_cut_or_put_in(data, draw):
    """Bit flips, truncations, insertions and repeated pieces of good messages end in WireError or a value."""
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 3))):
        at = draw.draw(st.integers(0, max(len(damaged) - 1, 0)))
        way = draw.draw(st.sampled_from(["flip", "cut", "insert", "repeat", "length"]))
        if way == "flip" and damaged:
            damaged[at] ^= 1 << draw.draw(st.integers(0, 7))
        elif way == "cut":
            damaged = damaged[:at]
        elif way == "insert":
            damaged[at:at] = draw.draw(st.binary(min_size=1, max_size=4))
        elif way == "repeat":
            damaged[at:at] = damaged[at : at + draw.draw(st.integers(1, 9))]
        else:
            damaged[at : at + 1] = draw.draw(st.sampled_from(HUGE_HEADS))
    decode_all(bytes(damaged))


HUGE_HEADS = [bytes([major | 27]) + b"\xff" * 8 for major in range(0, 256, 32)] + [
    bytes([major | 26]) + b"\x7f\xff\xff\xff" for major in range(0, 256, 32)
]


@settings(max_examples=examples(600), deadline=None)
@given(st.sampled_from(GOLDEN_SMALL), st.data(), some.cbor_values())
def test_a_good_message_with_another_value_in_any_place(data, draw, value):
    """With any value in any place of the structure, decoding ends in WireError or a value."""
    structure = cbor2.loads(data)
    path = draw.draw(st.sampled_from(list(walk(structure))))
    decode_all(cbor2.dumps(replaced(structure, path, value)))


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(GOLDEN_SMALL), st.data())
def test_a_good_message_with_two_items_swapped(data, draw):
    """Two places of the structure exchanged: WireError or a value."""
    structure = cbor2.loads(data)
    places = [path for path in walk(structure) if path]
    one, other = draw.draw(st.sampled_from(places)), draw.draw(st.sampled_from(places))
    assume(one[: len(other)] != other and other[: len(one)] != one)

    def at(path):
        value = structure
        for step in path:
            value = value[step]
        return value

    a, b = at(one), at(other)
    decode_all(cbor2.dumps(replaced(replaced(structure, one, b), other, a)))


def test_every_truncation_of_every_golden_message_is_refused():
    """No beginning of a message is a message."""
    for data in GOLDEN_SMALL:
        for end in range(len(data)):
            for _, decode in CODERS:
                with pytest.raises(WireError):
                    decode(data[:end])


def test_every_single_bit_of_a_message_may_flip():
    """Each bit of each small golden message, one at a time."""
    for data in GOLDEN_SMALL[:3] + GOLDEN_SMALL[-6:]:
        for bit in range(8 * len(data)):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            decode_all(bytes(flipped))


def test_nesting_without_end_is_refused():
    """A quarter of a million brackets end in WireError, not in the interpreter's limit."""
    for bracket in (b"\x81", b"\xa1\x00", b"\xa1"):
        for _, decode in CODERS:
            with pytest.raises(WireError):
                decode(bracket * (MAX_MESSAGE_BYTES // len(bracket)))


HEAD = bytes.fromhex("ac0002016173026167030004000500068180078183617800f6088009800a818800000000f60000f6185a")


def filled(pattern):
    """A message of just under MAX_MESSAGE_BYTES: a batch of one whose unknown key 90 holds the pattern over and over."""
    count = (MAX_MESSAGE_BYTES - len(HEAD) - 5) // len(pattern)
    return HEAD + b"\x9a" + count.to_bytes(4, "big") + pattern * count


NESTED = b"\xa1\x00" * 3 + b"\xa0"  # as deep as the profile allows
WORST = {
    "small integers": filled(b"\x00"),
    "empty arrays": filled(b"\x80"),
    "empty maps": filled(b"\xa0"),
    "arrays of one": filled(b"\x81\x00"),
    "nested maps of one": filled(NESTED),
    "maps of one text key": filled(b"\xa1\x60\x80"),
    "texts of one byte": filled(b"\x61a"),
    "one text": HEAD + b"\x7a\x00\x03\xff\x00" + b"x" * 0x3FF00,
    "hashes that collide": HEAD + cbor2.dumps({n << 44: 0 for n in range(MAX_MESSAGE_BYTES // 10 - 10)}),
}


# The most memory, the most values, the longest value, and the worst keys; the others take less of the same.
QUICK = ("nested maps of one", "small integers", "one text", "hashes that collide")


@pytest.mark.parametrize(
    "data",
    [pytest.param(data, id=name, marks=() if name in QUICK else pytest.mark.deep) for name, data in WORST.items()],
)
def test_memory_and_time_are_bounded_by_the_size_of_the_message(data):
    """A message of the largest size, filled with what costs most, is decoded within PEAK_BYTES_PER_BYTE and SECONDS_MAX."""
    assert MAX_MESSAGE_BYTES * 0.99 < len(data) <= MAX_MESSAGE_BYTES
    tracemalloc.start()
    begin = time.process_time()
    try:
        assert len(decode_batch(data)) == 1
    finally:
        seconds = time.process_time() - begin
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    print(f"{peak / len(data):.0f} bytes a byte, {seconds:.2f} s")
    assert peak < PEAK_BYTES_PER_BYTE * len(data)
    assert seconds < SECONDS_MAX


def test_a_batch_whose_readings_share_everything_stays_small():
    """2000 readings with one clock of 64 processes and one long key hold these once."""
    usual = {"site": "s", "gateway": "g", "boot": 1, "stream": "x" * 256, "kind": "tag", "key": "k" * 256}
    data = encode_batch([Reading(seq=n, t_min=0, t_max=0, vclock=(2**63 - 1,) * 64, **usual) for n in range(2000)])
    tracemalloc.start()
    readings = decode_batch(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(readings) == 2000
    assert peak < PEAK_BYTES_PER_BYTE * len(data)


def test_a_message_above_the_limit_is_not_parsed():
    """One byte too many is refused by the size."""
    with pytest.raises(WireError, match="expected at most 262144"):
        decode_batch(b"\x00" * (MAX_MESSAGE_BYTES + 1))


@settings(max_examples=examples(600), deadline=None)
@given(some.readings(), st.lists(st.tuples(st.sampled_from(FIELDS), some.anything()), min_size=1, max_size=3))
def test_a_reading_whose_fields_were_set_to_anything(reading, changes):
    """encode_batch of a damaged reading ends in WireError, or in a message that decodes to exactly that reading."""
    for field, value in changes:
        setattr(reading, field, value)
    try:
        data = encode_batch([reading])
    except WireError:
        return
    assert decode_batch(data) == [reading]


@settings(max_examples=examples(200), deadline=None)
@given(some.batches(max_size=4), st.data())
def test_one_damaged_reading_in_a_batch(readings, draw):
    """A damaged reading among others, whose tables could hide the damage."""
    at = draw.draw(st.integers(0, len(readings) - 1))
    setattr(readings[at], draw.draw(st.sampled_from(FIELDS)), draw.draw(some.anything()))
    try:
        data = encode_batch(readings)
    except WireError:
        return
    assert decode_batch(data) == readings


def test_fields_that_look_like_others_are_refused():
    """True for 1, a subclass for its base, bytes for a key, a list for a clock: each is refused, even beside its double."""
    usual = {"site": "s", "gateway": "g", "boot": 1, "seq": 0, "stream": "x", "kind": "tag", "t_min": 0, "t_max": 1}
    for field, value in [
        ("vclock", (True, 0)), ("vclock", [1, 0]), ("vclock", (1.0, 0)), ("vclock", b"\x01\x00"), ("vclock", {1: 0}),
        ("key", b"E20"), ("key", b"\xe2\x00"), ("key", ("E", "2")), ("key", "\ud800"), ("key", ""),
        ("attrs", {True: 1}), ("attrs", {1: 1}), ("attrs", {"a": None}), ("attrs", [5]), ("attrs", {"a": some.OddInt(1)}),
        ("attrs", {"\ud800": 1}), ("attrs", {"a": "\ud800"}), ("attrs", {"a": [1]}), ("attrs", None),
        ("value", some.OddInt(1)), ("value", float("nan")), ("value", b"x"), ("value", 1 << 63), ("value", "\ud800"),
        ("seq", True), ("seq", 0.0), ("boot", some.OddInt(1)), ("t_max", 1.0), ("site", some.OddText("s")),
        ("stream", some.OddText("x")), ("kind", None), ("clock_state", 0), ("unit", ""),
    ]:  # fmt: skip
        good = Reading(vclock=(1, 0), key="E20", attrs={"a": 1}, **usual)
        bad = Reading(vclock=(1, 0), key="E20", attrs={"a": 1}, **usual)
        setattr(bad, field, value)
        for batch in ([bad], [good, bad], [bad, good]):
            with pytest.raises(WireError):
                encode_batch(batch)


def test_numbers_of_thousands_of_digits_are_refused():
    """CPython refuses to print them, and no refusal tries to."""
    huge = 10**5000
    for field in FIELDS:
        bad = Reading(site="s", gateway="g", boot=1, seq=0, stream="x", kind="tag", t_min=0, t_max=1)
        setattr(bad, field, huge)
        with pytest.raises(WireError, match=field):
            encode_batch([bad])
    for encode, message in [
        (protocol.encode_birth, Birth("s", "g", 1, [("x", "tag", None, huge, 1)])),
        (protocol.encode_status, Status("s", "g", huge, "online")),
        (protocol.encode_status, Status("s", "g", 1, huge)),
        (protocol.encode_heartbeat, Heartbeat("s", "g", 1, huge, {1: (2, 2)}, "bounded", 9)),
        (protocol.encode_heartbeat, Heartbeat("s", "g", 1, 5, {1: (2, 2)}, huge, 9)),
        (protocol.encode_ack, Ack("s", "g", {huge: 2})),
    ]:
        with pytest.raises(WireError):
            encode(message)


def test_a_field_that_was_deleted_is_refused():
    """A reading without one of its fields has no wire form."""
    for field in FIELDS:
        bad = Reading(site="s", gateway="g", boot=1, seq=0, stream="x", kind="tag", t_min=0, t_max=1)
        delattr(bad, field)
        with pytest.raises(WireError):
            encode_batch([bad])


@settings(max_examples=examples(600), deadline=None)
@given(st.data(), some.anything())
def test_other_messages_whose_fields_were_set_to_anything(draw, value):
    """encode_* of a damaged birth, status, heartbeat or ack ends in WireError, or in a message that decodes to it."""
    message, encode, decode = draw.draw(
        st.sampled_from(
            [
                (Birth("s", "g", 1, [("x", "tag", None, 1, 1)], "y", ["g"], "1"), *CODERS[1]),
                (Status("s", "g", 1, "online"), *CODERS[2]),
                (Heartbeat("s", "g", 1, 5, {1: (2, 2)}, "bounded", 9), *CODERS[3]),
                (Ack("s", "g", {1: 2}), *CODERS[4]),
            ]
        )
    )
    field = draw.draw(st.sampled_from(message.__slots__))
    before = getattr(message, field)
    setattr(message, field, value)
    try:
        data = encode(message)
    except WireError:
        return
    finally:
        setattr(message, field, before)
    decode(data)
