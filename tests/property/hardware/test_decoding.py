"""Laws of the decoders on arbitrary bytes, against slow references that look at the whole stream at once."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_hardware import READERS, Frame, decoder
from whenabouts_hardware.crc16 import epc_crc
from whenabouts_hardware.readers.em4100 import encode
from whenabouts_hardware.readers.m6e_frames import (
    KEEPALIVE,
    START_ACK,
    START_CONTINUOUS,
    STOP,
    VERSION,
    answer,
    command,
    crc,
    tag_notice,
)

EM4100 = ("rdm6300", "id12la")
# (protocol, mode) of every decoder there is.
VARIANTS = [("rdm6300", None), ("id12la", None), ("m6e", "reader"), ("m6e", "host"), ("m6e", "both")]
STARTS = {"rdm6300": b"\x02", "id12la": b"\x02", "m6e": b"\xff"}
often = settings(max_examples=examples(400))  # cheap ones
every_variant = pytest.mark.parametrize(("name", "mode"), VARIANTS)

# Small alphabets make start bytes, digits and ends meet far more often than uniform bytes would.
cards = st.builds(encode, st.integers(0, 255), st.integers(0, 2**32 - 1), st.booleans())
notices = st.builds(
    tag_notice,
    st.integers(0, 31).flatmap(lambda words: st.binary(min_size=2 * words, max_size=2 * words)),
    rssi=st.integers(-128, 127),
    antenna=st.builds("{}/{}".format, st.integers(1, 16), st.integers(1, 16)),
    freq_khz=st.integers(0, 2**24 - 1),
    ts_ms=st.integers(0, 2**32 - 1),
    read_count=st.integers(0, 255),
    phase=st.integers(0, 180),
    gpio=st.integers(0, 255),
)
answers = st.one_of(
    notices,
    st.builds(answer, st.integers(0, 255), st.integers(0, 2**16 - 1), st.binary(max_size=248)),
    st.sampled_from([KEEPALIVE, START_ACK]),
)
commands = st.one_of(
    st.builds(command, st.integers(0, 255), st.binary(max_size=250)),
    st.sampled_from([VERSION, STOP, START_CONTINUOUS]),
)
texts = st.lists(st.sampled_from(b"\x02\x03\r\n0123456789ABCDEFabcdefG"), max_size=40).map(bytes)
ones = st.lists(st.sampled_from(b"\xff\xf8\xfa\x00\x01\x02\x22\x29\x88"), max_size=40).map(bytes)


@st.composite
def _damaged(draw, frames: st.SearchStrategy[bytes]) -> bytes:
    """A frame with a piece cut out or a byte changed."""
    raw = draw(frames)
    at = draw(st.integers(0, len(raw) - 1))
    if draw(st.booleans()):
        return raw[:at] + raw[draw(st.integers(at, len(raw))) :]
    return raw[:at] + bytes([draw(st.integers(0, 255))]) + raw[at + 1 :]


good = st.one_of(cards, answers, commands)
streams = st.lists(st.one_of(good, _damaged(good), texts, ones, st.binary(max_size=30)), max_size=8).map(b"".join)


def _crc_by_bits(data: bytes) -> int:
    """The vendor's checksum, bit by bit as its recipe defines it."""
    value = 0xFFFF
    for byte in data:
        for i in range(7, -1, -1):
            top = value & 0x8000
            value = (value << 1 | byte >> i & 1) & 0xFFFF
            if top:
                value ^= 0x1021
    return value


def _reference_em4100(stream: bytes) -> list[tuple[int, bytes]]:
    """(start, bytes) of every frame with a right checksum; the expression cannot reach across another frame's start."""
    frames = []
    for match in re.finditer(rb"\x02([0-9A-Fa-f]{12})[\r\n]{0,2}\x03", stream):
        *payload, checksum = bytes.fromhex(match[1].decode())
        for byte in payload:
            checksum ^= byte
        if checksum == 0:
            frames.append((match.start(), match[0]))
    return frames


def _reference_m6e(stream: bytes, mode: str) -> list[tuple[int, bytes]]:
    """(start, bytes) of every frame with a right checksum, from left to right, without overlap."""
    frames = []
    at = 0
    while at < len(stream):
        taken = 0
        for direction, overhead, most in (("host", 5, 250), ("reader", 7, 248)):
            head = stream[at : at + 2]
            if taken or mode not in (direction, "both") or len(head) < 2 or head[0] != 0xFF or head[1] > most:
                continue
            raw = stream[at : at + head[1] + overhead]
            if len(raw) == head[1] + overhead and _crc_by_bits(raw[1:-2]) == int.from_bytes(raw[-2:], "big"):
                frames.append((at, raw))
                taken = len(raw)
        at += taken or 1
    return frames


