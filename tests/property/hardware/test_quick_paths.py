"""The fast paths give the results of the definitions, field by field and byte by byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenabouts_hardware import crc16, decoder
from whenabouts_hardware.readers import m6e_frames, m6e_records
from whenabouts_hardware.readers.m6e_frames import META_ANTENNA, META_BRAND, META_DATA, META_KNOWN, META_PROTOCOL
from whenabouts_hardware.readers.m6e_records import ContentError, Cursor, tag_record


@given(st.binary(max_size=300), st.integers(0, 0xFFFF))
def test_the_frame_checksum_in_c_is_the_one_defined(data, value):
    """With any start, also continued, and for data of no, one and two bytes."""
    assert crc16.crc_hqx is not None
    assert m6e_frames.crc(data, value) == m6e_frames._entered(data, value)
    assert m6e_frames.crc(data) == m6e_frames.crc(data[5:], m6e_frames.crc(data[:5]))


@pytest.mark.parametrize("checksum", [crc16.epc_crc, crc16.mcrf4xx])
@given(data=st.binary(max_size=260))
def test_a_checksum_in_c_is_the_one_on_boards(checksum, data):
    """Boards have no C for it."""
    quick, crc16.crc_hqx = crc16.crc_hqx, None
    try:
        slow = checksum(data)
    finally:
        crc16.crc_hqx = quick
    assert checksum(data) == slow


@pytest.mark.parametrize("noise", [b"\xff", b"{", b"\x60"])
def test_noise_that_claims_long_frames_costs_no_more_than_its_line_brings(noise, monkeypatch):
    """Every place of it is tried, with a checksum over up to 255 bytes: in C, as a floating line never ends."""
    monkeypatch.setattr(crc16, "_TABLE_8408", ())  # an IndexError for a step of Python a byte
    damaged = decoder("uhfreader18").feed(noise * 2000)
    assert damaged
    assert not any(frame.ok for frame in damaged)


def read(data, metadata):
    """The fields, the problem if there is one, and the position after the last byte read."""
    fields, cursor = {}, Cursor(data)
    try:
        error = tag_record(cursor, metadata, fields)
    except ContentError as problem:
        error = str(problem)
    return fields, error, cursor.at


@given(
    st.integers(0, META_KNOWN).map(lambda flags: flags & META_KNOWN),
    st.binary(max_size=60),
    st.sampled_from([None, b"\x05"]),
)
def test_metadata_read_at_once_are_those_read_one_by_one(metadata, data, protocol):
    """Any flags, any bytes, cut anywhere, Gen2 and others, with and without embedded data."""
    if protocol and not metadata & META_ANTENNA:
        data = protocol * 8 + data
    at_once = m6e_records._read_at_once
    quick = read(data, metadata)
    m6e_records._read_at_once = lambda *_: False
    try:
        slow = read(data, metadata)
    finally:
        m6e_records._read_at_once = at_once
    assert quick == slow


@given(
    st.sampled_from([0, META_ANTENNA, META_PROTOCOL, META_BRAND, META_KNOWN]),
    st.binary(max_size=20),
    st.integers(0, 200),
    st.binary(max_size=24),
    st.booleans(),
)
def test_an_answer_read_at_once_is_the_one_read_word_by_word(metadata, before, bits, reply, right):
    """Any length claimed, XPC words or not, checksums that fit or do not, cut anywhere."""
    if right and len(reply) >= 2:
        bits, reply = 8 * len(reply) + 16, reply + crc16.epc_crc(reply).to_bytes(2, "big")
    data = before + bits.to_bytes(2, "big") + reply
    quick, end = read(data, metadata), m6e_records._plain_reply_end
    m6e_records._plain_reply_end = lambda _: 0
    try:
        slow = read(data, metadata)
    finally:
        m6e_records._plain_reply_end = end
    assert quick == slow


@pytest.mark.parametrize("metadata", [META_PROTOCOL, META_PROTOCOL | META_DATA])
def test_layouts_that_are_kept_are_few(metadata):
    """Flags are the reader's to choose: a hostile one fills no memory."""
    for flags in range(200):
        read(bytes(60), metadata | flags & META_KNOWN)
    assert len(m6e_records._layouts) <= m6e_records._LAYOUTS_MAX
