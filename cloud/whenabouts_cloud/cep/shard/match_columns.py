"""The columns of results from those of events, in one pass over the matches: texts are numbers of dictionaries here."""

from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep.shard.events import Ints
from whenabouts_cloud.frontier.times import INT64_MAX, INT64_MIN
from whenabouts_cloud.jit import Array, compiled_noref


class EventColumns(NamedTuple):
    """A number of each event: int32 for texts, int64 for the others."""

    stream: Array
    site: Array
    gateway: Array
    boot: Array
    seq: Array
    t_min: Array
    t_max: Array


class MatchColumns(NamedTuple):
    """Numbers of each match: its first event, its stamps, and the end of its places among the filled places of all."""

    first: Array
    t_min: Array
    t_max: Array
    end: Array


def columns_of_matches(at: Ints, events: EventColumns) -> tuple[MatchColumns, Array, EventColumns]:
    """The columns of matches (m, places), which are rows of events, -1 where a place is not filled; the filled places of
    all matches, one behind the other; and the columns of their events. 10 ns a place."""
    count, filled = len(at), int((at >= 0).sum())
    matches = MatchColumns(
        np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int32)
    )
    places, placed = np.empty(filled, np.int32), EventColumns(*(np.empty(filled, x.dtype) for x in events))
    _fill(at, events, matches, places, placed)
    return matches, places, placed


@compiled_noref
def _fill(at: Array, events: EventColumns, matches: MatchColumns, places: Array, placed: EventColumns) -> None:
    n = 0
    for row in range(len(at)):
        first, t_min, t_max = -1, INT64_MAX, INT64_MIN
        for place in range(at.shape[1]):
            event = at[row, place]
            if event < 0:
                continue
            if first < 0:
                first = event
            places[n] = place
            placed.stream[n], placed.site[n], placed.gateway[n] = (
                events.stream[event],
                events.site[event],
                events.gateway[event],
            )
            placed.boot[n], placed.seq[n] = events.boot[event], events.seq[event]
            placed.t_min[n], placed.t_max[n] = events.t_min[event], events.t_max[event]
            t_min, t_max, n = min(t_min, events.t_min[event]), max(t_max, events.t_max[event]), n + 1
        matches.first[row], matches.t_min[row], matches.t_max[row], matches.end[row] = first, t_min, t_max, n
