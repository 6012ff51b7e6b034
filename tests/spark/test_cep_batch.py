"""The batch job finds the matches of the definition, however the landing is divided."""

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from support.cep.landing import (
    CAUSAL,
    GATEWAYS,
    RULES,
    as_matches,
    causal_expected,
    causal_readings,
    expected,
    random_readings,
    rule,
)
from support.cloud.landing import EPOCH_US, land, reading, watermark
from whenabouts_cloud.jobs.batch import publish_whole
from whenabouts_cloud.jobs.engines.cep import CEP
from whenabouts_cloud.jobs.metrics import total


def landed(folder, rows, files=3):
    """Rows spread over files of three hours, and a watermark."""
    for n in range(files):
        land(folder, rows[n::files], n, hour=f"2026-11-20T1{n}")
    watermark(folder, dict.fromkeys(GATEWAYS, EPOCH_US), 0)
    return folder


def published(spark, folder, job, landing, shards=4, group_rows=None):
    """The folder below `out`, and the counters."""
    place, counts = publish_whole(CEP, [job], spark, landing, folder / "out", shards, group_rows)
    return place.local, counts


DEEP = ("leading, strict",)  # cut as "inner" is, with the same kind of window


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.deep] if x in DEEP else []) for x in sorted(RULES)]
)
def test_the_batch_job_is_the_definition_however_small_the_groups(spark, tmp_path, name):
    """Two shards, slabs of a few dozen events wherever a window bounds the rule; attributes read by Spark from JSON."""
    job, rows = rule(name), random_readings(seed=len(name), count=160, span_ms=3000)
    landing = landed(tmp_path / "landing", rows)
    folder, counts = published(spark, tmp_path, job, landing, shards=2, group_rows=30)
    wanted = expected(job, rows)
    assert len(wanted) > 3
    assert as_matches(pq.read_table(folder)) == wanted
    if name in ("inner", "trailing", "across", "repeated"):
        assert len(counts) > 2, "shards were cut in time"
    assert len({one["shard"] for one in counts}) == len(counts), "each group has a number of its own"
    if name == "inner":
        folder, _ = published(spark, tmp_path, job, landing, shards=3)
        assert as_matches(pq.read_table(folder)) == wanted


def test_rules_of_a_job_share_one_pass_and_are_cut_each_for_itself(spark, tmp_path):
    """Three rules, of which one has a small window, one is for all keys, and one cannot be cut in time."""
    names, rows = ("inner", "across", "skip"), random_readings(seed=4, count=160, span_ms=3000)
    jobs = [replace(rule(name), name=name) for name in names]
    landing = landed(tmp_path / "landing", rows)
    place, counts = publish_whole(CEP, jobs, spark, landing, tmp_path / "out", 2, 30)
    found = pq.read_table(place.local)
    for name in names:
        assert as_matches(found.filter(pc.equal(found["rule"], name))) == expected(rule(name), rows)
    groups = Counter(one["rule"] for one in counts)
    assert groups["inner"] > 2
    assert groups["across"] > 1
    assert groups["skip"] <= 2, "a group for each shard with events"


def test_causal_order_is_what_gateways_knew(spark, tmp_path):
    """Views come from state readings of the landing, which the rule's streams do not cover."""
    rows, facts = causal_readings(seed=5, steps=300)
    job, wanted = rule(CAUSAL, length="40 ms"), causal_expected(rows, facts)
    landing = landed(tmp_path / "landing", rows)
    file, counts = published(spark, tmp_path, job, landing, shards=2, group_rows=30)
    assert len(wanted) > 10
    assert as_matches(pq.read_table(file)) == wanted
    assert total(counts)["ungrouped"] == sum(r["gateway"] == "g3" and r["key"] is not None for r in rows)
    assert {name for one in counts for name in one["ungrouped_at"]} == {"hall/g3"}


def test_repeated_files_change_no_result_and_are_counted_once(spark, tmp_path):
    """A file landed three times; copies in neighbouring slabs are neither repeats nor readings."""
    job, rows = rule("inner"), random_readings(seed=7, count=150, span_ms=3000)
    landed(tmp_path / "landing", rows)
    for n in (10, 11):
        land(tmp_path / "landing", rows[0::3], n)
    file, counts = published(spark, tmp_path, job, tmp_path / "landing", shards=2, group_rows=30)

    def relevant(some):
        return sum(
            any(s.matches(r["site"], r["gateway"], r["stream"]) for s in job.streams)
            and r["key"] is not None
            and r["kind"] not in ("gap", "absent")
            for r in some
        )

    assert len(counts) > 2
    assert len(list(file.glob("part-*"))) == 1, "few rows of many groups are one part"
    matches = pq.read_table(file)
    assert as_matches(matches) == expected(job, rows)
    assert total(counts)["readings"] == relevant(rows)
    assert total(counts)["repeats"] == 2 * relevant(rows[0::3])
    assert total(counts)["matches"] == matches.num_rows


def test_stamps_at_the_ends_of_time_neither_overflow_nor_disturb(spark, tmp_path):
    """An unbounded clock, and a date in 1677."""
    end = (1 << 63) - 1
    rows = [
        reading("g0", 0, "shelf/1", "x", -end - 1, end),
        reading("g0", 1, "exit/tags", "x", end, end),
        reading("g0", 2, "shelf/1", "x", -end - 1, -end - 1),
        reading("g0", 3, "shelf/1", "x", EPOCH_US, EPOCH_US),
        reading("g1", 0, "exit/tags", "x", EPOCH_US + 7, EPOCH_US + 7),
    ]
    file, counts = published(spark, tmp_path, rule("inner"), landed(tmp_path / "landing", rows))
    assert as_matches(pq.read_table(file)) == {(("a", "g0", 3), ("e", "g1", 0))}
    assert total(counts)["beyond_time"] == 3


def test_a_landing_without_a_match_gives_an_empty_readable_result(spark, tmp_path):
    """No match: a file with the schema and no rows."""
    landing = landed(tmp_path / "landing", [reading("g0", 0, "shelf/1", "x", 0, 0)] * 3)
    published(spark, tmp_path, rule("inner"), landing)
    matches = pq.read_table(tmp_path / "out")
    assert matches.num_rows == 0
    assert pa.types.is_list(matches.schema.field("events").type)
