"""Runs the rows of an office through the lattice and the detector: sizes, verdicts, costs, and times of emission."""

import time
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from whenabouts_cloud.arrays import Array
from whenabouts_cloud.latwin import All, ConjunctionDetector, LatWin, Local
from whenabouts_cloud.research.experiments.office import STATE, Office

Order = Literal["causal", "hybrid"]


class Windows(NamedTuple):
    """After each admitted state: number of consistent global states, and Def over them. CPU microseconds a state."""

    sizes: Array
    definitely: Array
    us_each: float


def windows(office: Office, window: int, order: Order = "causal") -> Windows:
    """Update the lattice as in the paper, and test after each state if the conjunction held definitely."""
    n = office.workload.processes
    lattice = LatWin(n, window, order)
    conjunction = All(*(Local(p, np.flatnonzero(office.begins(p)[1])) for p in range(n)))
    sizes, definitely = [], []
    rows = _rows(office)
    began = time.process_time()
    for kind, p, number, clock, _, lo, hi in rows:
        if kind == STATE:
            lattice.push(p, number, clock, lo, hi)
            sizes.append(lattice.size)
            definitely.append(lattice.definitely_in_window(conjunction))
        else:
            lattice.evidence(p, clock, lo)
    took = time.process_time() - began
    return Windows(np.array(sizes), np.array(definitely, bool), 1e6 * took / len(sizes))


class Verdicts(NamedTuple):
    """Verdicts after each arrived state. CPU microseconds a state, including one call from Python."""

    possibly: Array
    definitely: Array
    in_window: Array
    us_each: float


def verdicts(office: Office, window: int, order: Order = "causal") -> Verdicts:
    """Verdicts of the detector, which builds no lattice."""
    detector = ConjunctionDetector(office.workload.processes, window, order)
    outcomes = []
    rows = _rows(office)
    began = time.process_time()
    for kind, p, number, clock, holds, lo, hi in rows:
        if kind == STATE:
            outcomes.append(detector.push(p, number, clock, holds, lo, hi))
        else:
            detector.evidence(p, clock, lo)
    took = time.process_time() - began
    possibly, definitely, in_window, _ = np.array(outcomes, bool).T
    return Verdicts(possibly, definitely, in_window, 1e6 * took / len(outcomes))


def emitted(office: Office, window: int, order: Order = "causal") -> dict[tuple[int, ...], int]:
    """Time of the detector's first definite verdict for each overlap of true runs (given by their first state numbers)."""
    detector = ConjunctionDetector(office.workload.processes, window, order)
    emitted_at: dict[tuple[int, ...], int] = {}
    for (kind, p, number, clock, holds, lo, hi), at in zip(_rows(office), office.arrival_us.tolist(), strict=True):
        if kind == STATE:
            detector.push(p, number, clock, holds, lo, hi)
        else:
            detector.evidence(p, clock, lo)
        for runs in detector.overlaps:
            emitted_at.setdefault(runs, at)
    return emitted_at


def _rows(office: Office) -> Iterator[tuple[int, int, int, Any, bool, int, int]]:
    """Yield kind, process, state, clock, truth, lo and hi of each row, one at a time, as heartbeats are many."""
    kind, process, state, holds, lo, hi = (
        column.tolist() for column in (office.kind, office.process, office.state, office.holds, office.lo, office.hi)
    )
    return zip(kind, process, state, np.ascontiguousarray(office.clock), holds, lo, hi, strict=True)
