"""Rules and the group on a board: limits of a small memory, and their valid configurations."""

import pytest

from support.board.flash import CutFlash
from whenabouts_edge.board.agent import UNREPORTED_MAX, Agent
from whenabouts_edge.board.config import checked
from whenabouts_edge.board.flash_log import FlashLog
from whenabouts_edge.board.group import BoardGroup
from whenabouts_edge.board.rules import MAX_DERIVED, MAX_RULES, BoardRules
from whenabouts_edge.board.sntp import Sample
from whenabouts_edge.board.store import Store
from whenabouts_edge.group.process import SETTLE_US
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_protocol import (
    Birth,
    Reading,
    Status,
    WireError,
    decode_batch,
    decode_birth,
    encode_batch,
    encode_birth,
    encode_status,
    topic,
)
from whenabouts_protocol.group_state import attrs_of, state_of
from whenabouts_protocol.messages.compiled_rule import CompiledRule, RuleSide, encode_rules

S = 1_000_000
GROUP = {
    "name": "office", "members": ["hall/b", "hall/a", "lab/c"],
    "states": [{"name": "here", "stream": "s", "leave_ms": 86_400_000}],
}  # fmt: skip


def config(**more):
    return checked({
        "site": "hall", "gateway": "b", "broker": {"host": "h"}, "ntp": {"host": "n"}, "commit_ms": 0,
        "readers": [{"port": 1, "kind": "rdm6300", "stream": "s"}], **more,
    })  # fmt: skip


def rule(name="near", limit=1000, span_us=S):
    side = RuleSide(["s"], 0, S)
    return CompiledRule(f"$rule/{name}", -span_us, span_us, 1, 2, False, limit, side, side)


def message(*rules, gateway="b"):
    return encode_rules("hall", gateway, list(rules))


def agent_with(first=b"", **more):
    """An agent whose time is known, online."""
    agent = Agent(config(**more), FlashLog(CutFlash(), 4, 8192, 0), 0, first)
    agent.clock.take(Sample(0, 1000 * S, 10))
    agent.begin(0)
    agent.heard(b"\x20\x02\x00\x00", 0)
    return agent


def published(agent, leaf):
    """Payloads that wait to be written on one topic, as (QoS, payload)."""
    name, messages = agent._topic(leaf).encode(), []
    for packet in agent.mqtt._out:
        at = packet.find(name)
        if packet[0] >> 4 == 3 and at >= 0:
            qos = packet[0] >> 1 & 3
            messages.append((qos, packet[at + len(name) + (2 if qos else 0) :]))
    return messages


def stored(agent):
    """All readings in the flash log."""
    readings, at = [], None
    while (kept := agent._flash_log.after(at)) is not None:
        readings += decode_batch(kept.payload)
        at = kept.next
    return readings


def test_rules_from_the_start_then_from_the_cloud_then_those_of_the_start_again():
    """A message for another gateway, or with more rules than a board takes, is counted and changes nothing."""
    rules = BoardRules("hall", "b", 64, message(rule("first")))
    assert rules.streams == ["$rule/first"]
    assert not rules.received(message(rule("first")))
    assert rules.received(message(rule("x"), rule("y")))
    for noise in (b"\xff", message(rule(), gateway="c"), message(*[rule(f"r{n}") for n in range(MAX_RULES + 1)])):
        assert not rules.received(noise)
    assert (rules.refused, rules.streams) == (3, ["$rule/x", "$rule/y"])
    assert rules.received(b"")
    assert rules.streams == ["$rule/first"]
    with pytest.raises(WireError, match="found rules of hall/c, expected those of hall/b"):
        BoardRules("hall", "b", 64, message(rule(), gateway="c"))


def test_all_rules_together_keep_no_more_than_the_limit():
    """Sixteen readings for four rules: each keeps at most four, and reports at most MAX_DERIVED pairs a reading."""
    rules = BoardRules("hall", "b", 16, message(*[rule(f"r{n}", span_us=10**9) for n in range(4)]))
    for n in range(50):
        r = Reading(site="hall", gateway="b", boot=1, seq=n, stream="s", kind="tag", t_min=n, t_max=n + 5)
        assert len(rules.stored(PendingReading("s", "tag", n, n), r)) <= 4 * 4
    kept = [counted["kept"] for counted in rules.running.counters().values()]
    assert len(kept) == 4
    assert max(kept) <= 4
    rules = BoardRules("hall", "b", 64, message(rule(span_us=10**9)))
    for n in range(40):
        r = Reading(site="hall", gateway="b", boot=1, seq=n, stream="s", kind="tag", t_min=n, t_max=n + 5)
        assert len(rules.stored(PendingReading("s", "tag", n, n), r)) <= 2 * MAX_DERIVED
    assert rules.running.counters()["$rule/near"]["pairs_dropped"] > 0


