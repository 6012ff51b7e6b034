"""Columns of matches are those that a walk over their events finds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from whenabouts_cloud.cep.shard.match_columns import EventColumns, columns_of_matches


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(st.integers(-1, 5), min_size=width, max_size=width))))
def test_columns_of_matches_are_those_of_their_filled_places(matches):
    """Also of a match without an event, and of no match."""
    events = [np.arange(6, dtype=np.int32) * n for n in (1, 2, 3)] + [np.arange(6) * n - 9 for n in (1, 5, 7, 11)]
    at = np.array(matches, np.int64).reshape(len(matches), -1) if matches else np.empty((0, 3), np.int64)
    found, places, placed = columns_of_matches(at, EventColumns(*events))
    filled = [(place, event) for match in matches for place, event in enumerate(match) if event >= 0]
    assert list(zip(places.tolist(), placed.stream.tolist(), strict=True)) == filled
    for column, of_event in zip(placed, events, strict=True):
        assert column.tolist() == [of_event[event] for _, event in filled]
        assert column.dtype == of_event.dtype
    begin = 0
    for row, match in enumerate(matches):
        mine = [event for event in match if event >= 0]
        assert found.end[row] == begin + len(mine)
        begin = found.end[row]
        if mine:
            assert found.first[row] == mine[0]
            assert found.t_min[row] == min(events[5][event] for event in mine)
            assert found.t_max[row] == max(events[6][event] for event in mine)
