"""The simulated micro-batches of whole schedules do what Spark's do: the same scenario on both, with the product's query."""

import json
import os
from collections import Counter

import pyarrow.parquet as pq
import pytest

from spark.cases import MS, random_readings, rule
from support.cloud.landing import EPOCH_US, land, watermark
from whenabouts_cloud.jobs.engines.correlate import CORRELATION
from whenabouts_cloud.jobs.output.left_out import DamagedInputError
from whenabouts_cloud.jobs.streaming import start_query
from whenabouts_cloud.jobs.work import QueryOptions
from whenabouts_sim.chaos.parts.micro_batches import Spark

STREAMS = ("dock/tags", "shelf/1", "shelf/2/left", "shelf")
GATEWAYS = ("g0", "g1", "g2", "g3", "g4")


class OnBoth:
    """A query on one of the two. folder: of landing and output."""

    def __init__(self, spark, folder):
        self.landing, self.out = folder / "landing", folder / "out"
        self.landing.mkdir(parents=True)
        self._spark, self._simulated = spark, spark is None
        self.published = []
        self.failed = []

    def start(self):
        options = QueryOptions(self.landing, self.out, 2, 0.0)
        spark = Spark() if self._simulated else self._spark
        self._query = start_query(
            CORRELATION, {0: rule("keyed")}, spark, options,
            lambda batch, *_: self.published.append(batch), failed=self.failed.append,
        )  # fmt: skip

    def step(self):
        """Process all that is new."""
        if self._simulated:
            while self._query.run_next():
                pass
        else:
            self._query.processAllAvailable()

    def stop(self):
        if not self._simulated:
            self._query.stop()

    def log(self, name):
        """A log of the checkpoint: the last line of each micro-batch, by number."""
        folder = self.out / "_checkpoint" / name
        files = sorted((int(path.name), path) for path in folder.iterdir() if path.name.isdecimal())
        return {number: path.read_text().splitlines()[-1] for number, path in files}

    def ends(self):
        """How far each micro-batch reads each part of the landing, without the times of files, which differ."""
        offsets = map(json.loads, self.log("offsets").values())
        return [{part: place | {"mtime_ns": 0} for part, place in end.items()} for end in offsets]

    def uncommit(self, batch):
        """What a kill between the results and the commit leaves; the state and the results of the micro-batch are there."""
        for path in (self.out / "_checkpoint" / "commits").glob(f"*{batch}*"):
            path.unlink()

    def pairs(self):
        rows = pq.read_table(self.out).to_pylist()
        return Counter(row["result_id"] for row in rows)


def scenario(one):
    """Files come; a kill before a commit and a start; a kill before anything new, more files and watermarks, and a start.

    While a query runs, each new file is waited for: Spark's could see one of two, or both, in a micro-batch.
    """
    rows = sorted(random_readings(seed=11, count=120), key=lambda row: row["t_max"])
    seen = []

    def look():
        seen.append((list(one.published), one.ends(), [*one.log("commits")]))

    one.start()
    for n in range(2):
        land(one.landing, rows[30 * n : 30 * n + 30], n)
        one.step()
        watermark(one.landing, dict.fromkeys(GATEWAYS, EPOCH_US + n), n, STREAMS)
        one.step()
        look()
    last = max(one.log("commits"))
    one.stop()
    one.uncommit(last)
    land(one.landing, rows[60:90], 2)  # comes while nobody reads: the repeat must not take it
    one.start()
    one.step()
    look()
    one.stop()
    land(one.landing, rows[90:], 3)
    watermark(one.landing, dict.fromkeys(GATEWAYS, EPOCH_US + 10**6 * MS), 3, STREAMS)
    one.start()
    one.step()
    look()
    one.stop()
    return seen


def test_offsets_commits_repeats_and_results_are_those_of_spark(spark, tmp_path):
    """After each step the same micro-batches were published, with the same ends in the landing, also of a repeat."""
    real, simulated = OnBoth(spark, tmp_path / "real"), OnBoth(None, tmp_path / "simulated")
    assert scenario(simulated) == scenario(real)
    assert len(set(real.published)) < len(real.published), "one micro-batch was repeated"
    assert simulated.pairs() == real.pairs()
    assert real.pairs().total() > 0
    assert max(real.pairs().values()) == 1


@pytest.mark.parametrize("simulated", [True, False], ids=["simulated", "spark"])
def test_a_damaged_file_ends_both_by_the_same_error_and_the_next_query_leaves_it_out(spark, tmp_path, simulated):
    """The driver learns of it by the text of an error, as tasks run elsewhere."""
    one = OnBoth(None if simulated else spark, tmp_path)
    one.start()
    rows = random_readings(seed=11, count=60)
    file = land(one.landing, rows[:30], 0)
    file.write_bytes(file.read_bytes()[:-9])
    land(one.landing, rows[30:], 1)
    with pytest.raises(Exception, match="DamagedInputError"):
        one.step()
    if not simulated:
        assert [type(error) for error in one.failed] == [DamagedInputError]
    one.stop()
    one.start()
    one.step()
    assert one.published
    one.stop()


@pytest.mark.parametrize("simulated", [True, False], ids=["simulated", "spark"])
def test_a_repetition_takes_the_watermarks_that_it_published_by(spark, tmp_path, simulated):
    """Their file was damaged after the kill. Without them a later micro-batch would emit the results again."""
    one = OnBoth(None if simulated else spark, tmp_path)
    one.start()
    land(one.landing, random_readings(seed=11, count=120), 0)
    file = watermark(one.landing, dict.fromkeys(GATEWAYS, EPOCH_US + 10**6 * MS), 0, STREAMS)
    one.step()
    before, last = one.pairs(), max(one.log("commits"))
    assert before.total() > 0
    one.stop()
    one.uncommit(last)
    written = file.stat()
    file.write_bytes(file.read_bytes()[:-9])
    os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns))  # a disk that changes a bit keeps the time
    one.start()
    one.step()
    watermark(one.landing, dict.fromkeys(GATEWAYS, EPOCH_US + 10**6 * MS + 1), 1, STREAMS)
    one.step()
    one.stop()
    assert one.published.count(last) == 2
    assert one.pairs() == before
