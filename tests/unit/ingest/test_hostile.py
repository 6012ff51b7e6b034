"""Messages of hostile, broken or misplaced senders: each becomes a dead letter with its reason, and good traffic goes on."""

import json
import random
import tracemalloc
from collections import Counter

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cloud.ingest import (
    NOW_US,
    at,
    batch,
    birth,
    files,
    frontiers,
    heartbeat,
    identities,
    letters,
    quick_folder,
    reading,
)
from support.search import SEED, examples
from whenabouts_cloud.health.recorder import Recorder
from whenabouts_cloud.health.records import record_in
from whenabouts_cloud.ingest import announcements as announcements_module
from whenabouts_cloud.ingest import bridge as bridge_module
from whenabouts_cloud.ingest import dead_letter_files as files_module
from whenabouts_cloud.ingest import dead_letters as dead_module
from whenabouts_cloud.ingest import ledger as ledger_module
from whenabouts_cloud.ingest import log_limit
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.ledger import MAX_RANGES
from whenabouts_cloud.ingest.owners import Owners, OwnersError, OwnersFile, read_owners
from whenabouts_protocol import (
    Birth,
    Heartbeat,
    Status,
    decode_batch,
    encode_batch,
    encode_birth,
    encode_heartbeat,
    encode_status,
)
from whenabouts_protocol.messages.batch import MAX_BATCH_READINGS
from whenabouts_protocol.messages.compiled_rule import CompiledRule, RuleSide, encode_rules


@pytest.fixture
def bridge():
    """A bridge on a landing in memory; its folder is bridge.folder."""
    with quick_folder() as folder:
        landing = Landing(folder)
        made = Bridge(landing, lambda: NOW_US)
        made.folder = folder
        yield made
        landing.close()


def other_schema(payload: bytes) -> bytes:
    head = cbor2.loads(payload)
    head[0] = 3
    return cbor2.dumps(head, canonical=True)


