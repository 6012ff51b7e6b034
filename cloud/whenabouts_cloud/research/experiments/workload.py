"""The papers' data files, generated: r12 ... r1600 (tuples a second and stream) and seq, in microseconds, from a seed.

The papers give rates, pi and rho, not the distributions. Here starts are uniform over the span and lengths uniform in
[rho, pi] (the tables of the 2010 paper's analysis fit that); a tuple arrives up to `delay` after its maximum. In `seq` all
tuples are in the order of their maxima, as both papers state.
"""

import random
from dataclasses import dataclass
from typing import Literal

Event = tuple[int, Literal["a", "b"], int, int, int]  # arrival, side, index, t_min, t_max

MS = 1000
DELAY_US = 100 * MS
RHO_US = 20 * MS


@dataclass(frozen=True)
class Workload:
    """Events in the order of arrival."""

    name: str
    rate: int
    pi_us: int
    delay_us: int
    events: list[Event]


def arrivals(rate: int, tuples: int, *, pi_us: int, seed: int, in_order: bool = False) -> Workload:
    """Generate `tuples` in all, half per stream, at `rate` tuples a second and stream."""
    rng = random.Random(f"{seed} {rate} {pi_us} {in_order}")
    span_us = tuples * 500_000 // rate
    delay_us = 0 if in_order else DELAY_US
    events: list[Event] = []
    for index in range(tuples):
        length = rng.randrange(RHO_US, pi_us + 1)
        t_max = rng.randrange(span_us)
        events.append(
            (t_max + rng.randrange(delay_us + 1), "b" if index % 2 else "a", index // 2, t_max - length, t_max)
        )
    events.sort()
    return Workload("seq" if in_order else f"r{rate}", rate, pi_us, delay_us, events)
