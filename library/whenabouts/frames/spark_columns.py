"""Probabilities as columns of Spark, classic and Connect, from timestamps or whole microseconds."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

WHOLE = ("tinyint", "smallint", "int", "bigint")


def probability(columns: "tuple[Column, ...]", lo: int, hi: int) -> "Column":
    """The probability that the times of two intervals, (begin, end) each, are from lo to hi microseconds apart."""
    from whenabouts_cloud.spark.probability_columns import between_probability

    a_min, a_max, b_min, b_max = (_microseconds(one) for one in columns)
    return between_probability(a_min, a_max, b_min, b_max, lo, hi).alias("probability")


def _microseconds(column: "Column") -> "Column":
    """Spark knows the type of a column only when it plans the query; these tests are constant there."""
    from pyspark.sql import functions as F

    kind = F.typeof(column)
    wrong = F.concat(F.lit("column: found "), kind, F.lit(", expected timestamps with a zone or whole microseconds"))
    return (
        F.when(kind == "timestamp", F.unix_micros(column.cast("timestamp")))
        .when(kind.isin(*WHOLE), column.cast("bigint"))
        .otherwise(F.raise_error(wrong))
    )