GOOD = batch("g1", 0, 0, 3)
HOSTILE = {
    "empty": (at("g1"), b"", "undecodable", "found its end"),
    "noise": (at("g1"), random.Random(1).randbytes(500), "undecodable", ""),
    "cut": (at("g1"), GOOD[:-1], "undecodable", "found its end"),
    "surplus": (at("g1"), GOOD + b"\0", "undecodable", "after its end"),
    "no map": (at("g1"), b"\x80", "undecodable", "expected a map"),
    "bomb of arrays": (at("g1"), b"\x81" * 200_000, "undecodable", "nesting deeper"),
    "bomb of length": (at("g1"), b"\x9b" + b"\xff" * 8, "undecodable", "found its end"),
    "bomb of endless array": (at("g1"), b"\x9f" * 1000, "undecodable", "indefinite"),
    "300 KiB": (at("g1"), bytes(300 << 10), "undecodable", "expected at most 262144"),
    "5 MiB": (at("g1"), bytes(5 << 20), "undecodable", "expected at most 262144"),
    "other schema": (at("g1"), other_schema(GOOD), "undecodable", "found 3, expected 2"),
    "foreign gateway": (at("g2"), GOOD, "foreign", "found a message of hall/g1 on a topic of hall/g2"),
    "foreign site": ("wa/2/yard/g1/obs", GOOD, "foreign", "topic of yard/g1"),
    "foreign heartbeat": (at("g2", "heartbeat"), heartbeat("g1", 0, 5, {}), "foreign", ""),
    "foreign birth": (at("g2", "birth"), birth("g1"), "foreign", ""),
    "foreign status": (at("g2", "status"), encode_status(Status("hall", "g1", 0, "online")), "foreign", ""),
    "heartbeat as status": (at("g1", "status"), heartbeat("g1", 0, 5, {}), "undecodable", ""),
    "heartbeat as birth": (at("g1", "birth"), heartbeat("g1", 0, 5, {}), "undecodable", ""),
    "batch as heartbeat": (at("g1", "heartbeat"), GOOD, "undecodable", ""),
    "wrong leaf": (at("g1", "state"), GOOD, "topic", "found leaf state, expected obs, heartbeat, birth or status"),
    "no leaf": ("wa/2/hall/g1", GOOD, "topic", "expected wa/2/<site>/<gateway>/<leaf>"),
    "other version": ("wa/1/hall/g1/obs", GOOD, "topic", "expected wa/2"),
    "empty topic": ("", GOOD, "topic", "expected wa/2"),
    "binary topic": ("wa/2/\x00\udcff/g1/obs", GOOD, "topic", "expected wa/2"),
    "long topic": ("x" * 60_000, GOOD, "topic", "expected wa/2"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_message_that_cannot_be_taken_is_a_dead_letter_and_good_ones_go_on(bridge, name):
    """Its token comes back, its letter gives the reason as a word and a text, readings before and after land."""
    topic, payload, reason, text = HOSTILE[name]
    bridge.take(at("g1"), batch("g1", 0, 0, 2), 1)
    bridge.take(topic, payload, 2)
    bridge.take(at("g1"), batch("g1", 0, 2, 2), 3)
    assert bridge.flush().tokens == [1, 2, 3]
    assert identities(bridge.folder) == [("g1", 0, seq) for seq in range(4)]
    (letter,) = letters(bridge.folder)
    assert letter["reason"] == reason
    assert text in letter["text"]
    assert letter["bytes"] == len(payload)
    assert letter["topic"] == topic[: dead_module.MAX_TOPIC_CHARS]
    assert bridge.dead_letters() == {reason: 1}
    assert bridge.counters.dead == 1


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sampled_from(["obs", "heartbeat", "birth", "status", "ack", "cmd/x", "rules"]),
    st.one_of(
        st.binary(max_size=80),
        st.tuples(st.sampled_from([GOOD, birth("g1"), heartbeat("g1", 0, 5, {0: (1, 2)})]), st.integers(0, 400), st.binary(
            min_size=1, max_size=3)).map(lambda c: c[0][: c[1] % len(c[0])] + c[2] + c[0][c[1] % len(c[0]) + len(c[2]):]),
    ),
)  # fmt: skip
def test_no_bytes_make_the_bridge_raise(leaf, payload):
    """Noise and damaged messages are taken or buried; every token comes back."""
    bridge = SHARED["bridge"]
    buried = bridge.counters.dead
    bridge.take(at("g1", leaf), payload, "token")
    assert bridge.waiting == 1
    assert bridge.counters.dead - buried in (0, 1, 2, 3)
    assert bridge.flush().tokens == ["token"]


def test_a_gateway_cannot_fill_the_log(bridge, caplog):
    """Heartbeats about ever new boots, with losses and with numbers that never landed, give few lines of each kind."""
    for first in range(0, 6400, 64):
        boots = dict.fromkeys(range(first, first + 64), (1000, 1005))
        lost = Heartbeat("hall", "g1", first, 5, boots, "bounded", 5000, refused=3, invalid=2)
        bridge.take(at("g1", "heartbeat"), encode_heartbeat(lost), first)
    bridge.take(at("g2", "heartbeat"), heartbeat("g2", 0, 5, {0: (9, 9)}), "other")
    assert bridge.counters.forgotten == 6400 * 1000 + 9
    assert bridge.counters.refused == 300
    said = Counter((record.event, record.fields["gateway"]) for record in caplog.records)
    many = dict.fromkeys((f"gateway.{event}", "hall/g1") for event in ("numbers_elsewhere", "refused", "invalid"))
    assert said == dict.fromkeys(many, log_limit.MOST) | {("gateway.numbers_elsewhere", "hall/g2"): 1}


def test_lines_are_allowed_again_after_a_while(monkeypatch):
    """
    at us     0    9   10   11   19   20    3 (set back)
    allowed   yes  yes yes  yes  no   yes   yes    two in 10 us
    """
    monkeypatch.setattr(log_limit, "MOST", 2)
    monkeypatch.setattr(log_limit, "EVERY_US", 10)
    limit = log_limit.LogLimit()
    assert [limit.allows("lost", ("s", "g"), at_us) for at_us in (0, 9, 10, 11, 19, 20, 3)] == [
        True, True, True, True, False, True, True
    ]  # fmt: skip


SHARED = {}


@pytest.fixture(autouse=True, scope="module")
def shared_bridge():
    """One bridge for all the noise."""
    with quick_folder() as folder:
        landing = Landing(folder)
        SHARED["bridge"] = Bridge(landing)
        yield
        landing.close()


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


def test_random_numbers_fill_only_the_ranges_of_their_gateway(bridge):
    """An attacker's gaps end in dead letters named numbering; another gateway, and another boot, land on."""
    chance = random.Random(3)
    for number in range(2 * MAX_RANGES // 500):
        seqs = chance.sample(range(1 << 60), 500)
        bridge.take(at("g1"), encode_batch([reading("g1", 0, seq, NOW_US) for seq in seqs]), number)
    assert bridge.counters.dead >= MAX_RANGES // 500
    bridge.take(at("g2"), batch("g2", 0, 0, 50), "honest")
    bridge.take(at("g1"), batch("g1", 1, 0, 5), "other boot")
    done = bridge.flush()
    assert set(bridge.dead_letters()) == {"numbering"}
    assert {ack.gateway: ack.landed for ack in done.acks} == {"g1": {1: 4}, "g2": {0: 49}}
    assert len([i for i in identities(bridge.folder) if i[:2] == ("g1", 0)]) <= MAX_RANGES
    assert "gaps in the numbers of hall/g1 boot 0" in letters(bridge.folder)[0]["text"]


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


def test_a_watermark_ahead_ends_at_the_arrival_of_its_heartbeat():
    """One heartbeat far ahead moves the frontier once, and not with the present for as long as the ingest runs."""
    with quick_folder() as folder:
        clock = [NOW_US]
        bridge = Bridge(Landing(folder), lambda: clock[0])
        bridge.take(at("g1", "birth"), birth("g1"), 1)
        bridge.take(at("g1", "heartbeat"), heartbeat("g1", 0, NOW_US + 10**15, {}), 2)
        for _ in range(4):
            clock[0] += 2_000_000
            bridge.flush()
        assert [row["frontier_us"] for row in frontiers(folder)] == [NOW_US]


def test_numbers_confirmed_elsewhere_land_when_they_come_all_the_same(bridge):
    """heartbeat: kept from 1000, then 0..38 arrive: they land, and are acknowledged no further than they landed."""
    bridge.take(at("g1", "heartbeat"), heartbeat("g1", 0, NOW_US, {0: (1000, 999)}), 1)
    assert bridge.flush().acks == []
    bridge.take(at("g1"), batch("g1", 0, 0, 39), 2)
    (ack,) = bridge.flush().acks
    assert ack.landed == {0: 38}
    assert (bridge.counters.landed, bridge.counters.repeats) == (39, 0)


def test_gaps_over_many_boots_end_at_the_budget_of_the_gateway(bridge, monkeypatch):
    """60 boots with 200 gaps each: what is kept stays within the budget; what is beyond is refused, and others land on."""
    monkeypatch.setattr(ledger_module, "MAX_GATEWAY_RANGES", 1500)
    for boot in range(60):
        seqs = list(range(0, 400, 2))
        bridge.take(at("evil"), encode_batch([reading("evil", boot, seq, NOW_US) for seq in seqs]), boot)
    bridge.take(at("g1"), batch("g1", 0, 0, 5), "honest")
    acks = {ack.gateway: ack.landed for ack in bridge.flush().acks}
    assert acks["g1"] == {0: 4}
    assert sum(1 for _ in bridge._ledger.landed_ranges()) <= 1500 + 1
    assert bridge.counters.over_budget > 0
    assert bridge.by_gateway.over_budget.counts == {("hall", "evil"): bridge.counters.over_budget}


def test_births_have_a_budget_for_each_gateway_and_for_all(bridge, monkeypatch):
    """Names of streams are counted by their length; a refused birth leaves the one before it, and others are taken."""
    long = [(f"{n:03d}" + "x" * 250, "tag", None, 0, 0) for n in range(200)]
    bridge.take(at("g1", "birth"), birth("g1"), 1)
    bridge.take(at("g1", "birth"), encode_birth(Birth("hall", "g1", 0, long)), 2)
    bridge.take(at("g1", "heartbeat"), heartbeat("g1", 0, NOW_US, {}), 3)
    bridge.flush()
    assert [row["streams"] for row in frontiers(bridge.folder)] == [["dock/tags"]]
    monkeypatch.setattr(announcements_module, "MAX_ALL_STREAM_CHARS", 1000)
    for number in range(20):
        bridge.take(at(f"x{number}", "birth"), birth(f"x{number}"), 4)
    assert bridge.dead_letters() == {"over_budget": 1 + 20 - 8}
    assert bridge.counters.over_budget == 13


def test_heartbeats_have_a_budget_of_boots(bridge, monkeypatch):
    """Beyond it a heartbeat is refused, and its gateway's frontier waits for a later one."""
    monkeypatch.setattr(announcements_module, "MAX_ALL_BOOTS", 100)
    for number in range(4):
        bridge.take(at(f"g{number}", "heartbeat"), heartbeat(f"g{number}", 0, 5, dict.fromkeys(range(40), (0, 1))), 1)
    assert bridge.dead_letters() == {"over_budget": 2}


def owned(folder, streams) -> Owners:
    """Owners as a file of gateways in this folder says: g1 with these streams, g2 revoked."""
    path = folder / "gateways.json"
    path.write_text(json.dumps({"gateways": {"hall/g1": {"streams": streams}, "hall/g2": {"revoked": True}}}))
    return Owners(read_owners(path))


def test_only_named_gateways_land_and_only_their_streams(tmp_path):
    """Unknown and revoked gateways, and other streams, end in dead letters; numbers that were not taken stay in spools."""
    with quick_folder() as folder:
        bridge = Bridge(Landing(folder), lambda: NOW_US, owned(tmp_path, ["dock/+"]))
        other = reading("g1", 0, 1)
        other.stream = "shelf/tags"
        bridge.take(at("g1"), encode_batch([reading("g1", 0, 0), other, reading("g1", 0, 2)]), 1)
        bridge.take(at("g2"), batch("g2", 0, 0, 2), 2)
        bridge.take(at("g3"), batch("g3", 0, 0, 2), 3)
        done = bridge.flush()
        assert done.tokens == [1, 2, 3]
        assert [ack.landed for ack in done.acks] == [{0: 0}]
        assert identities(folder) == [("g1", 0, 0), ("g1", 0, 2)]
        said = {letter["reason"]: letter["text"] for letter in letters(folder)[:2]}
        assert said["stream"] == "hall/g1 may not publish 'shelf/tags'; not taken: 1"
        assert said["gateway"] == "hall/g2 is revoked"
        assert bridge.dead_letters() == {"stream": 1, "gateway": 2}


def test_a_birth_gives_a_watermark_only_for_streams_that_the_gateway_may_publish(tmp_path):
    """Another's stream in it is left out, so that its frontier is not moved."""
    with quick_folder() as folder:
        bridge = Bridge(Landing(folder), lambda: NOW_US, owned(tmp_path, ["dock/tags"]))
        streams = [(name, "tag", None, 0, 0) for name in ("dock/tags", "shelf/tags")]
        bridge.take(at("g1", "birth"), encode_birth(Birth("hall", "g1", 0, streams)), 1)
        bridge.take(at("g1", "heartbeat"), heartbeat("g1", 0, NOW_US, {}), 2)
        bridge.flush()
        assert [row["streams"] for row in frontiers(folder)] == [["dock/tags"]]


def test_derived_streams_land_only_from_gateways_that_were_sent_the_rule():
    """As the retained rules messages say, also after a restart; no file is needed for it."""
    rule = CompiledRule("$rule/handover", -5, 5, 1, 2, True, 10, RuleSide(["a"], 0, 5), RuleSide(["b"], 0, 5))
    with quick_folder() as folder:
        for start in range(2):
            landing = Landing(folder)
            bridge = Bridge(landing, lambda: NOW_US)
            if not start:
                bridge.take(at("g1", "rules"), encode_rules("hall", "g1", [rule]), 0)
            for gateway in ("g1", "evil"):
                derived = reading(gateway, 0, start)
                derived.stream = "$rule/handover"
                bridge.take(at(gateway), encode_batch([derived]), 1)
            bridge.flush()
            landing.close()
            assert bridge.dead_letters() == {"stream": 1}
        assert identities(folder) == [("g1", 0, 0), ("g1", 0, 1)]


def test_a_derived_stream_lands_from_a_gateway_of_which_the_file_names_it(tmp_path):
    """It has the rule from its own rules_file. A pattern that begins with a wildcard names none."""
    with quick_folder() as folder:
        bridge = Bridge(Landing(folder), lambda: NOW_US, owned(tmp_path, ["#", "$rule/near"]))
        for number, stream in enumerate(("dock/tags", "$rule/near", "$rule/other")):
            derived = reading("g1", 0, number)
            derived.stream = stream
            bridge.take(at("g1"), encode_batch([derived]), number)
        bridge.flush()
        assert bridge.dead_letters() == {"stream": 1}
        assert identities(folder) == [("g1", 0, 0), ("g1", 0, 1)]
        [letter] = letters(folder)
        assert "whenabouts-cloud publish" in letter["text"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"gateways": {"a/b": 5}}', '{"gateways": {"a/b": {"streams": "x"}}}',
                                  '{"gateways": {"a/b": {"revoked": 1}}}'])  # fmt: skip
