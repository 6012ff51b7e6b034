"""Laws of the decoders of PN532, UHFReader18, YRM100 and lines on arbitrary bytes, against references by regular expression
or by looking at every place of the whole stream."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_hardware import READERS, decoder
from whenabouts_hardware.readers import pn532_frames as pn532
from whenabouts_hardware.readers import uhfreader18 as uhf18
from whenabouts_hardware.readers import yrm100
from whenabouts_hardware.readers.line import LINE_BYTES_MAX
from whenabouts_hardware.readers.line_values import observed

often = settings(max_examples=examples(120), deadline=None)
words = st.integers(0, 31).flatmap(lambda n: st.binary(min_size=2 * n, max_size=2 * n))

GOOD = {
    "pn532": st.one_of(
        st.sampled_from([pn532.ACK, pn532.NACK, pn532.ERROR, pn532.WAKEUP, pn532.NO_TARGET, pn532.LIST_ONE_106A]),
        st.builds(pn532.command, st.integers(0, 255), st.binary(max_size=263)),
        st.builds(
            lambda uid: pn532.answer(pn532.OP_LIST_PASSIVE, b"\x01" + pn532.target_106a(1, uid)),
            st.binary(min_size=4, max_size=10),
        ),
    ),
    "uhfreader18": st.one_of(
        st.sampled_from([uhf18.INVENTORY, uhf18.HEARTBEAT]),
        st.builds(uhf18.answer, st.integers(0, 255), st.integers(0, 255), st.binary(max_size=40)),
        st.builds(uhf18.inventory_answer, st.lists(st.binary(min_size=1, max_size=12), max_size=4)),
    ),
    "yrm100": st.one_of(
        st.sampled_from([yrm100.NO_TAG, yrm100.STOP, yrm100.STOPPED, yrm100.INVENTORY_ENDLESS]),
        st.builds(yrm100.tag_notice, words, st.integers(-128, 127)),
        st.builds(yrm100.framed, st.integers(0, 2), st.integers(0, 255), st.binary(max_size=255)),
    ),
    "line": st.sampled_from(
        [b'{"t": 21.5, "ok": true}\n', b"21.5,ok\r\n", b"$GPGLL,5300.97914,N*1E\r\n", "grün\r".encode(), b"\xff\xfe\n"]
    ),
}
NAMES = sorted(GOOD)
NOISE = {
    "pn532": st.lists(st.sampled_from(b"\x00\xff\x55\x01\xd4\xd5"), max_size=30).map(bytes),
    "uhfreader18": st.lists(st.sampled_from(b"\x00\x04\x05\x56\x06\xff"), max_size=30).map(bytes),
    "yrm100": st.lists(st.sampled_from(b"\xbb\x00\x01\x02\x7e\x22"), max_size=30).map(bytes),
    "line": st.lists(st.sampled_from(b'\r\n{}$*,"a1\xff'), max_size=30).map(bytes),
}


@st.composite
def streams(draw, name):
    """Good frames, damaged ones, noise that looks like frames, and any bytes."""
    damaged = st.tuples(GOOD[name], st.integers(0, 300), st.integers(0, 255)).map(
        lambda t: t[0][: t[1] % len(t[0])] + bytes([t[2]]) + t[0][t[1] % len(t[0]) + 1 :]
    )
    cut = st.tuples(GOOD[name], st.integers(0, 300)).map(lambda t: t[0][: t[1] % len(t[0])])
    pieces = st.one_of(GOOD[name], damaged, cut, NOISE[name], st.binary(max_size=20))
    return b"".join(draw(st.lists(pieces, max_size=7)))


def _crc_8408(data):
    value = 0xFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x8408 if value & 1 else 0)
    return value


def _pn532_at(stream, at):
    """The length of the frame whose first byte is at a place, 0 if none begins there."""
    if stream[at : at + 16] == b"\x55\x55" + bytes(14):
        return 16
    short = re.compile(rb"\x00?\x00\xff(\x00\xff|\xff\x00)\x00?", re.S).match(stream, at)
    if short:
        return len(short[0])
    head = re.compile(rb"\x00?\x00\xff(?:\xff\xff(..)(.)|(.)(.))", re.S).match(stream, at)
    if not head:
        return 0
    size = int.from_bytes(head[1], "big") if head[1] else head[3][0]
    total = sum(head[1] + head[2]) if head[1] else head[3][0] + head[4][0]
    body = stream[head.end() : head.end() + size + 1]
    if total % 256 or not 0 < size <= 265 or len(body) != size + 1 or sum(body) % 256:
        return 0
    return head.end() - at + size + 1 + (stream[head.end() + size + 1 : head.end() + size + 2] == b"\0")


def _uhf18_at(stream, at):
    if stream[at : at + 6] == bytes([0x56, 0, 0, 0, 0, 0]):
        return 6
    size = stream[at] + 1
    raw = stream[at : at + size]
    return size if size >= 5 and len(raw) == size and _crc_8408(raw) == 0 else 0


def _yrm100_at(stream, at):
    head = stream[at : at + 5]
    if len(head) < 5 or head[0] != 0xBB or head[1] > 2:
        return 0
    size = 7 + (head[3] << 8 | head[4])
    raw = stream[at : at + size]
    fits = len(raw) == size and size <= 262 and raw[-1] == 0x7E and sum(raw[1:-2]) & 255 == raw[-2]
    return size if fits else 0


def _reference(name, stream):
    """(start, bytes) of every whole frame, from left to right, without overlap."""
    if name == "line":
        lines = re.finditer(rb"[^\r\n]+(?:\r\n|\n|\r)", stream)
        return [(m.start(), m[0]) for m in lines if len(m[0]) < LINE_BYTES_MAX]
    length = {"pn532": _pn532_at, "uhfreader18": _uhf18_at, "yrm100": _yrm100_at}[name]
    frames, at = [], 0
    while at < len(stream):
        size = length(stream, at)
        if size:
            frames.append((at, stream[at : at + size]))
        at += size or 1
    return frames


def whole(frame):
    """A frame whose bounds hold, whatever its content."""
    return frame.kind != "damaged" or (frame.fault == "bad_byte" and frame.raw[-1:] in (b"\r", b"\n"))


@pytest.mark.parametrize("name", NAMES)
@often
@given(st.data())
def test_frames_are_those_of_the_reference(name, data):
    """Exactly the whole frames are found, each once, in order, wherever damage stands before them."""
    stream = data.draw(streams(name))
    reader = decoder(name)
    frames = reader.feed(stream) + reader.flush()
    assert [(f.start, f.raw) for f in frames if whole(f)] == _reference(name, stream)


@pytest.mark.parametrize("name", NAMES)
@often
@given(st.data())
def test_every_byte_is_accounted_for_however_reads_split_the_stream(name, data):
    """Frames do not overlap, the rest is noise; read byte by byte the same comes out, and little is held back."""
    stream = data.draw(streams(name))
    reader, bytewise = decoder(name), decoder(name)
    frames = reader.feed(stream) + reader.flush()
    slow = []
    for byte in stream:
        slow += bytewise.feed(bytes([byte]))
        assert len(bytewise.pending) < bytewise.FRAME_BYTES_MAX
    slow += bytewise.flush()
    assert slow == frames
    assert bytewise.counters == reader.counters
    at = 0
    for frame in frames:
        assert at <= frame.start < frame.end
        assert stream[frame.start : frame.end] == frame.raw
        assert frame.ok is (frame.error is None) is (frame.fault is None)
        at = frame.end
    assert sum(len(frame.raw) for frame in frames) + reader.counters["noise_bytes"] == len(stream)


@pytest.mark.parametrize("name", NAMES)
@often
@given(st.data())
def test_the_content_of_frames_is_read_or_refused(name, data):
    """No content makes the agent's reading of a frame fail; a damaged frame reports nothing."""
    stream = data.draw(streams(name))
    reader = decoder(name)
    for frame in reader.feed(stream) + reader.flush():
        seen = READERS[name].sightings(frame)
        assert frame.ok or seen == []
        if name == "line":
            assert frame.ok or observed(frame) is None
        for sighting in seen:
            assert sighting.key == sighting.key.upper()


