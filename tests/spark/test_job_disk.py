"""After a power cut or on a full disk results and checkpoint agree, or the job says that they do not."""

import shutil
import subprocess

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.errors import StreamingQueryException

from spark.cases import MS, rule
from spark.test_spark_streaming import Run as Query
from support.cloud.landing import EPOCH_US, land, reading
from whenabouts_cloud.cli import main
from whenabouts_cloud.jobs.engines.correlate import CORRELATION
from whenabouts_cloud.jobs.output import sink
from whenabouts_cloud.jobs.output.checkpoint import LostCheckpointError
from whenabouts_cloud.jobs.output.sink import claim
from whenabouts_cloud.jobs.runner import NO_SPACE
from whenabouts_cloud.jobs.streaming import start_query
from whenabouts_cloud.jobs.work import QueryOptions

RULE = """
STREAM dock FROM "dock/tags" DELAY 1 h
STREAM shelf FROM "shelf/#" DELAY 1 h
RULE sure CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 500 ms OVER 1 AND a.key = b.key
"""
EACH = 100  # pairs in a file


class Run(Query):
    """A query that remembers why it failed."""

    def start(self):
        options = QueryOptions(self.landing, self.out, self.shards, 0.0)
        self.failures = []
        self.query = start_query(
            CORRELATION, {0: self.job}, self.spark, options, self.report, failed=self.failures.append
        )


def land_pairs(run, number):
    """Write a file with EACH pairs of its own keys."""
    rows = []
    for n in range(EACH * number, EACH * (number + 1)):
        t = EPOCH_US + n * MS
        rows += [reading("g0", 2 * n, "dock/tags", f"k{n}", t, t), reading("g0", 2 * n + 1, "shelf/1", f"k{n}", t, t)]
    return land(run.landing, rows, number)


def forget(out, number):
    """Delete what the checkpoint knows of a batch, as a power cut does."""
    for log in [out / "_checkpoint" / "offsets", out / "_checkpoint" / "commits", *out.glob("_checkpoint/sources/*")]:
        for file in (log / str(number), log / f".{number}.crc"):
            file.unlink(missing_ok=True)


@pytest.fixture
def after_three(make_run):
    """A stopped query with the results of two batches, the second of which the checkpoint has lost, and a third file."""
    run = make_run(rule("sure"))
    claim(run.out, run.job, "streaming", 2)
    run.start()
    for number in range(2):
        land_pairs(run, number)
        run.step()
    run.stop()
    forget(run.out, 1)
    land_pairs(run, 2)
    return run


def test_results_that_the_checkpoint_does_not_know_are_refused_and_the_advice_gives_all_pairs(after_three, tmp_path):
    """Spark would give the lost number to other input, whose results would be thrown away: 200 pairs for ever."""
    run = after_three
    (tmp_path / "rule.wa").write_text(RULE, encoding="utf-8")
    options = ["--landing", run.landing, "--rule", tmp_path / "rule.wa", "--out", run.out, "--shards", "2"]
    done = CliRunner().invoke(main, ["correlate", *map(str, options)])
    assert done.exit_code == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(
        f"Error: output {run.out}: found results up to batch 1 and a checkpoint up to batch 0, expected"
    )
    assert f"delete {run.out} and start again" in line
    shutil.rmtree(run.out)
    run.start()
    run.step()
    assert run.pairs().num_rows == 3 * EACH


def test_another_input_under_a_published_number_ends_the_query(after_three):
    """The digest of the folder is that of other files; the query fails before it computes anything."""
    run = after_three
    run.start()
    with pytest.raises(StreamingQueryException):
        run.step()
    [failure] = run.failures
    assert isinstance(failure, LostCheckpointError)
    assert "found batch=00000001 with the results of another input" in str(failure)
    assert run.pairs().num_rows == 2 * EACH


@pytest.mark.parametrize("torn", [False, True])
def test_a_power_cut_right_after_results_appeared_loses_and_repeats_nothing(make_run, monkeypatch, tmp_path, torn):
    """The disk holds what was synced when the second batch appeared, and at worst empty files of what came later."""
    run = make_run(rule("sure"))
    disks = []

    def sync(folder):
        disks.append(tmp_path / f"disk-{len(disks)}")
        shutil.copytree(folder / "_checkpoint", disks[-1])

    monkeypatch.setattr(sink, "sync_file_system", sync)
    run.start()
    for number in range(2):
        land_pairs(run, number)
        run.step()
    run.stop()
    checkpoint = run.out / "_checkpoint"
    shutil.rmtree(checkpoint)
    shutil.copytree(disks[1], checkpoint)
    if torn:
        for name in ("commits/1", "offsets/2", "offsets/.2.crc"):
            (checkpoint / name).write_bytes(b"")
    land_pairs(run, 2)
    run.start()
    run.step()
    assert run.pairs().num_rows == 3 * EACH
    assert [pq.read_table(folder).num_rows for folder in sorted(run.out.glob("batch=*"))] == [EACH] * 3


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 KiB at the output folder."""
    (tmp_path / "out").mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path / "out"], capture_output=True)
    if mounted.returncode:
        pytest.skip("mount: not permitted, and this needs a small disk")
    yield tmp_path / "out"
    subprocess.run(["umount", "-l", tmp_path / "out"], check=True)


def test_a_full_disk_ends_the_query_and_room_again_gives_every_pair_once(small_disk, make_run):
    """Spark's state does not fit: the query ends instead of hanging, and the job is told of the full disk."""
    run = make_run(rule("sure"))
    for number in range(3):
        land_pairs(run, number)
    run.start()
    with pytest.raises(StreamingQueryException):
        run.step()
    assert [NO_SPACE in str(failure) for failure in run.failures] == [True]
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    run.start()
    run.step()
    assert run.pairs().num_rows == 3 * EACH
