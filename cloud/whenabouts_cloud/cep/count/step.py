"""What the events of one key and time do at each place of a variant: how many add, what they zero, what is read of them."""

from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep.count.measures import clear, take_in
from whenabouts_cloud.cep.count.state import KINDS, State
from whenabouts_cloud.jit import Array, bare
from whenabouts_cloud.pattern.countable import Tables


class Step(NamedTuple):
    """Room for one step: the events of one key and time, their masks and values; and what they do at each place of a
    variant: how many add, whether they zero, what is read of them."""

    group: Array
    values: Array
    adds: Array
    zero: Array
    read: Array


def new_step(tables: Tables, state: State) -> Step:
    """For all events that are held: they may all have one key and time."""
    places, room = len(tables.place_term), len(state.held)
    return Step(
        np.empty(room, np.int64), np.empty((room, state.held_values.shape[1])), np.empty(places, np.int64),
        np.empty(places, np.bool_), np.empty((len(tables.reads), places, KINDS)),
    )  # fmt: skip


@bare
def look(tables: Tables, v: int, group: Array, size: int, values: Array, n: int, step: Step) -> None:
    """How many events of a time count at each place, which counts they set to zero, and what measures read of them."""
    adds, zero, read, place_term = step.adds, step.zero, step.read, tables.place_term
    first = tables.place_start[v]
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
                if column >= 0 and not np.isnan(values[x, column]):
                    take_in(read, m, p, values[x, column])


@bare
def _forbidden(tables: Tables, v: int, group: Array, size: int, x: int, p: int) -> bool:
    """Whether an event at a place inside of a gap has another one of its time that the gap forbids."""
    for k in range(tables.negation_start[v], tables.negation_start[v + 1]):
        if tables.negation_left[k] < p < tables.negation_right[k]:
            for y in range(size):
                if y != x and group[y] >> tables.negation_term[k] & 1:
                    return True
    return False
