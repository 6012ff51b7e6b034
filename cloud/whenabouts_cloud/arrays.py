"""The type of numpy's arrays, whatever they hold. Loads no numba, unlike `jit`, which gives it out too."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
