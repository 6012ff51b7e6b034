"""The streaming job ends with the verdicts of the batch job, each once, whatever the order of files and the restarts."""

import random

import pyarrow.parquet as pq
import pytest

from reference.latwin import simulate
from support.cloud.landing import EPOCH_US, land, watermark
from support.latwin.states import (
    FOREVER_US,
    MS,
    choices,
    definitely,
    emitted,
    reports,
    rule,
    state,
    states_of,
    watermarks_of,
)
from support.search import SEED
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.jobs.engines.latwin import LATWIN
from whenabouts_cloud.jobs.metrics import total
from whenabouts_cloud.jobs.streaming import start_query
from whenabouts_cloud.jobs.work import QueryOptions
from whenabouts_cloud.latwin.shard.shard import LatwinShard

ENDS = 2 if SEED else 1  # micro-batches after the one that reads the last watermark


class Run:
    """A query over a landing folder that can be stepped, stopped and started again."""

    def __init__(self, spark, folder, job, shards=2):
        self.spark, self.job, self.shards = spark, job, shards
        self.landing, self.out = folder / "landing", folder / "out"
        self.landing.mkdir()
        self.counts, self.batches, self.query, self.watermarked = [], [], None, 0

    def report(self, batch_id, published, counts, seconds):
        self.batches.append((batch_id, published))
        self.counts += counts

    def start(self):
        options = QueryOptions(self.landing, self.out, self.shards, 0.0)
        self.query = start_query(LATWIN, {0: self.job}, self.spark, options, self.report)

    def step(self):
        """Process everything that has landed."""
        self.query.processAllAvailable()

    def watermark(self, watermarks, site="hall"):
        """Write watermarks by gateway."""
        watermark(self.landing, {one.gateway.split("/")[1]: one.us for one in watermarks}, self.watermarked, site=site)
        self.watermarked += 1

    def rows(self):
        return pq.read_table(self.out).to_pylist()


@pytest.mark.parametrize(
    "body", ["DEFINITELY s0 AND s1 AND s2", pytest.param("POSSIBLY 2 OF (s0, s1, s2)", marks=pytest.mark.deep)]
)
def test_any_arrival_with_restarts_and_repeats_ends_with_the_result_of_one_batch(make_run, body):
    """Shuffled files, one landed twice, watermarks read one micro-batch before the readings they cover, a restart."""
    rng = random.Random(11)
    rows = states_of(simulate(rng, 3, 40))
    job = rule(f"{body} WINDOW 4")
    shuffled = rng.sample(rows, len(rows))
    parts = [shuffled[n::4] for n in range(4)]
    run = make_run(job)
    run.start()
    for n, part in enumerate(parts):
        land(run.landing, part, n)
        if n == 2:
            land(run.landing, parts[0], 9)
        run.watermark(watermarks_of([r for p in parts[n + 1 :] for r in p], 3))
        run.step()
        if n == 1:
            run.query.stop()
            run.start()
    for n in range(ENDS):
        run.watermark(watermarks_of([], 3, FOREVER_US + n))
        run.step()
    forever = list(watermarks_of([], 3))
    batch = LatwinShard(job).step({"reports": reports(job, rows)}, [forever], everything=True).results
    assert len(emitted(batch)) > 0
    assert emitted(run.rows()) == emitted(batch)
    if body.startswith("DEF"):
        assert emitted(run.rows()) == choices(rows, 3)
    assert total(run.counts)["repeats"] > 0
    assert run.counts[-1]["rows_kept"] == 0


def test_a_run_that_goes_on_is_extended_by_a_heartbeat(make_run):
    """No state follows: only later watermarks of the gateways show that both were on together."""
    run = make_run(definitely(2), shards=1)
    run.start()
    land(run.landing, [state(p, 0, (0, 0), EPOCH_US + p, EPOCH_US + p, True) for p in range(2)], 0)
    if SEED:
        run.watermark(watermarks_of([], 2, EPOCH_US))
        run.step()
    for _ in range(2):
        run.watermark([Watermark("hall/g0", EPOCH_US + 9 * MS), Watermark("hall/g1", EPOCH_US + 1)])
        run.step()
    assert run.rows() == [], "g1 may have gone off since"
    for n in range(2):
        run.watermark(watermarks_of([], 2, EPOCH_US + 9 * MS + n))
        run.step()
    assert emitted(run.rows()) == {(0, 0)}


# The sink that prevents it is one for all jobs: test_spark_streaming shows it in every run.
@pytest.mark.deep
def test_a_micro_batch_repeated_after_a_crash_is_not_published_again(make_run):
    """The checkpoint has lost a commit whose verdicts are out already, as after kill -9 between the two."""
    rows = states_of(simulate(random.Random(5), 2, 40))
    run = make_run(definitely(2))
    run.start()
    for n in range(3):
        land(run.landing, rows[n::3], n)
        run.watermark(watermarks_of([r for m in range(n + 1, 3) for r in rows[m::3]], 2))
        run.step()
    run.watermark(watermarks_of([], 2, FOREVER_US + 1))
    run.step()
    run.query.stop()
    before = sorted(run.out.glob("batch=*/*"))
    last = run.batches[-1][0]
    for lost in (run.out / "_checkpoint/commits").glob(f"*{last}*"):
        lost.unlink()
    run.batches.clear()
    run.start()
    run.watermark(watermarks_of([], 2, FOREVER_US + 2))
    run.step()
    assert run.batches[0] == (last, None), "the batch ran again and published nothing"
    assert set(before) <= set(run.out.glob("batch=*/*"))
    assert emitted(run.rows()) == choices(rows, 2)
