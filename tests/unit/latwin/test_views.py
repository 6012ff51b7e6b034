"""Views of a group are never mixed, an old one is closed, and one gateway holds few of them."""

import dataclasses

import pytest

from support.latwin.states import emitted, rule, state
from support.latwin.steps import at, on, stepped, watermark_of
from whenabouts_cloud.latwin.shard.shard import LatwinShard
from whenabouts_cloud.latwin.shard.view import MAX_WAITING


def test_views_are_never_mixed_and_an_old_one_is_closed():
    """View 7 ends with g0 on, view 8 begins with g1 on: no verdict across; what comes of 7 afterwards is counted."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="50 ms")
    shard = LatwinShard(job)
    old = [on(0, 0, 0), on(1, 0, 1, False)]
    new = [on(0, 0, 10, False, view=8, seq=5), on(1, 0, 11, view=8, seq=5)]
    assert stepped(shard, job, old + new, watermark_of(g0=300, g1=300)) == []
    assert shard.counts["views_closed"] == 1
    assert stepped(shard, job, [on(1, 1, 12, seq=6)], watermark_of(g0=300, g1=300)) == []
    assert shard.counts["old_view"] == 1
    both = [on(0, 1, 400, view=8, seq=7)]
    [row] = stepped(shard, job, both, watermark_of(g0=900, g1=900))
    assert (row["view"], [one["state"] for one in row["states"]]) == (8, [1, 0])


def test_a_gateway_that_is_no_member_ends_no_view():
    """Five state readings of another gateway, each with a new view: the members' verdict comes as it would without them."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="50 ms")
    members = [on(0, 0, 0, False), on(1, 0, 1), on(0, 1, 400), on(1, 1, 500, False)]
    forged = [{**on(1, 0, 10**7, view=100 + n, seq=n), "gateway": "evil"} for n in range(5)]
    # And one that claims all streams of a view of its own.
    forged += [{**on(p, 0, 10**7, view=200, seq=9 + p), "gateway": "evil"} for p in range(2)]
    results = []
    for others in ([], forged):
        shard = LatwinShard(job)
        first = stepped(shard, job, members[:2] + others, watermark_of(g0=300, g1=300))
        again = LatwinShard(job)
        again.restore(shard.snapshot())
        results.append(emitted(first + stepped(again, job, members[2:], watermark_of(g0=900, g1=900))))
    assert results == [{(1, 0)}, {(1, 0)}]
    assert shard.counts["foreign"] == 2
    assert shard.counts["old_view"] == again.counts["old_view"] == 0
    assert again.state()["unheard"] == []


def test_a_stream_with_an_owner_takes_no_states_of_another_gateway():
    """Even one that lands first, in the members' view, as the process of the owner."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="50 ms")
    owned = [dataclasses.replace(s, site="hall", gateway=f"g{n}") for n, s in enumerate(job.streams)]
    job = dataclasses.replace(job, streams=tuple(owned))
    shard = LatwinShard(job)
    first = [{**on(1, 0, 0, False), "gateway": "evil"}, {**on(0, 0, 0, False), "site": "yard"}]
    stepped(shard, job, first, watermark_of(evil=900, g0=0))
    rows = [on(0, 0, 0), on(1, 0, 1), on(0, 1, 40, False), on(1, 1, 50, False)]
    assert emitted(stepped(shard, job, rows, watermark_of(g0=900, g1=900))) == {(0, 0)}
    assert shard.counts["readings"] == 4
    assert shard.state()["mistakes"] == []


def test_one_gateway_with_a_thousand_views_holds_few_of_them_and_no_place_of_a_new_view():
    """The members' next view begins while another gateway names views: those of the other gateway go, not the members'."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="50 ms")
    shard = LatwinShard(job)
    forged = [{**on(1, 0, 10, view=1000 + n, seq=n), "gateway": "evil"} for n in range(1000)]
    stepped(shard, job, [on(0, 0, 0, False), on(1, 0, 1), *forged[:500]], watermark_of(g0=2, g1=2))
    begun = [on(0, 0, 20, view=8, seq=5), *forged[500:], on(1, 0, 21, view=8, seq=5)]
    assert emitted(stepped(shard, job, begun, watermark_of(g0=900, g1=900))) == {(0, 0)}
    [group] = shard._groups.values()
    assert len(group._views) <= 6
    assert shard.counts["foreign"] >= 990


