"""One operator over one workload, in simulated time with the real cost of each call.

A tuple is handed over when it has arrived and the operator is free; the CPU time of the call is its service time. So an
operator that cannot keep up falls behind, as on the papers' machine, without anybody waiting for it. CPU time of the thread
is taken, not the clock on the wall: other programs do not show in the result.
"""

import gc
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from whenabouts_cloud.correlation.condition import Condition
from whenabouts_cloud.correlation.operators import Counters, operator
from whenabouts_cloud.experiments.workload import RHO_US, Workload

SAMPLE_EVERY = 16  # pushes between two looks at the buffers


@dataclass(frozen=True)
class Run:
    """What one operator did with one workload; times in microseconds, `execution_us` is CPU."""

    operator: str
    workload: str
    tuples: int
    execution_us: float
    response_2009_us: float
    response_2010_us: float
    buffer_mean: float  # tuples held of both streams, mean over the run
    counters: Counters


def simulate(name: str, condition: Condition, workload: Workload, *, block: int | None = None) -> Run:
    """Run an operator over all events and flush it.

    Response times are means over the pairs, as the 2009 and the 2010 paper define them (`operators.counters`), the time
    spent inside the operator and in the queue before it included.
    """
    delay, pi = workload.delay_us, workload.pi_us
    op = operator(
        name, condition, delay_a=delay, delay_b=delay, pi_a=pi, pi_b=pi, rho_a=RHO_US, rho_b=RHO_US, block=block
    )  # fmt: skip
    arrived = {s: np.empty(len(workload.events), np.int64) for s in "ab"}
    ended = {s: np.empty(len(workload.events), np.int64) for s in "ab"}
    for arrival, side, index, _, t_max in workload.events:
        arrived[side][index], ended[side][index] = arrival, t_max
    outcomes: list[tuple[float, list[tuple[int, int]]]] = []
    held: list[int] = []
    free_at = spent = 0.0
    gc.collect()
    for count, (arrival, side, index, t_min, t_max) in enumerate(workload.events):
        began = time.thread_time_ns()
        pairs = op.push(side, index, t_min, t_max, arrival)
        service = (time.thread_time_ns() - began) / 1000
        spent += service
        free_at = max(free_at, arrival) + service
        if pairs:
            outcomes.append((free_at, pairs))
        if count % SAMPLE_EVERY == 0:
            counts = op.counters
            held.append(counts.buffer_a + counts.buffer_b)
    began = time.thread_time_ns()
    pairs = op.flush()
    service = (time.thread_time_ns() - began) / 1000
    outcomes.append((free_at + service, pairs))
    by_2009, by_2010 = _responses(outcomes, arrived, ended)
    counts = op.counters
    return Run(
        name, workload.name, len(workload.events), spent + service,
        by_2009 / max(counts.pairs, 1), by_2010 / max(counts.pairs, 1), float(np.mean(held)), counts,
    )  # fmt: skip


def _responses(
    outcomes: list[tuple[float, Any]], arrived: dict[str, Any], ended: dict[str, Any]
) -> tuple[float, float]:
    """Sums over all pairs of completion - later arrival and of completion - later maximum."""
    by_2009 = by_2010 = 0.0
    for completed, pairs in outcomes:
        if pairs:
            i, j = np.array(pairs, np.int64).T
            by_2009 += completed * len(i) - float(np.maximum(arrived["a"][i], arrived["b"][j]).sum())
            by_2010 += completed * len(i) - float(np.maximum(ended["a"][i], ended["b"][j]).sum())
    return by_2009, by_2010


def warm_up(condition: Condition, workload: Workload) -> None:
    """Compile the kernels (numba, some seconds once) outside of what is measured."""
    for name in ("lazy", "lookup", "banded"):
        simulate(name, condition, workload, block=8 if name != "banded" else None)
