"""The names that tags' EPC memories hold, as columns of frames of any kind."""

from collections.abc import Collection
from typing import Any, TypeVar

import narwhals as nw

from whenabouts.frames.kinds import FrameError, given
from whenabouts.frames.texts import no_texts, texts_of
from whenabouts_cloud.epc.columns import COLUMNS, name_columns

Frame = TypeVar("Frame")


def epc_names(df: Frame, key: str = "key", prefixes: Collection[str] | None = None) -> Frame:
    """The frame with what the EPC in each key says: uri, gtin, epc_scheme, company_prefix, element_string, digital_link, and
    epc_filter, a number.

    key: a column of texts, the hexadecimal digits of EPCs. prefixes: the company prefixes that you expect; other names count
    as none, which is what tells a name from random bits. Nulls where a key holds no name. Columns of these names that were
    there are replaced. Cost: 0.1 ms for each distinct key. A lazy frame is collected; of Spark's frames nothing is.

    Raises:
        FrameError: there is no such column, or it holds no texts.
        EpcError: the prefixes are none.

    >>> import pyarrow as pa
    >>> epc_names(pa.table({"key": ["3074257BF7194E4000001A85", "other"]}))["gtin"].to_pylist()
    ['80614141123458', None]
    """
    frame = given(df, "df")
    if key not in frame.columns:
        raise FrameError(f"key: found {key!r}, expected a column of df: {', '.join(frame.columns[:20])}")
    if key in COLUMNS:
        raise FrameError(f"key: found {key!r}, which is the name of a column that is added; rename it")
    if frame.kind == "spark":
        spark: Frame = _of_spark(frame.native, key, prefixes)
        return spark
    rows: Any = frame.rows if frame.kind == "lazy" else nw.from_native(df, eager_only=True)  # with pandas's index
    names = nw.from_arrow(name_columns(texts_of(rows, key, "df"), prefixes), backend=rows.implementation)
    made: Frame = frame.back(rows.with_columns(*names.iter_columns()))
    return made


def _of_spark(frame: Any, key: str, prefixes: Collection[str] | None) -> Any:
    from whenabouts_cloud.spark import epc_columns

    kind = dict(frame.dtypes)[key]
    if kind != "string" and not kind.startswith(("varchar", "char")):
        raise no_texts(kind, key, "df")
    quoted = key.replace("`", "``")
    names = epc_columns.epc_names(frame[f"`{quoted}`"], prefixes)
    return frame.withColumns({name: names.getField(name) for name in COLUMNS})
