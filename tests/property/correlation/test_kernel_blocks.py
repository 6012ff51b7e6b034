"""Pairs out of blocks are those of the whole, however the rows are cut and out of order, and memory does not grow."""

import itertools
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_cloud.correlation import Condition, correlate
from whenabouts_cloud.correlation.batch.blocks import correlate_blocks

rows = st.lists(
    st.tuples(st.integers(-60, 60), st.sampled_from([0, 0, 1, 5, 30, 200]), st.sampled_from("xy")), max_size=25
)


def arrays(side):
    """Minima, maxima and keys, in the order given."""
    t_min = np.array([t for t, _, _ in side], np.int64)
    return t_min, t_min + np.array([w for _, w, _ in side], np.int64), np.array([k for _, _, k in side], dtype="U1")


def cut(columns, size):
    """Blocks of a few rows, an empty one first."""
    return [tuple(x[:0] for x in columns)] + [
        tuple(x[at : at + size] for x in columns) for at in range(0, len(columns[0]), size)
    ]


@given(
    rows, rows, st.integers(-70, 70), st.integers(0, 60), st.integers(1, 6), st.booleans(), st.booleans(), st.booleans()
)
@settings(max_examples=examples(300), deadline=None)
def test_blocks_of_any_size_give_the_pairs_of_the_whole(a, b, lo, width, size, keyed, by_end, numba):
    """In the order of minima without disorder, in the order of maxima with the greatest length for it."""
    order = (lambda row: row[0] + row[1]) if by_end else (lambda row: row[0])
    a, b = (arrays(sorted(side, key=order))[: 3 if keyed else 2] for side in (a, b))
    condition = Condition("between", lo=lo, hi=lo + width, confidence=Fraction(3, 10))
    whole = correlate(*a[:2], *b[:2], condition, *((a[2], b[2]) if keyed else ()))
    blocks = correlate_blocks(
        cut(a, size),
        cut(b, size + 1),
        condition,
        disorder=200 * by_end,
        chunk_pairs=3,
        engine="numba" if numba else "numpy",
    )
    pairs = [list(zip(i.tolist(), j.tolist(), strict=True)) for i, j in blocks]
    assert sorted(itertools.chain(*pairs)) == list(zip(*(x.tolist() for x in whole), strict=True))


def test_blocks_out_of_order_and_keys_on_one_side_are_refused():
    """The block, what it holds and what would be needed are named."""
    t = np.arange(5) * 10
    condition = Condition("within", d=1, confidence=1)
    with pytest.raises(
        ValueError, match="block 1 of a: found a minimum of 0, expected 38 or later with a disorder of 2"
    ):
        list(correlate_blocks([(t, t), (t, t)], [(t, t)], condition, disorder=2))
    with pytest.raises(ValueError, match="found 3 columns of a and 2 of b"):
        list(correlate_blocks([(t, t, t)], [(t, t)], condition))


def test_memory_is_that_of_a_few_blocks_however_many_come():
    """Ten times the blocks, with a stamp of the far future among them, take no more."""

    def peak(blocks):
        def side(shift):
            for number in range(blocks):
                t = np.arange(1000) * 100 + number * 100_000
                end = t + 50
                end[shift] = 1 << 55
                yield t, end

        tracemalloc.start()
        count = sum(len(i) for i, _ in correlate_blocks(side(3), side(5), Condition("within", d=500, confidence="0.8")))
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count > 8000 * blocks
        return taken

    peak(2)
    assert peak(100) < 1.2 * peak(10)
