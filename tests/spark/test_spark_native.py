"""The join in Spark's own operators equals the kernel: short conditions and long ones, points, ties, stamps around zero."""

import random

import pyarrow as pa
import pytest

from whenabouts_cloud.correlation import Condition
from whenabouts_cloud.correlation.batch import api
from whenabouts_cloud.spark.native import timing_join

HOUR = 3_600_000_000
CONDITIONS = {
    "within": (1, Condition("within", d=12, confidence="0.8")),
    "no wider than the intervals": (1, Condition("within", d=3, confidence="0.25")),
    "an instant": (1, Condition("within", d=0, confidence="1")),
    "a tie at one half, lopsided": (1, Condition("between", lo=-4, hi=20, confidence="0.5")),
    "beyond 64 bits": (HOUR, Condition("within", d=12 * HOUR, confidence="0.8")),
    "beyond 64 bits, small confidence": (HOUR, Condition("between", lo=-HOUR, hi=4 * HOUR, confidence="0.333333")),
}


def table_of(rows):
    """As Arrow, which Spark takes without a worker."""
    columns = [pa.array(x, pa.int64()) for x in zip(*rows, strict=True)]
    return pa.table(columns, names=["id", "t_min", "t_max"])


DEEP = ("beyond 64 bits",)  # the rule with a small confidence is such a one too


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.deep] if x in DEEP else []) for x in sorted(CONDITIONS)]
)
def test_buckets_give_each_pair_of_the_kernel_once_with_its_probability(spark, name):
    """Readings on a coarse grid on both sides of zero, a third of them points: the pairs, and nothing twice."""
    scale, condition = CONDITIONS[name]
    rng, sides = random.Random(name), []
    for _ in "ab":
        starts = [rng.randint(-150, 150) * scale for _ in range(150)]
        sides.append([(n, t, t + rng.choice([0, 0, 1, 2, 6, 20]) * scale) for n, t in enumerate(starts)])
    a, b = (spark.createDataFrame(table_of(side)) for side in sides)
    ends = ([row[k] for row in side] for side in sides for k in (1, 2))
    i, j, p = api.correlate(*ends, condition, probability=True)
    expected = {(x, y): q for x, y, q in zip(i.tolist(), j.tolist(), p.tolist(), strict=True)}
    joined = [tuple(row) for row in timing_join(a, b, condition).select("a_id", "b_id", "probability").collect()]
    assert len(expected) > 5
    assert len(joined) == len(expected)
    assert {row[:2]: row[2] for row in joined} == pytest.approx(expected, abs=1e-12)


def test_a_condition_too_wide_for_64_bits_is_refused(spark):
    """Before anything runs, with advice."""
    frame = spark.createDataFrame(table_of([(0, 0, 1)]))
    with pytest.raises(ValueError, match="narrower limits or a higher confidence"):
        timing_join(frame, frame, Condition("within", d=1 << 59, confidence="0.01"))
