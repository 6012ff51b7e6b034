"""Rows of a frame that happened in an order, or did not, as surely as one asks."""

from typing import TypeVar

from whenabouts.frames.kinds import FrameError, given
from whenabouts.frames.times import times
from whenabouts.sequences.matching import layout_of, matched, relevant
from whenabouts_cloud.language.pattern import Pattern

Frame = TypeVar("Frame")


def detect(events: Frame, pattern: str | Pattern, stream: str = "stream") -> Frame:
    """All matches of a pattern, as in rules: `SEQ(shelf a, !till c, exit e) WITHIN 1 h PER key OVER 90 %`.

    events: a row for each event, with columns t_min and t_max, or ts (as in `correlate`), one that holds its type, `stream`,
    and the one that PER names. Conditions (`WHERE a.rssi > b.rssi`) read any columns; t_min and t_max are
    microseconds in them. Where there is no column uri, gtin, epc_scheme or company_prefix, these are of the name in
    the key; a column of such a name with other content is `a.attrs.gtin`. Rows of types that the pattern does not
    name are left out and forbid nothing, as are rows without a key.

    The result is of the same kind, a row for each match: the key, then for each event all other columns of its row with its
    name behind theirs, as `ts_a` and `ts_e` (`ts_b_1`, `ts_b_2` for repetitions), null where a match has no such event, and
    `probability`: 1 for CERTAIN, null for POSSIBLE. It is ordered by the rows of the events (Spark: in no order).

    Cost: sorting by time, memory of some 100 bytes an event. Spark shuffles by the key and finds the matches of a partition
    in one task, so it needs PER, and this package in the Python of its workers.

    Raises:
        RuleError: the pattern has mistakes; the text says where.
        FrameError: the frame cannot be used; the text says why.

    >>> import pyarrow as pa
    >>> seen = pa.table({"stream": ["shelf", "exit"], "key": ["x", "x"], "ts": [0, 5_000_000]})
    >>> detect(seen, "SEQ(shelf a, exit e) WITHIN 1 h PER key").column_names
    ['key', 'stream_a', 'ts_a', 'stream_e', 'ts_e', 'probability']
    """
    if not isinstance(pattern, str | Pattern):
        raise FrameError(
            f"pattern: found {type(pattern).__name__}, expected a text such as 'SEQ(shelf a, exit e) WITHIN 1 h'"
        )
    wanted = pattern if isinstance(pattern, Pattern) else Pattern.parse(pattern, unit_us=None, any_key=True)
    side = given(events, "events")
    layout = layout_of(side, wanted, stream)
    if side.kind == "spark":
        from whenabouts.sequences.spark_matches import detected

        result: Frame = detected(side, wanted, layout)
    else:
        used = relevant(side, layout)
        result = side.back(matched(used, wanted, layout, *times(used)))
    return result
