"""Every predicate and kind of result in batch and streaming, skewed keys, side output of late readings; other joins."""

import dataclasses

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from property.correlation.test_online import as_pairs
from spark.cases import MS, random_readings, rule, same_rows, sides
from support.cloud.landing import EPOCH_US, land, reading, watermark
from whenabouts_cloud.correlation import Condition
from whenabouts_cloud.correlation.batch import api
from whenabouts_cloud.correlation.pairs import correlate
from whenabouts_cloud.jobs.batch import publish_whole
from whenabouts_cloud.jobs.engines.correlate import CORRELATION
from whenabouts_cloud.jobs.metrics import total
from whenabouts_cloud.jobs.streaming import start_query
from whenabouts_cloud.jobs.work import QueryOptions
from whenabouts_cloud.spark.native import timing_join
from whenabouts_cloud.spark.sorted_files import Columns, DisorderError, correlate_files

FOREVER_US = EPOCH_US + 10**9
GATEWAYS = ["g0", "g1", "g2", "g3", "g4"]
STREAMS = ("dock/tags", "shelf/1", "shelf/2/left", "shelf")


def job(condition, *, offset_us=0, keyed=True, **more):
    """A rule over dock and shelves with shelf stamps moved by the offset."""
    base = rule("keyed", delay=more.pop("delay", "1 h"))
    shelf = dataclasses.replace(base.b, offset_us=offset_us)
    return dataclasses.replace(base, b=shelf, condition=condition, key_equal=keyed, **more)


JOBS = {
    "follows, left": job(Condition("between", lo=100 * MS, hi=900 * MS, confidence="0.7"), kind="left"),
    "deadline, anti": job(Condition("deadline", d=50 * MS, window=400 * MS, confidence="0.8"), kind="anti"),
    "delay, nearest, offset": job(
        Condition("delay", d=0, window=300 * MS, confidence="0.3"), offset_us=-3_600_000_000, top_k=1
    ),
    "keyless, left, two best": job(Condition("within", d=20 * MS, confidence="0.5"), keyed=False, kind="left", top_k=2),
}


def moved(rows, some):
    """The rows with shelf readings where the rule's offset brings them back."""
    shift = some.b.offset_us
    return [
        r | {"t_min": r["t_min"] - shift, "t_max": r["t_max"] - shift} if r["stream"].startswith("shelf") else r
        for r in rows
    ]


@pytest.mark.parametrize("name", sorted(JOBS))
def test_the_batch_job_emits_what_the_kernel_emits(spark, tmp_path, name):
    """Slabs of ten readings: unmatched readings and best pairs are those of the whole."""
    some = JOBS[name]
    rows = moved(random_readings(seed=len(name), count=200), some)
    for n in range(2):
        land(tmp_path / "landing", rows[n::2], n)
    folder, _ = publish_whole(CORRELATION, [some], spark, tmp_path / "landing", tmp_path / "out", 2, group_rows=10)
    results = pq.read_table(folder.local)
    whole = correlate(some, *sides(rows, some))
    assert whole.num_rows > 5
    assert same_rows(results, whole)


def test_a_key_that_all_carry_is_divided_by_time(spark, tmp_path):
    """One hot key and a burst: no group has many more readings than wanted, and nothing is lost."""
    rows = [
        r | {"key": "hot"} for r in random_readings(seed=8, count=400, span_ms=60_000) if r["stream"] != "gate/tags"
    ]
    land(tmp_path / "landing", rows, 0)
    some = job(Condition("within", d=20 * MS, confidence="0.8"))
    folder, counts = publish_whole(CORRELATION, [some], spark, tmp_path / "landing", tmp_path / "out", 4, group_rows=20)
    assert max(one["readings"] for one in counts) <= 60
    assert same_rows(pq.read_table(folder.local), correlate(some, *sides(rows, some)))


STREAMED = {
    "nearest or none, offset": dataclasses.replace(JOBS["delay, nearest, offset"], kind="left"),
    **{name: JOBS[name] for name in ("follows, left", "delay, nearest, offset")},
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.deep] if x in JOBS else []) for x in STREAMED],
)
def test_the_stream_emits_what_the_batch_emits_through_a_restart(spark, tmp_path, name):
    """Unmatched readings and best pairs are emitted when they are certain, once, and all of them by the end of time."""
    some, landing, out, counts = STREAMED[name], tmp_path / "landing", tmp_path / "out", []
    rows = moved(random_readings(seed=12, count=150), some)
    watermark(landing, dict.fromkeys(GATEWAYS, EPOCH_US - 10**10), 0, STREAMS)

    def start():
        return start_query(
            CORRELATION, {0: some}, spark, QueryOptions(landing, out, 2, 0.0), lambda *x: counts.extend(x[2])
        )

    query = start()
    try:
        for n in range(2):
            land(landing, rows[n::2], n)
            query.processAllAvailable()
        query.stop()
        query = start()
        for n in (1, 2):
            watermark(landing, dict.fromkeys(GATEWAYS, FOREVER_US + 10**10 + n), n, STREAMS)
            query.processAllAvailable()
    finally:
        query.stop()
    assert same_rows(pq.read_table(out), correlate(some, *sides(rows, some)))
    assert not (out / "_late").exists()
    assert sum({one["shard"]: one["rows_kept"] for one in counts}.values()) == 0