def test_derived_readings_are_stored_behind_their_sources_and_share_their_watermark():
    """
    accepted   a  b                 stored: a b, then  (a, b) (b, a)
    watermark  pending              not published before the pairs are stored
    """
    agent = agent_with(message(rule()), rules={})
    assert decode_birth(agent._birth).streams[-1][:3] == ("$rule/near", "measure", "[ppm]")
    agent.store.accept(
        [PendingReading("s", "tag", 5 * S, 5 * S + 10, "A"), PendingReading("s", "tag", 5 * S + 20, 5 * S + 30, "B")],
        5 * S,
    )
    agent._renew(5 * S)
    pending_watermark = agent._pending_watermark
    agent.store.step(6 * S)
    assert agent._flash_log.next_seq == 2
    assert agent.store.settled == pending_watermark.accepted == 2
    agent._renew(6 * S)
    assert (pending_watermark.end, pending_watermark.accepted) == (None, 4)
    agent.store.step(7 * S)
    agent._renew(7 * S)
    assert pending_watermark.end == agent._flash_log.end
    a, b, *pairs = stored(agent)
    assert [r.seq for r in pairs] == [2, 3]
    for r in pairs:
        assert (r.stream, r.kind, r.value, r.unit, r.t_min, r.t_max) == (
            "$rule/near", "measure", 1_000_000, "[ppm]", b.t_min, b.t_max,
        )  # fmt: skip
    assert {(r.attrs["a_seq"], r.attrs["b_seq"]) for r in pairs} == {(a.seq, b.seq), (b.seq, a.seq)}


def test_derived_readings_that_find_no_room_are_reported_by_a_gap():
    """The gap has the time of the lost readings."""
    agent = agent_with(message(rule()), rules={})
    store: Store = agent.store
    agent._flash_log._flash.fails = lambda: store.settled >= 20
    store.accept([PendingReading("s", "tag", 5 * S + n, 5 * S + n + 5, f"{n}") for n in range(20)], 5 * S)
    while store.accepted > store.settled:
        store.step(6 * S, flush=True)
    assert store.refused > 50
    agent._flash_log._flash.fails = lambda: False
    store.step(60 * S)
    gap = [r for r in stored(agent) if r.kind == "gap"]
    assert [(r.stream, r.value) for r in gap] == [("$rule/near", store.refused)]
    sources = [r for r in stored(agent) if r.kind == "tag"]
    assert min(r.t_min for r in sources) <= gap[0].t_min <= gap[0].t_max <= max(r.t_max for r in sources)


def test_a_board_publishes_its_states_once_they_are_stored_and_again_for_a_new_peer():
    """
    births     a ........ then a view of both       state 0 stored, published      a again: published again
    """
    agent = agent_with(group=GROUP)
    assert [name for name in agent.group.topics if name.startswith("wa/2/lab")] == [
        "wa/2/lab/c/birth", "wa/2/lab/c/status", "wa/2/lab/c/state",
    ]  # fmt: skip
    birth = encode_birth(Birth("hall", "a", 5, [], "office", []))
    agent._message(topic("hall", "a", "birth"), birth, S)
    for now in (S, S + SETTLE_US, S + 2 * SETTLE_US):
        agent._detect(now, now)
    assert agent.group.members == ["a", "b"]
    announced = decode_birth(published(agent, "birth")[-1][1])
    assert (announced.group, announced.view) == ("office", ["a", "b"])
    assert ("b/state", "state") in [stream[:2] for stream in announced.streams]
    assert published(agent, "state") == []
    agent.step(4 * S)
    [state] = [r for r in stored(agent) if r.kind == "state"]
    [(qos, reported)] = published(agent, "state")
    assert (qos, decode_batch(reported)) == (1, [state])
    assert state_of(state).clock == (0, 0)
    agent._message(topic("hall", "a", "birth"), birth, 5 * S)
    agent._detect(5 * S, 5 * S)
    agent.step(6 * S)
    assert published(agent, "state") == [(1, reported)] * 2


