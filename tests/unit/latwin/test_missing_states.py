"""States that are missing, late or of another boot: what is waited for, and what is believed meanwhile."""

import json

import pytest

from support.latwin.states import emitted, rule
from support.latwin.steps import at, on, stepped, watermark_of, whole
from whenabouts_cloud.frontier.boots import MAX_BOOTS, BootWatermarks
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.latwin.shard.shard import LatwinShard
from whenabouts_protocol.group_state import EARLIER


def test_a_missing_state_is_waited_for_by_delay_and_then_given_up():
    """State 1 of g0 is lost; 2 is known since 20 ms. DELAY 50 ms: at 70 ms g0 restarts with state 2.

    g0  |0 off        ?1?   |2 on (20)                  |3 off (90)
    g1  |0 on (1)                                       |1 off (95)
    """
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="50 ms", length="LENGTH 0 us .. 0 us")
    shard = LatwinShard(job)
    rows = [on(0, 0, 0, False), on(1, 0, 1), on(0, 2, 20)]
    assert stepped(shard, job, rows, watermark_of(g0=69, g1=69)) == []
    assert shard.state()["rows_kept"] == 1
    assert emitted(stepped(shard, job, [], watermark_of(g0=71, g1=71))) == {(2, 0)}
    assert shard.counts["given_up"] == 1
    assert stepped(shard, job, [on(0, 1, 10)]) == [], "comes after all"
    assert shard.counts["late"] == 1


def test_a_gap_that_is_filled_in_time_is_none():
    """The lost state comes: it was off, so the run begins with state 2; had nothing come, state 0 would have gone on."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="50 ms", length="LENGTH 0 us .. 0 us")
    shard = LatwinShard(job)
    assert stepped(shard, job, [on(0, 0, 0), on(0, 2, 20), on(1, 0, 15)], watermark_of(g0=12, g1=16)) == []
    assert emitted(stepped(shard, job, [on(0, 1, 10, False)], watermark_of(g0=60, g1=60))) == {(2, 0)}
    assert shard.counts["given_up"] == 0


def test_a_run_across_a_gap_is_not_believed_to_have_gone_on():
    """State 1 is lost: 0 and 2 were on, but only state 2 shows whether g0 was on when g1 went on at 20 ms."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="5 ms", length="LENGTH 0 us .. 0 us")
    rows = [on(0, 0, 0), on(1, 0, 20), on(0, 2, 20), on(0, 3, 40, False)]
    assert emitted(whole(job, rows, watermark_of(g0=99, g1=99))) == {(2, 0)}
    assert emitted(whole(job, [*rows, on(0, 1, 10)], watermark_of(g0=99, g1=99))) == {(0, 0)}


def test_a_silent_gateway_holds_the_others_for_delay_only():
    """g1's watermark stays at 2 ms; when g0 is 50 ms ahead g1 is no longer waited for, and is named."""
    job = rule("POSSIBLY s0 AND s1 WINDOW 4", processes=2, delay="50 ms")
    shard = LatwinShard(job)
    assert stepped(shard, job, [on(0, 0, 5), on(1, 0, 6)], watermark_of(g0=30, g1=2)) == []
    assert shard.state()["silent"] == []
    assert shard.state()["streams_us"] == {"s0": at(30), "s1": at(2)}
    assert emitted(stepped(shard, job, [], watermark_of(g0=60, g1=2))) == {(0, 0)}
    assert shard.state()["silent"] == ["hall/g1"]
    assert shard.state()["streams_us"] == {"s0": at(60), "s1": at(60 - 50)}


