"""Readings of single files as tables: of files that other programs have written, too."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.landing.files import DamagedFileError
from whenabouts_cloud.landing.history import everything
from whenabouts_cloud.landing.scan import encoded, read_piece
from whenabouts_cloud.landing.schema import of
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol import Reading

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


def test_a_changed_bit_in_front_of_a_page_is_damage_or_changes_nothing(tmp_path):
    """No checksum covers the headers of pages. Texts of the first column got numbers that are of no text."""
    rows = [
        Reading(
            site="hall", gateway="gw", boot=1, seq=n, stream="dock/tags", kind="tag", key=f"{n:02}", t_min=n, t_max=n
        )
        for n in range(40)
    ]
    Landing(tmp_path).write(rows, [], 0)
    landing = Store.at(tmp_path)
    [piece] = everything(landing)
    written, expected = landing.read(piece.path), read_piece(landing, piece, encoded(NAMES))
    found = []
    for place in range(4, 60):
        for bit in range(8):
            changed = bytearray(written)
            changed[place] ^= 1 << bit
            (tmp_path / piece.path).write_bytes(changed)
            try:
                assert read_piece(landing, piece, encoded(NAMES)).equals(expected)
            except DamagedFileError as error:
                found.append(str(error))
    assert any("indices invalid" in one for one in found)