def test_a_file_of_gateways_that_cannot_be_used_is_named(tmp_path, text, caplog):
    """At the start it is an error; when it changes later, the one before it stays in use."""
    path = tmp_path / "gateways.json"
    path.write_text(text)
    with pytest.raises(OwnersError, match=r"gateways .*gateways.json: cannot be used"):
        read_owners(path)
    owners = owned(tmp_path, ["dock/+"])
    watched = OwnersFile(path, owners)
    path.write_text(text)
    watched.look()
    watched.look()
    assert owners.refusal(("hall", "g2")) == "is revoked"
    assert [record.event for record in caplog.records] == ["gateways.unusable"]
    path.write_text('{"gateways": {}}')
    watched.look()
    assert owners.refusal(("hall", "g1")) == "is not in the file of gateways"


def test_a_large_payload_is_kept_up_to_its_limit(bridge):
    """The letter holds the beginning and the full length."""
    bridge.take(at("g1"), bytes(1 << 20), 0)
    bridge.flush()
    (letter,) = letters(bridge.folder)
    assert letter["bytes"] == 1 << 20
    assert len(letter["payload"]) == 4 * (dead_module.MAX_PAYLOAD_BYTES + 2) // 3 // 4 * 4


def test_memory_stays_where_it_was_after_many_messages_of_all_kinds(bridge, monkeypatch):
    """Repeats, dead letters, conflicts, heartbeats and new readings: after a flush almost no memory more is held."""
    monkeypatch.setattr(bridge_module, "MAX_RECENT", 100)

    messages = 300 if SEED else 120

    def traffic(start: int) -> None:
        for number in range(start, start + messages):
            bridge.take(at("g1"), batch("g1", 0, 10 * number, 20), number)
            bridge.take(at("g1"), encode_batch([reading("g1", 0, 10 * number, value="other")]), number)
            bridge.take(at("g1"), bytes(3000), number)
            bridge.take(at("g1", "heartbeat"), heartbeat("g1", 0, number, {0: (0, 10 * number)}), number)
            if number % 30 == 29:
                assert bridge.waiting == 120
                assert bridge.waiting_bytes > 90_000
                bridge.flush()
                assert bridge.waiting == bridge.waiting_bytes == bridge.waiting_readings == 0

    traffic(0)
    tracemalloc.start()
    traffic(messages)
    before, _ = tracemalloc.get_traced_memory()
    traffic(2 * messages)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 100_000


