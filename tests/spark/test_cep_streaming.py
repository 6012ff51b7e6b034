"""The streaming job ends with the matches of the batch job, each once, whatever the order of files and the restarts."""

import random
from dataclasses import replace

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from support.cep.landing import (
    CAUSAL,
    GATEWAYS,
    MS,
    STREAMS,
    as_matches,
    causal_expected,
    causal_readings,
    expected,
    random_readings,
    rule,
)
from support.cloud.landing import EPOCH_US, land, reading, watermark
from support.search import SEED
from whenabouts_cloud.jobs.batch import publish_whole
from whenabouts_cloud.jobs.engines.cep import CEP
from whenabouts_cloud.jobs.metrics import total
from whenabouts_cloud.jobs.output.sink import read_results
from whenabouts_cloud.jobs.reading.packing import rule_of
from whenabouts_cloud.jobs.streaming import start_query
from whenabouts_cloud.jobs.work import QueryOptions
from whenabouts_cloud.rules.current import RunningRules

FOREVER_US = EPOCH_US + 10**9


class Run:
    """A query over a landing folder that can be stepped, stopped and started again."""

    def __init__(self, spark, folder, job, shards=2):
        self.spark, self.job, self.shards = spark, job, shards
        self.landing, self.out = folder / "landing", folder / "out"
        self.landing.mkdir()
        self.counts, self.batches, self.query = [], [], None

    def report(self, batch_id, published, counts, seconds):
        self.batches.append((batch_id, published))
        self.counts += counts

    def start(self):
        running = self.job if isinstance(self.job, RunningRules) else RunningRules.of([self.job])
        options = QueryOptions(self.landing, self.out, self.shards, 0.0)
        self.query = start_query(CEP, running.rules, self.spark, options, self.report, running.gone)

    def step(self):
        """Process everything that has landed."""
        self.query.processAllAvailable()

    def watermark(self, us, number):
        """Write watermarks of every gateway, or those given."""
        watermark(self.landing, dict.fromkeys(GATEWAYS, us) if isinstance(us, int) else us, number, STREAMS)

    def matches(self):
        return as_matches(pq.read_table(self.out))

    def last(self, name):
        """Sum over shards of the last value of each."""
        return sum({one["shard"]: one[name] for one in self.counts}.values())


ENDS = 2 if SEED else 1  # micro-batches after the one that reads the last watermark
GROUPS = 4 if SEED else 3  # in which readings arrive: two steps of the query each
DEEP = [pytest.param(name, marks=pytest.mark.deep) for name in ("arrival", "conditions", "across")]


