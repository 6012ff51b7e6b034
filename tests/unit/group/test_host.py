"""The agent's side of a group: topics, states as numbered readings for the spool and then for the peers, its own status."""

import pytest

from whenabouts_edge.agent.group_host import GroupHost, to_publish
from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.settings import GroupConfig, ReaderConfig, StateConfig
from whenabouts_edge.group.process import SETTLE_US
from whenabouts_edge.readers.host_session import Batch
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_protocol import Birth, Status, decode_batch, encode_batch, encode_birth, encode_status, topic
from whenabouts_protocol.group_state import attrs_of, state_of, view_number

SAMPLE = ClockSample(0, 1_000_000, 50, "free-running")
BOOT = 1 << 40


def state(name="here", **more):
    return StateConfig(
        **{"name": name, "stream": "tags", "key": None, "reads": 1, "leave_ms": 1, "attr": None, "on_at": None,
           "off_at": None, "hold_ms": 0, **more}
    )  # fmt: skip


class Bench:
    """A host whose present is set by hand."""

    def __init__(self, *states):
        self.now_us = 0
        config = GroupConfig("office", (("hall", "a"), ("lab", "c")), "b/state", states or (state(),))
        self.host = GroupHost(config, "hall", "b", BOOT, 0, lambda: self.now_us)

    def advance(self, clear_us, now_us=None):
        self.now_us = clear_us if now_us is None else now_us
        return self.host.advance(clear_us, SAMPLE)

    def begin(self):
        """The first view, with a as a member."""
        self.born("a", 5)
        self.advance(0)
        [first] = self.advance(1, 2 * SETTLE_US)
        return first

    def born(self, gateway, boot, site="hall", on=None, group="office"):
        payload = encode_birth(Birth(site, gateway, boot, [], group, []))
        self.host.heard(topic(*(on or (site, gateway)), "birth"), payload)


def observed(window_us, key="E1", attrs=None):
    return PendingReading("tags", "tag", *window_us, key, attrs=attrs)


def test_it_listens_to_three_topics_of_each_peer():
    """By name, without wildcards."""
    assert Bench().host.topics == [
        "wa/2/hall/a/birth", "wa/2/hall/a/status", "wa/2/hall/a/state",
        "wa/2/lab/c/birth", "wa/2/lab/c/status", "wa/2/lab/c/state",
    ]  # fmt: skip


def test_a_state_is_a_reading_that_is_published_to_peers_when_it_has_its_number():
    """Before, and after the spool refused it, nothing is published; a clock heartbeat never is."""
    bench = Bench()
    first = bench.begin()
    reading = observed((10, 20))
    bench.host.stamp([reading])
    assert reading.vclock == (0, 0)
    [latest] = bench.advance(21)
    pending = [reading, first, latest]
    assert to_publish(pending) == []
    assert latest.numbered(BOOT, 4).stream == "b/state"
    latest.refused()
    assert to_publish(pending) == []
    first.numbered(BOOT, 3), latest.numbered(BOOT, 4)
    reported = [r for payload in to_publish(pending) for r in decode_batch(payload)]
    assert [(r.boot, r.seq, r.kind, r.value, r.t_min, r.t_max, r.clock_state) for r in reported] == [
        (BOOT, 3, "state", None, 999_950, 1_000_052, "free-running"),  # from 0 to 1 us, the bound of 50 us, and its growth
        (BOOT, 4, "state", True, 1_000_010 - 51, 1_000_020 + 51, "free-running"),
    ]  # fmt: skip
    states = [state_of(r) for r in reported]
    assert [(s.group, s.process, s.clock, s.values) for s in states] == [
        ("office", 1, (0, 0), {}), ("office", 1, (0, 1), {"here": True, "value": True}),
    ]  # fmt: skip
    assert states[0].view == view_number([("a", 5), ("b", BOOT)])
    message = decode_batch(to_publish(pending)[0])[0]
    message.gateway, message.boot, message.vclock = "a", 5, (3, 0)
    message.attrs = attrs_of("office", states[0].view, 0, {})
    bench.now_us = 500
    bench.host.heard(topic("hall", "a", "state"), encode_batch([message]))
    [report] = bench.advance(600, 3 * SETTLE_US)
    assert state_of(report.numbered(BOOT, 5)).is_heartbeat
    assert to_publish([report]) == []


def test_a_gap_is_no_read_and_begins_no_state():
    """It stands in the stream of the reads that it counts, and carries the clock as they do."""
    bench = Bench()
    bench.begin()
    gap = PendingReading("tags", "gap", 10, 20, None, 7, "{readings}")
    bench.host.stamp([gap])
    assert gap.vclock == (0, 0)
    assert bench.advance(21) == []


def test_a_refused_state_is_followed_by_a_report_that_shows_it_is_missing():
    """Else the state before would seem to go on: a clock heartbeat with the number of the lost state, before any new view.

    reports     0 stored    1 refused    1 heartbeat, refused    1 heartbeat, stored    0 of the next view
    """
    bench = Bench()
    first = bench.begin()
    bench.host.stamp([observed((10, 20))])
    [lost] = bench.advance(21, 3 * SETTLE_US)
    lost.refused()
    assert bench.host.owes
    bench.born("a", 6)
    view = state_of(first.numbered(BOOT, 0)).view
    for n in range(2):
        [report] = bench.advance(30 + n, (6 + n) * SETTLE_US)
        told = state_of(report.numbered(BOOT, 1))
        assert (told.is_heartbeat, told.view, told.clock) == (True, view, (0, 1))
        assert not bench.host.owes
        if n == 0:
            report.refused()
            assert bench.host.owes
    [begun] = bench.advance(40, 9 * SETTLE_US)
    told = state_of(begun.numbered(BOOT, 2))
    assert (told.is_heartbeat, told.clock) == (False, (0, 0))
    assert told.view != view


