"""The native columns equal the Python functions, on rows where points, ties, epoch-sized and endless stamps are ordinary."""

import os
import random
import subprocess
import sys
from fractions import Fraction

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from support.cloud.landing import EPOCH_US
from support.search import examples
from whenabouts_cloud.spark import (
    between_at_least,
    between_probability,
    deadline_at_least,
    deadline_probability,
    delay_at_least,
    delay_probability,
    within_at_least,
    within_probability,
)
from whenabouts_protocol import ratio_between, ratio_deadline, ratio_delay, ratio_within

STAMPS = ("a_min", "a_max", "b_min", "b_max")
ENDS = [-(1 << 63), (1 << 63) - 1]


def random_rows(seed, count):
    """Small numbers, where ties abound, moved to the epoch, to far away, scaled to hours, and now and then to the ends."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        scale = rng.choice([1, 1, 1, 1000, 3_600_000_000])
        base = rng.choice([0, EPOCH_US, -EPOCH_US, 1 << 61])
        a_min, b_min, d, lo = (rng.randint(-12, 12) * scale for _ in range(4))
        a_len, b_len = (rng.choice([0, 0, 1, 2, 5, 9]) * scale for _ in range(2))
        hi = lo + rng.randint(-2, 14) * scale
        stamps = [base + x for x in (a_min, a_min + a_len, b_min, b_min + b_len)]
        if rng.random() < 0.03:
            stamps = [ENDS[0], rng.choice(ENDS), rng.choice([EPOCH_US, ENDS[1]]), ENDS[1]]
        rows.append((*stamps, d, lo, hi))
    return rows


def expected(row):
    """Within, deadline, delay, between by the integers of the protocol package."""
    *stamps, d, lo, hi = row
    ratios = (
        ratio_within(*stamps, d),
        ratio_deadline(*stamps, d),
        ratio_delay(*stamps, d),
        ratio_between(*stamps, lo, hi),
    )
    return [Fraction(*ratio) for ratio in ratios]


@pytest.mark.parametrize(
    ("ansi", "confidences"),
    [(True, ("0.5", "1", "0.8", "0.333333")), (False, ("1", "0.8", "0.000000000001", "0.5"))],
)
def test_random_rows_equal_the_python_functions(spark, ansi, confidences):
    """Probabilities to 1e-12 and every decision exactly, with ANSI mode and without, limits from columns."""
    rows = random_rows(seed=31, count=examples(3000))
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    columns = [range(len(rows)), *zip(*rows, strict=True)]
    table = pa.table([pa.array(x, pa.int64()) for x in columns], names=["n", *STAMPS, "d", "lo", "hi"])
    frame = spark.createDataFrame(table).coalesce(1)
    probabilities = F.array(
        within_probability(*STAMPS, "d"),
        deadline_probability(*STAMPS, "d"),
        delay_probability(*STAMPS, F.col("d")),
        between_probability(*map(F.col, STAMPS), "lo", F.col("hi")),
    )
    decisions = F.array(
        within_at_least(*STAMPS, "d", confidences[0]),
        deadline_at_least(*STAMPS, "d", confidences[1]),
        delay_at_least(*STAMPS, "d", confidences[2]),
        between_at_least(*STAMPS, "lo", "hi", confidences[3]),
    )
    try:
        collected = frame.select("n", probabilities, decisions).collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert len(collected) == len(rows)
    ties = 0
    for n, shares, decided in collected:
        exact = expected(rows[n])
        assert shares == pytest.approx([float(x) for x in exact], abs=1e-12), rows[n]
        assert decided == [x >= Fraction(ct) for x, ct in zip(exact, confidences, strict=True)], rows[n]
        ties += sum(x == Fraction(ct) for x, ct in zip(exact, confidences, strict=True))
    assert ties > len(rows) // 10


def test_a_tie_that_doubles_would_miss_is_in(spark):
    """Lengths of hours, confidences of twelve decimals just below the probability and just above: decided by integers."""
    hour = 3_600_000_000
    d = 4 * hour
    exact = Fraction(*ratio_within(0, 3 * hour, hour, 8 * hour, d))
    ct = Fraction(int(exact * 10**12), 10**12)  # less than 1e-12 below, or the same
    above = ct + Fraction(1, 10**12)
    frame = spark.range(1).select(
        within_at_least(*(F.lit(x) for x in (0, 3 * hour, hour, 8 * hour)), d, ct),
        within_at_least(*(F.lit(x) for x in (0, 3 * hour, hour, 8 * hour)), d, above),
    )
    assert tuple(frame.first()) == (True, False)


def test_a_row_without_a_whole_stamp_gives_null(spark):
    """Nulls and an interval that ends before it begins."""
    rows = [(0, None, 0, 1), (5, 4, 0, 1)]
    columns = [pa.array(x, pa.int64()) for x in zip(*rows, strict=True)]
    frame = spark.createDataFrame(pa.table(columns, names=STAMPS)).coalesce(1)
    collected = frame.select(within_probability(*STAMPS, 3), within_at_least(*STAMPS, 3, "0.5")).collect()
    assert [tuple(row) for row in collected] == [(None, None)] * 2


def test_the_plan_holds_no_python(spark):
    """Generated code only."""
    frame = spark.range(10).select(within_at_least("id", "id", F.lit(3), F.lit(4), 2, "0.8"))
    assert "Python" not in frame._jdf.queryExecution().toString()


def test_importing_the_package_imports_no_pyspark():
    """A program that only names the package stays light; a name that is not there is an error as ever."""
    code = (
        "import sys, whenabouts_cloud.spark as s; assert 'pyspark' not in sys.modules; "
        "assert 'within_probability' in s.__all__; s.within_probability; assert 'pyspark' in sys.modules; s.nonsense"
    )
    env = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "has no attribute 'nonsense'" in done.stderr
