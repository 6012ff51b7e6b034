"""How Spark is started: Java maps the classes that it needs from an archive instead of loading them one by one."""

import gc
import os
import sys
from pathlib import Path

import pyarrow as pa
import pyspark

from whenabouts_cloud.jobs.output.sink import read_results
from whenabouts_cloud.jobs.session import forked_workers
from whenabouts_cloud.jobs.session.java import java_home
from whenabouts_cloud.jobs.session.shared_classes import archive_path, java_options
from whenabouts_cloud.jobs.shared_classes_training import train


def test_java_maps_the_archive_that_setting_up_made(spark):
    """The file is in the memory map of the running Java: Java accepted it for this version and these jars."""
    process = spark._jvm.java.lang.ProcessHandle.current().pid()
    assert str(archive_path(java_home(os.environ))) in Path(f"/proc/{process}/maps").read_text()


def test_without_an_archive_java_gets_no_option_for_one(tmp_path):
    """Another Java needs another archive; until that is made Java starts without one, only slower."""
    assert archive_path(tmp_path) != archive_path(java_home(os.environ))
    assert "SharedArchiveFile" not in java_options(tmp_path)


def test_the_training_for_the_archive_runs_the_jobs_for_real(spark, tmp_path):
    """Batch and stream find the one pair of the two readings, so the classes are those of jobs that have work to do."""
    arguments = train(spark, tmp_path)
    for out in ("once", "out"):
        assert [row["rule"] for folder in (tmp_path / out).glob("batch=*") for row in read_results(folder)] == ["near"]
    assert arguments[-2] == "-cp"
    assert "spark-core" in arguments[-1]


def test_workers_are_forked_from_a_process_of_one_thread_that_has_imported_what_jobs_run(spark):
    """A fork has only the thread that forked: another one might hold a lock at that moment. What is imported is frozen."""

    def look(batches):
        threads = len(list(Path(f"/proc/{os.getppid()}/task").iterdir()))
        row = {"threads": threads, "frozen": gc.get_freeze_count(), "numba": "numba" in sys.modules}
        yield from pa.Table.from_pylist([row for _ in batches]).to_batches()

    assert spark.sparkContext.getConf().get("spark.python.daemon.module") == forked_workers.__name__
    frame = spark.range(1).coalesce(1).mapInArrow(look, "threads long, frozen long, numba boolean")
    [row] = frame.collect()
    assert row.threads == 1
    assert row.frozen > 0
    assert row.numba


def test_pythons_that_spark_starts_import_pyspark_as_it_is_installed(spark):
    """Not from Spark's archive, which stands before it in their path and holds nothing compiled."""

    def look(batches):
        import pyspark

        yield from pa.Table.from_pylist([{"file": pyspark.__file__} for _ in batches]).to_batches()

    [row] = spark.range(1).coalesce(1).mapInArrow(look, "file string").collect()
    assert row.file == pyspark.__file__
