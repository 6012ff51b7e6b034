"""What is measured beside a count: number of values, sum, least and greatest, per measure and place, in columns."""

import numpy as np

from whenabouts_cloud.cep.count.state import GREATEST, KINDS, LEAST, NUMBER, SUM, Rows, State
from whenabouts_cloud.jit import Array, bare


@bare
def cell_of(chunk: int, room: int, places: int, measures: int, m: int, p: int, row: int) -> int:
    """Where the NUMBER of a measure at a place stands; the other kinds follow at distances of room * places."""
    return chunk * measures * KINDS * places + (m * KINDS * places + p) * room + row


@bare
def join(into: Array, out: int, m: int, measured: Array, cell: int, step: int, times: int) -> None:
    """Adds a measure to one that is told, for each of so many events."""
    number = measured[cell + NUMBER * step]
    if number > 0:
        into[out, m, NUMBER] += times * number
        into[out, m, SUM] += times * measured[cell + SUM * step]
        into[out, m, LEAST] = min(into[out, m, LEAST], measured[cell + LEAST * step])
        into[out, m, GREATEST] = max(into[out, m, GREATEST], measured[cell + GREATEST * step])


@bare
def clear(measures: Array, a: int, b: int) -> None:
    """One measure of no value at all."""
    measures[a, b, NUMBER], measures[a, b, SUM] = 0.0, 0.0
    measures[a, b, LEAST], measures[a, b, GREATEST] = np.inf, -np.inf


@bare
def forget(measured: Array, cell: int, kind: int, head: int, end: int) -> None:
    """Nothing is measured at a place."""
    for row in range(head, end):
        measured[cell + row], measured[cell + SUM * kind + row] = 0.0, 0.0
        measured[cell + LEAST * kind + row], measured[cell + GREATEST * kind + row] = np.inf, -np.inf


@bare
def carry(s: State, cell: int, kind: int, rows: Rows, before: int, guard: int, read: Array, times: int) -> None:
    """The step of a count for what is measured: of d partial matches of the place before, each with `times` events here.

    `cell` is where the measure's numbers at this place begin, `kind` the distance from one kind to the next, `before` and
    `guard` where counts of the place before and times from which rows may end begin (-1: all may), `read` what is measured
    of the events here. Without a branch, for the rows lie side by side. Those that may not end yet count for nothing.
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


@bare
def add(into: Array, out: int, m: int, d: int, read: Array, p: int) -> None:
    """Adds what is read at a place of d matches that are told."""
    if read[m, p, NUMBER] > 0:
        into[out, m, NUMBER] += read[m, p, NUMBER] * d
        into[out, m, SUM] += read[m, p, SUM] * d
        into[out, m, LEAST] = min(into[out, m, LEAST], read[m, p, LEAST])
        into[out, m, GREATEST] = max(into[out, m, GREATEST], read[m, p, GREATEST])


@bare
def take_in(read: Array, m: int, p: int, value: float) -> None:
    """Adds the value of one more event to what is read at a place."""
    read[m, p, NUMBER] += 1.0
    read[m, p, SUM] += value
    read[m, p, LEAST] = min(read[m, p, LEAST], value)
    read[m, p, GREATEST] = max(read[m, p, GREATEST], value)
