"""Readings of a time, and middles that are kept."""

import numpy as np
import pyarrow as pa
import pytest

from support.cloud.landing import EPOCH_US, land, reading
from whenabouts_cloud.dashboard.data.readings_in import KeptMiddles, middles_of, overlapping_rows
from whenabouts_cloud.dashboard.data.row_groups import blocks_of
from whenabouts_cloud.landing.history import everything, readings_of
from whenabouts_cloud.landing.store import Store


def blocks(folder):
    store = Store.at(folder)
    return [block for piece in readings_of(everything(store)) for block in blocks_of(store, piece)]


@pytest.mark.parametrize(
    ("t_min", "t_max"), [(0, 0), (1, 2), (-3, -2), (-1, 2), (2**63 - 3, 2**63 - 1), (-(2**63), 2**63 - 1)]
)
def test_a_middle_is_that_of_whole_numbers_rounded_down(t_min, t_max):
    """Also where a sum would not fit."""
    table = pa.table({"t_min": pa.array([t_min], pa.int64()), "t_max": pa.array([t_max], pa.int64())})
    assert middles_of(table).tolist() == [(t_min + t_max) // 2]


def test_readings_that_touch_the_time_are_found(tmp_path):
    """Both ends belong to it."""
    land(tmp_path, [reading("gw", n, "dock", "k", EPOCH_US + 10 * n, EPOCH_US + 10 * n + 5) for n in range(5)])
    rows = overlapping_rows(
        Store.at(tmp_path), blocks(tmp_path), ("seq", "t_min", "t_max"), EPOCH_US + 15, EPOCH_US + 30
    )
    assert rows["seq"].to_pylist() == [1, 2, 3]


def test_blocks_used_last_are_kept_up_to_a_size(tmp_path):
    """A kept one is not read again, even when its file has gone."""
    files = [land(tmp_path, [reading("gw", n, "dock", "k", EPOCH_US, EPOCH_US)]) for n in range(3)]
    some = blocks(tmp_path)
    kept = KeptMiddles(Store.at(tmp_path), lambda table: np.zeros(table.num_rows, np.int32), most_bytes=24)
    for block in some:
        kept.of(block)
    for file in files:
        file.unlink()
    assert kept.of(some[2])[1].tolist() == [EPOCH_US]
    with pytest.raises(FileNotFoundError):
        kept.of(some[0])