def test_no_watermark_passes_the_earliest_moment_of_a_state_that_may_still_be_reported():
    """A watermark says that the state before it lasts, and the tag may have left right after its read.

    stamp of the read   [1000              4000]
    may have left          [1001                4001]
    """
    bench = Bench(state(leave_ms=1))
    bench.begin()
    bench.advance(999, 2 * SETTLE_US)
    assert bench.host.clear_until(999) == 999
    bench.host.stamp([observed((1000, 4000))])
    assert bench.advance(4500, 3 * SETTLE_US) == [], "it may have left from 2000 on, and the hulls would touch"
    assert bench.host.clear_until(4500) == 1000
    assert bench.advance(5001, 4 * SETTLE_US) != []
    assert bench.host.clear_until(5001) == 5001


def test_several_values_are_attributes_without_a_value_of_the_reading():
    """The single value belongs to only one condition."""
    bench = Bench(state("x"), state("y", attr="rssi", on_at=5, off_at=3))
    bench.begin()
    bench.host.stamp([observed((10, 10), attrs={"rssi": 7})])
    readings = [one.numbered(BOOT, n) for n, one in enumerate(bench.advance(100))]
    assert [(r.value, state_of(r).values) for r in readings] == [(None, {}), (None, {"x": True, "y": True})]


def test_what_peers_say_of_themselves_is_checked(caplog):
    """A birth on another's topic, noise, other sites; an end in order makes a new view, a lost connection does not."""
    bench = Bench()
    bench.begin()
    bench.host.view_changed()
    bench.born("c", 1, on=("hall", "a"), site="lab")
    bench.host.heard(topic("hall", "a", "birth"), b"\xff")
    bench.host.heard(topic("hall", "a", "status"), b"\xff")
    assert bench.host.refused == 3
    bench.born("c", 1, site="hall")  # the peer c is of another site
    bench.host.heard("nonsense", b"")
    bench.host.heard(topic("hall", "a", "state"), b"\xff")
    bench.host.heard(topic("hall", "a", "state"), b"\xff")
    said = [(one.event, one.fields.get("reason")) for one in caplog.records]
    assert said.count(("peer.disbelieved", "malformed")) == 1
    assert [event for event, _ in said].count(
        "peer.refused"
    ) == 2  # a birth and a status of a; the second birth is not told
    bench.host.heard(topic("hall", "a", "status"), encode_status(Status("hall", "a", 5, "offline")))
    bench.host.heard(topic("hall", "a", "status"), b"")
    assert bench.advance(2, 9 * SETTLE_US) == []
    assert not bench.host.view_changed()
    bench.host.heard(topic("hall", "a", "status"), encode_status(Status("hall", "a", 5, "stopped")))
    assert len(bench.advance(3, 20 * SETTLE_US)) == 1
    assert bench.host.view_changed()
    assert bench.host.members == ["b"]


@pytest.mark.parametrize("way", ["removed", "other group"])
def test_a_member_leaves_by_its_birth(way):
    """An empty retained message takes it off the broker; a new boot may belong to another group."""
    bench = Bench()
    bench.begin()
    if way == "removed":
        bench.host.heard(topic("hall", "a", "birth"), b"")
    else:
        bench.born("a", 6, group="garage")
    assert len(bench.advance(3, 20 * SETTLE_US)) == 1
    assert bench.host.members == ["b"]


def test_the_status_shows_group_view_clock_and_state():
    """Before the first view there is none."""
    bench = Bench()
    assert bench.host.members == ["b"]
    before = bench.host.status()
    assert (before["view"], before["members"], before["state"], before["absent"]) == (None, [], None, ["a", "c"])
    bench.begin()
    bench.host.stamp([observed((10, 20))])
    bench.advance(21)
    status = bench.host.status()
    assert (status["name"], status["members"], status["absent"]) == ("office", ["a", "b"], ["c"])
    assert (status["clock"], status["state"], status["values"], status["views"]) == ([0, 1], 1, {"here": True}, 1)
    assert set(status["refused"].values()) == {0}


def test_reads_on_their_way_are_lost_with_their_port():
    """The next frame may be stamped up to reach_us before the moment that is clear, so the tag may have come then."""
    bench = Bench(state(leave_ms=1000))
    reader = ReaderConfig("r", "rdm6300", "x", "tags", 9600, 1000, 5000, False)
    bench.host.scanned(reader, Batch([], 0, 0, 0), 300)
    bench.begin()
    bench.host.scanned(reader, Batch([], 2_000_000, 0, 2_000_000), 300)
    [absent] = bench.advance(2_000_000 - 300, 3 * SETTLE_US)
    bench.host.scanned(reader, Batch([], 2_000_500, 2_000_500, 2_000_500), 300)
    [unknown] = bench.advance(2_000_500 - 300, 4 * SETTLE_US)
    assert (absent.value, unknown.value) == (False, None)
    assert (unknown.earliest_us, unknown.latest_us) == (2_000_000 - 300, 2_000_000 - 300)
