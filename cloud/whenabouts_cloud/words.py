"""Vectors of two words in a register, for machine code that decides more than a hundred bits at once.

LLVM makes them instructions of 128 bits, which nearly every processor has. It would not find them itself: a loop over few
words is unrolled before it is vectorized. Vectors of four words were no faster.
"""

import importlib
from collections.abc import Callable
from typing import Any

from whenabouts_cloud.jit import Array

WORDS = 2  # of a vector
_types = importlib.import_module("numba.core.types")
_extending = importlib.import_module("numba.extending")
_arrays = importlib.import_module("numba.np.arrayobj")
_ir = importlib.import_module("llvmlite.ir")
_WORD = _ir.IntType(64)
_VECTOR = _ir.VectorType(_WORD, WORDS)


class _Type(_types.Type):  # type: ignore[misc,name-defined]
    """Type of a vector, for numba."""

    def __init__(self) -> None:
        super().__init__("Words")


def _intrinsic(function: Callable[..., Any]) -> Any:
    return _extending.intrinsic(function)


Words = Any  # a vector; it exists only in machine code
_words = _Type()


@_extending.register_model(_Type)
class _Model(_extending.models.PrimitiveModel):  # type: ignore[misc,name-defined]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


@_intrinsic
def words_at(context: Any, array: Array, place: int) -> Any:
    """A vector of a contiguous array, from a place on that counts through all its dimensions."""

    def make(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = _arrays.make_array(signature.args[0])(context, builder, given[0]).data
        at = builder.gep(data, [given[1]])
        return builder.load(builder.bitcast(at, _VECTOR.as_pointer()), align=8)

    return _words(array, _types.uint64), make


@_intrinsic
def joined(context: Any, to: Words, source: Words, mask: Words) -> Any:
    """`to | (source & mask)`."""

    def make(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.or_(given[0], builder.and_(given[1], given[2]))

    return _words(_words, _words, _words), make


@_intrinsic
def common(context: Any, one: Words, other: Words) -> Any:
    """`one & other`."""

    def make(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.and_(*given)

    return _words(_words, _words), make


@_intrinsic
def is_any(context: Any, words: Words) -> Any:
    """True if a bit is set."""

    def make(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        wide = _ir.IntType(64 * WORDS)
        return builder.icmp_unsigned("!=", builder.bitcast(given[0], wide), wide(0))

    return _types.boolean(_words), make


@_intrinsic
def word_of(context: Any, words: Words, number: int) -> Any:
    """A word of the vector."""

    def make(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.extract_element(*given)

    return _types.int64(_words, _types.int64), make
