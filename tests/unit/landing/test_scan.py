"""Readings of single files as tables: of files that other programs have written, too."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from whenabouts_cloud.landing.files import DamagedFileError
from whenabouts_cloud.landing.history import everything
from whenabouts_cloud.landing.scan import encoded, read_piece
from whenabouts_cloud.landing.schema import of
from whenabouts_cloud.landing.store import Store

NAMES = ("site", "stream", "key", "t_min", "attrs", "vclock")


@pytest.fixture
def read(tmp_path):
    """Reads a file of these columns."""

    def read(columns, schema, where=None):
        (tmp_path / "hour=2026-11-20T18").mkdir()
        pq.write_table(pa.table(columns), tmp_path / "hour=2026-11-20T18" / "other.parquet")
        [piece] = everything(Store.at(tmp_path))
        return read_piece(Store.at(tmp_path), piece, schema, where)

    return read


@pytest.mark.parametrize("schema", [of(*NAMES), encoded(NAMES)], ids=["plain", "encoded"])
@pytest.mark.parametrize("where", [None, pc.field("t_min") >= 0], ids=["whole", "filtered"])
def test_columns_that_a_file_does_not_have_are_null(read, schema, where):
    """Of any kind, and texts that other programs write as large ones are texts."""
    stream = pa.array(["a", None], pa.large_string())
    rows = read({"stream": stream, "t_min": [1, 2], "other": ["x", "y"]}, schema, where)
    assert rows.schema == schema
    nothing = dict.fromkeys(["site", "key", "attrs", "vclock"])
    assert rows.to_pylist() == [nothing | {"stream": "a", "t_min": 1}, nothing | {"stream": None, "t_min": 2}]


@pytest.mark.parametrize("where", [None, pc.field("t_min") >= 0], ids=["whole", "filtered"])
def test_a_column_of_another_type_is_damage(read, where):
    """The text names the file."""
    with pytest.raises(DamagedFileError, match=r"other\.parquet: found no whole Parquet file of readings"):
        read({"t_min": ["yesterday"]}, of("t_min"), where)
