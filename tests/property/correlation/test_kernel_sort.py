"""The compiled engine orders and deals out rows as the one in numpy does, and finds the same pairs in a slab."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_cloud.correlation.batch import matches_numba, matches_numpy, sort
from whenabouts_cloud.correlation.batch.pairs_numba import Filler
from whenabouts_cloud.correlation.batch.reach import Terms
from whenabouts_cloud.correlation.batch.slabs import Slab

stamps = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 40), st.integers(-1, 3)), min_size=1, max_size=40)
places = st.sampled_from([(0, 1), (-(1 << 62), 1), (1 << 40, 1 << 20), (0, 1 << 51)])  # earliest stamp, tick


def columns(rows, place):
    """t_min, t_max and codes."""
    low, length, code = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    start = low * place[1] + place[0]
    return start, start + length * place[1], code


@given(stamps, places, st.booleans(), st.booleans(), st.integers(0, 40))
@settings(max_examples=examples(300), deadline=None)
def test_rows_come_in_the_order_of_key_and_middle(rows, place, keyed, dealt, longest):
    """With stamps too wide to be packed with their row numbers as well; rows too long or without a key are left out."""
    t_min, t_max, code = columns(rows, place)
    numbers = np.arange(len(rows))[::-1].copy() if dealt else None
    given_rows = t_min, t_max, code if keyed else None, numbers, 7, int(t_min.min()), longest * place[1]
    ordered, base = sort.order(*given_rows), matches_numpy.order(*given_rows)
    for x, y in zip(ordered, base, strict=True):
        assert (x is None and y is None) or np.array_equal(x, y)
    expected = sum(length <= longest and (key >= 0 or not keyed) for _, length, key in rows)
    assert len(ordered.row) == expected


@given(stamps, places, st.integers(0, 5))
@settings(max_examples=examples(200), deadline=None)
def test_rows_are_dealt_out_by_time_with_their_bounds(rows, place, shift):
    """Both engines give the same order and the same survey of it."""
    t_min, t_max, _ = columns(rows, place)
    earliest, shift = int(t_min.min()), shift + place[1].bit_length()
    buckets = ((int(t_min.max()) - earliest) >> shift) + 1
    dealt, base = (engine.deal(t_min, t_max, earliest, shift, buckets) for engine in (sort, matches_numpy))
    assert all(np.array_equal(x, y) for x, y in zip(dealt, base, strict=True))
    assert (np.diff((t_min[dealt[0]] - earliest) >> shift) >= 0).all()


@given(
    stamps, stamps, st.booleans(), st.integers(-60, 60), st.integers(0, 60), st.sampled_from([(1, 5), (1, 2), (1, 1)])
)
@settings(max_examples=examples(300), deadline=None)
def test_pairs_of_a_slab_are_those_of_its_runs(a, b, keyed, lo, width, confidence):
    """Straight from the places, and row by row."""
    sides = []
    for rows in (a, b):
        t_min, t_max, code = columns(rows, (0, 1))
        sides.append(matches_numpy.order(t_min, t_max, code if keyed else None, None, 0, 0, 40))
    if not all(len(side.row) for side in sides):
        return
    slab, terms = Slab(*sides, 0), Terms(lo, lo + width, *confidence)
    i, j = np.empty(2000, np.int64), np.empty(2000, np.int64)
    filler = Filler.of(slab, terms)
    assert filler is not None
    filled, probes = filler.fill(i, j)
    assert filler.row == len(sides[0].row)
    base = list(matches_numba.runs(slab, terms))
    expected = [
        (slab.a.row[at], row)
        for run in base
        for at, first, last in zip(run.a, run.first, run.last, strict=True)
        for row in slab.b.row[first:last]
    ]
    assert sorted(zip(i[:filled], j[:filled], strict=True)) == sorted(expected)
    assert probes == sum(run.probes for run in base)