def test_late_readings_go_to_the_side_output_beside_the_result(spark, tmp_path):
    """An unmatched reading is emitted, then its match comes too late: the result stands, the late one is in _late."""
    some = job(Condition("within", d=10 * MS, confidence="0.8"), kind="left", delay="100 ms")
    landing, out, counts = tmp_path / "landing", tmp_path / "out", []
    land(landing, [reading("g0", 0, "dock/tags", "x", EPOCH_US, EPOCH_US + 1)], 0)
    watermark(landing, {"g0": EPOCH_US, "g1": EPOCH_US}, 0, STREAMS)
    query = start_query(
        CORRELATION, {0: some}, spark, QueryOptions(landing, out, 1, 0.0), lambda *x: counts.extend(x[2])
    )
    try:
        query.processAllAvailable()
        for n in (1, 2):
            watermark(landing, {"g0": EPOCH_US + 500 * MS + n, "g1": EPOCH_US + 500 * MS + n}, n, STREAMS)
            query.processAllAvailable()
        late = reading("g1", (1 << 60) + 1, "shelf/1", "x", EPOCH_US, EPOCH_US)
        land(landing, [late], 1)
        query.processAllAvailable()
    finally:
        query.stop()
    assert as_pairs(pq.read_table(out)) == {(("g0", 0), None): None}
    [aside] = pq.read_table(out / "_late").to_pylist()
    assert aside["reason"] in ("late b", "expired b")
    assert {
        name: late[name] for name in ("site", "gateway", "seq", "stream", "key", "t_min", "t_max")
    }.items() <= aside.items()
    assert total(counts)["late"] == 1
    assert total(counts)["unmatched"] == 1


@pytest.fixture
def files(tmp_path):
    """Two sides in files ordered by time, with small row groups; also as arrays."""
    tables = []
    for n, side in enumerate("ab"):
        rows = sorted(random_readings(seed=50 + n, count=300), key=lambda r: r["t_min"])
        table = pa.table({"id": list(range(300)), **{x: [r[x] for r in rows] for x in ("key", "t_min", "t_max")}})
        for part in range(2):
            pq.write_table(table.slice(part * 150, 150), tmp_path / f"{side}{part}.parquet", row_group_size=20)
        tables.append(table)
    return [[str(tmp_path / f"{side}{part}.parquet") for part in range(2)] for side in "ab"], tables


@pytest.mark.parametrize("keyed", [True, False])
def test_slabs_of_files_and_buckets_of_frames_give_the_pairs_of_the_kernel(spark, files, keyed):
    """A lopsided window, borders through everything: each pair once, with its probability."""
    (a, b), tables = files
    condition = Condition("between", lo=-50 * MS, hi=200 * MS, confidence="0.8")
    ends = (side[name].to_numpy() for side in tables for name in ("t_min", "t_max"))
    keys = [side["key"].to_pylist() for side in tables] if keyed else [None, None]
    i, j, p = api.correlate(*ends, condition, *keys, probability=True)
    expected = {(x, y): q for x, y, q in zip(i.tolist(), j.tolist(), p.tolist(), strict=True)}
    assert len(expected) > 100
    slabs = correlate_files(spark, a, b, condition, Columns(key="key" if keyed else None, carry=("id",)), slab_rows=40)
    frames = [spark.read.parquet(*side) for side in (a, b)]
    buckets = timing_join(*frames, condition, keys=("key",) if keyed else ())
    for frame in (slabs, buckets):
        joined = [tuple(row) for row in frame.select("a_id", "b_id", "probability").collect()]
        assert len(joined) == len(expected)
        assert {row[:2]: row[2] for row in joined} == pytest.approx(expected, abs=1e-12)


def test_files_in_disorder_are_refused(spark, tmp_path):
    """Row groups that all span everything would be read by every slab."""
    table = pa.table({"t_min": [0, 10**9] * 200, "t_max": [0, 10**9] * 200})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=20)
    paths = [str(tmp_path / "x.parquet")]
    with pytest.raises(DisorderError, match="sort them"):
        correlate_files(spark, paths, paths, Condition("within", d=5, confidence="0.8"), slab_rows=20)
