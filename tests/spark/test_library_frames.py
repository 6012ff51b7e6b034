"""The functions of `whenabouts` on Spark frames: the rows of every other kind.

Behind them are `whenabouts.sequences.spark_matches`, `whenabouts.states.spark_verdicts`, `whenabouts.frames.spark_columns`.
"""

import datetime as dt
import random

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

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


SEQUENCE = "SEQ(shelf a, !till c, exit{1,2} e) WITHIN 150 us PER tag WHERE a.n < e.n"


def events(seed, count=80):
    rng = random.Random(seed)
    return pa.table({
        "stream": pa.array([rng.choice(["shelf", "till", "exit", "other", None]) for _ in range(count)], pa.string()),
        "tag": pa.array([rng.choice(["x", "y", "z", None]) for _ in range(count)], pa.string()),
        "t_min": (begins := [rng.randint(0, 300) for _ in range(count)]),
        "t_max": [begin + rng.randint(0, 6) for begin in begins],
        "n": list(range(count)),
    })  # fmt: skip


def test_matches_are_those_of_arrow_tables(spark):
    """The same columns and rows, nulls too, whichever partitions the rows are in."""
    rows = events(3)
    for pattern in [SEQUENCE.replace(" WHERE", f" {mode} WHERE") for mode in ("OVER 60 %", "POSSIBLE")]:
        wanted = wa.detect(rows, pattern)
        found = wa.detect(spark.createDataFrame(rows).repartition(4), pattern)
        assert found.columns == wanted.column_names
        assert len(wanted) > 5
        assert sorted(map(repr, (row.asDict() for row in found.collect()))) == sorted(map(repr, wanted.to_pylist()))


def test_verdicts_are_those_of_arrow_tables(spark):
    """The states of a group are decided together."""
    rng = random.Random(5)
    rows = pa.table({
        "room": [rng.choice(["x", "y"]) for _ in range(40)], "stream": [rng.choice(["dock", "door"]) for _ in range(40)],
        "t_min": (begins := rng.sample(range(400), 40)), "t_max": [begin + rng.randint(0, 9) for begin in begins],
        "on": [rng.random() < 0.6 for _ in range(40)],
    })  # fmt: skip
    for verdict in ("DEFINITELY dock.on AND door.on", "POSSIBLY dock.on AND NOT door.on"):
        wanted = wa.verdicts(rows, verdict, group="room")
        found = wa.verdicts(spark.createDataFrame(rows), verdict, group="room")
        assert found.columns == wanted.column_names
        assert len(wanted) > 3
        assert sorted(map(repr, (row.asDict() for row in found.collect()))) == sorted(map(repr, wanted.to_pylist()))


def test_what_would_take_all_rows_to_one_task_is_refused(spark):
    frame = spark.createDataFrame([("shelf", 5)], "stream string, ts bigint")
    with pytest.raises(wa.FrameError, match="found ACROSS KEYS, expected PER with the column of a key"):
        wa.detect(frame, "SEQ(shelf, exit) WITHIN 1 h ACROSS KEYS")
    with pytest.raises(wa.FrameError, match="group: found none, expected a column whose states belong together"):
        wa.verdicts(frame, "POSSIBLY shelf.ts")
    wrong = spark.createDataFrame([("shelf", "x", None)], "stream string, key string, ts bigint")
    with pytest.raises(Exception, match="events: found a null in ts, expected a time in each row"):
        wa.detect(wrong, "SEQ(shelf, exit) WITHIN 1 h").collect()


def test_probabilities_of_columns_are_those_of_arrays(spark):
    """From whole microseconds and from timestamps; other types end the query."""
    rng = random.Random(7)
    names = ["a_min", "a_max", "b_min", "b_max"]
    rows = pa.table({name: [rng.randint(0, 20) for _ in range(50)] for name in names})
    wanted = wa.within_probability(*[rows[name] for name in names], "5 us").to_pylist()
    frame = spark.createDataFrame(rows)
    micros = [F.timestamp_micros(F.col(name)) for name in names]
    for columns in (list(map(F.col, names)), micros):
        found = frame.select(wa.within_probability(*columns, "5 us")).collect()
        assert [row.probability for row in found] == [
            one if one is None else pytest.approx(one, abs=1e-12) for one in wanted
        ]
    assert None in wanted
    with pytest.raises(Exception, match="column: found string, expected timestamps with a zone or whole microseconds"):
        frame.select(wa.within_probability(*[F.col(name).cast("string") for name in names], 5)).collect()