@pytest.mark.parametrize("name", ["trailing", *DEEP])
def test_any_arrival_with_restarts_and_repeats_ends_with_the_definition(make_run, name):
    """Late files, repeated files, watermarks read one micro-batch before the readings they cover, a restart on the way."""
    job, rows, rng = rule(name), random_readings(seed=len(name), count=160, span_ms=2000), random.Random(5)
    ordered = sorted(rows, key=lambda r: r["t_max"] + rng.choice([0, 0, 150 * MS]))
    size = -(-len(ordered) // GROUPS)
    groups = [ordered[n * size : n * size + size] for n in range(GROUPS)]
    run = make_run(job)
    run.watermark(EPOCH_US, 0)
    run.start()
    for n, group in enumerate(groups):
        later = [r for g in groups[n + 2 :] for r in g]
        land(run.landing, group, n)
        open_until = {g: min((r["t_max"] for r in later if r["gateway"] == g), default=FOREVER_US) for g in GATEWAYS}
        if n == 2:
            land(run.landing, groups[n - 1], 100 + n)
        run.step()  # else the watermark might be listed before the readings: it would be two micro-batches ahead
        run.watermark(open_until, n + 1)
        run.step()
        if n == 1:
            run.query.stop()
            run.start()
    for n in range(ENDS):
        run.watermark(FOREVER_US + n, 50 + n)
        run.step()
    assert run.matches() == expected(job, rows)
    counts = total(run.counts)
    assert counts["repeats"] + counts["late"] > 0, "repeats of what is forgotten look late"
    assert counts["late"] == 0 or set(pq.read_table(run.out / "_late")["seq"].to_pylist()) <= {
        r["seq"] for r in groups[1]
    }
    assert run.last("rows_kept") == run.last("keys_kept") == 0


@pytest.mark.deep
def test_causal_order_with_a_restart_ends_with_what_gateways_knew(make_run):
    """Readings come in their gateways' order, over several micro-batches; the query is restarted on the way."""
    rows, facts = causal_readings(seed=6, steps=240)
    run = make_run(rule(CAUSAL, length="40 ms"))
    run.start()
    for n in range(3):
        land(run.landing, rows[n * 80 : n * 80 + 80], n)
        run.watermark(min((r["t_max"] for r in rows[n * 80 + 80 :]), default=FOREVER_US), n)
        run.step()
        if n == 1:
            run.query.stop()
            run.start()
    for n in range(2):
        run.watermark(FOREVER_US + n, 50 + n)
        run.step()
    wanted = causal_expected(rows, facts)
    assert len(wanted) > 10
    assert run.matches() == wanted
    assert total(run.counts)["ungrouped"] == sum(r["gateway"] == "g3" and r["key"] is not None for r in rows)
    assert run.last("rows_kept") == 0


def test_counts_with_a_restart_are_those_of_the_whole_landing(make_run):
    """Each stretch of each key once, as in the batch job."""
    job = rule("SEQ(shelf a, !till c, exit e) WITHIN 300 ms PER key COUNT, SUM(a.rssi), MAX(e.value) EVERY 100 ms")
    rows, run = random_readings(seed=12, count=160), make_run(job)
    run.start()
    for n in range(2):
        land(run.landing, rows[n * 80 : n * 80 + 80], n)
        run.watermark(min(r["t_max"] for r in rows[80:]) if n == 0 else FOREVER_US, n)
        run.step()
        if n == 0 or SEED:
            run.query.stop()
            run.start()
    for n in range(ENDS):
        run.watermark(FOREVER_US + n, 50 + n)
        run.step()
    once, _ = publish_whole(CEP, [job], run.spark, run.landing, run.out.with_name("once"), 3)
    whole = list(read_results(once))
    emitted = pq.read_table(run.out).drop_columns("batch").to_pylist()
    assert len(whole) > 5
    assert sorted(emitted, key=lambda r: r["result_id"]) == sorted(whole, key=lambda r: r["result_id"])
    assert total(run.counts)["counts"] == len(whole)
    assert run.last("rows_kept") == 0


def test_rules_that_come_and_go_between_queries_see_what_lands_while_they_run(make_run):
    """Two rules; then the second goes and a third comes: the first is not disturbed, and the state of the second is removed.

    landed   0 .. 59     60 .. 119
    first    |-----------|---------
    second   |-----------|
    third                |---------
    """
    rows = random_readings(seed=31, count=120)
    first, second, third = rule("inner"), replace(rule("across"), name="s"), replace(rule("repeated"), name="t")
    run = make_run(RunningRules.of([first, second]))
    run.start()
    land(run.landing, rows[:60], 0)
    run.watermark(EPOCH_US, 0)
    run.step()
    run.query.stop()
    run.job = run.job.changed([third, first])
    assert sorted(run.job.rules) == [0, 2]
    run.start()
    land(run.landing, rows[60:], 1)
    for n in range(1 + ENDS):
        run.watermark(FOREVER_US + n, 1 + n)
        run.step()
    emitted = pq.read_table(run.out)
    wanted = {"r": expected(first, rows), "s": expected(second, rows[:60]), "t": expected(third, rows[60:])}
    assert all(wanted.values())
    for name, matches in wanted.items():
        assert as_matches(emitted.filter(pc.equal(emitted["rule"], name))) == matches
    last = {one["shard"]: one["rows_kept"] for one in run.counts}
    assert {rule_of(shard) for shard in last} == {0, 1, 2}
    assert sum(kept for shard, kept in last.items() if rule_of(shard) != 1) == 0
    kept = run.query.lastProgress["stateOperators"][0]["numRowsTotal"]
    assert kept == sum(rule_of(shard) != 1 for shard in last), "the state of the second is removed"


def test_time_by_itself_emits_a_match_in_every_shard(make_run):
    """Keys in all shards wait for the end of their windows; one watermark without a reading emits all matches."""
    run = make_run(rule("trailing"), shards=3)
    rows = []
    for n in range(12):
        rows.append(reading("g0", 2 * n, "shelf/1", f"k{n}", EPOCH_US, EPOCH_US))
        rows.append(reading("g0", 2 * n + 1, "exit/tags", f"k{n}", EPOCH_US + 9 * MS, EPOCH_US + 9 * MS))
    run.start()
    land(run.landing, rows, 0)
    run.watermark(EPOCH_US, 0)
    run.step()
    assert run.matches() == set()
    assert run.last("rows_kept") == 24
    for n in (1, 2):
        run.watermark(EPOCH_US + 500 * MS + n, n)
        run.step()
    assert run.matches() == {(("a", "g0", 2 * n), ("e", "g0", 2 * n + 1)) for n in range(12)}
    assert run.last("rows_kept") == 0


# The sink that prevents it is one for all jobs: test_spark_streaming shows it in every run.
@pytest.mark.deep
def test_a_micro_batch_repeated_after_a_crash_is_not_published_again(make_run):
    """The checkpoint has lost a commit whose matches are out already, as after kill -9 between the two."""
    job, rows = rule("arrival"), random_readings(seed=4, count=120)
    run = make_run(job)
    run.start()
    for n in range(3):
        land(run.landing, rows[n::3], n)
        run.step()
    run.query.stop()
    before = sorted(run.out.glob("batch=*/*"))
    for lost in [*(run.out / "_checkpoint/commits").glob("2"), *(run.out / "_checkpoint/commits").glob(".2.crc")]:
        lost.unlink()
    run.batches.clear()
    run.start()
    land(run.landing, rows[:30], 9)
    run.step()
    assert run.batches[0] == (2, None), "batch 2 ran again and published nothing"
    assert set(before) <= set(run.out.glob("batch=*/*"))
    assert run.matches() == expected(job, rows)


def test_late_readings_and_what_they_would_have_changed_go_to_the_side_output(make_run):
    """DELAY 100 ms: the exit is emitted, then a till in between comes behind the frontier; the result stands."""
    run = make_run(rule("inner", delay="100 ms"), shards=1)
    a, c, e = (
        reading(f"g{n}", (1 << 60) + n, stream, "x", EPOCH_US + n * MS, EPOCH_US + n * MS)
        for n, stream in enumerate(["shelf/1", "till/tags", "exit/tags"])
    )
    run.start()
    land(run.landing, [a, e], 0)
    run.watermark(EPOCH_US, 0)
    run.step()
    for n in (1, 2):
        run.watermark({"g0": EPOCH_US + 200 * MS + n}, n)
        run.step()
    [emitted] = pq.read_table(run.out).drop_columns("batch").to_pylist()
    assert run.counts[-1]["silent"] == ["hall/g1", "hall/g2", "hall/g3"]
    land(run.landing, [c], 1)
    run.step()
    batch = f"batch={run.batches[-1][0]:08d}"
    [late] = read_results(run.out / "_late" / batch)
    assert late["reason"] == "late"
    assert {
        k: c[k] for k in ("site", "gateway", "boot", "seq", "stream", "key", "t_min", "t_max")
    }.items() <= late.items()
    [changed] = read_results(run.out / "_late_effects" / batch)
    assert changed == emitted | {"status": "late removed", "probability": None}
    assert total(run.counts)["late"] == 1
