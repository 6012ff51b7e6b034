"""A group of states in small steps emits the verdicts of the definition, in any order of landing, within its limits."""

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.latwin import by_brute_force, simulate
from reference.latwin import definitely as definitely_over
from support.cloud.landing import EPOCH_US, table
from support.latwin.states import MS, choices, definitely, emitted, reports, rule, state, states_of, watermarks_of
from support.latwin.steps import at, on, stepped, watermark_of, whole
from support.search import examples
from whenabouts_cloud.latwin.picture.picture import NothingToDrawError, picture
from whenabouts_cloud.latwin.shard.processing_order import in_order
from whenabouts_cloud.latwin.shard.report import rows_of
from whenabouts_cloud.latwin.shard.shard import LatwinShard
from whenabouts_cloud.latwin.shard.view import MAX_EARLY, MAX_WAITING


def in_steps(job, steps, processes, restarts=True):
    """Rows of a stream; after each step the gateways publish the highest watermarks they can."""
    shard, results, everything = LatwinShard(job), [], [row for step in steps for row in step]
    at = 0
    for step in [*steps, [], []]:
        at += len(step)
        watermarks = list(watermarks_of(everything[at:], processes))
        results += shard.step({"reports": reports(job, step)}, [watermarks]).results.to_pylist()
        if restarts:
            again = LatwinShard(job)
            again.restore(shard.snapshot())
            shard = again
    return results


def cut(rows, rng):
    """Rows in steps of some size."""
    steps, at = [], 0
    while at < len(rows):
        size = rng.randint(1, 6)
        steps.append(rows[at : at + size])
        at += size
    return steps


@settings(max_examples=examples(150), deadline=None)
@given(
    seed=st.integers(0, 10**9), processes=st.integers(2, 4), receives=st.sampled_from(["mixed", "state", "heartbeat"])
)
def test_definitely_is_its_definition_in_any_order_of_arrival(seed, processes, receives):
    """Batch, and a stream of shuffled small steps with repeats and a restart after each: the choices of runs."""
    rng = random.Random(seed)
    computation = simulate(rng, processes, 30, receives=receives)
    job, rows = definitely(processes), states_of(computation)
    wanted = choices(rows, processes)
    assert emitted(whole(job, rows, list(watermarks_of([], processes)))) == wanted
    shuffled = rng.sample(rows, len(rows))
    assert emitted(in_steps(job, cut(shuffled, rng), processes)) == wanted
    for choice in wanted:
        spans = []
        for p, first in enumerate(choice):
            [last] = [b for a, b in computation.runs(p) if a == first]
            spans.append(computation.lasted(p, first, last))
        assert max(a for a, _ in spans) < min(b for _, b in spans), "emitted an overlap that never was"


def by_windows(job, rows, processes, holds):
    """The definition of rules over windows: a checker that gets the states in `processing_order`, by brute force.

    `holds` is true of values of all processes that satisfy the predicate. When a period begins, the least global state.
    """
    onsets, on = [], False
    queues = [{} for _ in range(processes)]
    for _, report in rows_of(job, reports(job, rows)):
        queues[report.slot][report.seq] = report
    ordered = [sorted(q.values(), key=lambda r: r.seq) for q in queues]
    held = [[] for _ in range(processes)]
    for taken in in_order(ordered, [0] * processes, [0] * processes, job.causal):
        report = taken.item
        if report.is_heartbeat:
            continue
        held[report.slot] = [*held[report.slot], report][-job.windows[report.slot] :]
        everything = [x for q in ordered for x in q if not x.is_heartbeat]
        clocks = closure(everything, job.causal)
        states = by_brute_force(clocks, [[r.number for r in h] for h in held])
        values = [{r.number: r.values[0] for r in h} for h in held]
        true = sorted(s for s in states if holds([v[k] for v, k in zip(values, s, strict=True)]))
        if job.modality == "definitely":
            now = bool(states) and definitely_over(states, lambda s, true=set(true): s in true)
        else:
            now = bool(true)
        if now and not on:
            onsets.append(true[0])
        on = now
    return onsets


