"""Matches in a Spark frame, classic or Connect: rows of one key go to one task, which finds them as elsewhere.

The workers' Python needs this package.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from whenabouts.frames.kinds import FrameError, Given
from whenabouts.frames.rows import PROBABILITY
from whenabouts.frames.spark_pairs import in_task, known_session, quoted, with_times
from whenabouts.sequences.matching import Layout, matched
from whenabouts_cloud.language.pattern import Pattern

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def detected(side: Given, pattern: Pattern, layout: Layout) -> Any:
    """The matches as a frame with the columns of the layout. Wrong times raise when Spark computes them."""
    from pyspark.sql import functions as F

    known_session(side)
    if layout.key is None:
        raise FrameError(
            "pattern: found ACROSS KEYS, expected PER with the column of a key: Spark would take all rows to one task"
        )
    frame = side.native
    used = frame[quoted(layout.stream)].isin(list(layout.types)) & frame[quoted(layout.key)].isNotNull()
    timed = with_times(side._replace(native=frame.where(used)))

    def find(side: Given, low: Any, high: Any) -> Any:
        return matched(side, pattern, layout, low, high)

    return timed.repartition(F.col(quoted(layout.key))).mapInArrow(
        partial(in_task, find, "events"), _schema(side, layout)
    )


def _schema(side: Given, layout: Layout) -> "StructType":
    from pyspark.sql.types import DoubleType, StructField, StructType

    kinds = {field.name: field.dataType for field in side.native.schema.fields}
    fields = [] if layout.key is None else [StructField(layout.key, kinds[layout.key])]
    fields += [StructField(new, kinds[own]) for names in layout.names for own, new in names.items()]
    return StructType([*fields, StructField(PROBABILITY, DoubleType())])