def test_a_gateway_that_landed_elsewhere_is_taken_on_and_acknowledged(bridge):
    """other landing |  this landing
    numbers   0 .. 999 |  1000 .. 1049      the heartbeat: kept from 1000"""
    bridge.take(at("g1", "birth"), birth("g1"), 0)
    bridge.take(at("g1"), batch("g1", 3, 1000, 50), 1)
    assert bridge.flush().acks == []
    bridge.take(at("g1", "heartbeat"), heartbeat("g1", 4, NOW_US, {2: (70, 69), 3: (1000, 1049)}), 2)
    (ack,) = bridge.flush().acks
    assert ack.landed == {3: 1049}
    assert [row["frontier_us"] for row in frontiers(bridge.folder)] == [NOW_US]


def test_a_frontier_waits_for_birth_and_for_every_number_of_its_heartbeat():
    """heartbeat (up to 9) -> readings 0..4 -> 5..9 -> birth: only now the frontier, with the streams of the birth."""
    with quick_folder() as folder:
        clock = [NOW_US]
        bridge = Bridge(Landing(folder), lambda: clock[0])

        def shown(*message: object) -> list:
            clock[0] += 2_000_000
            bridge.take(*message, None)
            bridge.flush()
            return frontiers(folder)

        assert shown(at("g1", "heartbeat"), heartbeat("g1", 0, 77, {0: (0, 9)})) == []
        assert shown(at("g1"), batch("g1", 0, 0, 5)) == []
        assert shown(at("g1"), batch("g1", 0, 5, 5)) == []
        (row,) = shown(at("g1", "birth"), birth("g1"))
        assert {**row, "landed_us": 0} == {
            "site": "hall", "gateway": "g1", "frontier_us": 77, "boot": 0, "streams": ["dock/tags"], "landed_us": 0
        }  # fmt: skip
        assert len(shown(at("g1", "heartbeat"), heartbeat("g1", 0, 70, {0: (0, 9)}))) == 1, (
            "a frontier never moves back"
        )


