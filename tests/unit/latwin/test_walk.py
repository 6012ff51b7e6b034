"""Walks over windows at their limits: long windows, many processes, nothing held, too much."""

import numpy as np
import pytest

from whenabouts_cloud.latwin.model.frame import Frame, frame, greatest, least
from whenabouts_cloud.latwin.windows import walk
from whenabouts_cloud.latwin.windows.walk_kernel import advance


def unrelated(first, counts):
    """Processes whose states are all concurrent."""
    return frame(first, [[[0] * len(first)] * count for count in counts])


def numbers(window):
    return [tuple(row) for row in walk.states(window).tolist()]


def test_a_message_rules_out_what_it_crosses():
    """The least, the greatest and all states between, by number.

    P0  0---1---2      state 1 of P1 began with a message that state 2 of P0 sent,
    P1  0---1--        so with it P0 is in state 2
    """
    window = frame([0, 0], [[[0, 0], [1, 0], [2, 0]], [[0, 0], [2, 1]]])
    assert (least(window), greatest(window)) == ((0, 0), (2, 1))
    assert numbers(window) == [(0, 0), (1, 0), (2, 0), (2, 1)]
    assert walk.levels(window).tolist() == [1, 1, 1, 1]
    assert walk.definitely_in_window(window, walk.each(window, lambda g: g == (1, 0)))
    assert not walk.definitely_in_window(window, walk.each(window, lambda g: g == (5, 0)))


def test_a_state_may_demand_one_that_is_not_held():
    """Beyond the window there is nothing to go with it; without any other choice nothing is consistent."""
    window = frame([0, 0], [[[0, 0]], [[0, 0], [1, 1]]])  # state 1 of P1 knows state 1 of P0, which has not come
    assert numbers(window) == [(0, 0)]
    window = frame([0, 1], [[[0, 0]], [[1, 1]]])
    assert (least(window), greatest(window), walk.count(window), numbers(window)) == (None, None, 0, [])
    assert walk.levels(window).tolist() == []
    assert not walk.possibly(window, lambda rows: np.ones(len(rows), bool))
    assert not walk.definitely_in_window(window, lambda rows: np.ones(len(rows), bool))


def test_nothing_held_of_one_process_is_nothing_consistent():
    """A group is only complete with all of its processes."""
    window = frame([4, 0, 2], [[[4, 0, 0]], [], [[0, 0, 2]]])
    assert (least(window), greatest(window), walk.count(window)) == (None, None, 0)


@pytest.mark.parametrize(
    "counts", [(63, 64, 2), (64, 64, 3), (65, 2, 130), (2, 300, 3), (257, 1, 2), (1, 40, 40), (256, 9)]
)
def test_fields_of_any_length_fit_into_words(counts):
    """Up to 64 states share words, longer ones have their own; up to 256 places are bytes, more two bytes."""
    window = unrelated([7] * len(counts), counts)
    expected = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), -1).reshape(-1, len(counts)) + 7
    assert walk.count(window) == len(expected)
    assert (walk.states(window) == expected).all()
    assert walk.levels(window).sum() == len(expected)


def test_a_chain_through_long_windows():
    """Two processes that talk after every state, 200 states long: each waits for the other, so there is one way through.

    P0  0-1-2-3 ...    state k of P1 knows state k of P0,
    P1  0-1-2-3 ...    state k + 1 of P0 knows state k of P1
    """
    length = 200
    window = frame([0, 0], [[[k, max(0, k - 1)] for k in range(length)], [[k, k] for k in range(length)]])
    assert walk.count(window) == 2 * length - 1
    assert (walk.levels(window) == 1).all()
    assert walk.definitely_in_window(window, walk.each(window, lambda g: g == (150, 149)))


def test_sixteen_processes_use_two_words_a_row():
    """The last process is in the second word; levels are those of a cube."""
    window = unrelated(range(16), [2] * 16)
    assert walk.count(window) == 1 << 16
    assert (walk.states(window)[[0, 1, -1]] == [[*range(16)], [*range(15), 16], [*range(1, 17)]]).all()
    assert walk.levels(window)[:3].tolist() == [1, 16, 120]
    assert walk.definitely_in_window(window, lambda rows: rows.sum(axis=1) == 5)
    assert not walk.definitely_in_window(window, lambda rows: (rows.sum(axis=1) == 5) & (rows[:, 15] == 0))


def test_places_above_127_keep_levels_in_order():
    """The eighth process fills the sign bit of the word."""
    window = unrelated([0] * 8, [2] * 7 + [256])
    assert not walk.definitely_in_window(window, lambda rows: rows[:, 7] == 300)
    assert walk.definitely_in_window(window, lambda rows: rows[:, 7] == 200)
    assert not walk.definitely_in_window(window, lambda rows: (rows[:, 7] == 200) & (rows[:, 0] == 0))


def test_possibly_stops_where_it_knows():
    """The first block that has one ends the walk."""
    asked = []

    def truth(rows):
        asked.append(len(rows))
        return np.ones(len(rows), bool)

    assert walk.possibly(unrelated([0] * 12, [4] * 12), truth)
    assert len(asked) == 1


def test_what_is_too_much_is_refused(monkeypatch):
    """With what was found and what to do; nothing is built before."""
    with pytest.raises(walk.WalkLimitError, match="found 16386 states held, expected at most 16384"):
        walk.count(unrelated([0, 0], [8193, 8193]))
    with pytest.raises(walk.WalkLimitError, match=r"found 74088000 global states, expected .* take blocks\(\)"):
        walk.states(unrelated([0] * 3, [420] * 3))
    monkeypatch.setattr(walk, "LEVEL_MAX", 10)
    with pytest.raises(walk.WalkLimitError, match="a level of over 10"):
        walk.definitely_in_window(unrelated([0] * 3, [8] * 3), lambda rows: np.zeros(len(rows), bool))


def test_wrong_input_to_a_frame_is_reported():
    """One process is no group; every clock has an entry for each process."""
    with pytest.raises(ValueError, match="found 1 first states"):
        frame([0], [[[0]]])
    with pytest.raises(ValueError, match="found a clock of 3 entries, expected 2"):
        frame([0, 0], [[[0, 0, 0]], []])
    assert isinstance(frame([0, 0], [[], []]), Frame)


def test_a_step_gives_each_state_of_the_next_level_once_in_rising_order():
    """Three single steps from (0, 0, 0); from those six states, each reached twice or by only one process; or no room."""
    window, place, key = unrelated([0] * 3, [3] * 3), np.empty(3, np.int64), np.empty((3, 1), np.int64)
    level = np.zeros((1, 1), np.int64)
    for expected in ([0x1, 0x100, 0x10000], [0x2, 0x101, 0x200, 0x10001, 0x10100, 0x20000]):
        out = np.empty((9, 1), np.int64)
        count = advance(*window, 8, level, place, key, out)
        level = out[:count]
        assert level[:, 0].tolist() == expected
    assert advance(*window, 8, level, place, key, np.empty((6, 1), np.int64)) == -1
