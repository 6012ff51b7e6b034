"""Dead letters have limits, keep the beginning of a message, and tell conflicts and readings from the future."""

import json

import pytest

from support.cloud.ingest import NOW_US, at, identities, letters, quick_folder, reading
from whenabouts_cloud.ingest import bridge as bridge_module
from whenabouts_cloud.ingest import dead_letter_files as files_module
from whenabouts_cloud.ingest import dead_letters as dead_module
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_protocol import encode_batch


@pytest.mark.parametrize(
    ("first", "second"), [(1, 2), (True, 1), (1, 1.0), (-1, -2), ("a", None)], ids=lambda v: json.dumps(v)
)
@pytest.mark.parametrize("between", ["one message", "one flush", "two flushes"])
def test_the_same_identity_with_another_content_is_an_alarm(bridge, first, second, between, caplog):
    """The first stays, the second is a dead letter that can be read, the counter and the log show it; a repeat does not."""
    a, b = reading("g1", 0, 0, value=first), reading("g1", 0, 0, value=second)
    for message in [[a, b]] if between == "one message" else [[a], [b], [a]]:
        bridge.take(at("g1"), encode_batch(message), 0)
        if between == "two flushes":
            bridge.flush()
    bridge.flush()
    assert bridge.counters.conflicts == 1
    assert bridge.counters.landed == 1
    (letter,) = letters(bridge.folder)
    assert letter["reason"] == "conflict"
    assert letter["topic"] == at("g1")
    assert "boot 0 number 0 came with another content before" in letter["text"]
    assert len([r for r in caplog.records if r.event == "reading.conflict" and r.fields == {"readings": 1}]) == 1
    assert identities(bridge.folder) == [("g1", 0, 0)]


@pytest.fixture
def small_letters(monkeypatch):
    """Files of dead letters of 10 000 bytes, three of them; a sender may fill 15 000 bytes."""
    limits = {"MAX_FILE_BYTES": 10_000, "MAX_LINE_BYTES": 6000, "MAX_FILES": 3, "MAX_SENDER_BYTES": 15_000}
    for name, value in limits.items():
        for module in (dead_module, files_module):
            monkeypatch.setattr(module, name, value, raising=False)


def test_dead_letters_have_a_limit_on_disk_that_is_counted_and_reported(bridge, small_letters, caplog):
    """Beyond the last file letters are counted, not kept, and reported once; after the files are moved, letters are kept."""
    for number in range(20):
        bridge.take(at(f"g{number}"), bytes(4000), number)
        if number % 4 == 3:  # several in one append
            bridge.flush()
    kept = sorted((bridge.folder / "_dead").iterdir())
    assert [path.name for path in kept] == [f"letters-000{n}.jsonl" for n in (1, 2, 3)]
    assert all(path.stat().st_size <= 10_000 for path in kept)
    assert bridge.counters.dead == 20
    assert bridge.counters.dead_dropped == 20 - len(letters(bridge.folder)) > 0
    assert len([r for r in caplog.records if r.event == "dead_letters.full"]) == 1
    for path in kept:
        path.unlink()
    bridge.take(at("g1"), b"", 0)
    bridge.flush()
    assert len(letters(bridge.folder)) == 1


def test_a_sender_fills_only_its_share_of_the_dead_letters(bridge, small_letters):
    """After it has, its letters are only counted, also after a restart; those of another gateway are kept."""
    for number in range(6):
        bridge.take(at("evil"), bytes(4000), number)
    bridge.flush()
    kept = len(letters(bridge.folder))
    assert kept == 2
    dead = dead_module.DeadLetters(files_module.LettersInFolder(bridge.folder / "_dead"))
    for gateway in ("evil", "g1"):
        dead.add(at(gateway), bytes(4000), "undecodable", "", NOW_US)
    dead.flush()
    assert [letter["topic"] for letter in letters(bridge.folder)] == [at("evil")] * kept + [at("g1")]
    assert dead.dropped == 1
    assert dead.waiting_bytes == 0


def test_conflicting_readings_of_a_message_are_one_dead_letter(bridge):
    """2000 readings with 32 long names each: one letter with the first in full, count and numbers, in bounded memory."""
    names = {f"{n:02d}" + "n" * 250: n for n in range(30)}

    def made(value: int) -> bytes:
        readings = [reading("g1", 0, seq, value=value) for seq in range(2000)]
        for one in readings:
            one.attrs = names
        return encode_batch(readings)

    bridge.take(at("g1"), made(1), 1)
    bridge.flush()
    for value in range(2, 5):
        bridge.take(at("g1"), made(value), value)
    assert bridge.counters.conflicts == 3 * 2000
    assert bridge.waiting_bytes < 4 << 20
    bridge.flush()
    assert len(letters(bridge.folder)) == 3
    assert "so did 2000 readings of this message: 0..1999" in letters(bridge.folder)[0]["text"]


def test_names_that_readings_share_count_for_each_reading(bridge):
    """A message of some hundred kilobytes whose readings need 16 MB when they are written is not a small one."""
    readings = [reading("g1", 0, seq) for seq in range(2000)]
    for one in readings:
        one.attrs = {f"{n:02d}" + "n" * 250: n for n in range(30)}
    payload = encode_batch(readings)
    bridge.take(at("g1"), payload, 1)
    assert len(payload) < 300_000
    assert bridge.waiting_bytes > 15_000_000


def test_readings_from_the_future_go_to_a_side_output(bridge, caplog):
    """More than the margin ahead: in _ahead, counted by gateway, acknowledged; the engines' files hold the others only."""
    margin_us = bridge_module.AHEAD_MARGIN_US
    stamps = [NOW_US, NOW_US + margin_us, NOW_US + margin_us + 1, NOW_US + 10 * 365 * 86400 * 1_000_000]
    bridge.take(at("g1"), encode_batch([reading("g1", 0, seq, t_min) for seq, t_min in enumerate(stamps)]), 1)
    (ack,) = bridge.flush().acks
    assert ack.landed == {0: 3}
    assert identities(bridge.folder) == [("g1", 0, 0), ("g1", 0, 1)]
    assert identities(bridge.folder / "_ahead") == [("g1", 0, 2), ("g1", 0, 3)]
    assert (bridge.counters.landed, bridge.counters.ahead) == (2, 2)
    assert dict(bridge.by_gateway.ahead.counts) == {("hall", "g1"): 2}
    assert [(r.event, r.fields["gateway"]) for r in caplog.records] == [("gateway.readings_ahead", "hall/g1")]


def test_readings_of_the_side_output_are_known_after_a_restart():
    """Their numbers are repeats, as those of readings that landed."""
    with quick_folder() as folder:
        payload = encode_batch([reading("g1", 0, 0, NOW_US), reading("g1", 0, 1, NOW_US + 10**12)])
        for repeats in (0, 2):
            landing = Landing(folder)
            bridge = Bridge(landing, lambda: NOW_US)
            bridge.take(at("g1"), payload, 1)
            assert bridge.flush().acks[0].landed == {0: 1}
            assert bridge.counters.repeats == repeats
            landing.close()
        assert len(identities(folder / "_ahead")) == 1


def test_a_large_payload_is_kept_up_to_its_limit(bridge):
    """The letter holds the beginning and the full length."""
    bridge.take(at("g1"), bytes(1 << 20), 0)
    bridge.flush()
    (letter,) = letters(bridge.folder)
    assert letter["bytes"] == 1 << 20
    assert len(letter["payload"]) == 4 * (dead_module.MAX_PAYLOAD_BYTES + 2) // 3 // 4 * 4
