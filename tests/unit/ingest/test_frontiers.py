"""The frontier of a gateway waits for what it has promised, and for no more."""

import pytest

from support.cloud.ingest import NOW_US, at, batch, birth, files, frontiers, heartbeat, quick_folder
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_protocol import Heartbeat, encode_heartbeat


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
