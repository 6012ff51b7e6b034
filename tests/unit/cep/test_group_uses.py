"""Groups of uses: their automata accept the events beside an event exactly if these have the chain that a use needs."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_cloud.cep.kernel.group_uses import Groups, Placed, in_chain
from whenabouts_cloud.cep.kernel.infa import _add, _reached
from whenabouts_cloud.cep.kernel.layout import RING
from whenabouts_cloud.cep.kernel.program import GROUPED, LEVELS, ROW, Use
from whenabouts_cloud.jit import compiled_noref

CHAINS = st.lists(st.integers(0, 3), min_size=1, max_size=9)


def is_within(chain, sequence):
    """True if the chain's nearest classes are a subsequence of the sequence."""
    rest = iter(sequence)
    return all(c in rest for c in chain[:LEVELS])


@compiled_noref
def find(levels, group, side, around, count, rounds, found):
    """Writes the numbers of the uses in the group that are accepted; returns how many."""
    return _add(found, 0, 0, _reached(levels, group, side, around, count, rounds))


def accepted(groups, group, side, sequence):
    """Uses, as a set of their numbers in the group, that the kernel finds for classes from the nearest on."""
    around, found = np.zeros((2, RING), np.int64), np.zeros(GROUPED + 1, np.int64)
    around[side, : len(sequence)] = np.array(sequence, np.int64) * ROW
    count = find(groups.levels, group, side, around, len(sequence), groups.groups[group].rounds, found)
    assert (np.diff(found[:count]) > 0).all()
    return set(found[:count].tolist())


@given(st.lists(st.tuples(CHAINS, st.integers(0, 8)), min_size=1, max_size=80), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_a_group_accepts_exactly_the_uses_whose_chain_is_there(drawn, data):
    """On each side, among up to sixteen events; each use is in one group, those that need no later event come first."""
    drawn *= data.draw(st.sampled_from([1, 1, 1 + GROUPED // len(drawn)]))  # so that some fill a group
    uses = [in_chain(Use(n, i % len(c), 1, 0, len(c), 9, -1, -1), c) for n, (c, i) in enumerate(drawn)]
    groups = Groups(4)
    placed = groups.add(5, uses)
    assert sorted(one.use.alternative for one in placed) == list(range(len(drawn)))
    sides = [data.draw(st.lists(st.integers(0, 3), max_size=16)) for _ in range(2)]
    ((first, later, end),) = groups.classes
    ends = [*(group.use for group in groups.groups[1:]), 5 + len(placed)]
    assert (first, end) == (0, len(groups.groups))
    for group in range(first, end):
        mine = placed[groups.groups[group].use - 5 : ends[group] - 5]
        assert 0 < len(mine) <= GROUPED
        found = [accepted(groups, group, side, sides[side]) for side in range(2)]
        for n, one in enumerate(mine):
            assert bool(one.after) == (group >= later)
            assert (n in found[0]) == is_within(one.before, sides[0])
            assert (n in found[1]) == is_within(one.after, sides[1])
        assert max(found[0] | found[1], default=0) < len(mine)


def test_a_use_without_order_accepts_its_classes_in_any_order():
    """Each of them, by one event or more; classes 62 apart count as one."""
    groups = Groups(70)
    groups.add(0, [Placed(Use(0, 0, 0, 0, 4, 9, -1, -1), [1, 2, 64], [], True)])
    found = [accepted(groups, 0, 0, some) for some in ([2, 1], [1, 2], [2, 2], [], [1, 9, 2])]
    assert found == [{0}, {0}, set(), set(), {0}]
