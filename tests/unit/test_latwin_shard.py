"""A group of states in small steps tells what the definition says, whatever lands first."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.latwin import simulate
from support.landing import EPOCH_US
from support.latwin_states import (
    FOREVER_US,
    MS,
    choices,
    definitely,
    promises_of,
    reports,
    rule,
    state,
    states_of,
    told,
)
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