@given(st.lists(words.filter(bool), min_size=1, max_size=5))
def test_tags_of_an_inventory_come_back(epcs):
    """The agent decodes the answers of a simulator, in order."""
    for count in range(len(epcs) + 1):
        raw = uhf18.inventory_answer(epcs[:count]) if sum(map(len, epcs)) < 200 else uhf18.inventory_answer([])
        [frame] = decoder("uhfreader18").feed(raw)
        assert frame.ok
        assert [s.key for s in READERS["uhfreader18"].sightings(frame)] in ([e.hex().upper() for e in epcs[:count]], [])
        assert (frame.kind == "no_tag") is (frame.fields["status"] == uhf18.STATUS_NO_TAG)


@given(words, st.integers(-128, 127))
def test_one_flipped_bit_of_a_notice(epc, rssi):
    """No flip of a single bit of a YRM100's notice gives another tag: two checksums stand against it."""
    raw = yrm100.tag_notice(epc, rssi)
    [frame] = decoder("yrm100").feed(raw)
    assert READERS["yrm100"].sightings(frame) == [(epc.hex().upper(), {"rssi": rssi}, None, 1)]
    for bit in range(8 * len(raw)):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        reader = decoder("yrm100")
        frames = reader.feed(bytes(flipped)) + reader.flush()
        assert [s for other in frames for s in READERS["yrm100"].sightings(other)] == []


@given(st.sampled_from(sorted(READERS)), st.integers(0, 60))
def test_a_line_stuck_at_one_byte_fills_nothing(name, size):
    """Zeros, or start bytes without end, are neither kept nor a reason to fail."""
    for byte in (0, 0x55, 0xBB, 0xFF, 0x02, 0x7B):
        reader = READERS[name].new_decoder()
        stream = bytes([byte]) * size * 50
        frames = reader.feed(stream)
        assert len(reader.pending) < reader.FRAME_BYTES_MAX
        frames += reader.flush()
        assert sum(len(f.raw) for f in frames) + reader.counters["noise_bytes"] == len(stream)
