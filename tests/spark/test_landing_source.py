"""The landing as a data source of Spark: what it reads, in pieces and by conditions, from a folder and from a bucket."""

import time

import pytest

from support.cloud.landing import EPOCH_US, land, reading
from support.cloud.parts import Part
from whenabouts_cloud.landing.compaction import compact
from whenabouts_cloud.landing.schema import SCHEMA
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.spark import LandingSource


@pytest.fixture(scope="module")
def source(spark):
    spark.dataSource.register(LandingSource)
    return spark


@pytest.fixture(params=["folder", "bucket"])
def landing(request, tmp_path):
    """A landing of two ingests, its URI, and the seq of its readings."""
    expected = two_ingests(tmp_path / "l")
    if request.param == "folder":
        return str(tmp_path / "l"), expected
    return copied(tmp_path / "l", f"{request.getfixturevalue('bucket')}/{tmp_path.name}"), expected


def copied(folder, uri):
    """Put the files of a folder into a bucket."""
    store = Store.at(uri)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            store.write(path.relative_to(folder).as_posix(), path.read_bytes())
    return uri


def two_ingests(folder):
    """A landing of two parts with merged files; returns the seq of its readings."""
    parts = [Part(folder, "g0"), Part(folder / "ingest=b", "g1")]
    for n in range(12):
        for part in parts:
            part.data()
            part.frontier()
        if n == 5:
            parts[0].merge(3, 8)
        if n == 7:
            parts[0].clear()
            parts[1].hour += 1
    return sorted(parts[0].readings + parts[1].readings)


def test_a_batch_reads_all_parts_and_merged_files_once(source, landing):
    """The columns are those of the landing."""
    uri, expected = landing
    frame = source.read.format("whenabouts").load(uri)
    assert frame.columns == SCHEMA.names
    assert sorted(row.seq for row in frame.select("seq").collect()) == expected
    assert frame.where("gateway = 'g1'").count() == len(expected) // 2


@pytest.fixture
def pushing(source):
    """A session that hands conditions over."""
    source.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield source
    source.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_conditions_are_applied_while_files_are_read(pushing, tmp_path):
    """Streams, sites, times; null values; what cannot be handed over is applied by Spark."""
    rows = [
        reading("g", n, f"s{n % 3}", None if n % 5 == 0 else f"k{n}", EPOCH_US + n, EPOCH_US + n, site=f"site{n % 2}")
        for n in range(40)
    ]
    for n in range(4):
        land(tmp_path, rows[n::4])
    frame = pushing.read.format("whenabouts").option("filterPushdown", "true").load(str(tmp_path))
    for text, holds in {
        "stream = 's1'": lambda r: r["stream"] == "s1",
        "stream in ('s1', 's2') and site = 'site1'": lambda r: r["stream"] != "s0" and r["site"] == "site1",
        f"t_min >= {EPOCH_US + 30} and t_max < {EPOCH_US + 33}": lambda r: 30 <= r["seq"] < 33,
        "key is null": lambda r: r["key"] is None,
        "key > 'k3' and not (stream = 's0')": lambda r: (r["key"] or "") > "k3" and r["stream"] != "s0",
        "value = '7'": lambda r: False,
    }.items():
        found = sorted(row.seq for row in frame.where(text).select("seq").collect())
        assert found == [r["seq"] for r in rows if holds(r)], text


@pytest.mark.parametrize("stream", [False, True])
def test_streams_and_sites_are_chosen(source, tmp_path, stream):
    """By names and by patterns of rules, in a batch and in a stream."""
    names = ["dock/tags", "shelf/1", "shelf/1/2", "shelf", "till\n", "till"]
    rows = [reading("g", n, name, "k", 1, 1, site=f"site{n % 2}") for n, name in enumerate([*names, *names[1:]])]
    land(tmp_path / "l", rows)
    reader = (source.readStream if stream else source.read).format("whenabouts").schema("seq long")
    frame = reader.option("streams", "dock/tags, shelf/#,till").option("sites", "site0").load(str(tmp_path / "l"))
    if stream:
        query = frame.writeStream.format("memory").queryName("chosen").start()
        query.processAllAvailable()
        query.stop()
        frame = source.table("chosen")
    whole = {"dock/tags", "shelf/1", "shelf/1/2", "shelf", "till"}
    chosen = [r["seq"] for r in rows if r["site"] == "site0" and r["stream"] in whole]
    assert sorted(r.seq for r in frame.collect()) == chosen


def test_hours_of_arrival_and_columns_are_chosen(source, tmp_path):
    """Files of other hours are not opened: here they are damaged."""
    for hour in range(5):
        land(tmp_path, [reading("g", hour, "s", "k", EPOCH_US, EPOCH_US)], hour=f"2026-11-20T{hour:02d}")
    for hour in (0, 4):
        next((tmp_path / f"hour=2026-11-20T{hour:02d}").iterdir()).write_bytes(b"damaged")

    def load(**options):
        return source.read.format("whenabouts").schema("seq long, stream string").options(**options).load(str(tmp_path))

    chosen = load(hours="2026-11-20T01..2026-11-20T03")
    assert sorted(tuple(row) for row in chosen.collect()) == [(1, "s"), (2, "s"), (3, "s")]
    with pytest.raises(Exception, match="hours: found 'today', expected hours of arrival"):
        load(hours="today").collect()
    with pytest.raises(Exception, match="found no whole Parquet file"):
        load().collect()


def test_a_stream_reads_each_reading_once_through_restarts(source, tmp_path, landing):
    """In pieces of few bytes; the checkpoint holds numbers, no names of files."""
    uri, expected = landing
    seen, sizes = [], []

    def take(frame, number):
        rows = [row.seq for row in frame.collect()]
        seen.extend(rows)
        sizes.append(len(rows))

    def run():
        stream = (
            source.readStream.format("whenabouts").schema("seq long").option("maxBytesPerTrigger", "20000").load(uri)
        )
        query = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "c")).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    run()
    assert sorted(seen) == expected
    assert len(sizes) > 1
    run()
    assert len(seen) == len(expected)
    offset = max((tmp_path / "c/offsets").glob("[0-9]*"), key=lambda file: int(file.name)).read_text()
    assert "parquet" not in offset
    if uri.startswith("/"):
        land(tmp_path / "l" / "ingest=new", [reading("g", 7777, "s", "k", 1, 1)])
        run()
        assert sorted(seen) == sorted([*expected, 7777])


def test_a_stream_goes_on_while_the_hours_that_it_reads_are_merged_and_deleted(source, tmp_path):
    """It stops in the middle of an hour, whose rest it finds in a merged file; then the originals are gone."""
    part, seen = Part(tmp_path / "l"), []

    def run():
        frame = source.readStream.format("whenabouts").schema("seq long").load(str(tmp_path / "l"))
        take = frame.writeStream.foreachBatch(lambda some, _: seen.extend(row.seq for row in some.collect()))
        query = take.option("checkpointLocation", str(tmp_path / "c")).start()
        query.processAllAvailable()
        query.stop()

    for grace_ns in (10**15, 0):
        for _ in range(3):
            part.data()
        run()
        part.data()
        part.frontier()
        part.data()
        part.hour += 1
        part.data()
        compact(Store.at(tmp_path / "l"), time.time_ns() + 10**12, grace_ns)
        run()
    compact(Store.at(tmp_path / "l"), time.time_ns() + 10**12, 0)
    part.data()
    run()
    assert sorted(seen) == sorted(part.readings)
    assert [len(list(hour.iterdir())) for hour in sorted((tmp_path / "l").glob("hour=*"))][:2] == [1, 1]
