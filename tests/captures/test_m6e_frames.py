"""Real traffic of an M6e Nano: every frame of every capture is recognised, every tag's own checksum fits."""

from pathlib import Path

import pytest

from support.files.captures import folder, m6e_nano
from whenabouts_hardware import READERS, decoder
from whenabouts_hardware.crc16 import epc_crc

CAPTURES = m6e_nano()


def _messages(path: Path) -> list[tuple[str, bytes]]:
    """(direction, bytes) per head line; each hex dump line ends at its `|` column."""
    messages: list[tuple[str, bytes]] = []
    for line in path.read_text().splitlines():
        if line.startswith(("Sending:", "Received:")):
            messages.append(("host" if line.startswith("Sending:") else "reader", b""))
        elif line.strip():
            direction, data = messages[-1]
            messages[-1] = (direction, data + bytes.fromhex(line.split("|")[0]))
    return messages


def test_these_are_all_captures():
    """A capture without a name here would not be tested."""
    assert sorted(folder("m6e-nano-serial").glob("*.transport")) == CAPTURES


def test_every_capture_has_traffic():
    """No capture is empty, none is cut within an exchange."""
    for path in CAPTURES:
        directions = [direction for direction, data in _messages(path) if data]
        assert directions, path
        assert directions == ["host", "reader"] * (len(directions) // 2), path


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_capture_of_both_directions_as_one_stream(path, size):
    """One frame a head line, all ok, nothing between them, each taken for its own direction."""
    messages = _messages(path)
    stream = b"".join(data for _, data in messages)
    both = decoder("m6e")
    frames = [frame for at in range(0, len(stream), size) for frame in both.feed(stream[at : at + size])]
    assert [frame.raw for frame in frames] == [data for _, data in messages]
    assert [frame.error for frame in frames] == [None] * len(messages)
    assert [frame.kind == "command" for frame in frames] == [direction == "host" for direction, _ in messages]
    assert both.pending == b""
    assert both.counters["noise_bytes"] == 0


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
@pytest.mark.parametrize("mode", ["reader", "host"])
def test_capture_of_one_direction(path, mode):
    """A decoder configured for one direction gives the same frames for its wire as one that detects the direction."""
    messages = _messages(path)
    one = decoder("m6e", mode=mode)
    frames = [frame for direction, data in messages if direction == mode for frame in one.feed(data)]
    both = decoder("m6e")
    known = [f for direction, data in messages for f in both.feed(data) if direction == mode]
    assert [(f.kind, f.fields, f.raw) for f in frames] == [(f.kind, f.fields, f.raw) for f in known]


def test_tag_records_of_all_captures():
    """Every record that an answer counts is there, within the ranges described, and its own checksum fits."""
    reader = decoder("m6e", mode="reader")
    data = b"".join(data for path in CAPTURES for direction, data in _messages(path) if direction == "reader")
    frames = reader.feed(data)
    records = [record for frame in frames if frame.kind == "tags" for record in frame.fields["tags"]]
    counts = [frame.raw[8] for frame in frames if frame.kind == "tags"]
    assert len(records) == sum(counts) > 0
    for record in records:
        assert epc_crc(bytes.fromhex(record["pc"] + record["epc"])) == int(record["epc_crc"], 16)
        assert -58 <= record["rssi"] <= -34
        assert 22 <= record["ts_ms"] <= 973
        assert 2 <= record["read_count"] <= 31
        assert 918_400 <= record["freq_khz"] <= 924_800
        assert (record["antenna"], record["protocol"]) == ("1/1", 5)
    seen = [sighting for frame in frames for sighting in READERS["m6e"].sightings(frame)]
    assert [s.key.lower() for s in seen] == [record["epc"] for record in records]
    assert [(s.ts_ms, s.read_count) for s in seen] == [(r["ts_ms"], r["read_count"]) for r in records]


def test_embedded_read_in_a_capture():
    """The text written to a tag's user memory comes back as embedded data of its record."""
    reader = decoder("m6e", mode="reader")
    path = folder("m6e-nano-serial", "write.transport")
    frames = [f for direction, data in _messages(path) if direction == "reader" for f in reader.feed(data)]
    texts = [bytes.fromhex(r["data"]) for f in frames if f.kind == "tags" for r in f.fields["tags"] if r["data_bits"]]
    assert any(text.startswith(b"I am Groot") for text in texts)
