"""Mercury answers: kinds, metadata, tags with extended PC, contradictions, and lengths that lie."""

import pytest

from whenabouts_hardware import Frame, decoder
from whenabouts_hardware.crc16 import epc_crc
from whenabouts_hardware.readers.m6e_frames import (
    KEEPALIVE,
    META_BRAND,
    START_ACK,
    START_CONTINUOUS,
    answer,
    command,
    set_read_power,
    set_region,
    start_continuous,
    tag_notice,
)
from whenabouts_hardware.readers.m6e_status import status_text

EPC = bytes.fromhex("000000000000000000001545")
NOTICE = tag_notice(EPC, rssi=-60, antenna="1/1", freq_khz=923200, ts_ms=295, gpio=15)


def only(raw: bytes, mode: str = "reader") -> Frame:
    """The one frame of these bytes."""
    reader = decoder("m6e", mode=mode)
    [frame] = reader.feed(raw) + reader.flush()
    return frame


def reply(pc: str, rest: str, brand: str = "") -> bytes:
    """Length in bits, PC, what follows it and a right CRC, as a tag record ends."""
    covered = bytes.fromhex(pc + rest + brand)
    body = covered + epc_crc(covered).to_bytes(2, "big")
    return (8 * len(body)).to_bytes(2, "big") + body


def stream(metadata: int, record: bytes, prefix: bytes = b"") -> bytes:
    """A streamed tag frame with this record."""
    return answer(0x22, 0, prefix + bytes.fromhex("10001b") + metadata.to_bytes(2, "big") + b"\x01" + record)


def test_notice_equals_the_worked_record():
    """The builder gives, byte for byte, the record published with its checksums."""
    assert NOTICE.hex() == (
        "ff2822000010001b01ff0101c4110e16400000012700000500000f00803000000000000000000000001545e94a561d"
    )


@pytest.mark.parametrize(
    ("raw", "kind", "fields"),
    [
        (KEEPALIVE, "keepalive", {"status": 0x0400}),
        (answer(0x22, 0x0400, bytes.fromhex("8800011b020000000003e8")), "keepalive", {"elapsed_ms": 1000}),
        (answer(0x22, 0x0504), "status", {"status": 0x0504, "text": "too hot, transmitter throttled"}),
        (answer(0x22, 0x0601), "status", {"text": "tag buffer full"}),
        (answer(0x29, 0x0400), "status", {"op": 0x29, "text": "no tags found"}),
        (answer(0x2F, 0x010B, b"\x01"), "status", {"text": "region not supported", "data": "01"}),
        (answer(0x7F, 0x7F01, b"\0\0\0\x07main.c"), "status", {"text": "assertion in the firmware"}),
        (answer(0x04, 0, b""), "boot", {"op": 4, "data": ""}),
        (answer(0x04, 0x0302, b"\x01\x02"), "boot", {"status": 0x0302, "data": "0102"}),
        (answer(0x04, 0, bytes(range(20))), "boot", {"hardware": "04050607", "fw": "0c0d0e0f"}),
        (answer(0x9D, 0, b"\x01"), "autonomous", {"data": "01"}),
        (answer(0x2F, 0, b"\x02"), "stop", {"data": "02"}),
        (answer(0x2F, 0, b"\x02\x00\x00"), "stop", {"data": "020000"}),
        (START_ACK, "answer", {"op": 0x2F, "data": "01220000"}),
        (answer(0x72, 0, b"\x23"), "answer", {"temp": 35}),
        (answer(0x72, 0, b"\xf6"), "answer", {"temp": -10}),
        (answer(0x97, 0), "answer", {"op": 0x97, "status": 0, "data": ""}),
        (answer(0x22, 0), "answer", {"op": 0x22}),
        (answer(0x29, 0, bytes.fromhex("00000010")), "answer", {"data": "00000010"}),
        (answer(0x29, 0, bytes.fromhex("01ff0000")), "tags", {"tags": []}),
        (answer(0x22, 0, bytes.fromhex("10001b01ff00")), "answer", {"response_type": 0}),
        (answer(0x22, 0, bytes.fromhex("8810011b01ff028200820001e2")), "stats", {"temp": -30}),
    ],
    ids=lambda value: value.hex() if isinstance(value, bytes) else None,
)
def test_kinds_of_answers(raw, kind, fields):
    """Each sort of answer has its kind and its fields."""
    frame = only(raw)
    assert frame.ok, frame
    assert frame.kind == kind
    assert {name: frame.fields.get(name) for name in fields} == fields


def test_commands():
    """A command gives its opcode and data, for every direction that the decoder is set to."""
    for raw in (START_CONTINUOUS, start_continuous(250), set_region(0x0D), set_read_power(2200)):
        for mode in ("host", "both"):
            frame = only(raw, mode)
            assert (frame.kind, frame.ok, frame.fields["op"]) == ("command", True, raw[2])
            assert frame.fields["data"] == raw[3:-2].hex()
    assert start_continuous(250)[15:17].hex() == "00fa"