def test_readings_carry_the_states_of_peers():
    """A state of a peer is merged when it comes, and counts for what happened after it; noise is counted."""
    group = BoardGroup(config(group=GROUP)["group"], "hall", "b", 7, 0)
    group.heard(topic("hall", "a", "birth"), encode_birth(Birth("hall", "a", 5, [], "office", [])), 0)
    group.advance(0, 0, [])
    [first] = group.advance(1, 2 * SETTLE_US, [])
    view = state_of(reading_of(first)).view
    said = Reading(
        site="hall", gateway="a", boot=5, seq=3, stream="a/state", kind="state", t_min=0, t_max=1,
        attrs=attrs_of("office", view, 0, {}), vclock=(2, 0),
    )  # fmt: skip
    group.heard(topic("hall", "a", "state"), encode_batch([said]), 3 * S)
    pending_readings = [
        PendingReading("s", "tag", 3 * S - 1, 3 * S + 5),
        PendingReading("s", "tag", 3 * S + 1, 3 * S + 5),
    ]
    group.stamp(pending_readings)
    assert [pending.vclock for pending in pending_readings] == [(0, 0), (2, 0)]
    group.heard(topic("hall", "a", "birth"), b"\xff", 4 * S)
    group.heard(topic("lab", "c", "status"), b"\xff", 4 * S)
    group.heard(topic("hall", "a", "state"), b"\xff", 4 * S)
    assert (group.refused, group.counters["malformed"]) == (2, 1)
    group.heard(topic("hall", "a", "status"), encode_status(Status("hall", "a", 5, "stopped")), 4 * S)
    group.advance(5 * S, 5 * S, [])
    group.advance(5 * S, 5 * S + SETTLE_US, [])
    assert group.members == ["b"]


def reading_of(pending):
    """The reading that a pending state becomes."""
    return Reading(
        site="hall", gateway="b", boot=7, seq=0, stream=pending.stream, kind=pending.kind, value=pending.value,
        attrs=pending.attrs, t_min=0, t_max=1, vclock=pending.vclock,
    )  # fmt: skip


def test_states_that_cannot_be_published_do_not_pile_up():
    """Without a connection only the newest are kept; after it comes, the newest is published."""
    agent = agent_with(group=GROUP)
    agent.mqtt = None
    for n in range(50):
        pending = PendingReading("b/state", "state", n * S, n * S, attrs=attrs_of("office", 1, 0, {}))
        pending.vclock, pending.publish = (n, 0), True
        agent.store.accept([pending], n * S)
        agent.store.step(n * S, flush=True)
    assert len(agent._states) == UNREPORTED_MAX
    agent.begin(100 * S)
    agent.heard(b"\x20\x02\x00\x00", 100 * S)
    agent.step(100 * S)
    assert [decode_batch(payload)[0].vclock for _, payload in published(agent, "state")] == [(49, 0)]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"wifi": {}}, "wifi ssid: found nothing"),
        ({"watchdog_s": 9}, "config watchdog_s: found 9, expected at most 8"),
        ({"rules": {"limit": 0}}, "config rules limit: found 0"),
        ({"rules": {"limits": 5}}, "rules: found 'limits', expected one of file, limit"),
        ({"group": {**GROUP, "members": ["hall/a", "lab/c"]}}, "hall/b among them"),
        ({"group": {**GROUP, "members": ["hall/b", "lab/b"]}}, "with different names"),
        ({"group": {**GROUP, "members": ["hall/b", "a"]}}, "found 'a', expected site/gateway"),
        (
            {"group": {**GROUP, "members": ["hall/b"] + [f"hall/g{n}" for n in range(16)]}},
            "found 17, expected up to 16",
        ),
        ({"group": {**GROUP, "states": []}}, "group states: found 0"),
        ({"group": {**GROUP, "states": [{"name": "x", "stream": "s", "on_at": 5}]}}, "expected two numbers"),
        ({"broker": {"host": "h", "ca": "x"}}, "broker: found 'ca'"),
    ],
)
def test_what_a_configuration_cannot_say_is_refused_by_name(more, reason):
    """The first fault."""
    with pytest.raises(ValueError, match=reason):
        config(**more)


def test_a_configuration_fills_in_what_is_left_out():
    """Of rules, Wi-Fi and group."""
    filled = config(rules={}, wifi={"ssid": "x"}, group=GROUP, led="LED", watchdog_s=8)
    assert (filled["rules"], filled["wifi"]) == ({"limit": 64}, {"ssid": "x", "password": ""})
    assert (filled["led"], filled["watchdog_s"], config()["watchdog_s"]) == ("LED", 8, 0)
