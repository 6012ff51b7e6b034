"""All pairs of two arrays of intervals that satisfy a `Condition`: the batch interface."""

from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.correlation import kernel
from whenabouts_cloud.correlation.condition import Condition

Index = npt.NDArray[np.int64]
Probability = npt.NDArray[np.float64]


@overload
def correlate(
    a_min: Any, a_max: Any, b_min: Any, b_max: Any, condition: Condition,
    key_a: Any = None, key_b: Any = None, probability: Literal[False] = False,
) -> tuple[Index, Index]: ...  # fmt: skip
@overload
def correlate(
    a_min: Any, a_max: Any, b_min: Any, b_max: Any, condition: Condition,
    key_a: Any = None, key_b: Any = None, *, probability: Literal[True],
) -> tuple[Index, Index, Probability]: ...  # fmt: skip
def correlate(
    a_min: Any,
    a_max: Any,
    b_min: Any,
    b_max: Any,
    condition: Condition,
    key_a: Any = None,
    key_b: Any = None,
    probability: bool = False,
) -> tuple[Index, Index] | tuple[Index, Index, Probability]:
    """Indices i into A and j into B of all pairs that satisfy the condition, ordered by (i, j)."""
    i, j, p = kernel.pairs(key_a, a_min, a_max, key_b, b_min, b_max, condition)
    return (i, j, p) if probability else (i, j)


def count_pairs(
    a_min: Any, a_max: Any, b_min: Any, b_max: Any, condition: Condition, key_a: Any = None, key_b: Any = None
) -> int:
    """How many pairs satisfy the condition."""
    return len(kernel.pairs(key_a, a_min, a_max, key_b, b_min, b_max, condition)[0])