def test_losses_of_gateways_are_counted_and_logged_when_they_begin(bridge, caplog):
    """
    boot      4    4    4    4          5    5
    refused   -    2    7    7 again    0    1      a gateway that reports nothing has no known loss
    """
    for boot, refused in ((4, None), (4, 2), (4, 7), (4, 7), (5, 0), (5, 1)):
        reported = Heartbeat("hall", "g1", boot, None, {}, "bounded", 1, refused=refused, invalid=refused and 1)
        bridge.take(at("g1", "heartbeat"), encode_heartbeat(reported), boot)
    assert (bridge.counters.refused, bridge.counters.invalid, bridge.counters.dead) == (8, 2, 0)
    said = [record.fields for record in caplog.records if record.event == "gateway.refused"]
    assert said == [{"gateway": "hall/g1", "readings": 2}, {"gateway": "hall/g1", "readings": 1}]
    assert len(caplog.records) == 4


def test_a_backlog_does_not_hold_the_frontier_for_ever():
    """Every heartbeat overtakes the readings that it names: the frontier follows one heartbeat behind."""
    with quick_folder() as folder:
        clock = [NOW_US]
        bridge = Bridge(Landing(folder), lambda: clock[0])
        bridge.take(at("g1", "birth"), birth("g1"), None)
        for step in range(10):
            clock[0] += 2_000_000
            bridge.take(at("g1", "heartbeat"), heartbeat("g1", 0, step, {0: (0, 10 * step + 19)}), None)
            bridge.take(at("g1"), batch("g1", 0, 10 * step, 10), None)
            bridge.flush()
        assert [row["frontier_us"] for row in frontiers(folder)] == list(range(9))


