"""Effect of simultaneous events of one key on each place of an alternative: increments, resets, values."""

from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep.count.measures import clear, take_in
from whenabouts_cloud.cep.count.state import KINDS, State
from whenabouts_cloud.jit import Array, compiled_noref
from whenabouts_cloud.pattern.countable import Tables


class Effect(NamedTuple):
    """Working arrays of a step: the events of one key and time, and their effect on each place of an alternative."""

    group: Array  # masks of the events
    values: Array
    adds: Array  # by place: number of events that add
    zero: Array  # by place: True if they reset the counts there
    read: Array  # by measure and place: measures of the events


def new_step(tables: Tables, state: State) -> Effect:
    """Working arrays for all held events, which may all have the same key and time."""
    places, room = len(tables.place_term), len(state.held)
    return Effect(
        np.empty(room, np.int64), np.empty((room, state.held_values.shape[1])), np.empty(places, np.int64),
        np.empty(places, np.bool_), np.empty((len(tables.reads), places, KINDS)),
    )  # fmt: skip


@compiled_noref
def compute_effect(tables: Tables, v: int, size: int, step: Effect) -> None:
    """Fills the effect of the first `size` events of the step on alternative v."""
    group, adds, zero, read, place_term = step.group, step.adds, step.zero, step.read, tables.place_term
    first, n = tables.place_start[v], tables.place_start[v + 1] - tables.place_start[v]
    for p in range(n):
        adds[p] = 0
        zero[p] = False
        for m in range(len(read)):
            clear(read, m, p)
    for k in range(tables.negation_start[v], tables.negation_start[v + 1]):
        for x in range(size):
            if group[x] >> tables.negation_term[k] & 1:
                for p in range(max(tables.negation_left[k], 0), min(tables.negation_right[k], n)):
                    zero[p] = True
    for x in range(size):
        for p in range(n):
            if not group[x] >> place_term[first + p] & 1 or (size > 1 and _forbidden(tables, v, group, size, x, p)):
                continue
            adds[p] += 1
            for m in range(len(read)):
                column = tables.reads[m, first + p]
                if column >= 0 and not np.isnan(step.values[x, column]):
                    take_in(read, m, p, step.values[x, column])


@compiled_noref
def _forbidden(tables: Tables, v: int, group: Array, size: int, x: int, p: int) -> bool:
    """True if place p is inside a gap that forbids another event of the same time as event x."""
    for k in range(tables.negation_start[v], tables.negation_start[v + 1]):
        if tables.negation_left[k] < p < tables.negation_right[k]:
            for y in range(size):
                if y != x and group[y] >> tables.negation_term[k] & 1:
                    return True
    return False
