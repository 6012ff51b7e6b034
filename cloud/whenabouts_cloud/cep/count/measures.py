"""Measures kept with a count: number of values, sum, least and greatest, per measure and place, in columns."""

import numpy as np

from whenabouts_cloud.cep.count.state import GREATEST, KINDS, LEAST, NUMBER, SUM, Rows, State
from whenabouts_cloud.jit import Array, compiled_noref


@compiled_noref
def cell_of(chunk: int, room: int, places: int, measures: int, m: int, p: int, row: int) -> int:
    """Index of the NUMBER of a measure at a place; the other kinds follow at distances of room * places."""
    return chunk * measures * KINDS * places + (m * KINDS * places + p) * room + row


@compiled_noref
def join(into: Array, out: int, m: int, measured: Array, cell: int, step: int, times: int) -> None:
    """Adds a measure to an emitted one, `times` times."""
    number = measured[cell + NUMBER * step]
    if number > 0:
        into[out, m, NUMBER] += times * number
        into[out, m, SUM] += times * measured[cell + SUM * step]
        into[out, m, LEAST] = min(into[out, m, LEAST], measured[cell + LEAST * step])
        into[out, m, GREATEST] = max(into[out, m, GREATEST], measured[cell + GREATEST * step])


@compiled_noref
def clear(measures: Array, a: int, b: int) -> None:
    """Sets one measure to that of no values: number and sum 0, least inf, greatest -inf."""
    measures[a, b, NUMBER], measures[a, b, SUM] = 0.0, 0.0
    measures[a, b, LEAST], measures[a, b, GREATEST] = np.inf, -np.inf


@compiled_noref
def forget(measured: Array, cell: int, kind: int, head: int, end: int) -> None:
    """Sets a measure to that of no values, for the rows [head, end) at one place."""
    for row in range(head, end):
        measured[cell + row], measured[cell + SUM * kind + row] = 0.0, 0.0
        measured[cell + LEAST * kind + row], measured[cell + GREATEST * kind + row] = np.inf, -np.inf


@compiled_noref
def carry(s: State, cell: int, kind: int, rows: Rows, before: int, guard: int, read: Array, times: int) -> None:
    """Updates a measure when d partial matches of the place before are each extended by `times` events here.

    `cell` is the index of the measure's first number at this place, `kind` the distance from one kind to the next, `before`
    the index of the first count of the place before, `guard` that of the times from which rows may end (-1: all may), `read`
    the measures of the events here. Rows that may not end yet add nothing. Branch-free, since the rows are contiguous.
    """
    measured, counts, room = s.measured, s.counts, rows.room
    number, total, least, greatest = read[NUMBER], read[SUM], read[LEAST], read[GREATEST]
    for row in range(rows.head, rows.end):
        d = counts[before + row]
        if guard >= 0:
            d = 0 if counts[guard + row] > rows.now else d
        at, had = cell + row, measured[cell + row - room]
        some = d > 0
        more = some and had > 0.0
        measured[at] += (number * d if some else 0.0) + (times * had if more else 0.0)
        at += kind
        measured[at] += (total * d if some else 0.0) + (times * measured[at - room] if more else 0.0)
        at += kind
        measured[at] = min(measured[at], least if some else np.inf, measured[at - room] if more else np.inf)
        at += kind
        measured[at] = max(measured[at], greatest if some else -np.inf, measured[at - room] if more else -np.inf)


@compiled_noref
def add(into: Array, out: int, m: int, d: int, read: Array, p: int) -> None:
    """Adds the measures of the events at a place, for d emitted matches."""
    if read[m, p, NUMBER] > 0:
        into[out, m, NUMBER] += read[m, p, NUMBER] * d
        into[out, m, SUM] += read[m, p, SUM] * d
        into[out, m, LEAST] = min(into[out, m, LEAST], read[m, p, LEAST])
        into[out, m, GREATEST] = max(into[out, m, GREATEST], read[m, p, GREATEST])


@compiled_noref
def take_in(read: Array, m: int, p: int, value: float) -> None:
    """Adds the value of one more event to the measures of the events at a place."""
    read[m, p, NUMBER] += 1.0
    read[m, p, SUM] += value
    read[m, p, LEAST] = min(read[m, p, LEAST], value)
    read[m, p, GREATEST] = max(read[m, p, GREATEST], value)
