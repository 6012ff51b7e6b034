"""One operator over one workload, in simulated time with the real cost of each call.

A tuple is passed on when it has arrived and the operator is free; the duration of the call is its service time. So an
operator that cannot keep up falls behind, as on the papers' machine, without real waiting. The execution time is the sum
of the service times, multiplied by the share of the processor that this thread had, which removes most of the effect of
other programs.
"""

import gc
import time
from dataclasses import dataclass

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.experiments.workload import RHO_US, Workload
from whenabouts_cloud.research.operators import Counters, operator
from whenabouts_cloud.research.operators.block_operator import BlockOperator

SAMPLE_EVERY = 16  # pushes between two samples of the buffers


@dataclass(frozen=True)
class Run:
    """Result of one operator on one workload; times in microseconds, `execution_us` is CPU."""

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

    Response times are means over the pairs, as the 2009 and the 2010 paper define them (`operators.counters`), including
    the time inside the operator and in the queue before it.
    """
    delay, pi = workload.delay_us, workload.pi_us
    op = operator(
        name, condition, delay_a=delay, delay_b=delay, pi_a=pi, pi_b=pi, rho_a=RHO_US, rho_b=RHO_US, block=block
    )  # fmt: skip
    # Results in each operator's own form, without conversion: arrays from block operators, else lists of pairs.
    in_blocks = isinstance(op, BlockOperator)
    push = op.push_arrays if in_blocks else op.push
    held: list[int] = []
    free_at = busy = waited = 0.0
    gc.collect()
    cpu_began, wall_began = time.thread_time(), time.perf_counter()
    for count, (arrival, side, index, t_min, t_max) in enumerate(workload.events):
        began = time.perf_counter_ns()
        pairs = push(side, index, t_min, t_max, arrival)
        service = (time.perf_counter_ns() - began) / 1000
        busy += service
        free_at = max(free_at, arrival) + service
        waited += (free_at - arrival) * (len(pairs[0]) if in_blocks else len(pairs))
        if count % SAMPLE_EVERY == 0:
            counts = op.counters
            held.append(counts.buffer_a + counts.buffer_b)
    began = time.perf_counter_ns()
    last = len(op.flush_arrays()[0])
    service = (time.perf_counter_ns() - began) / 1000
    waited += (free_at + service - workload.events[-1][0]) * last
    share = min(1.0, (time.thread_time() - cpu_began) / (time.perf_counter() - wall_began))
    counts = op.counters
    pairs_found = max(counts.pairs, 1)
    return Run(
        name, workload.name, len(workload.events), (busy + service) * share,
        # The operator's sums end at the arrival time passed to it; `waited` adds the queue and the calls.
        (counts.response_2009_sum + waited) / pairs_found, (counts.response_2010_sum + waited) / pairs_found,
        sum(held) / len(held), counts,
    )  # fmt: skip


def warm_up(condition: Condition, workload: Workload) -> None:
    """Compile the kernels (numba, some seconds once) before measurements."""
    for name in ("lazy", "lookup", "banded"):
        simulate(name, condition, workload, block=8 if name != "banded" else None)
