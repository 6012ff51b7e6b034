"""Results that tasks write and a driver publishes, without Spark: frames are lists of what tasks gave out."""

import dataclasses
from typing import ClassVar

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from whenabouts_cloud.cep.shard.results import RESULT
from whenabouts_cloud.jobs.output.sink import ResultSink, read_results
from whenabouts_cloud.jobs.output.task_files import FEW, LostRowsError, TaskFiles
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.shard import LATE, StepOutput

PLACE = {"name": "a", "stream": "s", "site": "hall", "gateway": "g0", "boot": 1, "seq": 7, "t_min": 3, "t_max": 4}
LATE_READING = {"rule": "r", "reason": "late", "key": "k"} | {k: v for k, v in PLACE.items() if k != "name"}


@dataclasses.dataclass
class Frame:
    """Outputs that tasks of Spark would write, written when the frame is computed."""

    write: object
    outputs: list

    def collect(self):
        return [(self.write(output),) for output in self.outputs]


def matches(first, count):
    """Rows of RESULT with ids from a number on."""
    rows = [
        {"result_id": f"{n:08}", "rule": "r", "status": "match", "t_min": n, "t_max": n, "events": [PLACE]}
        for n in range(first, first + count)
    ]
    return pa.Table.from_pylist(rows, schema=RESULT)


def outputs(*sizes):
    """An output of a shard with so many results for each size."""
    return [StepOutput(matches(10_000 * n, size), {"matches": size}) for n, size in enumerate(sizes)]


@pytest.fixture
def files(tmp_path):
    return TaskFiles(Store.at(tmp_path / ".tmp-parts"))


@pytest.fixture
def sink(tmp_path):
    """Publishes lists of outputs below `out`; what was reported is in `sink.reports`."""

    class Sink(ResultSink):
        reports: ClassVar = []

        def emitted(self, outputs, batch_id):
            self.publish(Frame(self._files.write, outputs), batch_id)
            published = self.reports[-1][1]
            return published and published.local

        def whole(self, outputs):
            return self.replace(lambda write: Frame(write, outputs))[0].local

    return Sink(RESULT, tmp_path / "out", lambda *emitted: Sink.reports.append(emitted))


def test_large_files_stay_parts_and_small_ones_share_one(files, tmp_path):
    """Nothing is lost or doubled between files of both sizes and an output without results."""
    some = outputs(FEW, 3, FEW + 5, 0, FEW - 1)
    words = files.collect(Frame(files.write, some))
    assert words.counts == [output.counts for output in some]
    files.move(words.files[""], Store.at(tmp_path / "made"), RESULT)
    parts = sorted((tmp_path / "made").iterdir())
    assert [pq.read_metadata(part).num_rows for part in parts] == [FEW + 2, FEW, FEW + 5]
    table = pq.read_table(tmp_path / "made")
    assert table.schema.names == RESULT.names
    assert "dictionary" not in str(table.schema), "any reader sees plain texts"
    expected = pa.concat_tables(output.results for output in some)
    assert table.sort_by("t_min").to_pylist() == expected.to_pylist()
    files.clear()
    assert list(tmp_path.iterdir()) == [tmp_path / "made"]


def test_what_a_task_wrote_that_spark_gave_up_is_in_no_result(files, tmp_path):
    """A task writes twice and only the second time counts; what an earlier run left is removed."""
    files.write(outputs(2)[0])
    left = {file.name for file in files.store.local.iterdir()}

    class Again(Frame):
        def collect(self):
            self.write(StepOutput(matches(50, 2), {}))
            return super().collect()

    words = files.collect(Again(files.write, outputs(2)))
    assert len(list(files.store.local.iterdir())) == 2
    assert not left & {file.name for file in files.store.local.iterdir()}
    files.move(words.files[""], Store.at(tmp_path / "made"), RESULT)
    assert pq.read_table(tmp_path / "made").to_pylist() == matches(0, 2).to_pylist()


def test_a_folder_that_machines_do_not_share_is_reported(files, tmp_path):
    """Files of another machine are not there; nothing is published without them."""
    words = files.collect(Frame(files.write, outputs(2, 2)))
    (files.store.local / next(iter(words.files[""]))).unlink()
    with pytest.raises(
        LostRowsError, match="found 2 rows, expected the 4 that were computed; on a cluster --out must be"
    ):
        files.move(words.files[""], Store.at(tmp_path / "made"), RESULT)
    assert not (tmp_path / "made").exists()


def test_the_first_batch_is_published_without_results_and_has_the_schema(sink, tmp_path):
    """Later batches without results leave no folder."""
    assert sink.emitted(outputs(0), 0) == tmp_path / "out/batch=00000000"
    assert ds.dataset(tmp_path / "out", format="parquet").schema.names == RESULT.names
    assert sink.emitted(outputs(0), 1) is None
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["batch=00000000"]


def test_any_reader_takes_the_folder(sink, tmp_path):
    """Batches with one part and with several, beside side output and what is being written."""
    import duckdb  # not loaded by those who only collect tests
    import pandas as pd

    late = pa.Table.from_pylist([LATE_READING], schema=LATE)
    sink.emitted([outputs(3)[0]._replace(late=late, effects=matches(5, 1))], 0)
    sink.emitted([StepOutput(matches(100, FEW), {}), StepOutput(matches(5000, 2), {})], 1)
    out, count = tmp_path / "out", 3 + FEW + 2
    assert ds.dataset(out, format="parquet").count_rows() == count
    assert pq.read_table(out).num_rows == count
    assert len(set(pd.read_parquet(out)["result_id"])) == count
    assert duckdb.sql(f"select count(*) from '{out}/batch=*/*.parquet'").fetchall() == [(count,)]
    assert [len(list(read_results(out / f"batch={n:08}"))) for n in (0, 1)] == [3, FEW + 2]
    assert list(read_results(out / "_late/batch=00000000")) == [LATE_READING]
    assert list(read_results(out / "_late_effects/batch=00000000")) == matches(5, 1).to_pylist()


@pytest.mark.parametrize("at", range(1, 6))
def test_a_batch_that_is_killed_anywhere_and_repeated_is_there_once(sink, tmp_path, monkeypatch, at):
    """Killed before the first, second ... rename of a folder: the repetition publishes what is missing, nothing twice."""
    late = pa.Table.from_pylist([LATE_READING], schema=LATE)
    batch = [outputs(FEW)[0]._replace(late=late), outputs(0, 3)[1]]
    renames, rename = [], type(tmp_path).rename

    def killed(self, target):
        renames.append(target)
        if len(renames) == at:
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(type(tmp_path), "rename", killed)
        try:
            sink.emitted(batch, 0)
        except KeyboardInterrupt:
            assert len(renames) == at
    sink.emitted(batch, 0)
    assert pq.read_table(tmp_path / "out").num_rows == FEW + 3
    assert pq.read_table(tmp_path / "out/_late").num_rows == 1


def test_a_complete_result_takes_the_place_of_an_earlier_one(sink, tmp_path):
    """Large, then small, then killed between the two renames: the earlier one is put back before the next is made."""
    folder = sink.whole(outputs(FEW, FEW))
    assert pq.read_table(folder).num_rows == 2 * FEW
    assert pq.read_table(sink.whole(outputs(3))).num_rows == 3
    folder.rename(tmp_path / "out/.tmp-earlier")

    def make(write):
        assert pq.read_table(tmp_path / "out").num_rows == 3
        return Frame(write, outputs(4))

    assert pq.read_table(sink.replace(make)[0].local).num_rows == 4
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["batch=00000000"]
