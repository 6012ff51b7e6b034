"""All hypothesis strategies for windows over several processes: computations, windows, orders of arrival.

Processes that join late, messages that overtake, silent receives, equal stamps, points and wide stamps, repeated and
overtaken reports are drawn often.
"""

from typing import NamedTuple

from hypothesis import strategies as st

from reference.latwin import Computation, simulate


class Case(NamedTuple):
    """A computation as it reaches a checker, and the windows of its processes."""

    computation: Computation
    window: tuple[int, ...]


@st.composite
def computations(
    draw: st.DrawFn, *, most_processes: int = 4, most_steps: int = 24, heartbeats: bool = True, any_order: bool = False
) -> Computation:
    """A random computation; with `any_order` its reports arrive in any order, else with individual delays."""
    processes = draw(st.integers(2, most_processes))
    kinds = ["state", "silent"] + (["mixed", "mixed", "heartbeat"] if heartbeats else [])
    drawn = simulate(
        draw(st.randoms(use_true_random=False)),
        processes,
        draw(st.integers(processes, most_steps)),
        error=draw(st.sampled_from([3, 0, 1, 10, 100])),
        receives=draw(st.sampled_from(kinds)),
        joins_late=draw(st.booleans()),
        delay=draw(st.sampled_from([5, 0, 1, 20])),
        duplicates=draw(st.booleans()),
    )
    if any_order:
        drawn = Computation(drawn.processes, drawn.events, tuple(draw(st.permutations(drawn.arrivals))))
    return drawn


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    most_processes: int = 4,
    most_steps: int = 24,
    most_window: int = 4,
    heartbeats: bool = True,
    any_order: bool = False,
) -> Case:
    """A computation with windows, of one size or of a size for each process."""
    computation = draw(
        computations(most_processes=most_processes, most_steps=most_steps, heartbeats=heartbeats, any_order=any_order)
    )
    sizes = st.integers(1, most_window)
    if draw(st.booleans()):
        return Case(computation, (draw(sizes),) * computation.processes)
    return Case(computation, tuple(draw(sizes) for _ in range(computation.processes)))
