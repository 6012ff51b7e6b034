"""Results appear once in a folder and in a bucket, wherever the process is killed."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from whenabouts_cloud.delivery.published import numbers_after
from whenabouts_cloud.jobs.output import sink as sink_module
from whenabouts_cloud.jobs.output.output_place import Output
from whenabouts_cloud.jobs.output.publication import digest_in, publication
from whenabouts_cloud.jobs.output.sink import batch_folder, claim, read_results
from whenabouts_cloud.jobs.output.task_files import FEW, RESULTS, TaskFiles
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import parse_rules

RULE = """
STREAM a FROM "a" DELAY 1 s
STREAM b FROM "b" DELAY 1 s
RULE near CORRELATE a AS x, b AS y WHERE |@x - @y| <= 1 s OVER 80 %
"""
CHANGING = ("write", "move", "remove", "remove_folder")  # of an object store
TARGET = batch_folder(3)


@pytest.fixture
def out(place):
    return Store.at(place)


def rows(first, count):
    return pa.table({"result_id": [str(n) for n in range(first, first + count)]})


def written(out, *tables):
    """A publication, and the files that tasks wrote for it."""
    files = TaskFiles(out.at_folder(".tmp-parts"))
    made = {files._write(table): table.num_rows for table in tables}
    return publication(out, files, rows(0, 0).schema), made


def ids(out, name=TARGET):
    return sorted(int(row["result_id"]) for row in read_results(out.at_folder(name)))


def test_large_files_and_small_ones_make_one_batch(out):
    """The parts hold all rows once, and the folder names the digest of its input."""
    made, files = written(out, rows(0, FEW), rows(FEW, 2), rows(FEW + 2, 1))
    assert made.appear(files, TARGET, "d")
    assert ids(out) == list(range(FEW + 3))
    assert len([one for one in out.entries(TARGET) if one.name.endswith(".parquet")]) == 2
    assert (made.exists(TARGET), digest_in(out, TARGET), numbers_after(out, 2)) == (True, "d", [3])
    assert not made.appear(files, TARGET, "d")


@pytest.mark.parametrize("kills", range(1, 6))
def test_a_batch_that_is_killed_before_any_change_of_a_bucket_is_repeated_whole(bucket, tmp_path, monkeypatch, kills):
    """The repetition has other parts; what the first try left is in no result. A courier does not see it before."""
    out = Store.at(f"{bucket}/{tmp_path.name}")
    made, files = written(out, rows(0, FEW), rows(FEW, FEW), rows(2 * FEW, 1))
    calls = []

    def killing(name):
        real = getattr(Store, name)

        def change(self, *arguments):
            calls.append(name)
            if len(calls) == kills:
                raise KeyboardInterrupt
            return real(self, *arguments)

        return change

    with monkeypatch.context() as patched:
        for name in CHANGING:
            patched.setattr(Store, name, killing(name))
        try:
            made.appear(files, TARGET, "d")
        except KeyboardInterrupt:
            assert numbers_after(out, 2) == []
    made, files = written(out, rows(0, 2 * FEW + 1))
    assert made.appear(files, TARGET, "d") is (len(calls) == kills)
    assert ids(out) == list(range(2 * FEW + 1))


def test_a_complete_result_replaces_an_earlier_one(out):
    """Without a part of it."""
    for count in (FEW + 1, 3):
        made, files = written(out, *(rows(n, 1) for n in range(3)), *([rows(3, FEW)] if count > FEW else []))
        made.replace(files, batch_folder(0))
    assert ids(out, batch_folder(0)) == [0, 1, 2]


def test_a_place_belongs_to_one_job(out):
    """It is bound before the first result."""
    [rule] = parse_rules(RULE).rules
    for _ in range(2):
        claim(out, rule, "once", 2)
    with pytest.raises(sink_module.WrongOutputError, match="found results of mode 'once', expected 'streaming'"):
        claim(Output.at(out), rule, "streaming", 2)
    out.remove(sink_module.MARKER)
    out.write("of another program", b"")
    with pytest.raises(sink_module.WrongOutputError, match="other content"):
        claim(out, rule, "once", 2)


def test_a_checkpoint_is_beside_a_folder_and_elsewhere_for_a_bucket(tmp_path, monkeypatch, bucket):
    """Each part of a run has its own; a URI is given to Spark by its name in Hadoop."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert Output.at(tmp_path / "o").below("pairs", "r").spark_checkpoint == str(tmp_path / "o/pairs/r/_checkpoint")
    two = [Output.at(f"{bucket}/{name}").checkpoint.local for name in "ab"]
    assert len(set(two)) == 2
    assert all(one is not None and one.is_relative_to(tmp_path) for one in two)
    named = Output.at(f"{bucket}/o", Store.at(f"{bucket}/c")).below("matches")
    assert named.spark_checkpoint == f"{bucket.replace('s3:', 's3a:')}/c/matches"
    assert Store.at(named.spark_checkpoint) == named.checkpoint


def test_an_empty_result_has_its_columns(out):
    """Of the first batch, so that the output can be read from then on."""
    made, _ = written(out)
    assert made.appear({}, TARGET, "d")
    with out.open(f"{TARGET}/part-00000.parquet") as file:
        assert pq.read_schema(file).names == ["result_id"]
    assert RESULTS == ""
