"""The meaning of frames of PN532, UHFReader18, YRM100 and line sensors, case by case."""

import pytest

from whenabouts_hardware import READERS, decoder
from whenabouts_hardware.readers import pn532_frames as pn532
from whenabouts_hardware.readers import uhfreader18 as uhf18
from whenabouts_hardware.readers.line_values import observed
from whenabouts_hardware.readers.pn532_targets import TargetError, listed, polled
from whenabouts_hardware.readers.yrm100 import NOTICE, framed

UID = bytes.fromhex("04c63a63110189")


def frames(name, raw, **options):
    """All frames of a line that then falls silent."""
    reader = decoder(name, **options)
    return reader.feed(raw) + reader.flush()


def test_targets_of_a_card_reader():
    """Two cards, one of which answers to select; other kinds of cards by their own layout; unknown kinds as they are."""
    two = b"\2" + pn532.target_106a(1, UID, sel_res=0x20) + b"\5\x78\x80\x70\x02" + pn532.target_106a(2, b"\1\2\3\4")
    assert [(t["tg"], t["uid"], t.get("ats")) for t in listed(two)] == [
        (1, "04c63a63110189", "0578807002"),
        (2, "01020304", None),
    ]
    felica = b"\1\x12\1" + bytes(range(8)) + bytes(8)
    jewel = b"\1\x0c\x00\xaa\xbb\xcc\xdd"
    type_b = b"\1\x50\1\2\3\4" + bytes(7) + b"\0"
    answer = b"".join(
        [b"\4"] + [bytes([k, len(d)]) + d for k, d in ((0x11, felica), (4, jewel), (0x23, type_b), (0x99, b"x"))]
    )
    assert [(t["type"], t.get("uid", t.get("data"))) for t in polled(answer)] == [
        (0x11, "0001020304050607"), (4, "aabbccdd"), (0x23, "01020304"), (0x99, "78"),
    ]  # fmt: skip


@pytest.mark.parametrize("cut", range(13))
def test_an_answer_that_is_too_short_is_refused(cut):
    """Every cut of a good answer is a content error, never an exception of another kind."""
    whole = b"\1" + pn532.target_106a(1, UID)
    assert len(listed(whole)) == 1
    with pytest.raises(TargetError, match="found"):
        listed(whole[:cut])
    [frame] = frames("pn532", pn532.answer(pn532.OP_LIST_PASSIVE, whole[:cut]))
    assert (frame.ok, frame.fault, frame.fields["data"]) == (False, "bad_content", whole[:cut].hex())


def test_a_frame_longer_than_a_byte_can_say():
    """From 255 bytes on the length has two bytes; more than the firmware takes is no frame."""
    for size in (253, 254, 263):
        [frame] = frames("pn532", pn532.command(0x40, bytes(size)))
        assert (frame.ok, len(frame.fields["data"])) == (True, 2 * size)
    with pytest.raises(ValueError, match="found 265 bytes of data, expected at most 264"):
        pn532.framed(pn532.TO_CHIP, bytes(265))
    reader = decoder("pn532")
    reader.feed(b"\0\0\xff\xff\xff\x01\x0a\xf5" + bytes(300))
    assert reader.counters["overruns"] > 0


def test_four_antennas_and_the_strength_of_their_signals():
    """The mask names one antenna of a UHFReader288; the strength has no unit."""
    raw = uhf18.answer(uhf18.OP_INVENTORY, 1, b"\4\2" + b"\2\xaa\xbb\x50" + b"\2\xcc\xdd\x60")
    [frame] = frames("uhfreader18", raw)
    assert READERS["uhfreader18"].sightings(frame) == [
        ("AABB", {"rssi_raw": 0x50, "antenna": 3}, None, 1),
        ("CCDD", {"rssi_raw": 0x60, "antenna": 3}, None, 1),
    ]


def test_a_reader_in_active_mode_reports_unasked():
    """And an inventory whose lengths do not add up reports nothing."""
    [active] = frames("uhfreader18", uhf18.answer(uhf18.OP_ACTIVE, 0, bytes.fromhex("2000708c2b380b2d00000000")))
    assert [s.key for s in READERS["uhfreader18"].sightings(active)] == ["2000708C2B380B2D00000000"]
    [wrong] = frames("uhfreader18", uhf18.answer(uhf18.OP_INVENTORY, 1, b"\2\2\xaa"))
    assert (wrong.ok, wrong.fault, READERS["uhfreader18"].sightings(wrong)) == (False, "bad_content", [])