def test_a_member_whose_clock_is_ahead_does_not_end_the_view_of_the_others():
    """g2 stamps ten years ahead in view 7; view 8 stays open although the others report nothing for longer than DELAY."""
    job = rule("DEFINITELY s0 AND s1 AND s2 WINDOW 4", delay="50 ms")

    def at_once(view, ms, seq, ahead_ms):
        stamps = (at(ms), at(ms), at(ms + ahead_ms))
        return [state(p, seq, (0, 0, 0), t, t, False, view=view) for p, t in enumerate(stamps)]

    shard = LatwinShard(job)
    old, new = at_once(7, 0, 0, 3 * 10**11), at_once(8, 100, 1, 0)
    stepped(shard, job, old + new, watermark_of(g0=900, g1=900, g2=900))
    rows = [state(p, 2, [int(p == n) for n in range(3)], at(1000), at(1000), True, view=8) for p in range(3)]
    rows += [state(p, 3, [2 * int(p == n) for n in range(3)], at(2000), at(2000), False, view=8) for p in range(3)]
    assert emitted(stepped(shard, job, rows, watermark_of(g0=3000, g1=3000, g2=3000))) == {(1, 1, 1)}
    assert shard.counts["old_view"] == 0


def test_reports_from_the_future_do_not_shorten_the_wait_for_those_of_others():
    """g0 floods its view from the future; a state of g1 that lands after its successor is still in time."""
    job = dataclasses.replace(rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="10 min"), emit="patient")
    shard = LatwinShard(job)
    flood = [on(0, n, 3 * 10**11 + n, n % 2 == 0) for n in range(1, MAX_WAITING + 200)]
    stepped(shard, job, [on(0, 0, 0), on(1, 0, 1, False)], watermark_of(g0=10, g1=10))
    stepped(shard, job, flood, watermark_of(g0=10, g1=10))
    stepped(shard, job, [on(1, 2, 30, False)], watermark_of(g0=10, g1=10))
    stepped(shard, job, [on(1, 1, 20)], watermark_of(g0=10, g1=10))
    assert shard.counts["late"] == shard.counts["forced"] == 0
    assert shard.counts["ahead"] >= 200
    assert shard.state()["rows_kept"] <= MAX_WAITING


def test_a_state_ends_at_the_latest_when_its_gateway_goes_to_another_view():
    """g1's state 0 of view 7 is on, but g1 is in view 8 since 10 ms: its watermark does not cover view 7 at 20 ms."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="1 h")
    shard = LatwinShard(job)
    rows = [on(1, 0, 1), on(1, 0, 10, view=8, seq=5), on(0, 0, 20)]
    assert stepped(shard, job, rows, watermark_of(g0=300, g1=300)) == []


@pytest.mark.parametrize(("left_ms", "found"), [(15, set()), (20, set()), (21, {(0, 0)})])
@pytest.mark.parametrize("first", ["old", "new"])
def test_a_state_with_a_long_stamp_in_the_next_view_may_have_ended_this_one_first(first, left_ms, found):
    """As within a view. Which of both views lands first makes no difference.

    g1  |on (5)  [state of view 8 .............200]
    g0             |on (20)              frontier (100)
    """
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="500 ms")
    old, new = on(1, 0, 5), on(1, 0, left_ms, False, view=8, seq=5, length_ms=200 - left_ms)
    shard = LatwinShard(job)
    stepped(shard, job, [on(0, 0, 20), old if first == "old" else new], watermark_of(g0=4, g1=4))
    again = LatwinShard(job)
    again.restore(shard.snapshot())
    assert emitted(stepped(again, job, [new if first == "old" else old], watermark_of(g0=100, g1=100))) == found


@pytest.mark.parametrize(
    "later",
    [
        on(1, 0, 190, None, view=8, seq=6, is_heartbeat=True),
        on(1, 1, 190, False, view=8, seq=6),
        on(1, 0, 190, False, view=8, seq=6) | {"t_min": -(1 << 62), "t_max": 1 << 62},
    ],
    ids=["heartbeat", "second state", "state without a time"],
)
def test_only_the_first_state_of_the_next_view_tells_when_that_began(later):
    """It is missing, as a full spool refused it, or has no time."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2, delay="500 ms")
    shard = LatwinShard(job)
    assert stepped(shard, job, [on(0, 0, 20), on(1, 0, 5), later], watermark_of(g0=100, g1=100)) == []
    if later["t_min"] < 0:
        return
    state = on(1, 0, 30, False, view=8, seq=5)
    assert emitted(stepped(shard, job, [state], watermark_of(g0=100, g1=100))) == {(0, 0)}


def test_two_gateways_for_one_stream_are_reported_as_a_mistake():
    """And one gateway for two streams."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2)
    shard = LatwinShard(job)
    twin = {**on(1, 1, 3), "stream": "s0/state"}
    stepped(shard, job, [on(0, 0, 0), twin])
    assert shard.state()["mistakes"] == ["group office: stream s0 covers hall/g0 and hall/g1, expected one gateway"]
    assert shard.counts["ambiguous"] == 1
    assert shard.state()["unheard"] == ["office: s1"]
    same = LatwinShard(job)
    stepped(same, job, [on(0, 0, 0), {**on(0, 1, 3), "stream": "s1/state"}])
    assert same.state()["mistakes"] == [
        "group office: streams s0 and s1 both cover hall/g0, expected one gateway for each"
    ]