def test_a_state_of_a_silent_gateway_is_not_believed_to_last():
    """Both on; the frontier passes g1 by DELAY, but whether g1 was still on when g0 began only g1 knows."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="50 ms")
    shard = LatwinShard(job)
    assert stepped(shard, job, [on(1, 0, 5), on(0, 0, 20)], watermark_of(g0=300, g1=6)) == []
    assert shard.state()["silent"] == ["hall/g1"]
    assert emitted(stepped(shard, job, [], watermark_of(g0=300, g1=200))) == {(0, 0)}


@pytest.mark.parametrize(("off_ms", "found"), [(15, set()), (20, set()), (21, {(0, 0)})])
def test_a_state_with_a_longer_stamp_than_any_before_may_have_begun_first(off_ms, found):
    """Nothing says how long stamps are. g1's end has landed, and the frontier is still inside its stamp.

    g1  |on (5)  [off ...........................200]
    g0             |on (20)              frontier (100)
    """
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="500 ms")
    rows, end = [on(1, 0, 5), on(0, 0, 20)], on(1, 1, off_ms, False, length_ms=200 - off_ms)
    shard = LatwinShard(job)
    assert stepped(shard, job, rows, watermark_of(g0=100, g1=off_ms)) == []
    assert emitted(stepped(shard, job, [end], watermark_of(g0=100, g1=100))) == found
    assert stepped(shard, job, [], watermark_of(g0=300, g1=300)) == []
    assert emitted(whole(job, [*rows, end], watermark_of(g0=300, g1=300))) == found


def test_a_later_boot_does_not_show_that_a_state_went_on():
    """g1 is killed after its state ended and before that was stored; its next start has a watermark, but not this state's.

    boot of g1  |1: on (5)   off, lost |2 ...
    g0                  |on (20)
    """
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="50 ms")
    rows = [on(1, 0, 5), on(0, 0, 20)]
    killed = [*watermark_of(g0=300, g1=10), *watermark_of(boot=2, g1=300)]
    shard = LatwinShard(job)
    assert stepped(shard, job, rows, killed) == []
    again = LatwinShard(job)
    again.restore(shard.snapshot())
    assert stepped(again, job, [], killed) == []
    assert whole(job, rows, killed) == []
    assert emitted(stepped(again, job, [], watermark_of(g1=40))) == {(0, 0)}, "the boot itself said so"
    assert emitted(whole(job, rows, [*killed, *watermark_of(g1=40)])) == {(0, 0)}


def test_a_state_that_another_start_stored_under_the_same_number_is_no_repeat():
    """States that wait for UTC are stored a hundred at a time; an agent that is killed between leaves the rest to the next,
    which numbers its readings from 0.

    boot of g1  |1, number 5: off (5)   |2, number 0: on (10), 1: off (30)
    g0             |off (1)                     |on (20)       |off (40)
    """
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="50 ms")
    rows = [on(0, 0, 1, False), on(1, 0, 5, False, seq=5)]
    rest = [on(1, 1, 10, seq=0, boot=2), on(0, 1, 20), on(1, 2, 30, False, seq=1, boot=2), on(0, 2, 40, False)]
    for one in rest[0], rest[2]:
        one["attrs"] = json.dumps(json.loads(one["attrs"]) | {EARLIER: True})
    ends = [*watermark_of(g0=300), *watermark_of(boot=2, g1=300)]
    assert emitted(whole(job, rows + rest, ends)) == {(1, 1)}
    shard = LatwinShard(job)
    assert stepped(shard, job, rows, watermark_of(g0=7, g1=7)) == []
    again = LatwinShard(job)
    again.restore(shard.snapshot())
    assert emitted(stepped(again, job, rest + rows, ends)) == {(1, 1)}
    assert again.counts["repeats"] == 2


def test_watermarks_of_the_boot_that_stored_a_state_of_an_earlier_start_do_not_show_that_it_went_on():
    """g1's state waited for UTC and was stored by the next start, under its own boot; its end was never stored."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="50 ms")
    rows = [on(1, 0, 5), on(0, 0, 20)]
    rows[0]["attrs"] = json.dumps(json.loads(rows[0]["attrs"]) | {EARLIER: True})
    shard = LatwinShard(job)
    assert stepped(shard, job, rows, watermark_of(g0=300, g1=300)) == []
    again = LatwinShard(job)
    again.restore(shard.snapshot())
    assert stepped(again, job, [], watermark_of(g0=900, g1=900)) == []
    assert whole(job, rows, watermark_of(g0=300, g1=300)) == []
    assert emitted(whole(job, [*rows, on(1, 1, 250, False)], watermark_of(g0=300, g1=300))) == {(0, 0)}


def test_a_state_that_a_full_spool_refused_ends_the_one_before():
    """g1's state 1 never lands; a clock heartbeat shows that it began by 290 ms, the watermark is beyond that.

    g1  |0 on (5)    1 off, refused        |heartbeat of 1 (290)
    g0                        |0 on (20)
    """
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="50 ms")
    rows = [on(1, 0, 5), on(0, 0, 20), on(1, 1, 290, is_heartbeat=True, seq=9)]
    assert whole(job, rows, watermark_of(g0=300, g1=300)) == []
    shard = LatwinShard(job)
    assert stepped(shard, job, rows, watermark_of(g0=300, g1=300)) == []
    assert stepped(shard, job, [], watermark_of(g0=900, g1=900)) == []
    landed = on(1, 1, 250, False, seq=8)
    assert emitted(whole(job, [*rows, landed], watermark_of(g0=300, g1=300))) == {(0, 0)}, "had it landed"


def test_of_many_boots_the_latest_are_remembered():
    """A gateway that starts a thousand times has MAX_BOOTS watermarks, and the greatest of all."""
    watermarks = BootWatermarks()
    for boot in range(1000):
        watermarks.note([Watermark("hall/g0", 5000 - boot, boot)])
        watermarks.take_effect()
    assert watermarks.latest_us("hall/g0") == 5000
    assert [watermarks.boot_us("hall/g0", boot) for boot in (999, 1000 - MAX_BOOTS)] == [4001, 4000 + MAX_BOOTS]
    assert watermarks.boot_us("hall/g0", 999 - MAX_BOOTS) is None