def test_streamed_tag_with_multi_select_prefix():
    """Behind the prefix byte the record is read as usual."""
    frame = only(answer(0x22, 0, b"\x88" + NOTICE[5:-2]))
    assert (frame.ok, frame.kind) == (True, "tag")
    assert (frame.fields["epc"], frame.fields["ts_ms"]) == (EPC.hex(), 295)


@pytest.mark.parametrize(
    ("pc", "rest", "xpc"),
    [
        ("3400", "aabbccdd", None),
        ("3200", "0001aabbccdd", "0001"),
        ("3200", "80010002aabbccdd", "80010002"),
    ],
    ids=["no extension", "one word", "two words"],
)
def test_extended_protocol_control(pc, rest, xpc):
    """XPC words are between PC and EPC if their bits are set, and the tag's checksum covers them."""
    frame = only(stream(0, reply(pc, rest)))
    assert frame.ok, frame
    assert (frame.fields["pc"], frame.fields.get("xpc"), frame.fields["epc"]) == (pc, xpc, "aabbccdd")


def test_brand_id_is_the_tail_of_the_reply():
    """With the brand flag the last two bytes before the checksum are no EPC."""
    frame = only(stream(META_BRAND, reply("1000", "aabb", "beef")))
    assert frame.ok, frame
    assert (frame.fields["epc"], frame.fields["brand"]) == ("aabb", "beef")


def test_every_metadata_field():
    """All fields in flag order, ports with 0 for 16, and embedded data of a length that is no whole byte."""
    record = bytes.fromhex("05 80 20 0dbba0 000003e7 00b4 05 000c abc0 81 04 02 01") + reply("0800", "1234")
    frame = only(stream(0x0FFF, record))
    assert frame.ok, frame
    expected = {
        "read_count": 5,
        "rssi": -128,
        "antenna": "2/16",
        "freq_khz": 900000,
        "ts_ms": 999,
        "phase": 180,
        "protocol": 5,
        "data_bits": 12,
        "data": "abc0",
        "gpio": 0x81,
        "q": 4,
        "link_frequency": 2,
        "target": 1,
        "epc": "1234",
    }
    assert {name: frame.fields[name] for name in expected} == expected


def test_failed_embedded_operation_keeps_the_tag():
    """Length 8000 announces an error word instead of data; the tag was seen nevertheless."""
    frame = only(stream(0x0080, bytes.fromhex("8000040a") + reply("0800", "1234")))
    assert frame.ok, frame
    assert (frame.fields["data_bits"], frame.fields["data_error"], frame.fields["epc"]) == (0, "040a", "1234")


