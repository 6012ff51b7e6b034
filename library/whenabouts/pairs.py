"""Pairs of rows of two frames that happened close to each other, as surely as one asks."""

from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts.frames.arrow import array_of, codes_of
from whenabouts.frames.kinds import FrameError, Given, given, same_kind
from whenabouts.frames.rows import PROBABILITY, once_each
from whenabouts.frames.taking import beside, taken
from whenabouts.frames.times import times
from whenabouts_cloud.pattern.condition import Condition

Frame = TypeVar("Frame")


def correlate(a: Frame, b: Frame, condition: str | Condition, on: str | list[str] | None = None) -> Frame:
    """All pairs of a row of `a` and a row of `b` that satisfy a condition on their times, as surely as it asks.

    Frames have columns t_min and t_max, the times between which each row surely happened, or only t_min, or ts, for a
    moment: timestamps, dates, or whole microseconds. on: columns of both that must be equal; nulls equal nothing. Both
    frames are of one kind, and so is the result: the columns of both, with _a and _b behind names that both have, and
    `probability`, ordered by the rows of `a`, then of `b` (Spark: in no order).

    Exact: the probability is that of two times, each uniform between its limits and independent of the other, and integers
    decide. Cost: sorting both; memory of 24 bytes a pair beside the result. Spark shuffles both sides, and nothing is
    collected.

    Raises:
        RuleError: the condition has mistakes.
        FrameError: a frame cannot be used; the text says why.

    >>> import pyarrow as pa
    >>> seen = pa.table({"t_min": [0], "t_max": [10]})
    >>> correlate(seen, seen, "@a + 10 us >= @b WITHIN 10 us OVER 50 %").column_names
    ['t_min_a', 't_max_a', 't_min_b', 't_max_b', 'probability']
    """
    wanted, key = (condition, False) if isinstance(condition, Condition) else read_condition(condition)
    left, right = given(a, "a"), given(b, "b")
    same_kind(left, right)
    if not isinstance(on, str | list | tuple | None):
        raise FrameError(f"on: found {on!r}, expected the name of a column of both, or a list of such names")
    keys = list(dict.fromkeys([*([on] if isinstance(on, str) else on or ()), *(["key"] if key else [])]))
    for side in (left, right):
        for key in keys:
            if key not in side.columns:
                raise FrameError(f"on: found {key!r}, expected a column of {side.name}: {', '.join(side.columns[:20])}")
    renamed = new_names(left.columns, right.columns)
    if left.kind == "spark":
        from whenabouts.frames.spark_pairs import joined

        result: Frame = joined(left, right, wanted, keys, renamed)
    else:
        result = left.back(_pairs(left, right, wanted, keys, renamed))
    return result


def read_condition(text: str) -> tuple[Condition, bool]:
    """A condition as in rules, `|@a - @b| <= 2 s OVER 80 %`, and whether it ends with `AND a.key = b.key`.

    Raises:
        RuleError: it has mistakes; the text says where.
    """
    from whenabouts_cloud.language.errors import Mistake, RuleError
    from whenabouts_cloud.rules.parse import parse_rules

    if not isinstance(text, str):
        raise FrameError(
            f"condition: found {type(text).__name__}, expected a text such as '|@a - @b| <= 2 s OVER 80 %'"
        )
    begin = 'STREAM a FROM "a" DELAY 0 us\nSTREAM b FROM "b" DELAY 0 us\nRULE pairs CORRELATE a AS a, b AS b WHERE\n'
    try:
        [rule] = parse_rules(begin + text, "condition").correlate_rules
    except RuleError as error:
        lines = begin.count("\n")
        moved = [Mistake(max(1, one.line - lines), one.column, one.text) for one in error.mistakes]
        raise RuleError("condition", moved) from None
    if rule.kind != "inner" or rule.top_k is not None:
        found = "found NEAREST, TOP, KEEP or ONLY, expected a condition on the times of a and b alone"
        raise RuleError("condition", [Mistake(1, 1, found)])
    if rule.tag_texts:
        found = f"found {rule.tag_texts[0]}, expected a condition on the times of a and b: choose the rows before"
        raise RuleError("condition", [Mistake(1, 1, found)])
    return rule.condition, rule.key_equal


def new_names(a: list[str], b: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The names of the columns of both in a result, by their own: with _a and _b behind names that both have.

    Raises:
        FrameError: two of them would have one name.
    """
    taken = {PROBABILITY}
    renamed = tuple(
        {one: f"{one}{suffix}" if one in other or one in taken else one for one in own}
        for own, other, suffix in ((a, b, "_a"), (b, a, "_b"))
    )
    once_each([*renamed[0].values(), *renamed[1].values()], "a and b", "rename one of them")
    return renamed[0], renamed[1]


def _pairs(
    a: Given, b: Given, condition: Condition, keys: list[str], renamed: tuple[dict[str, str], dict[str, str]]
) -> "nw.DataFrame[Any]":
    from whenabouts_cloud.correlation.batch.api import correlate_narrow
    from whenabouts_cloud.correlation.batch.input import Numbered
    from whenabouts_cloud.correlation.batch.join import Given as Side

    assert a.rows is not None
    assert b.rows is not None
    codes = [Numbered(one) for one in _codes(a.rows, b.rows, keys)] if keys else [None, None]
    i, j, probability = correlate_narrow(Side(*times(a), codes[0]), Side(*times(b), codes[1]), condition)
    made = [taken(side, at).rename(names) for side, at, names in ((a.rows, i, renamed[0]), (b.rows, j, renamed[1]))]
    series = nw.new_series(PROBABILITY, probability, nw.Float64(), backend=a.rows.implementation)
    return beside([*made, series.to_frame()])


def _codes(a: "nw.DataFrame[Any]", b: "nw.DataFrame[Any]", keys: list[str]) -> list[npt.NDArray[np.int64]]:
    """One number for each row of each side, equal where all keys are equal, -1 where one is null."""
    codes: list[npt.NDArray[np.int64]] = []
    for key in keys:
        sides = [array_of(rows, key, name) for rows, name in ((a, "a"), (b, "b"))]
        kinds = {_plain(one.type) for one in sides if len(one) > one.null_count}
        if len(kinds) > 1:
            raise FrameError(f"on: found {sides[0].type} in a and {sides[1].type} in b as {key!r}, expected one type")
        kind = next(iter(kinds), pa.null())
        if kinds and sides[0].type == sides[1].type:
            kind = sides[0].type
        try:
            alike = [one.cast(kind) if len(one) > one.null_count else pa.nulls(len(one), kind) for one in sides]
        except pa.ArrowInvalid as error:
            raise FrameError(f"on: found whole numbers beyond 2^63 in {key!r} of one frame ({error})") from None
        own = codes_of(alike, key, "on")
        if codes:
            count = max(int(one.max(initial=0)) for one in own) + 1
            both = [np.where(new < 0, -1, old * count + new) for old, new in zip(codes, own, strict=True)]
            own = codes_of([pa.array(one, mask=one < 0) for one in both], key, "on")
        codes = own
    return codes


def _plain(kind: Any) -> Any:
    """The type of a column's values, whatever the library stores them in."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return pa.int64() if pa.types.is_integer(kind) else kind
