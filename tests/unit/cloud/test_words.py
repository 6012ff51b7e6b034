"""Vectors of words, in compiled functions as the kernels use them, against numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whenabouts_cloud.jit import compiled_noref, u
from whenabouts_cloud.words import WORDS, common, is_any, joined, word_of, words_at

WORD = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.just(0))
VECTOR = st.lists(WORD, min_size=WORDS, max_size=WORDS)


@compiled_noref
def computed(table, out):
    """Reads three vectors that begin at place 1; writes what the operations make of them."""
    one, other, mask = words_at(table, u(1)), words_at(table, u(1 + WORDS)), words_at(table, u(1 + 2 * WORDS))
    for number in range(WORDS):
        out[0, number] = word_of(joined(one, other, mask), number)
        out[1, number] = word_of(common(one, other), number)
    out[2, 0], out[2, 1] = is_any(one), is_any(common(one, other))


@given(VECTOR, VECTOR, VECTOR)
@settings(deadline=None)
def test_vectors_hold_the_words_of_an_array_and_combine_them_bit_by_bit(one, other, mask):
    """From places that are no multiple of a vector, across the rows of a table."""
    table = np.array([7, *one, *other, *mask, 7], np.int64).reshape(2, -1)
    out = np.zeros((3, WORDS), np.int64)
    computed(table, out)
    a, b, c = (np.array(words, np.int64) for words in (one, other, mask))
    assert (out[0] == a | b & c).all()
    assert (out[1] == a & b).all()
    assert out[2, :2].tolist() == [a.any(), (a & b).any()]
