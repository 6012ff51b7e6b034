"""The batch job equals the kernel on all rows, and the kernel the definition, however the landing is divided."""

import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reference.predicates import pairs as reference_pairs
from spark.cases import RULES, random_readings, rule, same_rows, sides
from support.cloud.landing import EPOCH_US, land, reading, watermark
from whenabouts_cloud.correlation.pairs import correlate
from whenabouts_cloud.jobs.batch import publish_whole
from whenabouts_cloud.jobs.engines.correlate import CORRELATION
from whenabouts_cloud.jobs.metrics import total
from whenabouts_cloud.rules import parse_rules


def landed(folder: Path, rows):
    for n in range(3):
        land(folder, rows[n::3], n, hour=f"2026-11-20T1{n}")
    watermark(folder, {"g0": EPOCH_US}, 0)
    return folder


def published(spark, folder, job, landing, shards=4, group_rows=None):
    """The rows published below `out`, and the counters."""
    path, counts = publish_whole(CORRELATION, [job], spark, landing, folder / "out", shards, group_rows)
    return pq.read_table(path.local), counts


def by_definition(rows, job):
    """(a, b) identities -> probability, from the fractions of the definition."""
    a, b = (t.to_pylist() for t in sides(rows, job))
    if job.key_equal:
        a, b = ([r for r in x if r["key"] is not None] for x in (a, b))
    stamped = [[(r["key"] if job.key_equal else None, (r["t_min"], r["t_max"])) for r in x] for x in (a, b)]
    pairs = reference_pairs(*stamped, job.condition.lo_us, job.condition.hi_us, job.condition.ct)
    return {(a[i]["gateway"], a[i]["seq"], b[j]["gateway"], b[j]["seq"]): float(p) for (i, j), p in pairs.items()}


DEEP = ("short", "sure")  # as "keyed" with other limits


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.deep] if x in DEEP else []) for x in sorted(RULES)]
)
def test_the_batch_job_is_the_kernel_is_the_definition(spark, tmp_path, name):
    """Slabs so small that pairs straddle their borders; same rows as the kernel at once, same pairs as the definition."""
    job, rows = rule(name), random_readings(seed=len(name), count=240)
    results, _ = published(spark, tmp_path, job, landed(tmp_path / "landing", rows), shards=2, group_rows=10)
    whole = correlate(job, *sides(rows, job))
    assert whole.num_rows > 20
    assert same_rows(results, whole)
    expected = by_definition(rows, job)
    got = {(r["a_gateway"], r["a_seq"], r["b_gateway"], r["b_seq"]): r["probability"] for r in results.to_pylist()}
    assert got.keys() == expected.keys()
    assert all(math.isclose(got[k], expected[k], abs_tol=1e-12) for k in got)


def test_stamps_at_the_ends_of_time_neither_overflow_nor_disturb(spark, tmp_path):
    """An unbounded clock and a date in 1677 are ordinary rows."""
    end = (1 << 63) - 1
    rows = [
        reading("g0", 0, "dock/tags", "x", -end - 1, end),
        reading("g0", 1, "dock/tags", "x", end, end),
        reading("g0", 2, "dock/tags", "x", -end - 1, -end - 1),
        reading("g0", 3, "dock/tags", "x", EPOCH_US, EPOCH_US),
        reading("g1", 0, "shelf/1", "x", end - 5, end),
        reading("g1", 1, "shelf/1", "x", -end - 1, -end),
        reading("g1", 2, "shelf/1", "x", EPOCH_US, EPOCH_US + 7),
    ]
    job = rule("keyed")
    results, _ = published(spark, tmp_path, job, landed(tmp_path / "landing", rows))
    assert sorted(zip(results["a_seq"].to_pylist(), results["b_seq"].to_pylist(), strict=True)) == [
        (1, 0),
        (2, 1),
        (3, 2),
    ]


def test_repeated_files_change_no_result_and_are_counted(spark, tmp_path):
    """A file landed three times: the same published rows, the repeats in the counts, copies in slabs not counted."""
    job, rows = rule("keyed"), random_readings(seed=7, count=120)
    landing = tmp_path / "landing"
    landed(landing, rows)
    for n in (10, 11):
        land(landing, rows[0::3], n)
    results, counts = published(spark, tmp_path, job, landing, group_rows=10)
    assert same_rows(results, correlate(job, *sides(rows, job)))

    def relevant(some):
        return sum(s.num_rows - s["key"].null_count for s in sides(some, job))

    assert total(counts)["repeats"] == 2 * relevant(rows[0::3])
    assert total(counts)["readings"] == relevant(rows) + 2 * relevant(rows[0::3])


def test_same_named_streams_of_two_sites_are_distinguished(spark, tmp_path):
    """AT SITE: readings of the hall against those of the yard, though gateway and stream have equal names."""
    rows = [reading("g0", n, "tags", "x", n, n, site=site) for n in range(3) for site in ("hall", "yard")]
    job = parse_rules("""
        STREAM h FROM "tags" AT SITE "hall" DELAY 1 s
        STREAM y FROM "tags" AT SITE "yard" DELAY 1 s
        RULE moved CORRELATE h AS a, y AS b WHERE |@a - @b| <= 0 s OVER 1
    """).rules[0]
    results, _ = published(spark, tmp_path, job, landed(tmp_path / "landing", rows))
    assert {(r["a_site"], r["b_site"], r["a_seq"] - r["b_seq"]) for r in results.to_pylist()} == {("hall", "yard", 0)}
    assert results.num_rows == 3


def test_readings_of_another_gateway_are_not_those_of_a_stream_with_an_owner(spark, tmp_path):
    """AT SITE ... GATEWAY: a gateway of the site and one of the same name elsewhere send readings with the stream's name."""
    places = [("hall", "dock-1"), ("hall", "evil"), ("yard", "dock-1")]
    rows = [reading(name, n, "dock/tags", "x", n, n, site=site) for n in range(3) for site, name in places]
    rows += [reading("door-1", n, "door/tags", "x", n, n) for n in range(3)]
    job = parse_rules("""
        STREAM dock FROM "dock/tags" AT SITE "hall" GATEWAY "dock-1" DELAY 1 s
        STREAM door FROM "door/+"    AT SITE "hall" GATEWAY "door-1" DELAY 1 s
        RULE handover CORRELATE dock AS a, door AS b WHERE |@a - @b| <= 0 s OVER 1
    """).rules[0]
    results, _ = published(spark, tmp_path, job, landed(tmp_path / "landing", rows))
    assert {(r["a_site"], r["a_gateway"]) for r in results.to_pylist()} == {("hall", "dock-1")}
    assert results.num_rows == 3


def test_a_landing_without_a_match_gives_an_empty_readable_result(spark, tmp_path):
    """No pair: a file with the schema and no rows."""
    landing = landed(tmp_path / "landing", [reading("g0", 0, "dock/tags", "x", 0, 0)] * 3)
    published(spark, tmp_path, rule("keyed"), landing)
    results = pq.read_table(tmp_path / "out")
    assert results.num_rows == 0
    assert "probability" in results.schema.names