def test_tokens_come_back_after_a_frontier_that_could_not_be_written():
    """The disk fails between data and frontier: nothing is acknowledged, then everything once."""
    with quick_folder() as folder:

        class Failing(Landing):
            fail = True

            def write_frontiers(self, rows):
                if self.fail:
                    raise OSError(28, "No space left on device")
                super().write_frontiers(rows)

        landing = Failing(folder)
        bridge = Bridge(landing, lambda: NOW_US)
        bridge.take(at("g1", "birth"), birth("g1"), 1)
        bridge.take(at("g1"), batch("g1", 0, 0, 3), 2)
        bridge.take(at("g1", "heartbeat"), heartbeat("g1", 0, 5, {0: (0, 2)}), 3)
        with pytest.raises(OSError, match="No space left"):
            bridge.flush()
        assert bridge.waiting == 3
        landing.fail = False
        done = bridge.flush()
        assert done.tokens == [1, 2, 3]
        assert done.acks[0].landed == {0: 2}
        assert len(files(folder)) == len(frontiers(folder)) == 1


def test_the_largest_batch_of_the_protocol_lands(bridge):
    """MAX_BATCH_READINGS in one message."""
    payload = batch("g1", 0, 0, MAX_BATCH_READINGS)
    assert len(decode_batch(payload)) == MAX_BATCH_READINGS
    bridge.take(at("g1"), payload, 0)
    assert bridge.flush().acks[0].landed == {0: MAX_BATCH_READINGS - 1}


