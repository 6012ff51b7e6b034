"""A bit of Spark's checkpoint that changes: the job ends with an error, or its results are those of an undamaged one."""

import shutil
from random import Random

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

from spark.cases import rule
from spark.test_job_disk import EACH, Run, land_pairs
from support.search import seeds
from whenabouts_cloud.jobs.output.checkpoint import LostCheckpointError
from whenabouts_cloud.jobs.output.sink import claim

__all__ = ["Run"]  # what `make_run` starts


@pytest.fixture
def stopped(make_run):
    """A stopped query that has published two files of pairs and has not read a third."""
    run = make_run(rule("sure"))
    claim(run.out, run.job, "streaming", 2)
    run.start()
    for number in range(2):
        land_pairs(run, number)
        run.step()
    run.stop()
    land_pairs(run, 2)
    return run


def change_a_bit(checkpoint, chance):
    """Of any file; files are as likely as others, whatever their size."""
    path = chance.choice(sorted(one for one in checkpoint.rglob("*") if one.is_file() and one.stat().st_size))
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    return path.relative_to(checkpoint)


def test_a_changed_bit_of_the_checkpoint_changes_no_result(stopped, tmp_path):
    """Each time another file of it; a query that goes on publishes all pairs of the third file, one that ends none."""
    kept = tmp_path / "kept"
    shutil.copytree(stopped.out, kept)
    for seed in seeds(48):
        shutil.rmtree(stopped.out)
        shutil.copytree(kept, stopped.out)
        path = change_a_bit(stopped.out / "_checkpoint", Random(seed))
        try:
            stopped.start()
            stopped.step()
            went_on = True
        except (StreamingQueryException, LostCheckpointError, ValueError):
            went_on = False
        finally:
            stopped.stop()
        pairs = pq.read_table(stopped.out)["result_id"].to_pylist()
        assert len(pairs) == len(set(pairs)) == (3 if went_on else 2) * EACH, f"{path} {stopped.failures}"
