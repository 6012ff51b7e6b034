"""Conditions that held at one moment in several places, certainly or possibly."""

from collections.abc import Sequence
from typing import TypeVar

import narwhals as nw

from whenabouts.frames.kinds import FrameError, given
from whenabouts.frames.texts import check_names
from whenabouts.frames.times import times
from whenabouts.states.answer import answered, layout_of
from whenabouts_cloud.rules.states import Verdict

Frame = TypeVar("Frame")


def verdicts(
    states: Frame, verdict: str, stream: str = "stream", group: str | None = None, members: Sequence[str] = ()
) -> Frame:
    """When conditions on several streams held together: `DEFINITELY dock.anybody AND door.anybody`, or `POSSIBLY ...`.

    states: a row for each state, with the name of its stream (a place, a gateway) in the column `stream`, its values in
    columns of any names (`dock.anybody` is the column `anybody`, a bare `dock` the column `value`), and when it began: t_min
    and t_max, or ts, as in `correlate`. A state lasts until the next one of its stream, the last one for ever. A null is an
    unknown value: no comparison with it holds, nor its opposite. group: a column; states of different groups are never
    compared, those without one are left out. members: the streams of the entries of vector clocks, for states that have a
    column vclock of lists of whole numbers; a message that told of a state then orders states too (`CAUSAL`: it alone does).

    The result is of the same kind. DEFINITELY: a row for each choice of runs, one of each stream, that held at one moment
    wherever in their stamps all states began; a run is a block of states in which the condition on its stream holds.
    POSSIBLY: for each choice that some times allow. A row has the group; t_min and t_max, when the last of the runs began;
    until_min and until_max, when the first of them ended, null if none did; the columns of the first state of each run, with
    the name of its stream behind theirs; and `probability`, that they held at one moment, if the begins and ends of these
    runs are uniform in their stamps and independent: 1 where that is certain, else null for CAUSAL. Where streams are
    compared with each other (POSSIBLY only) each state is a run of its own.

    Cost: sorting by time, memory of some 100 bytes for each row and each choice, some milliseconds for each probability that
    is not 1. Spark shuffles by the group and decides the groups of a partition in one task, so it needs a group, and this
    package in the Python of its workers.

    Raises:
        RuleError: the verdict has mistakes; the text says where.
        FrameError: the frame cannot be used; the text says why.

    >>> import pyarrow as pa
    >>> states = pa.table({"stream": ["dock", "door", "dock"], "ts": [0, 5, 9], "anybody": [True, True, False]})
    >>> [one] = verdicts(states, "DEFINITELY dock.anybody AND door.anybody").to_pylist()
    >>> one["t_min"], one["until_min"]
    (5, 9)
    """
    if not isinstance(verdict, str):
        raise FrameError(f"verdict: found {type(verdict).__name__}, expected a text such as 'DEFINITELY dock.anybody'")
    wanted = Verdict.parse(verdict)
    side = given(states, "states")
    layout = layout_of(side, wanted, stream, group, tuple(members))
    if side.kind == "spark":
        from whenabouts.states.spark_verdicts import decided

        result: Frame = decided(side, wanted, layout)
        return result
    assert side.rows is not None
    check_names(side, stream, "the names of streams")
    named = nw.col(stream).cast(nw.String).is_in(list(layout.question.streams))
    used = side._replace(rows=nw.maybe_reset_index(side.rows.filter(named)))
    made: Frame = side.back(answered(used, wanted, layout, *times(used)))
    return made