def test_one_site_cannot_touch_the_readings_of_another_with_an_equally_named_gateway(bridge):
    """Numbers belong to (site, gateway): a foreign heartbeat that claims everything as landed changes nothing here."""
    bridge.take(
        "wa/2/evil/g1/heartbeat",
        encode_heartbeat(Heartbeat("evil", "g1", 77, NOW_US, {77: (1000, 1000)}, "bounded", 1)),
        1,
    )
    bridge.take(at("g1"), batch("g1", 77, 0, 5), 2)
    [ack] = [ack for ack in bridge.flush().acks if ack.site == "hall"]
    assert ack.landed == {77: 4}
    assert bridge.counters.landed == 5
    assert bridge.counters.forgotten == 1000


def test_a_watermark_beyond_the_present_is_cut_and_reported(bridge, caplog):
    """One gateway with a clock a year ahead must not make the readings of all others late."""
    year_us = 365 * 86400 * 1_000_000
    bridge.take(at("g1", "birth"), birth("g1", 0), 1)
    bridge.take(at("g1", "heartbeat"), heartbeat("g1", 0, NOW_US + year_us, {}), 2)
    bridge.flush()
    [row] = frontiers(bridge.folder)
    assert row["frontier_us"] == NOW_US
    assert bridge.counters.clocks_ahead == 1
    assert [record.event for record in caplog.records] == ["gateway.clock_ahead"]


def test_what_gateways_report_is_recorded_if_it_is_theirs_and_lands_nothing(bridge):
    """Births, statuses, heartbeats; not those that are refused. A status that is removed at the broker says nothing."""
    recorder = Recorder()
    with quick_folder() as folder:
        landing = Landing(folder)
        recording = Bridge(landing, lambda: NOW_US, owners=owned(folder, ["dock/+"]), health=recorder)
        for one in (bridge, recording):
            one.take(at("g1", "birth"), birth("g1"), 0)
            one.take(at("g1", "status"), encode_status(Status("hall", "g1", 0, "online")), 1)
            one.take(at("g1", "status"), b"", 2)
            one.take(at("g1", "heartbeat"), heartbeat("g1", 0, None, {}), 3)
            one.take(at("g1", "status"), b"\xff", 4)
            one.take(at("g2", "status"), encode_status(Status("hall", "g2", 0, "online")), 5)
            assert one.flush().tokens == list(range(6))
        found = [record_in(line) for _, line in recorder.take()]
        assert [(r["type"], r["gateway"], r["at_us"]) for r in found] == [
            (kind, "g1", NOW_US) for kind in ("birth", "status", "heartbeat")
        ]
        assert (recording.counters.messages, recording.counters.dead, bridge.counters.dead) == (6, 2, 1)
        assert not files(folder)
        landing.close()
