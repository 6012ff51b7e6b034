"""`wa.epc_names` gives the same columns for frames of every kind, and of the same kind."""

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import whenabouts as wa
from support.cloud.tags import TAGS
from support.library.kinds import KINDS, rows
from whenabouts.frames.texts import texts_of
from whenabouts.tag_columns import epc_names

COLUMNS = ["uri", "gtin", "epc_scheme", "company_prefix", "element_string", "digital_link", "epc_filter"]
GIVEN = pa.table({"n": list(range(len(TAGS))), "tag": [tag.key for tag in TAGS]})


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_frame_has_the_names_of_its_tags(kind):
    """Nulls where a key holds none; rows and other columns stay as they are."""
    frame = KINDS[kind](GIVEN)
    named = wa.epc_names(frame, "tag")
    assert type(named) is type(frame)
    found = rows(named)
    assert list(found[0]) == ["n", "tag", *COLUMNS]
    for n, (tag, row) in enumerate(zip(TAGS, found, strict=True)):
        assert (row["n"], row["tag"]) == (n, tag.key)
        assert (row["uri"], row["gtin"], row["epc_scheme"], row["company_prefix"]) == tag[1:]
    assert found[0]["digital_link"] == wa.epc(TAGS[0].key).digital_link
    assert found[0]["epc_filter"] == wa.epc(TAGS[0].key).filter
    expected = [row["gtin"] for row in rows(wa.epc_names(frame, "tag", prefixes=["952114100012"]))]
    assert expected == [tag.gtin if tag.company_prefix == "952114100012" else None for tag in TAGS]


@pytest.mark.parametrize("kind", KINDS)
def test_frames_without_rows_or_without_any_name_have_the_columns(kind):
    """Names that were there before are replaced, as by a second call."""
    for table in (GIVEN.slice(0, 0), pa.table({"tag": pa.array([None, "hot"], pa.string())})):
        named = wa.epc_names(KINDS[kind](table), "tag")
        found = rows(named)
        assert len(found) == table.num_rows
        assert all(row[name] is None for row in found for name in COLUMNS)
        assert rows(wa.epc_names(named, "tag")) == found


def test_an_index_of_pandas_and_a_connection_of_duckdb_stay():
    frame = GIVEN.to_pandas().set_index(pd.Index([f"row {n}" for n in range(len(TAGS))]))
    named = wa.epc_names(frame, "tag")
    assert named.loc["row 0", "gtin"] == TAGS[0].gtin
    assert list(named.index) == list(frame.index)
    connection = duckdb.connect()
    relation = wa.epc_names(connection.from_arrow(GIVEN), "tag")
    assert relation.filter("epc_scheme = 'gid'").fetchall()[0][1] == next(t.key for t in TAGS if t.epc_scheme == "gid")


def test_categories_are_texts():
    frame = pl.DataFrame({"key": pl.Series([TAGS[0].key, None], dtype=pl.Categorical)})
    assert wa.epc_names is epc_names
    assert epc_names(frame)["gtin"].to_list() == [TAGS[0].gtin, None]
    frame = pd.DataFrame({"key": pd.Categorical([TAGS[0].key, "hot"])})
    assert wa.epc_names(frame)["gtin"].tolist() == [TAGS[0].gtin, None]


@pytest.mark.parametrize(
    ("frame", "arguments", "text"),
    [
        (GIVEN, {}, "key: found 'key', expected a column of df: n, tag"),
        (GIVEN, {"key": "n"}, "df: found int64 in n, expected texts, the hexadecimal digits of EPCs"),
        (pa.table({"key": [b"30"]}), {}, "df: found binary in key, expected texts"),
        (pd.DataFrame({"key": ["30", 30]}), {}, "df: found values of several types"),
        (pa.table({"gtin": ["30"]}), {"key": "gtin"}, "which is the name of a column that is added; rename it"),
        ([1], {}, "df: found list, expected a frame of pandas, Polars, PyArrow, DuckDB or Spark"),
    ],
)
def test_what_holds_no_keys_is_refused(frame, arguments, text):
    with pytest.raises(wa.FrameError) as refused:
        wa.epc_names(frame, **arguments)
    assert text in str(refused.value)


def test_prefixes_that_are_none_are_refused():
    with pytest.raises(wa.EpcError, match=r"prefixes: found '06', expected company prefixes"):
        wa.epc_names(GIVEN, "tag", prefixes=["06"])


def test_texts_are_found_in_any_of_their_types():
    """Also encoded by a dictionary, or without any value; numbers are an error with the names of frame and column."""
    for values in (["x"], pd.Categorical(["x"]), [None]):
        assert len(texts_of(nw.from_native(pd.DataFrame({"tag": values}), eager_only=True), "tag", "df")) == 1
    with pytest.raises(wa.FrameError, match="a: found int64 in tag, expected texts"):
        texts_of(nw.from_native(pd.DataFrame({"tag": [1]}), eager_only=True), "tag", "a")
