"""Selecting readings of a landing: only those that are meant, whatever else lies there."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from support.cloud.landing import land, reading, watermark
from support.cloud.parts import Part
from whenabouts_cloud.landing import selection
from whenabouts_cloud.landing.schema import SCHEMA, of
from whenabouts_cloud.landing.selection import Selection, overlapping
from whenabouts_cloud.landing.store import Store

SEQ = of("seq")


def seqs(selected):
    return [n for table in selected for n in table["seq"].to_pylist()]


def test_stamps_overlap_a_time_if_they_share_a_microsecond_with_it(tmp_path):
    """Closed ends: 10 .. 20 meets 20 .. 30, also in a later file; bounds beyond every time are none."""
    stamps = [(0, 9), (0, 10), (12, 14), (20, 99), (21, 99), (0, 99)]
    for n, (first, last) in enumerate(stamps):
        land(tmp_path, [reading("g", n, "s", "k", first, last)])
    watermark(tmp_path, {"g": 5})
    assert seqs(Selection(Store.at(tmp_path), SEQ, overlapping(10, 20))) == [1, 2, 3, 5]
    assert seqs(Selection(Store.at(tmp_path), SEQ, overlapping(-(1 << 70), 1 << 70))) == [0, 1, 2, 3, 4, 5]


def test_readings_of_all_ingests_are_selected_file_by_file(tmp_path):
    """One that has a name, too; a file without any gives no table."""
    for part in (Part(tmp_path), Part(tmp_path / "ingest=b", "h")):
        part.data()
    land(tmp_path, [reading("g", 7, "other", "k", 1, 1)])
    tables = list(Selection(Store.at(tmp_path), of("stream"), pc.field("stream") != "other"))
    assert len(tables) == 2


def test_damaged_files_are_named_and_left_out(tmp_path, monkeypatch):
    """A cut one, and one with another type; beyond the limit they are only counted."""
    monkeypatch.setattr(selection, "MOST_NAMED", 1)
    land(tmp_path, [reading("g", 1, "s", "k", 1, 1)])
    land(tmp_path, [reading("g", 2, "s", "k", 1, 1)]).write_bytes(b"PAR1")
    pq.write_table(pa.table({"t_min": ["x"]}), tmp_path / "hour=2026-11-20T18" / "foreign.parquet")
    selected = Selection(Store.at(tmp_path), SEQ, overlapping(0, 9))
    assert seqs(selected) == [1]
    assert selected.damaged == 2
    assert [text.partition(": ")[0] for text in selected.named] == ["hour=2026-11-20T18/part-00000002.parquet"]


def test_readings_that_no_engine_can_use_are_counted(tmp_path):
    """Without a number or a stream; a stamp that is missing is in no time, and a key may be missing."""
    whole = reading("g", 1, "s", None, 1, 1)
    land(tmp_path, [whole, whole | {"seq": None}, whole | {"stream": None, "boot": None}, whole | {"t_min": None}])
    selected = Selection(Store.at(tmp_path), SCHEMA, overlapping(0, 9))
    assert seqs(selected) == [1]
    assert (selected.incomplete, selected.damaged) == (2, 0)
