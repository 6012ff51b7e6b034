"""Results that tasks write and a driver puts together, without Spark: frames are lists of what tasks told."""

import dataclasses

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from whenabouts_cloud.cep.shard.results import RESULT
from whenabouts_cloud.jobs.event_ipc import output_of
from whenabouts_cloud.jobs.output.formats import LATE, MATCHES
from whenabouts_cloud.jobs.output.task_files import FEW, LostRowsError, Parts

PLACE = {"name": "a", "stream": "s", "site": "hall", "gateway": "g0", "boot": 1, "seq": 7, "t_min": 3, "t_max": 4}


@dataclasses.dataclass
class Frame:
    """Tables that tasks of Spark would tell, told when the frame is computed."""

    tell: object
    tables: list

    def collect(self):
        return [(row,) for table in self.tables for row in self.tell(table)]


def matches(first, count):
    """Rows of RESULT with ids from a number on."""
    rows = [
        {"result_id": f"{n:08}", "rule": "r", "status": "match", "t_min": n, "t_max": n, "events": [PLACE]}
        for n in range(first, first + count)
    ]
    return pa.Table.from_pylist(rows, schema=RESULT)


@pytest.fixture
def parts(tmp_path):
    return Parts(MATCHES, tmp_path / ".tmp-parts")


def test_large_parts_stay_row_groups_and_small_ones_share_one(parts, tmp_path):
    """Nothing is lost or doubled between files of both sizes and a table without results."""
    sizes = [FEW, 3, FEW + 5, 0, FEW - 1]
    tables = [matches(10_000 * n, size) for n, size in enumerate(sizes)]
    frame = Frame(parts.tell, [output_of(table, {"matches": table.num_rows}) for table in tables])
    told = parts.told(frame)
    assert told.counts == [{"matches": size} for size in sizes]
    parts.merge(told.files[""], RESULT, tmp_path / "x.parquet")
    found = pq.ParquetFile(tmp_path / "x.parquet")
    assert found.schema_arrow == RESULT
    assert found.read().sort_by("t_min").equals(pa.concat_tables(tables))
    assert sorted(found.metadata.row_group(n).num_rows for n in range(found.num_row_groups)) == [
        FEW, FEW + 2, FEW + 5,
    ]  # fmt: skip
    parts.clear()
    assert list(tmp_path.iterdir()) == [tmp_path / "x.parquet"]


def test_readings_to_set_aside_have_files_of_their_own(parts, tmp_path):
    """A late reading, and a match that it would have removed, beside one that is told."""
    reading = pa.Table.from_pylist([{"rule": "r", "key": "k", "events": [PLACE]}], schema=RESULT)
    aside = (reading, pa.array(["late"])), (matches(5, 1), pa.array(["match"]))
    told = parts.told(Frame(parts.tell, [output_of(matches(0, 1), {}, *aside)]))
    assert {name: sum(files.values()) for name, files in told.files.items()} == {"": 1, "_late": 1, "_late_effects": 1}
    parts.merge(told.files["_late"], LATE, tmp_path / "late.parquet")
    late = {"rule": "r", "reason": "late", "key": "k"} | {k: v for k, v in PLACE.items() if k != "name"}
    assert pq.read_table(tmp_path / "late.parquet").to_pylist() == [late]
    parts.merge(told.files["_late_effects"], RESULT, tmp_path / "effects.parquet")
    assert pq.read_table(tmp_path / "effects.parquet").equals(matches(5, 1))


def test_what_a_task_wrote_that_spark_gave_up_is_in_no_result(parts, tmp_path):
    """A task writes twice and only the second time counts; what an earlier run left is removed."""
    list(parts.tell(output_of(matches(0, 2), {})))
    left = {file.name for file in parts.folder.iterdir()}

    class Again(Frame):
        def collect(self):
            list(self.tell(output_of(matches(50, 2), {})))
            return super().collect()

    told = parts.told(Again(parts.tell, [output_of(matches(0, 2), {})]))
    assert len(list(parts.folder.iterdir())) == 2
    assert not left & {file.name for file in parts.folder.iterdir()}
    parts.merge(told.files[""], RESULT, tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet").equals(matches(0, 2))


def test_no_results_are_a_file_without_rows(parts, tmp_path):
    """No task told a result."""
    told = parts.told(Frame(parts.tell, [output_of(matches(0, 0), {"matches": 0})]))
    parts.merge(told.files.get("", {}), RESULT, tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet").equals(RESULT.empty_table())


def test_a_folder_that_machines_do_not_share_is_told(parts, tmp_path):
    """Files of another machine are not there; nothing is published without them."""
    told = parts.told(Frame(parts.tell, [output_of(matches(n, 2), {}) for n in (0, 9)]))
    (parts.folder / next(iter(told.files[""]))).unlink()
    with pytest.raises(
        LostRowsError, match="found 2 rows, expected the 4 that were computed; on a cluster --out must be"
    ):
        parts.merge(told.files[""], RESULT, tmp_path / "x.parquet")
    assert not (tmp_path / "x.parquet").exists()
