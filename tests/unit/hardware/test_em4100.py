"""Field errors of 125 kHz readers: glued, torn and overlapping frames, and the one decoder for both layouts."""

import pytest

from whenabouts_hardware import decoder
from whenabouts_hardware.readers import em4100, id12la
from whenabouts_hardware.readers.em4100 import encode

CARD = encode(0x10, 8844356)


def outcome(stream: bytes) -> list[tuple]:
    """(kind, start, end, fault) of every frame of a stream that then falls silent."""
    reader = decoder("rdm6300")
    frames = reader.feed(stream) + reader.flush()
    return [(frame.kind, frame.start, frame.end, frame.fault) for frame in frames]


def test_encode_both_layouts():
    """RDM6300 frames end with 03, ID-12LA frames with a line end before it."""
    assert CARD == b"\x02100086F44426\x03"
    assert encode(0x0C, 0x000621A5, crlf=True) == b"\x020C000621A58E\r\n\x03"


@pytest.mark.parametrize(("version", "id"), [(256, 0), (-1, 0), (0, 1 << 32), (0, -1)])
def test_encode_refuses_what_does_not_fit(version, id):
    """A number beyond its field is refused."""
    with pytest.raises(ValueError, match=r"found -?\d+, expected 0\.\."):
        encode(version, id)


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        pytest.param(CARD[5:] + CARD, [("tag", 9, 23, None)], id="mid-frame start"),
        pytest.param(CARD[:-1] + CARD, [("damaged", 0, 13, "lost_end"), ("tag", 13, 27, None)], id="lost 03"),
        pytest.param(CARD[:6] + CARD, [("damaged", 0, 6, "lost_end"), ("tag", 6, 20, None)], id="torn"),
        pytest.param(b"\x02\x02" + CARD[1:], [("damaged", 0, 1, "lost_end"), ("tag", 1, 15, None)], id="double 02"),
        pytest.param(CARD[:6] + b"G" + CARD[7:], [("damaged", 0, 7, "bad_byte")], id="non-hex"),
        pytest.param(CARD[:6] + b"\x03" + CARD, [("damaged", 0, 7, "bad_byte"), ("tag", 7, 21, None)], id="early 03"),
        pytest.param(b"\x0268003B51C6CBDA\x03", [("damaged", 0, 14, "overruns")], id="too long"),
        pytest.param(CARD[:13] + b"\r\n\r\n\x03", [("damaged", 0, 16, "overruns")], id="two line ends"),
        pytest.param(CARD[:13] + b"\r\nX", [("damaged", 0, 16, "bad_byte")], id="no 03 after line end"),
        pytest.param(CARD[:13] + b"\n\x03", [("tag", 0, 15, None)], id="half line end"),
        pytest.param(CARD[:13], [("damaged", 0, 13, "lost_end")], id="silence"),
        pytest.param(CARD[:1], [("damaged", 0, 1, "lost_end")], id="lone 02"),
        pytest.param(b"\x02100086f44426\x03", [("tag", 0, 14, None)], id="lower case"),
        pytest.param(encode(0, 0), [("tag", 0, 14, None)], id="id 0"),
        pytest.param(b"\x0268003B51C6CB\x03", [("tag", 0, 14, "bad_checksum")], id="bad XOR"),
    ],
)
def test_field_errors(stream, expected):
    """Damage is named and costs no neighbour."""
    assert outcome(stream) == expected


def test_bad_checksum_keeps_what_was_read():
    """Overlapping tags give bad sums: reported with both values and the digits."""
    [frame] = decoder("id12la").feed(b"\x0268003B51C6CB\x03")
    assert (frame.ok, frame.error) == (False, "found checksum CB, expected C4")
    assert (frame.fields["version"], frame.fields["id"]) == (0x68, 3887558)


def test_readers_with_one_decoder_differ_in_how_often_they_report():
    """An ID-12LA reports a tag once, an RDM6300 while it stays."""
    assert id12la.READER.decoder is em4100.READER.decoder
    assert (id12la.READER.reports_once, em4100.READER.reports_once) == (True, False)
