"""The streaming job publishes the pairs of the batch job, each once, whatever the order of files and the restarts."""

import random
from collections import Counter

import pyarrow.parquet as pq
import pytest

from spark.cases import MS, random_readings, rule, same_rows, sides
from support.cloud.landing import EPOCH_US, land, reading, watermark
from support.search import SEED
from whenabouts_cloud.correlation.pairs import correlate
from whenabouts_cloud.jobs.engines.correlate import CORRELATION
from whenabouts_cloud.jobs.metrics import total
from whenabouts_cloud.jobs.streaming import start_query
from whenabouts_cloud.jobs.work import QueryOptions

STREAMS = ("dock/tags", "shelf/1", "shelf/2/left", "shelf")
FOREVER_US = EPOCH_US + 10**9
TICKS = 6 if SEED else 4  # in which readings arrive: two steps of the query each


class Run:
    """A query over a landing folder that can be stepped, stopped and started again."""

    def __init__(self, spark, folder, job, shards=2):
        self.spark, self.job, self.shards = spark, job, shards
        self.landing, self.out = folder / "landing", folder / "out"
        self.landing.mkdir()
        self.counts, self.batches = [], []
        self.query = None

    def report(self, batch_id, published, counts, seconds):
        self.batches.append((batch_id, published))
        self.counts += counts

    def start(self):
        options = QueryOptions(self.landing, self.out, self.shards, 0.0)
        self.query = start_query(CORRELATION, {0: self.job}, self.spark, options, self.report)

    def step(self):
        """Process everything that has landed."""
        self.query.processAllAvailable()

    def stop(self):
        self.query.stop()

    def pairs(self):
        return pq.read_table(self.out)

    def kept(self):
        """Number of readings in the state, by the last report of each shard."""
        return sum({one["shard"]: one["rows_kept"] for one in self.counts}.values())


def ticks(rows, seed, count):
    """Readings in `count` groups, late by up to two, and the true watermarks after each, by gateway."""
    rng = random.Random(seed)
    ordered = sorted(rows, key=lambda r: r["t_max"])
    size = len(rows) // count + 1
    landing = [[] for _ in range(count)]
    for n, row in enumerate(ordered):
        landing[min(n // size + rng.choice([0, 0, 0, 1, 2]), count - 1)].append(row)
    watermarks = []
    for n in range(count):
        still = [r for later in landing[n + 1 :] for r in later]
        watermarks.append(
            {
                g: min((r["t_max"] for r in still if r["gateway"] == g), default=FOREVER_US)
                for g in map("g{}".format, range(5))
            }
        )
    return landing, watermarks


@pytest.mark.parametrize("name", ["keyed", pytest.param("keyless", marks=pytest.mark.deep)])
def test_any_arrival_with_restarts_and_repeats_gives_the_batch_result_once(make_run, name):
    """Late files, repeated files, watermarks read one micro-batch before the readings they cover, a restart on the way."""
    # listing n:   readings 1..n   watermarks over readings 1..n+1: watermarks run ahead as in a race of listings
    job, rows = rule(name), random_readings(seed=11, count=300)
    landing, watermarks = ticks(rows, seed=5, count=TICKS)
    run = make_run(job)
    watermark(run.landing, dict.fromkeys(watermarks[0], EPOCH_US), 0, STREAMS)
    run.start()
    for n, arrived in enumerate(landing):
        land(run.landing, arrived, n)
        if n in (2, 4):
            land(run.landing, landing[n - 2] + landing[n - 1], 100 + n)
        run.step()  # else the watermark might be listed before the readings: it would be two micro-batches ahead
        if n + 1 < len(landing):
            watermark(run.landing, watermarks[n + 1], n + 1, STREAMS)
            run.step()
        if n == TICKS - 3:
            run.stop()
            run.start()
    assert same_rows(run.pairs(), correlate(job, *sides(rows, job)))
    counts = Counter(total(run.counts))
    assert counts["late"] == counts["expired"], "only repeats of what is forgotten may seem late"
    assert counts["repeats"] > 0


def test_the_state_shrinks_as_frontiers_pass(make_run):
    """Readings are kept while a later one can match them, and removed when both frontiers have passed."""
    run = make_run(rule("keyed"))
    run.start()
    rows = [r for r in random_readings(seed=3, count=200, span_ms=1000) if r["key"] is not None]
    land(run.landing, rows, 0)
    watermark(run.landing, dict.fromkeys(["g0", "g1", "g2", "g3", "g4"], EPOCH_US), 0, STREAMS)
    run.step()
    full = run.kept()
    assert full == sum(s.num_rows for s in sides(rows, run.job))
    # 400 ms, 80 %: the longest stamp is 1 s, so nothing is needed 2.8 s behind the frontiers.
    watermark(run.landing, dict.fromkeys(["g0", "g1", "g2", "g3", "g4"], EPOCH_US + 3_300 * MS), 1, STREAMS)
    run.step()
    assert run.kept() == full, "a watermark counts from the next micro-batch on"
    watermark(run.landing, {"g0": EPOCH_US + 3_301 * MS}, 2, STREAMS)
    run.step()
    assert 0 < run.kept() < full
    watermark(run.landing, dict.fromkeys(["g0", "g1", "g2", "g3", "g4"], FOREVER_US), 3, STREAMS)
    run.step()
    watermark(run.landing, {"g0": FOREVER_US}, 4, STREAMS)
    run.step()
    assert run.kept() == 0


def test_a_micro_batch_repeated_after_a_crash_is_not_published_again(make_run):
    """The checkpoint has lost a commit whose pairs are out already, as after kill -9 between the two."""
    job, rows = rule("keyed"), random_readings(seed=4, count=150)
    run = make_run(job)
    run.start()
    for n in range(3):
        land(run.landing, rows[n::3], n)
        run.step()
    run.stop()
    before = sorted(run.out.glob("batch=*/*"))
    for lost in [*(run.out / "_checkpoint/commits").glob("2"), *(run.out / "_checkpoint/commits").glob(".2.crc")]:
        lost.unlink()
    run.batches.clear()
    run.start()
    land(run.landing, rows[:30], 9)
    run.step()
    assert run.batches[0] == (2, None), "batch 2 ran again and published nothing"
    assert set(before) <= set(run.out.glob("batch=*/*"))
    assert same_rows(run.pairs(), correlate(job, *sides(rows, job)))


def test_a_late_reading_is_counted_and_a_silent_gateway_is_named(make_run):
    """DELAY 100 ms: g1's watermark stands still, the frontier leaves it behind, and what it sends then is late."""
    run = make_run(rule("keyed", delay="100 ms"), shards=1)
    run.start()
    land(run.landing, [reading("g0", 0, "shelf/1", "x", EPOCH_US, EPOCH_US)], 0)
    watermark(run.landing, {"g0": EPOCH_US, "g1": EPOCH_US}, 0, STREAMS)
    run.step()
    watermark(run.landing, {"g0": EPOCH_US + 300 * MS}, 1, STREAMS)
    run.step()
    watermark(run.landing, {"g0": EPOCH_US + 301 * MS}, 2, STREAMS)
    run.step()
    assert run.counts[-1]["silent"] == ["hall/g1"]
    assert run.counts[-1]["streams_us"] == dict.fromkeys(("dock", "shelf"), EPOCH_US + 200 * MS)
    land(run.landing, [reading("g1", 0, "dock/tags", "x", EPOCH_US, EPOCH_US)], 1)
    run.step()
    assert run.counts[-1]["late"] == 1
    assert run.pairs().num_rows == 1, "it joined what was left"