def closure(states, causal):
    """Clocks with the order by stamps folded in."""
    clocks = {(r.slot, r.number): list(r.clock) for r in states}
    stamped = {(r.slot, r.number): r for r in states}
    changed = True
    while changed:
        changed = False
        for (j, number), clock in clocks.items():
            before = list(clock)
            if (j, number - 1) in clocks:
                before = [max(a, b) for a, b in zip(before, clocks[j, number - 1], strict=True)]
            for (i, k), other in stamped.items():
                if i != j and (k <= before[i] > 0 or (not causal and other.hi < stamped[j, number].lo)):
                    before = [max(a, b) for a, b in zip(before, clocks[i, k], strict=True)]
            before[j] = number
            if before != clock:
                clock[:], changed = before, True
    return clocks


PREDICATES = {
    "s0 AND s1 AND s2": lambda v: all(v),
    "s0 AND NOT s1": lambda v: v[0] and not v[1],
    "s0 OR s1": lambda v: v[0] or v[1],
    "2 OF (s0, s1, s2)": lambda v: sum(v) >= 2,
    "s0 = s1 AND s2": lambda v: v[0] == v[1] and v[2],
}


@pytest.mark.parametrize("written", PREDICATES)
@pytest.mark.parametrize("modality", ["POSSIBLY", "DEFINITELY IN WINDOW"])
def test_rules_over_windows_are_those_of_a_checker_that_gets_the_states_in_order(written, modality):
    """Periods and their witnesses, from one batch and from shuffled small steps with restarts; windows of 2 and 3."""
    periods = 0
    for seed in range(6):
        rng = random.Random(seed)
        processes = 3 if "s2" in written else 2
        rows = states_of(simulate(rng, processes, 26, receives="mixed"))
        order = rng.choice(["", " CAUSAL"])
        job = rule(f"{modality} {written} WINDOW 3, s1 2", processes=processes)
        job = dataclasses.replace(job, causal=bool(order), emit=rng.choice(["eager", "patient"]))
        wanted = by_windows(job, rows, processes, PREDICATES[written])
        periods += len(wanted)
        results = whole(job, rows, list(watermarks_of([], processes)))
        assert [tuple(one["state"] for one in row["states"]) for row in results] == wanted
        assert emitted(in_steps(job, cut(rng.sample(rows, len(rows)), rng), processes)) == set(wanted)
    assert periods > 4


def queues_of(job, rows):
    """Reports by process, each in the order of its gateway."""
    queues = [{} for _ in job.streams]
    for _, report in rows_of(job, reports(job, rows)):
        queues[report.slot][report.seq] = report
    return [sorted(queue.values(), key=lambda r: r.seq) for queue in queues]


@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 10**9), share=st.floats(0, 1))
def test_the_order_extends_what_is_known_and_grows_at_its_end(seed, share):
    """A report that is before another one by clock or stamp is taken before it; keys below a frontier stay when more lands,
    as long as a gateway's clock heartbeats land before its later reports."""
    rng = random.Random(seed)
    rows = states_of(simulate(rng, 3, 30, error=rng.choice([0, 3, 9])))
    queues = queues_of(definitely(3), rows)
    order = [taken.item for taken in in_order(queues, [0] * 3, [10**9] * 3, False)]
    for n, later in enumerate(order):
        for earlier in order[n + 1 :]:
            assert not (earlier.hi < later.lo)
            assert not (later.clock[earlier.slot] >= earlier.number > 0 and later.slot != earlier.slot) or (
                earlier.is_heartbeat
            )
    frontier = sorted(r.hi for r in order)[int(share * (len(order) - 1))]
    landed = [_landed([r for r in queue if r.hi < frontier or rng.random() < 0.5], queue) for queue in queues]
    partial = [t for t in in_order(landed, [0] * 3, [10**9] * 3, False) if t.key < frontier]
    assert [t.item for t in partial] == order[: len(partial)]


def _landed(some, queue):
    """Some reports of a gateway, and the clock heartbeats before the last of them, which land before it."""
    last = max((r.seq for r in some), default=-1)
    return sorted({*some, *(r for r in queue if r.is_heartbeat and r.seq < last)}, key=lambda r: r.seq)


