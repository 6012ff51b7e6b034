"""Each gateway has a budget in the ingest, and all together have one."""

import random
import tracemalloc

from support.cloud.ingest import NOW_US, at, batch, birth, frontiers, heartbeat, identities, letters, reading
from support.search import SEED
from whenabouts_cloud.ingest import announcements as announcements_module
from whenabouts_cloud.ingest import bridge as bridge_module
from whenabouts_cloud.ingest import ledger as ledger_module
from whenabouts_cloud.ingest.ledger import MAX_RANGES
from whenabouts_protocol import Birth, decode_batch, encode_batch, encode_birth
from whenabouts_protocol.messages.batch import MAX_BATCH_READINGS


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


FRAMES = 6  # of a place in the code that tracemalloc keeps


def held_by_ingest():
    """Bytes that code of the ingest has had allocated; other threads of the test process may allocate, too."""
    snapshot = tracemalloc.take_snapshot()
    ours = snapshot.filter_traces([tracemalloc.Filter(True, "*/whenabouts_cloud/ingest/*", all_frames=True)])
    return sum(one.size for one in ours.traces)


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
    tracemalloc.start(FRAMES)
    traffic(messages)
    before = held_by_ingest()
    traffic(2 * messages)
    after = held_by_ingest()
    tracemalloc.stop()
    assert after - before < 100_000


def test_the_largest_batch_of_the_protocol_lands(bridge):
    """MAX_BATCH_READINGS in one message."""
    payload = batch("g1", 0, 0, MAX_BATCH_READINGS)
    assert len(decode_batch(payload)) == MAX_BATCH_READINGS
    bridge.take(at("g1"), payload, 0)
    assert bridge.flush().acks[0].landed == {0: MAX_BATCH_READINGS - 1}