def _reference(name: str, mode: str | None, stream: bytes) -> list[tuple[int, bytes]]:
    return _reference_m6e(stream, mode) if mode else _reference_em4100(stream)


def _new(name: str, mode: str | None):
    return decoder(name, mode=mode) if mode else decoder(name)


def _all(name: str, mode: str | None, stream: bytes) -> list[Frame]:
    reader = _new(name, mode)
    return reader.feed(stream) + reader.flush()


def _checksum_fits(frame: Frame) -> bool:
    """A frame whose own checksum holds, though its content may not."""
    return frame.ok or frame.fault == "bad_content"


@often
@every_variant
@given(streams)
@example(b"\xff\xff\xff\xff")
@example(b"\x02" * 40)
@example(b"\xff\xf8" + KEEPALIVE * 40)
def test_frames_are_those_of_the_reference(name, mode, stream):
    """Exactly the frames with a right checksum are found, each once, in order, wherever damage stands before them."""
    frames = _all(name, mode, stream)
    assert [(f.start, f.raw) for f in frames if _checksum_fits(f)] == _reference(name, mode, stream)


@often
@every_variant
@given(streams)
def test_every_byte_is_accounted_for(name, mode, stream):
    """Frames lie in the stream at their stated places, do not overlap, and all other bytes are counted as noise."""
    reader = _new(name, mode)
    frames = reader.feed(stream) + reader.flush()
    at = 0
    for frame in frames:
        assert at <= frame.start < frame.end
        assert stream[frame.start : frame.end] == frame.raw
        assert frame.ok is (frame.error is None) is (frame.fault is None)
        at = frame.end
    assert sum(len(frame.raw) for frame in frames) + reader.counters["noise_bytes"] == len(stream)
    assert reader.counters["frames"] == sum(frame.ok for frame in frames)
    assert reader.pending == b""


@often
@every_variant
@given(streams, st.lists(st.integers(0, 400), max_size=8))
def test_splits_change_nothing(name, mode, stream, cuts):
    """However reads split a stream, frames and counters are the same, and less than a frame is held back."""
    whole, parts, bytewise = _new(name, mode), _new(name, mode), _new(name, mode)
    expected = whole.feed(stream)
    cuts = sorted(min(cut, len(stream)) for cut in cuts)
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [frame for piece in pieces for frame in parts.feed(piece)] == expected
    got = []
    for byte in stream:
        got += bytewise.feed(bytes([byte]))
        assert len(bytewise.pending) < bytewise.FRAME_BYTES_MAX
    assert got == expected
    assert whole.counters == parts.counters == bytewise.counters
    assert whole.pending == parts.pending == bytewise.pending
    assert whole.flush() == parts.flush() == bytewise.flush()


@every_variant
@given(st.data())
def test_good_frames_between_noise_without_start_bytes(name, mode, data):
    """All good frames are found in order, at once and without any damaged ones, if no start byte stands in between."""
    frames = {None: cards, "reader": answers, "host": commands, "both": commands}[mode]
    start = STARTS[name]
    noise = st.binary(max_size=20).map(lambda raw: raw.replace(start, b"."))
    sent = data.draw(st.lists(frames, max_size=6))
    stream = data.draw(noise)
    for raw in sent:
        stream += raw + data.draw(noise)
    reader = _new(name, mode)
    decoded = reader.feed(stream)
    assert [frame.raw for frame in decoded] == sent
    assert all(_checksum_fits(frame) for frame in decoded)
    assert reader.counters["noise_bytes"] == len(stream) - sum(map(len, sent))


def _content(frame: Frame) -> tuple:
    return frame.kind, sorted(frame.fields.items(), key=lambda item: item[0])


@pytest.mark.parametrize("name", EM4100)
@given(cards)
def test_one_flipped_bit_of_a_card_frame(name, raw):
    """No flip of a single bit turns a card into another: the XOR catches every one (lower case stays the same card)."""
    [frame] = _all(name, None, raw)
    for bit in range(8 * len(raw)):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        for other in _all(name, None, bytes(flipped)):
            assert not other.ok or _content(other) == _content(frame)


