"""Members that come, go, reboot and lie: numbers of views never come back, nothing raises, and no lie reaches far."""

from hypothesis import given
from hypothesis import strategies as st

from whenabouts_edge.group.conditions import Presence
from whenabouts_edge.group.detection import Detection
from whenabouts_edge.group.membership import Membership
from whenabouts_edge.group.peers import MAX_JUMP
from whenabouts_edge.group.process import GroupProcess
from whenabouts_protocol import Reading, encode_batch
from whenabouts_protocol.group_state import attrs_of

PEERS = ["a", "c"]
boots = st.integers(1, 6)
groups = st.sampled_from(["office", "office", "garage", None])
news = st.lists(
    st.one_of(
        st.tuples(st.just("born"), st.sampled_from([*PEERS, "z"]), boots, groups),
        st.tuples(st.just("stopped"), st.sampled_from([*PEERS, "z"]), boots),
        st.tuples(st.just("removed"), st.sampled_from([*PEERS, "z"])),
    ),
    max_size=30,
)


@given(news)
def test_no_news_of_members_brings_a_view_back(heard):
    """Every change makes a new number; a call that reports no change leaves the number as it was."""
    membership = Membership("office", "b", 7, PEERS)
    view = membership.view()
    seen = {view.number}
    for what, *arguments in heard:
        changed = getattr(membership, what)(*arguments)
        after = membership.view()
        assert after.members[after.own] == ("b", 7)
        assert after.members == sorted(after.members)
        assert (after.number != view.number) == changed
        if changed:
            assert after.number not in seen
        seen.add(after.number)
        view = after


@given(st.lists(st.tuples(st.sampled_from(PEERS), st.integers(1, 3), st.booleans()), max_size=12), st.randoms())
def test_members_that_heard_the_same_of_all_agree_whatever_the_order_between_gateways(heard, random):
    """Messages of one gateway keep their order, those of different ones do not."""
    one, two = (Membership("office", name, 7, PEERS) for name in ("b", "b"))
    queues = {peer: [h for h in heard if h[0] == peer] for peer in PEERS}
    for gateway, boot, stops in heard:
        one.born(gateway, boot, "office")
        if stops:
            one.stopped(gateway, boot)
    while any(queues.values()):
        gateway, boot, stops = queues[random.choice([p for p in PEERS if queues[p]])].pop(0)
        two.born(gateway, boot, "office")
        if stops:
            two.stopped(gateway, boot)
    assert one.view().number == two.view().number
    assert one.view().members == two.view().members


counts = st.one_of(st.integers(0, 5), st.integers(0, 2 * MAX_JUMP), st.sampled_from([1 << 30, 1 << 40, 2**63 - 1]))
states = st.tuples(
    st.sampled_from(PEERS), st.integers(0, 3), st.lists(counts, min_size=1, max_size=4), st.integers(4, 6),
    st.sampled_from(["view", "view", "view", "other"]), st.booleans(),
)  # fmt: skip


@given(st.lists(st.one_of(states, st.binary(max_size=60)), max_size=20))
def test_no_message_raises_and_no_clock_claims_more_than_it_may(messages):
    """Own states only as they began, a third's at most MAX_JUMP beyond any report at a time; clocks only grow."""
    detection = Detection([Presence("here", "tags", None, 1, 10)])
    process = GroupProcess("office", "b", 7, PEERS, detection, 0)
    for peer in PEERS:
        process.born(peer, 5, "office", 0)
    process.advance(0, 0)
    [first] = process.advance(1, 5_000_000)
    clock = first.clock
    for n, message in enumerate(messages):
        now_us = 5_000_000 + 100 * n
        gateway, reported = "a", None
        if isinstance(message, bytes):
            payload = message
        else:
            gateway, at, reported, boot, view, is_heartbeat = message
            at = min(at, len(reported) - 1)
            attrs = attrs_of("office", first.view if view == "view" else 1, at, {}, is_heartbeat)
            payload = encode_batch([
                Reading(site="hall", gateway=gateway, boot=boot, seq=n, stream="s", kind="state", t_min=0, t_max=1,
                        attrs=attrs, vclock=reported)
            ])  # fmt: skip
        before = process.clock.newest
        error = process.receive("hall", gateway, payload, now_us)
        after = process.clock.newest
        assert error is None or after == before
        for i, name in enumerate(["a", "b", "c"]):
            assert before[i] <= after[i]
            if after[i] > before[i]:
                assert name != "b"
                assert reported[i] >= after[i]
                assert name == gateway or after[i] <= before[i] + MAX_JUMP
        process.observe("tags", "E", None, {}, now_us + 50, now_us + 60)
        for report in process.advance(now_us + 70, now_us + 70):
            assert all(x <= y for x, y in zip(clock, report.clock, strict=True))
            clock = report.clock
    assert sum(process.counters.values()) >= sum(isinstance(message, bytes) for message in messages)


@given(news, st.lists(st.integers(0, 3), min_size=30, max_size=30))
def test_states_are_numbered_from_0_without_gaps_in_each_view_and_no_view_is_there_twice(heard, reads):
    """Members change while tags come and go: every report is of the newest view, and its values are those of the tags."""
    detection = Detection([Presence("here", "tags", None, 1, 1000)])
    process = GroupProcess("office", "b", 7, PEERS, detection, 0)
    process.advance(0, 0)
    now_us, last, views = 3_000_000, None, []
    for (what, *arguments), count in zip([*heard, ("removed", "z")], reads, strict=False):
        getattr(process, what)(*arguments, now_us)
        for _ in range(count):
            now_us += 700_000
            process.observe("tags", "E", None, {}, now_us - 10, now_us)
            reports = process.advance(now_us - 10, now_us) + process.advance(now_us + 600_000, now_us + 600_000)
            for report in reports:
                number = report.clock[report.process]
                if last is None or report.view != last.view:
                    assert report.view not in views
                    views.append(report.view)
                    assert set(report.clock) == {0}
                else:
                    assert number == last.clock[last.process] + 1
                    assert report.values != last.values
                assert report.earliest_us <= report.latest_us
                last = report
            assert last is None or last.values == {"here": False}
    assert process.views == len(views)
