"""A group of states in small steps tells what the definition says, whatever lands first."""

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.latwin import by_brute_force, simulate
from reference.latwin import definitely as definitely_over
from support.latwin_states import (
    FOREVER_US,
    choices,
    definitely,
    promises_of,
    reports,
    rule,
    states_of,
    told,
)
from whenabouts_cloud.latwin.release import in_order
from whenabouts_cloud.latwin.report import rows_of
from whenabouts_cloud.latwin.shard import LatwinShard


def whole(job, rows, promises):
    """What one batch of everything tells."""
    shard = LatwinShard(job)
    return shard.step(reports(job, rows), promises, everything=True).to_pylist()


def in_steps(job, steps, processes, restarts=True):
    """What a stream tells; after each step the gateways promise what they can."""
    shard, found, everything = LatwinShard(job), [], [row for step in steps for row in step]
    at = 0
    for step in [*steps, [], []]:
        at += len(step)
        promises = list(promises_of(everything[at:], processes))
        found += shard.step(reports(job, step), promises).to_pylist()
        if restarts:
            again = LatwinShard(job)
            again.restore(shard.snapshot())
            shard = again
    return found


def cut(rows, rng):
    """Rows in steps of some size."""
    steps, at = [], 0
    while at < len(rows):
        size = rng.randint(1, 6)
        steps.append(rows[at : at + size])
        at += size
    return steps


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**9), processes=st.integers(2, 4), receives=st.sampled_from(["mixed", "state", "evidence"])
)
def test_definitely_is_its_definition_in_any_order_of_arrival(seed, processes, receives):
    """Batch, and a stream of shuffled small steps with repeats and a restart after each: the choices of runs."""
    rng = random.Random(seed)
    computation = simulate(rng, processes, 30, receives=receives)
    job, rows = definitely(processes), states_of(computation)
    wanted = choices(rows, processes)
    assert told(whole(job, rows, [(f"hall/g{p}", FOREVER_US) for p in range(processes)])) == wanted
    shuffled = rng.sample(rows, len(rows))
    assert told(in_steps(job, cut(shuffled, rng), processes)) == wanted
    for choice in wanted:
        spans = []
        for p, first in enumerate(choice):
            [last] = [b for a, b in computation.runs(p) if a == first]
            spans.append(computation.lasted(p, first, last))
        assert max(a for a, _ in spans) < min(b for _, b in spans), "told of what never was"


def by_windows(job, rows, processes, holds):
    """The definition of rules over windows: a checker that gets the states in the order of `release`, by brute force.

    `holds` says of values of all processes whether the predicate is satisfied. When a period begins, the least global state.
    """
    found, on = [], False
    queues = [{} for _ in range(processes)]
    for _, report in rows_of(job, reports(job, rows)):
        queues[report.slot][report.seq] = report
    ordered = [sorted(q.values(), key=lambda r: r.seq) for q in queues]
    held = [[] for _ in range(processes)]
    for taken in in_order(ordered, [0] * processes, [0] * processes, job.causal):
        report = taken.item
        if report.evidence:
            continue
        held[report.slot] = [*held[report.slot], report][-job.windows[report.slot] :]
        everything = [x for q in ordered for x in q if not x.evidence]
        clocks = closure(everything, job.causal)
        states = by_brute_force(clocks, [[r.number for r in h] for h in held])
        values = [{r.number: r.values[0] for r in h} for h in held]
        true = sorted(s for s in states if holds([v[k] for v, k in zip(values, s, strict=True)]))
        if job.modality == "definitely":
            now = bool(states) and definitely_over(states, lambda s, true=set(true): s in true)
        else:
            now = bool(true)
        if now and not on:
            found.append(true[0])
        on = now
    return found


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
        job = dataclasses.replace(job, causal=bool(order), tell=rng.choice(["eager", "patient"]))
        wanted = by_windows(job, rows, processes, PREDICATES[written])
        periods += len(wanted)
        found = whole(job, rows, [(f"hall/g{p}", FOREVER_US) for p in range(processes)])
        assert [tuple(one["state"] for one in row["states"]) for row in found] == wanted
        assert told(in_steps(job, cut(rng.sample(rows, len(rows)), rng), processes)) == set(wanted)
    assert periods > 4
