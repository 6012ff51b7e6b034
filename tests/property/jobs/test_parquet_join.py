"""Parquet files put together by their bytes hold what they held, for any reader."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_cloud.cep.shard.results import RESULT
from whenabouts_cloud.jobs.output.footer import copy, decode, encode, join

TEXT = st.one_of(st.none(), st.text(max_size=5))
PLACES = st.lists(st.fixed_dictionaries({"name": TEXT, "site": TEXT, "boot": st.integers(-(1 << 63), (1 << 63) - 1)}))
ROW = st.fixed_dictionaries(
    {"key": TEXT, "t_min": st.integers(-9, 9), "probability": st.floats(0, 1), "events": PLACES}
)
FILES = st.lists(st.lists(ROW, max_size=20), min_size=1, max_size=20)
WRITING = {"compression": st.sampled_from(["zstd", "snappy", "none"]), "row_group_size": st.integers(1, 9)}
WRITING |= {"use_dictionary": st.booleans(), "write_statistics": st.booleans()}


def written(folder, files, **options):
    """Each list of rows as a file."""
    paths = [folder / f"{n}.parquet" for n in range(len(files))]
    for path, rows in zip(paths, files, strict=True):
        pq.write_table(pa.Table.from_pylist(rows, schema=RESULT), path, **options)
    return paths


def joined(paths):
    """Their join, beside them."""
    into = paths[0].with_name("joined.parquet")
    with into.open("wb") as file:
        join(paths, file)
    return into


@settings(max_examples=examples(60), deadline=None)
@given(files=FILES, options=st.fixed_dictionaries(WRITING))
def test_a_join_is_its_parts_one_after_the_other(tmp_path_factory, files, options):
    """Rows, row groups and their statistics, with and without dictionaries; another reader finds the same rows."""
    import duckdb  # not loaded by those who only collect tests

    paths = written(tmp_path_factory.mktemp("join"), files, **options)
    found, parts = pq.ParquetFile(joined(paths)), [pq.ParquetFile(path) for path in paths]
    assert found.read().equals(pa.concat_tables(part.read() for part in parts))
    assert found.schema_arrow == RESULT
    groups = [part.metadata.row_group(n) for part in parts for n in range(part.num_row_groups)]
    assert found.metadata.num_rows == sum(map(len, files))
    assert found.num_row_groups == len(groups)
    for n, group in enumerate(groups):
        mine = found.metadata.row_group(n)
        assert [mine.column(k).statistics for k in range(mine.num_columns)] == [
            group.column(k).statistics for k in range(group.num_columns)
        ]
    rows = duckdb.sql(f"select key, t_min, probability from '{paths[0].with_name('joined.parquet')}'").fetchall()
    assert rows == [(row["key"], row["t_min"], row["probability"]) for rows in files for row in rows]


def test_every_footer_is_read_and_written_as_it_was(tmp_path):
    """Many row groups and columns, whose numbers and lists take several bytes."""
    table = pa.table({f"c{n}": pa.array(range(300), kind) for n, kind in enumerate([pa.int16(), pa.float32()] * 9)})
    pq.write_table(table, tmp_path / "x", row_group_size=3, sorting_columns=[pq.SortingColumn(0)])
    data = (tmp_path / "x").read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    assert encode(decode(footer)) == footer


def test_what_cannot_be_joined_is_refused(tmp_path):
    """Another schema, a page index (whose own places would have to move), and what is no Parquet file."""
    one, other = written(tmp_path, [[{"key": "x"}], []])
    pq.write_table(pa.table({"x": [1]}), other)
    with pytest.raises(ValueError, match="another schema"):
        joined([one, other])
    pq.write_table(pa.table({"x": [1]}), other, write_page_index=True)
    with pytest.raises(ValueError, match="page index"):
        joined([other])
    other.write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match="no end of a Parquet file"):
        joined([other])


def test_a_file_that_is_cut_while_it_is_copied_is_told(tmp_path):
    """Its footer promises more bytes than there are."""
    with pytest.raises(ValueError, match="found its end 3 bytes before its footer"):
        copy(tmp_path / "x", io.BytesIO(b"ab"), io.BytesIO(), 5)