def test_eager_emits_before_the_frontier_and_patient_with_it():
    """The clocks prove it when the ends have landed, though g1 has no watermark."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2)
    rows = [on(0, 0, 0), on(1, 0, 5), on(0, 1, 30, False), on(1, 1, 40, False)]
    assert emitted(stepped(LatwinShard(job), job, rows)) == {(0, 0)}
    patient = dataclasses.replace(job, emit="patient")
    shard = LatwinShard(patient)
    assert stepped(shard, patient, rows) == []
    assert emitted(stepped(shard, patient, [], watermark_of(g0=99, g1=99))) == {(0, 0)}


def test_more_early_verdicts_than_are_remembered_are_still_emitted_once_each():
    """
    process 0   |   held   |   |   held   |   ...   eight runs
    process 1   | | | | | | | | | | | | | | | ...   fifty short runs within each

    No watermark comes, so all 400 verdicts could be emitted early; some of them wait for the end.
    """
    job, rows, t, mine, other = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2), [], EPOCH_US, 0, 0
    for _ in range(8):
        rows.append(state(0, mine, (mine, 0), t, t + MS, True))
        for _ in range(100):
            t += 20 * MS
            rows.append(state(1, other, (0, other), t, t + MS, other % 2 == 0))
            other += 1
        t += 20 * MS
        rows.append(state(0, mine + 1, (mine + 1, 0), t, t + MS, False))
        mine, t = mine + 2, t + 20 * MS
    shard = LatwinShard(job)
    outputs = [shard.step({"reports": reports(job, given)}, [[]]) for given in (rows, [], [])]
    outputs.append(shard.step({"reports": reports(job, [])}, [[]], everything=True))
    early, *nothing, last = [[(r["result_id"], r["status"]) for r in o.results.to_pylist()] for o in outputs]
    assert len(early) == MAX_EARLY
    assert nothing == [[], []]
    assert len({*early, *last}) == len(early) + len(last) == 400
    assert {status for _, status in early + last} == {"emitted"}
    assert outputs[-1].counts["early_full"] > 0


def test_possibly_eager_retracts_what_the_order_does_not_show():
    """g1 seems on since 10 ms while g0 is; then a state of g1 lands that shows it off until 30 ms, when g0 was off.

    g0  |0 on (0)      |1 off (20)
    g1  |0 off (1)  |1 on (10), stamped up to 40        first known: 0 off, 1 on
    """
    job = dataclasses.replace(rule("POSSIBLY s0 AND s1 WINDOW 1", processes=2), emit="eager")
    shard = LatwinShard(job)
    first = [on(0, 0, 0), on(1, 0, 1, False), on(1, 1, 10, length_ms=30)]
    [early] = stepped(shard, job, first)
    assert early["status"] == "emitted"
    late = [on(0, 1, 5, False)]
    [gone] = stepped(shard, job, late, watermark_of(g0=99, g1=99))
    assert (gone["status"], gone["result_id"]) == ("retracted", early["result_id"])


def test_repeats_and_stamps_that_are_no_time_are_counted():
    """An unbounded clock gives no time: only the vector clocks decide then."""
    job = rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2)
    end = (1 << 63) - 1
    rows = [
        state(0, 0, (0, 0), -end, end, False),
        state(0, 1, (1, 0), -end, end, True),
        state(1, 0, (0, 0), -end, end, False),
        state(1, 1, (0, 1), -end, end, True),
        state(0, 2, (2, 1), -end, end, False),
    ]
    shard = LatwinShard(job)
    step = shard.step({"reports": reports(job, rows + rows[:2])}, [[]], everything=True)
    assert emitted(step.results) == set(), "g1 may have gone off before g0 knew of it"
    assert (shard.counts["repeats"], shard.counts["beyond_time"]) == (2, 5)
    report = state(1, 2, (2, 1), -end, end, None, is_heartbeat=True)
    assert emitted(whole(job, [*rows, report], [])) == {(1, 1)}


def test_a_state_of_a_clock_that_knew_nothing_holds_up_none_of_its_view():
    """Its stamp reaches a century from now. What it says of its place is in its clock."""
    century_us = 100 * 365 * 86_400 * 1_000_000
    rows = [
        state(0, 0, (0, 0), EPOCH_US - century_us, EPOCH_US + century_us, False),
        *(state(process, 1, (1, 1), EPOCH_US + 10 * MS, EPOCH_US + 12 * MS, True) for process in range(2)),
        *(state(process, 2, (2, 2), EPOCH_US + 30 * MS, EPOCH_US + 32 * MS, False) for process in range(2)),
    ]
    rows.insert(1, state(1, 0, (0, 0), EPOCH_US, EPOCH_US + MS, False))
    for written in ("DEFINITELY", "POSSIBLY"):
        job = rule(f"{written} s0 AND s1 WINDOW 4", processes=2)
        assert emitted(in_steps(job, [rows], 2)) == {(1, 1)}


def test_what_waits_is_limited():
    """No gateway has a watermark and states keep coming: the oldest are taken, and counted."""
    job = dataclasses.replace(rule("DEFINITELY s0 AND s1 WINDOW 4", processes=2), emit="patient")
    shard = LatwinShard(job)
    shard.step({"reports": reports(job, [on(0, n, n, n % 2 == 0) for n in range(MAX_WAITING)])}, [[]])
    shard.step({"reports": reports(job, [on(1, n, n, n % 2 == 0) for n in range(10)])}, [[]])
    assert shard.counts["forced"] == 10
    assert shard.state()["rows_kept"] == MAX_WAITING


@pytest.mark.parametrize("body", ["DEFINITELY {}", "POSSIBLY {}"])
def test_a_group_of_nine_is_kept_in_two_kilobytes(body):
    """Windows of 4, nothing waiting: runs or ring, identities of the readings and values included."""
    streams = " AND ".join(f"s{n}" for n in range(9))
    job = rule(f"{body.format(streams)} WINDOW 4", processes=9)
    rows = states_of(simulate(random.Random(4), 9, 300))
    shard = LatwinShard(job)
    shard.step({"reports": reports(job, rows)}, [list(watermarks_of([], 9))])
    shard.step({"reports": reports(job, [])}, [[]])
    assert shard.state()["rows_kept"] == 0
    [group] = shard._groups.values()
    assert len(group.snapshot()) <= 2048
    again = LatwinShard(job)
    again.restore(shard.snapshot())
    assert again.snapshot() == shard.snapshot()


def test_a_snapshot_of_another_version_is_refused():
    """The text names the version."""
    shard = LatwinShard(definitely(2))
    old = shard.snapshot().replace(b"[6,", b"[0,", 1)
    with pytest.raises(ValueError, match="found version 0, expected 6"):
        shard.restore(old)


def test_each_local_alternative_is_emitted():
    """2 OF three: a row for each pair that was on together; a local alternative is emitted with only its own state."""
    job = rule("DEFINITELY 2 OF (s0, s1, s2) WINDOW 4")
    rows = [state(p, 0, (0, 0, 0), at(p), at(p), True) for p in range(3)]
    results = whole(job, rows, watermark_of(g0=99, g1=99, g2=99))
    assert sorted(tuple(s["name"] for s in r["states"]) for r in results) == [("s0", "s1"), ("s0", "s2"), ("s1", "s2")]
    either = rule("DEFINITELY s0 OR s1 WINDOW 4", processes=2)
    assert len(whole(either, [on(0, 0, 0), on(1, 0, 1, False)], [])) == 1


def test_the_windows_at_a_verdict_are_drawn():
    """Boxes of the global states in which all were on are marked; without a verdict the picture is of the end."""
    job = definitely(2)
    rows = [on(0, 0, 0), on(1, 0, 5), on(0, 1, 30, False), on(1, 1, 40, False), on(0, 2, 50, False)]
    [verdict] = whole(job, rows, watermark_of(g0=99, g1=99))
    drawn = picture(job, table(rows), verdict)
    assert drawn.count('class="state') + drawn.count("holds") > 0
    assert "r: s0 AND s1" in drawn
    assert "group office, view 7, when the latest verdict came to hold" in drawn
    assert "s0 hall/g0" in drawn
    assert "at the end" in picture(job, table(rows), None)
    with pytest.raises(NothingToDrawError, match="has sent no state of s1"):
        picture(job, table(rows[:1]), None)
    with pytest.raises(NothingToDrawError, match="no state of a group"):
        picture(job, table([]), None)
    with pytest.raises(NothingToDrawError, match="expected two or more"):
        picture(rule("POSSIBLY s0 WINDOW 2"), table(rows), None)
