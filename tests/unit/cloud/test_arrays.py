"""Large arrays that begin without content."""

import numpy as np
import psutil
import pytest

from whenabouts_cloud.arrays import HUGE_BYTES, fresh


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.int64])
@pytest.mark.parametrize("size", [0, 8, HUGE_BYTES - 8, HUGE_BYTES, HUGE_BYTES + 8])
def test_fresh_arrays_behave_as_those_of_numpy(size, dtype):
    """Length and type are those asked for, and each place can be written, at every size."""
    count = size // np.dtype(dtype).itemsize
    array = fresh(count, dtype)
    array[:] = np.arange(count)
    assert (array.shape, array.dtype) == ((count,), np.dtype(dtype))
    assert np.array_equal(array, np.arange(count).astype(dtype))


def test_a_released_array_returns_to_the_system():
    """Its memory is free as soon as the last view of it is gone."""
    process, bytes_taken = psutil.Process(), 64 << 20
    array = fresh(bytes_taken, np.uint8)
    array[:] = 1
    view, held = array[5:7], process.memory_info().rss
    del array
    assert process.memory_info().rss > held - bytes_taken // 2
    del view
    assert process.memory_info().rss < held - bytes_taken // 2
