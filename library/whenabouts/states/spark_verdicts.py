"""Verdicts in a Spark frame, classic or Connect: the states of a group go to one task, which decides as elsewhere.

The workers' Python needs this package.
"""

from functools import partial
from typing import Any

from whenabouts.frames.kinds import FrameError, Given
from whenabouts.frames.rows import PROBABILITY
from whenabouts.frames.spark_pairs import in_task, known_session, quoted, with_times
from whenabouts.states.answer import Layout, answered
from whenabouts_cloud.rules.states import Verdict


def decided(side: Given, verdict: Verdict, layout: Layout) -> Any:
    """The verdicts as a frame with the columns of the layout. Wrong times raise when Spark computes them."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import DoubleType, StructField, StructType

    known_session(side)
    question = layout.question
    if question.group is None:
        raise FrameError(
            "group: found none, expected a column whose states belong together: Spark would take all rows to one task"
        )
    frame = side.native
    used = frame[quoted(question.stream)].isin(list(question.streams)) & frame[quoted(question.group)].isNotNull()
    timed = with_times(side._replace(native=frame.where(used))).repartition(F.col(quoted(question.group)))
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    fields = [StructField(name, kinds[own]) for name, own in layout.sources.items()]
    schema = StructType([*fields, StructField(PROBABILITY, DoubleType())])

    def find(side: Given, low: Any, high: Any) -> Any:
        return answered(side, verdict, layout, low, high)

    return timed.mapInArrow(partial(in_task, find, "states"), schema)
