"""Messages of hostile, broken or misplaced senders: each becomes a dead letter with its reason, and good traffic goes on."""

import random
from collections import Counter

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cloud.ingest import at, batch, birth, heartbeat, identities, letters, quick_folder
from support.search import examples
from whenabouts_cloud.ingest import dead_letters as dead_module
from whenabouts_cloud.ingest import log_limit
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_protocol import Heartbeat, Status, encode_heartbeat, encode_status


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
