"""Walks over windows agree with the definitions: every consistent global state once, its bounds, levels and verdicts."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from property.strategies_latwin_frames import consistent, held, windows
from support.search import examples
from whenabouts_cloud.latwin.model.frame import frame, greatest, least
from whenabouts_cloud.latwin.windows import walk


def all_paths_hold(states, good):
    """True if every walk from the least to the greatest state by single steps meets a good state."""
    if not states:
        return False
    reached, states = {states[0]} - good, set(states)
    top = tuple(map(max, zip(*states, strict=True)))
    for g in sorted(states):  # a step makes it greater
        if g in reached:
            for j in range(len(g)):
                after = (*g[:j], g[j] + 1, *g[j + 1 :])
                if after in states and after not in good:
                    reached.add(after)
    return top not in reached


def check(window, states, good):
    """Every result of a walk, against the list of consistent states and the set of those that hold."""
    lows, highs = (tuple(map(end, zip(*states, strict=True))) if states else None for end in (min, max))
    assert (least(window), greatest(window)) == (lows, highs)
    assert walk.count(window) == len(states)
    assert list(map(tuple, walk.states(window).tolist())) == states
    truth = walk.each(window, good.__contains__)
    height = sum(highs) - sum(lows) + 1 if states else 0
    for chosen, emitted in ((states, walk.levels(window)), (good & set(states), walk.levels(window, truth))):
        on = Counter(sum(g) - sum(lows) for g in chosen)
        assert emitted.tolist() == [on[level] for level in range(height)]
    assert walk.possibly(window, truth) == bool(good & set(states))
    assert walk.definitely_in_window(window, truth) == all_paths_hold(states, good & set(states))


@settings(max_examples=examples(300), deadline=None)
@given(windows(), st.data())
def test_a_walk_gives_the_results_of_the_definitions(seen, data):
    """Any window of any computation, any set of states that hold."""
    states = consistent(seen)
    good = set(data.draw(st.lists(st.sampled_from(states), unique=True))) if states else set()
    if states and data.draw(st.booleans()):
        good = set(states) - good
    check(seen.frame, states, good)


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(2, 4), st.data())
def test_clocks_need_not_carry_the_knowledge_of_others(n, data):
    """Any clocks that never fall, also ones that know a state without what that state knew."""
    first = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    entry = st.integers(0, 6)
    clocks = [data.draw(st.lists(st.lists(entry, min_size=n, max_size=n), max_size=4)) for _ in range(n)]
    clocks = [np.sort(np.array(own).reshape(-1, n), axis=0).tolist() for own in clocks]
    window = frame(first, clocks)
    ranges = held(window)
    states = []
    for g in np.ndindex(*map(len, ranges)):
        number = [r[k] for r, k in zip(ranges, g, strict=True)]
        if all(clocks[j][g[j]][i] <= number[i] for i in range(n) for j in range(n) if i != j):
            states.append(tuple(number))
    good = set(data.draw(st.lists(st.sampled_from(states), unique=True))) if states else set()
    check(window, states, good)


@settings(max_examples=examples(100), deadline=None)
@given(windows(events=12), st.integers(1, 40))
def test_blocks_of_any_size_hand_out_the_same(seen, size):
    """No state is lost or repeated where a block ends."""
    states = [tuple(row) for rows in walk.blocks(seen.frame, size) for row in (rows + seen.frame.first).tolist()]
    assert states == consistent(seen)
