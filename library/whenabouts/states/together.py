"""The probability that runs of states, one of each stream, held at one moment, where stamps leave that open."""

import numpy as np

from whenabouts.states.local_states import Ints, States
from whenabouts.states.overlaps import Runs

INSIDE = 1  # of a stream's three states here: before the run, in it, after it


def probability(states: States, every: list[Runs], chosen: Ints) -> float | None:
    """The probability for one choice of runs (`overlaps.choices`), None if stamps and clocks contradict each other.

    The begin of each run and of the state after it is uniform in its stamp and independent of the others, given the order
    that is known. Exact up to some hundred thousand orders, beyond sampled with the same numbers every time.
    """
    from whenabouts_cloud.latwin.model.frame import frame
    from whenabouts_cloud.latwin.probability.order_probability import BEFORE, held

    places = [(int(runs.first[n]), int(runs.end[n])) for runs, n in zip(every, chosen.tolist(), strict=True)]
    begins = [[place for place in ends if place >= 0] for ends in places]
    clocks = [[[0] * len(every), *(_clock(states, every, begins, place) for place in own)] for own in begins]
    window = frame([0] * len(every), clocks)
    lo, hi = np.full((2, len(every), 3), BEFORE, np.int64)
    for n, own in enumerate(begins):
        lo[n, 1 : len(own) + 1], hi[n, 1 : len(own) + 1] = states.lo[own], states.hi[own]
    try:
        return held(window, lo, hi, lambda at: (at == INSIDE).all(axis=-1), seed=0).probability
    except ValueError:
        return None


def _clock(states: States, every: list[Runs], begins: list[list[int]], place: int) -> list[int]:
    """How many of the begins of each stream a state knows."""
    if states.clock is None:
        return [0] * len(every)
    return [
        sum(states.clock[place, runs.slot] >= max(states.number[one], 1) for one in own)
        for runs, own in zip(every, begins, strict=True)
    ]