def test_other_protocol_has_neither_pc_nor_this_checksum():
    """Only Gen2 tags have a PC, the Gen2 settings and a checksum of this form."""
    frame = only(stream(0x0E40, bytes.fromhex("03 0050 e00401001234 5678 9abc")))
    assert frame.ok, frame
    assert (frame.fields["epc"], frame.fields["epc_crc"]) == ("e004010012345678", "9abc")
    assert "pc" not in frame.fields
    assert "q" not in frame.fields


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (stream(0x01FF, NOTICE[11:-4] + b"\0\0"), "found EPC checksum 0000, expected E94A"),
        (stream(0x01FF, NOTICE[11:-3]), "epc: found 15 bytes, expected 16"),
        (stream(0x01FF, NOTICE[11:-2] + b"\0"), "found 1 bytes behind the content, expected none"),
        (stream(0x01FF, b""), "read_count: found 0 bytes, expected 1"),
        (stream(0x21FF, NOTICE[11:-2]), "metadata: found flags 21FF, expected none beyond 1FFF"),
        (stream(0x0080, bytes.fromhex("7fff00")), "data: found 1 bytes, expected 4096"),
        (stream(0, bytes.fromhex("0008aa")), "pc: found 1 bytes, expected 2"),
        (stream(0, bytes.fromhex("00103000")), "epc_crc: found 0 bytes, expected 2"),
        (stream(0, bytes.fromhex("00100200")), "xpc: found 0 bytes, expected 2"),
        (answer(0x22, 0, b"\x10\x00\x1b"), "metadata: found 0 bytes, expected 2"),
        (answer(0x22, 0, b"\x10\x00"), "search_flags: found 1 bytes, expected 2"),
        (answer(0x22, 0, b"\x00\x00\x13\x00"), "tags: found 1 bytes, expected 4"),
        (answer(0x22, 0, bytes.fromhex("00001b02820082000219")), "stat value: found 1 bytes, expected 2"),
        (
            answer(0x22, 0, bytes.fromhex("00001b02ffffffffff")),
            "stat_flags: found more than 4 bytes of a bit vector, expected its end",
        ),
        (answer(0x29, 0, bytes.fromhex("01ff0001")), "read_count: found 0 bytes, expected 1"),
        (answer(0x29, 0, b"\x01"), "metadata: found 1 bytes, expected 2"),
        (answer(0x03, 0, b"\x14\x12"), "bootloader: found 2 bytes, expected 4"),
        (answer(0x72, 0), "temp: found 0 bytes, expected 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_content_that_contradicts_itself(raw, error):
    """A frame whose checksum fits but whose content does not is given as such, with all its bytes."""
    frame = only(raw)
    assert (frame.ok, frame.error, frame.fault, frame.raw) == (False, error, "bad_content", raw)
    assert frame.fields["data"] == raw[5:-2].hex()


def test_bad_tag_checksum_names_the_record():
    """One wrong tag of several: the frame is not ok and names it; the records stay readable."""
    right, wrong = reply("0800", "1234"), bytes.fromhex("003008001234ffff")
    frame = only(answer(0x29, 0, bytes.fromhex("01000003") + b"".join(b"\x0f" + r for r in (right, wrong, right))))
    assert frame.error is not None
    assert frame.error.startswith("record 2 of 3: found EPC checksum FFFF, expected ")
    assert [tag["epc"] for tag in frame.fields["tags"]] == ["1234"] * 3


def test_damaged_length_hides_frames_until_refuted_or_silent():
    """A claim of 255 bytes is believed no longer than the line talks; what it hid keeps its place.

    bytes   0        47       94    101
            |damaged |notice  |keep |... silence
            |<------- claims 247 bytes ------->
    """
    damaged = NOTICE[:1] + b"\xf0" + NOTICE[2:]
    reader = decoder("m6e", mode="reader")
    assert reader.feed(damaged + NOTICE + KEEPALIVE) == []
    assert len(reader.pending) == 101
    cut, notice, keepalive = reader.flush()
    assert (cut.start, cut.end, cut.ok, cut.fault) == (0, 47, False, "lost_end")
    assert cut.error == "found silence after 101 bytes, expected 247"
    assert (notice.start, notice.raw, notice.ok) == (47, NOTICE, True)
    assert (keepalive.start, keepalive.raw) == (94, KEEPALIVE)
    assert (reader.counters["resyncs"], reader.pending) == (1, b"")


def test_frames_after_a_flush_keep_their_place():
    """Offsets go on counting over given-up bytes."""
    reader = decoder("m6e", mode="reader")
    reader.feed(b"\xff\x28\x22")
    [cut] = reader.flush()
    [frame] = reader.feed(KEEPALIVE)
    assert (cut.start, cut.end, frame.start, frame.end) == (0, 3, 3, 10)
    assert reader.flush() == []


def test_bad_checksum_is_reported_with_both_values():
    """The text has the length found and the length needed; no content is used."""
    frame = only(KEEPALIVE[:-1] + b"\xe1")
    assert (frame.kind, frame.fields, frame.fault) == ("damaged", {}, "bad_checksum")
    assert frame.error == "found checksum 84E1, expected 84E0"


def test_wake_up_preamble_is_noise():
    """The FF bytes that wake a sleeping module are no frames, and the command behind them is found."""
    host = decoder("m6e", mode="host")
    [frame] = host.feed(b"\xff" * 30 + command(0x03))
    assert (frame.start, frame.ok) == (30, True)
    assert host.counters["noise_bytes"] == 30


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: command(256), "op: found 256, expected 0..255"),
        (lambda: command(3, bytes(251)), "frame data: found 251 bytes, expected at most 250"),
        (lambda: answer(3, 0, bytes(249)), "frame data: found 249 bytes, expected at most 248"),
        (lambda: answer(3, 65536), "status: found 65536, expected 0..65535"),
        (lambda: tag_notice(b"\0", rssi=0, antenna="1/1", freq_khz=0, ts_ms=0), "epc: found 1 bytes, expected an even"),
        (lambda: tag_notice(b"", rssi=-129, antenna="1/1", freq_khz=0, ts_ms=0), "rssi: found -129, expected -128"),
        (lambda: tag_notice(b"", rssi=0, antenna="17/1", freq_khz=0, ts_ms=0), "antenna: found '17/1', expected tx/rx"),
        (lambda: tag_notice(b"", rssi=0, antenna="1", freq_khz=0, ts_ms=0), "antenna: found '1', expected tx/rx"),
        (lambda: tag_notice(b"", rssi=0, antenna="1/1", freq_khz=0, ts_ms=-1), "ts_ms: found -1, expected 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_builders_refuse_what_does_not_fit(build, error):
    """A value that its field cannot hold is refused, never truncated."""
    with pytest.raises(ValueError, match="expected") as caught:
        build()
    assert str(caught.value).startswith(error)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0, "success"),
        (0x0101, "unknown opcode"),
        (0x0124, "message error 0124"),
        (0x0302, "flash error 0302"),
        (0x0412, "protocol error 0412"),
        (0x0420, "Gen2 error 0420"),
        (0x0599, "radio error 0599"),
        (0x06FF, "buffer error 06FF"),
        (0x2000, "status 2000"),
        (0x7F05, "system error 7F05"),
    ],
)
def test_status_words(status, text):
    """Known words by name, the others by group and number."""
    assert status_text(status) == text
