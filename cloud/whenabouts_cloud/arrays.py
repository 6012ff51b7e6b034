"""The type of numpy arrays of any content. Does not load numba, unlike `jit`, which re-exports it."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
