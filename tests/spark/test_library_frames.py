"""`wa.correlate` and `wa.interval` on Spark frames: the rows of every other kind."""

import datetime as dt
import random

import pyarrow as pa
import pytest

import whenabouts as wa
from whenabouts.frames.spark_pairs import HIGH, LOW

CONDITION = "|@a - @b| <= 7 us OVER 40 %"
BEGIN = dt.datetime(2026, 1, 1, 12)


def random_rows(seed, count=60):
    rng = random.Random(seed)
    for n in range(count):
        begin = rng.randint(0, 400)
        yield {
            "key": rng.choice(["x", "y", None]),
            "t_min": begin,
            "t_max": begin + rng.randint(0, 12),
            f"row{seed}": n,
        }


def test_pairs_are_those_of_arrow_tables(spark):
    """With a key and without; the same columns, the same probabilities."""
    a, b = (pa.Table.from_pylist(list(random_rows(seed))) for seed in (1, 2))
    for on in (None, "key"):
        wanted = wa.correlate(a, b, CONDITION, on=on)
        found = wa.correlate(
            spark.createDataFrame(a.to_pandas()), spark.createDataFrame(b.to_pandas()), CONDITION, on=on
        )
        assert found.columns == wanted.column_names
        assert not {LOW, HIGH} & set(found.columns)
        rows = sorted((row.asDict() for row in found.collect()), key=lambda row: (row["row1"], row["row2"]))
        assert len(rows) > 20
        for one, other in zip(rows, wanted.to_pylist(), strict=True):
            assert one.pop("probability") == pytest.approx(other.pop("probability"), abs=1e-12)
            assert one == other


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date"])
def test_times_of_all_types_are_utc(spark, kind):
    """Whatever the zone of the session is: a timestamp without a zone counts as UTC."""
    us = int((BEGIN - dt.datetime(1970, 1, 1)) / dt.timedelta(microseconds=1)) - (
        12 * 3_600_000_000 if kind == "date" else 0
    )
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        text = "2026-01-01 12:00:00" + ("Z" if kind == "timestamp" else "")
        frame = spark.createDataFrame([(text,)], "text string").selectExpr(f"cast(text AS {kind}) AS ts")
        number = spark.createDataFrame([(us,)], "ts bigint")
        assert wa.correlate(frame, number, "|@a - @b| <= 0 us OVER 100 %").count() == 1
        assert wa.correlate(number, frame, "|@a - @b| <= 0 us OVER 100 %").count() == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize(
    ("columns", "row", "text"),
    [
        ("t_min bigint", (None,), "a: found a null in t_min, expected a time in each row"),
        ("t_min bigint, t_max bigint", (5, 4), "a: found a row whose t_max is before its t_min"),
    ],
)
def test_rows_that_cannot_be_used_end_the_query(spark, columns, row, text):
    frame = spark.createDataFrame([row], columns)
    pairs = wa.correlate(frame, spark.createDataFrame([(5,)], "t_min bigint"), CONDITION)
    with pytest.raises(Exception, match=text):
        pairs.collect()


def test_wrong_types_and_columns_twice_are_refused_at_once(spark):
    with pytest.raises(wa.FrameError, match="a: found string in t_min, expected timestamps, dates or whole numbers"):
        wa.correlate(*[spark.createDataFrame([("now",)], "t_min string")] * 2, CONDITION)
    twice = spark.range(1).selectExpr("1 AS t_min", "2 AS t_min")
    with pytest.raises(wa.FrameError, match="a: found the column 't_min' twice"):
        wa.correlate(twice, twice, CONDITION)


def test_an_interval_is_made_of_a_timestamp(spark):
    frame = spark.createDataFrame([(BEGIN,)], "ts timestamp_ntz")
    [row] = wa.interval(frame, error="0.5 s").collect()
    assert (row.t_min, row.t_max) == (BEGIN - dt.timedelta(seconds=0.5), BEGIN + dt.timedelta(seconds=0.5))
