"""Row groups of files: what footers say, and readings that are meant."""

import pytest

from support.cloud.landing import EPOCH_US, land, reading
from whenabouts_cloud.dashboard.data.row_groups import blocks_of, read_block
from whenabouts_cloud.landing.files import DamagedFileError
from whenabouts_cloud.landing.history import Piece, everything, readings_of
from whenabouts_cloud.landing.store import Store


def test_a_footer_tells_rows_and_times(tmp_path):
    """No stamp of the block lies outside of them."""
    rows = [reading("gw", n, "dock", "k", EPOCH_US + n, EPOCH_US + n + 10) | {"landed_us": 70 - n} for n in range(5)]
    land(tmp_path, rows)
    [piece] = readings_of(everything(Store.at(tmp_path)))
    [block] = blocks_of(Store.at(tmp_path), piece)
    assert (block.rows, block.first_us, block.last_us, block.landed_us) == (5, EPOCH_US, EPOCH_US + 14, 70)
    assert read_block(Store.at(tmp_path), block, ("key", "seq"))["seq"].to_pylist() == [0, 1, 2, 3, 4]


def test_a_damaged_file_is_named_and_a_missing_one_is_not_damaged(tmp_path):
    """The first is told to people; the second was merged with others."""
    file = land(tmp_path, [reading("gw", 1, "dock", "k", 1, 2)])
    [piece] = readings_of(everything(Store.at(tmp_path)))
    [block] = blocks_of(Store.at(tmp_path), piece)
    file.write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(DamagedFileError, match="found no whole Parquet file"):
        blocks_of(Store.at(tmp_path), piece)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        blocks_of(Store.at(tmp_path), piece)
    with pytest.raises(FileNotFoundError):
        read_block(Store.at(tmp_path), block, ("key",))


def test_a_column_that_a_file_lacks_is_null(tmp_path):
    """As in landings of other programs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"t_min": [1], "t_max": [2], "site": ["s"]}), tmp_path / "part-1.parquet")
    piece = Piece("part-1.parquet", "", "", 0, 0, False)
    [block] = blocks_of(Store.at(tmp_path), piece)
    assert read_block(Store.at(tmp_path), block, ("site", "key", "boot")).to_pylist() == [
        {"site": "s", "key": None, "boot": None}
    ]
    assert block.landed_us == -1
