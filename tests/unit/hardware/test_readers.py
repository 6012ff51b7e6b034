"""The facts about each reader, and the sightings from its frames."""

import pytest

from whenabouts_hardware import DECODERS, READERS, Frame, decoder
from whenabouts_hardware.readers.catalogue import NETWORK_MODULES, reader
from whenabouts_hardware.readers.em4100 import encode
from whenabouts_hardware.readers.m6e_frames import KEEPALIVE, START_CONTINUOUS, STOP, answer, tag_notice

EPC = bytes.fromhex("e2000015860e018010 80afcf".replace(" ", ""))
NOTICE = tag_notice(EPC, rssi=-44, antenna="2/3", freq_khz=922600, ts_ms=820, read_count=3, phase=174, gpio=1)


def one(kind: str, raw: bytes) -> Frame:
    [frame] = READERS[kind].new_decoder().feed(raw)
    return frame


def test_every_reader_has_a_decoder_and_a_latency():
    """A decoder can be made from each record, and no reader claims to be instant."""
    assert set(READERS) == {*DECODERS, *NETWORK_MODULES}
    for facts in READERS.values():
        assert facts.new_decoder().feed(b"") == []
        assert facts.latency_us > 0
        assert facts.latency_source


def test_start_of_a_mercury_reader():
    """It is stopped first, started last, every command is well formed, and three silent cycles start it again."""
    m6e = READERS["m6e"]
    frames = decoder("m6e", mode="host").feed(b"".join(m6e.start))
    assert [frame.raw for frame in frames] == list(m6e.start)
    assert all(frame.ok for frame in frames)
    assert (m6e.start[0], m6e.start[-1]) == (STOP, START_CONTINUOUS)
    assert m6e.silence_us == 3 * m6e.latency_us == 3_000_000


@pytest.mark.parametrize("kind", ["rdm6300", "id12la"])
def test_card_readers_need_no_start(kind):
    """They send by themselves and are silent without a card."""
    assert (READERS[kind].start, READERS[kind].silence_us, READERS[kind].baud) == ((), None, 9600)


@pytest.mark.parametrize("kind", ["rdm6300", "id12la"])
def test_card_sighting(kind):
    """The key is version and id in ten upper-case digits, whatever case the reader sends."""
    for raw in (encode(0x0A, 0x86F444), encode(0x0A, 0x86F444, crlf=True).lower()):
        assert READERS[kind].sightings(one(kind, raw)) == [("0A0086F444", {}, None, 1)]


def test_uhf_sighting():
    """EPC as key, radio values as integers, the port that transmitted, the reader's own time."""
    attrs = {"rssi": -44, "antenna": 2, "freq_khz": 922600, "phase": 174, "gpio": 1}
    assert READERS["m6e"].sightings(one("m6e", NOTICE)) == [("E2000015860E01801080AFCF", attrs, 820, 3)]


def test_uhf_sighting_without_metadata():
    """Fields that the reader did not send are not invented."""
    bare = answer(0x22, 0, bytes.fromhex("10001b000001") + NOTICE[-20:-2])
    assert READERS["m6e"].sightings(one("m6e", bare)) == [("E2000015860E01801080AFCF", {}, None, 1)]


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("rdm6300", b"\x0268003B51C6CB\x03"),
        ("m6e", KEEPALIVE),
        ("m6e", answer(0x22, 0x0504)),
        ("m6e", NOTICE[:-1] + b"\0"),
        ("m6e", answer(0x22, 0, NOTICE[5:-3] + b"\0")),
        ("m6e", answer(0x22, 0, bytes.fromhex("00001300000010"))),
    ],
    ids=["bad XOR", "keep-alive", "throttled", "bad frame checksum", "bad tag checksum", "number of tags"],
)
def test_frames_without_sightings(kind, raw):
    """Damaged frames and those about something else report no tag."""
    assert READERS[kind].sightings(one(kind, raw)) == []


def test_anchor():
    """A keep-alive starts a cycle; nothing else does."""
    assert READERS["m6e"].is_anchor(one("m6e", KEEPALIVE))
    for raw in (NOTICE, answer(0x22, 0x0504), answer(0x29, 0x0400), KEEPALIVE[:-1] + b"\0"):
        assert not READERS["m6e"].is_anchor(one("m6e", raw))


def test_unknown_names_are_refused_with_the_known_ones():
    """The error lists what could have been meant."""
    known = "expected one of id12la, line, m6e, pn532, rdm6300, uhfreader18, yrm100, impinj, llrp, zebra"
    with pytest.raises(ValueError, match=f"found 'pn533', {known}"):
        decoder("pn533")
    with pytest.raises(ValueError, match=f"found 'pn533', {known}"):
        reader("pn533")
    with pytest.raises(ValueError, match="found 'duplex', expected one of reader, host, both"):
        decoder("m6e", mode="duplex")
    with pytest.raises(ValueError, match="rdm6300: found option 'mode', expected none"):
        decoder("rdm6300", mode="host")
    with pytest.raises(ValueError, match="found 'xml', expected one of auto, json, csv, nmea, text"):
        decoder("line", form="xml")


def test_frames_compare_by_all_they_say():
    """Same content at another place is another frame; the text form shows place, state and sorted fields."""
    frame = Frame("tag", {"b": 1, "a": 2}, b"xyz", 4)
    assert frame == Frame("tag", {"a": 2, "b": 1}, b"xyz", 4)
    assert hash(frame) == hash(Frame("tag", {"a": 2, "b": 1}, b"xyz", 4))
    assert frame != Frame("tag", {"a": 2, "b": 1}, b"xyz", 5)
    assert frame != Frame("tag", {"a": 2, "b": 1}, b"xyz", 4, "found 1, expected 2", "bad_checksum")
    assert frame != "tag"
    assert repr(frame) == "<Frame tag 4..7 ok a=2 b=1>"