def test_a_notice_too_short_for_a_tag():
    """It has no room for signal, control word and checksum."""
    [frame] = frames("yrm100", framed(NOTICE, 0x22, b"\1\2\3\4"))
    assert (frame.ok, frame.error) == (False, "found 4 bytes, expected at least 5")


@pytest.mark.parametrize(
    ("line", "options", "kind", "fields"),
    [
        (b'{"t": 21.5, "ok": true, "x": null}\n', {}, "json", {"t": 21.5, "ok": True}),
        (b"21.5, wet,7\r\n", {"columns": ("t", "", "n")}, "csv", {"t": 21.5, "n": 7}),
        (b"$GPGLL,5300.97914,N\n", {}, "nmea", {"talker": "GPGLL", "values": ["5300.97914", "N"]}),
        (b"0086F444\r", {}, "text", {"text": "0086F444"}),
        (b"1_000,nan\n", {"form": "csv", "columns": ("a", "b")}, "csv", {"a": "1_000", "b": "nan"}),
    ],
    ids=["json", "csv", "nmea", "text", "no numbers"],
)
def test_lines_of_every_form(line, options, kind, fields):
    """Each is read as the form that it looks like, or as the form that is configured."""
    [frame] = frames("line", line, **options)
    assert (frame.ok, frame.kind, frame.fields) == (True, kind, fields)


@pytest.mark.parametrize(
    ("line", "options", "fault", "error"),
    [
        (b'{"t": 21.5\n', {}, "bad_content", "found no JSON object"),
        (b'{"t": [1]}\n', {}, "bad_content", "value t: found"),
        (b'{"t": NaN}\n', {}, "bad_content", "found"),
        (b"[" * 900 + b"\n", {"form": "json"}, "bad_content", "found no JSON object"),
        (b"1,2\n", {"form": "csv", "columns": ("a",)}, "bad_content", "found 2 values, expected 1: a"),
        (b"$GPGLL,1*00\n", {}, "bad_checksum", "found checksum 00, expected"),
        (b"\xff\xfe\n", {}, "bad_byte", "found bytes that are no UTF-8"),
        (b"no end", {}, "lost_end", "found silence after 6 bytes"),
        (b"3.5,1\n", {"columns": ("t", "n"), "midway": True}, "lost_end", "may have begun before the port was opened"),
    ],
)
def test_lines_that_are_refused(line, options, fault, error):
    """With the reason; nothing is observed."""
    [frame] = frames("line", line, **options)
    assert (frame.ok, frame.fault) == (False, fault)
    assert error in frame.error
    assert observed(frame) is None


def test_only_the_first_line_after_opening_is_in_doubt():
    """A first line that proves by itself that it is whole is accepted even then."""
    assert [f.ok for f in frames("line", b"5,1\n3.5,1\n", columns=("t", "n"), midway=True)] == [False, True]
    assert [f.ok for f in frames("line", b'{"t": 1}\n', midway=True)] == [True]
    assert [f.ok for f in frames("line", b"x" * 1500 + b"\nok\n")] == [False, False, True]


@pytest.mark.parametrize("blanks", [b" ", b"\t  ", b"\x0b", b"\x0c\x1c\x1f"])
def test_blanks_before_a_line_are_none_of_its_bytes(blanks):
    """They may be noise; as time on the wire they would end the stamp before the event. A line is in doubt as before."""
    [frame] = frames("line", blanks + b'{"t": 1}\n')
    assert (frame.start, frame.raw) == (len(blanks), b'{"t": 1}\n')
    assert [f.ok for f in frames("line", blanks + b"3.5,1\n", columns=("t", "n"), midway=True)] == [False]


def test_what_is_observed_is_what_the_operator_named():
    """A key, a value, and the rest as attributes; a line without the named field observes nothing."""
    [frame] = frames("line", b'{"probe": 7, "t": 21.5, "ok": true}\n')
    assert observed(frame, key="probe", value="t") == ("7", 21.5, {"ok": True})
    assert observed(frame, value="missing") is None
    [frame] = frames("line", b"$WIMTW,18.5,C*01\n")
    assert observed(frame, value="1") == (None, 18.5, {"talker": "WIMTW", "2": "C"})
    [frame] = frames("line", b"hello\n")
    assert observed(frame) == (None, "hello", {})
