"""The Hasse diagram of a window as a value: its consistent global states (CGSs) in levels, and the steps between them.

The CGSs of a window are a convex part of a distributive lattice (Yang et al. 2011, Theorem 1), so every step advances
one process by one state, and leads from one level to the next. The nodes of a level are ordered so that few steps
cross: each moves to the middle of its neighbours, in several sweeps up and down, and the best order seen is kept
(Sugiyama et al. 1981).
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.latwin.model.frame import Frame, Ints
from whenabouts_cloud.latwin.windows.walk import Truth, count, states

NODES_MAX = 60  # more cannot be followed by eye
SWEEPS = 8


class Hasse(NamedTuple):
    """Node i is states[i]. The first is C_min and the last C_max."""

    states: Ints  # (size, n) numbers of the states, in lexical order
    holds: npt.NDArray[np.bool_]  # (size,)
    levels: list[list[int]]  # nodes from C_min upwards, each level from left to right
    steps: list[tuple[int, int, int]]  # node, node above, and the process that advances


def hasse(window: Frame, truth: Truth) -> Hasse:
    """The diagram; without nodes if there is no CGS.

    Raises:
        ValueError: more than NODES_MAX nodes.
    """
    if (size := count(window)) > NODES_MAX:
        raise ValueError(f"hasse: found {size} global states, expected at most {NODES_MAX} to draw: summarise by level")
    numbers = states(window)
    places = {tuple(state): node for node, state in enumerate(numbers.tolist())}
    levels: list[list[int]] = []
    steps: list[tuple[int, int, int]] = []
    for state, node in places.items():
        level = sum(state) - sum(numbers[0].tolist())
        levels.extend([] for _ in range(level + 1 - len(levels)))
        levels[level].append(node)
        for j in range(len(state)):
            above = places.get((*state[:j], state[j] + 1, *state[j + 1 :]))
            if above is not None:
                steps.append((node, above, j))
    holds = truth((numbers - window.first).astype(np.uint16)) if size else np.zeros(0, np.bool_)
    return Hasse(numbers, holds, _uncrossed(levels, steps), steps)


def crossings(levels: list[list[int]], steps: list[tuple[int, int, int]]) -> int:
    """Number of pairs of steps that cross when each level is drawn as a row."""
    place = {node: (height, x) for height, level in enumerate(levels) for x, node in enumerate(level)}
    rows: dict[int, list[tuple[int, int]]] = {}
    for low, high, _ in steps:
        rows.setdefault(place[low][0], []).append((place[low][1], place[high][1]))
    return sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for row in rows.values() for a, b in combinations(row, 2))


def _uncrossed(levels: list[list[int]], steps: list[tuple[int, int, int]]) -> list[list[int]]:
    below: dict[int, list[int]] = {node: [] for level in levels for node in level}
    above: dict[int, list[int]] = {node: [] for level in levels for node in level}
    for low, high, _ in steps:
        below[high].append(low)
        above[low].append(high)
    order = [list(level) for level in levels]
    best, fewest = levels, crossings(levels, steps)
    for sweep in range(SWEEPS):
        neighbours = above if sweep % 2 else below
        x = {node: place - len(level) / 2 for level in order for place, node in enumerate(level)}
        for level in reversed(order) if sweep % 2 else order:
            level.sort(key=lambda node: _middle([x[other] for other in neighbours[node]], x[node]))
            x.update((node, place - len(level) / 2) for place, node in enumerate(level))
        if (crossed := crossings(order, steps)) < fewest:
            best, fewest = [list(level) for level in order], crossed
    return best


def _middle(places: list[float], own: float) -> float:
    return sum(places) / len(places) if places else own