@pytest.mark.parametrize("mode", ["reader", "both"])
@given(notices)
def test_one_flipped_bit_of_a_tag_notice(mode, raw):
    """No flip of a single bit of a tag notice gives a tag: two checksums stand against it."""
    [frame] = _all("m6e", mode, raw)
    assert frame.ok
    assert frame.kind == "tag"
    for bit in range(8 * len(raw)):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        assert [other for other in _all("m6e", mode, bytes(flipped)) if other.ok and other.kind == "tag"] == []


@given(st.binary(max_size=300))
def test_checksums_equal_their_recipes(data):
    """The table gives what the vendor's recipe gives bit by bit; the tag's checksum is the same with zeros appended."""
    assert crc(data) == _crc_by_bits(data)
    assert epc_crc(data) == _crc_of_gen2_by_bits(data)


def _crc_of_gen2_by_bits(data: bytes) -> int:
    value = 0xFFFF
    for byte in data:
        value ^= byte << 8
        for _ in range(8):
            value = (value << 1 ^ (0x1021 if value & 0x8000 else 0)) & 0xFFFF
    return value ^ 0xFFFF


@given(answers)
def test_damaged_length_does_not_swallow_what_follows(raw):
    """A length that claims the largest frame costs at most that many bytes: later frames come without a flush."""
    broken = b"\xff\xf8" + raw[2:]
    reader = decoder("m6e", mode="reader")
    frames = reader.feed(broken + KEEPALIVE * 80)
    assert sum(frame.kind == "keepalive" for frame in frames) >= 80 - 255 // len(KEEPALIVE) - 1


# Data that begins like a streamed record or a tag buffer, whole or cut, so that every field gets to be the last one.
contents = st.one_of(
    st.tuples(
        st.sampled_from(["", "88"]),
        st.sampled_from(["10001b", "10011f", "00001b", "000013", "01ff00", "0fff00", "1fff00", "000000"]),
        st.sampled_from(["", "01ff01", "0fff01", "1fff01", "00ff01", "0000", "01ff02", "02"]),
    ).map(lambda parts: bytes.fromhex("".join(parts))),
    notices.map(lambda raw: raw[5:-2]),
)


@given(
    st.sampled_from([0x03, 0x04, 0x22, 0x29, 0x2F, 0x72, 0x9D]),
    st.sampled_from([0, 0, 0, 0x0400, 0x0504]),
    st.tuples(contents, st.binary(max_size=60), st.integers(0, 248)).map(lambda t: (t[0] + t[1])[: t[2]]),
)
def test_any_content_is_read_or_refused(op, status, data):
    """Any content with a right checksum gives one frame: ok, or not ok with the reason and all its data."""
    [frame] = decoder("m6e", mode="reader").feed(answer(op, status, data))
    assert (frame.fields["op"], frame.fields["status"]) == (op, status)
    assert frame.ok or (frame.fault == "bad_content" and frame.error and frame.fields["data"] == data.hex())
    READERS["m6e"].sightings(frame)


@given(
    st.integers(0, 31).flatmap(lambda words: st.binary(min_size=2 * words, max_size=2 * words)),
    st.integers(-128, 127),
    st.integers(1, 16),
    st.integers(1, 16),
    st.integers(0, 2**24 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 255),
)
def test_notice_comes_back_as_built(epc, rssi, tx, rx, freq_khz, ts_ms, read_count):
    """The agent decodes the values that a simulator puts into a tag notice."""
    raw = tag_notice(
        epc, rssi=rssi, antenna=f"{tx}/{rx}", freq_khz=freq_khz, ts_ms=ts_ms, read_count=read_count, phase=9, gpio=3
    )
    [frame] = decoder("m6e").feed(raw)
    attrs = {"rssi": rssi, "antenna": tx, "freq_khz": freq_khz, "phase": 9, "gpio": 3}
    assert READERS["m6e"].sightings(frame) == [(epc.hex().upper(), attrs, ts_ms, read_count)]
    assert frame.fields["antenna"] == f"{tx}/{rx}"


@given(st.integers(0, 255), st.integers(0, 2**32 - 1), st.booleans())
def test_card_comes_back_as_encoded(version, id, crlf):
    """The agent decodes the card that a simulator encodes, in both layouts."""
    [frame] = decoder("id12la").feed(encode(version, id, crlf))
    assert (frame.ok, frame.fields["version"], frame.fields["id"]) == (True, version, id)
    assert READERS["id12la"].sightings(frame) == [(f"{version:02X}{id:08X}", {}, None, 1)]
