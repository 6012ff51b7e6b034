"""The columns of the landing, in the order of its files; readers select those that they need.

`value` and `attrs` are JSON, times are microseconds since 1970 UTC. The JSON files in FRONTIER_DIR have the fields of
FRONTIER.
"""

import json
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("site", pa.string()),
        ("gateway", pa.string()),
        ("boot", pa.int64()),
        ("seq", pa.int64()),
        ("stream", pa.string()),
        ("kind", pa.string()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("unit", pa.string()),
        ("attrs", pa.string()),
        ("t_min", pa.int64()),
        ("t_max", pa.int64()),
        ("clock_state", pa.string()),
        ("vclock", pa.list_(pa.int64())),
        ("landed_us", pa.int64()),
    ]
)
FRONTIER = pa.schema(
    [
        ("site", pa.string()),
        ("gateway", pa.string()),
        ("frontier_us", pa.int64()),
        ("boot", pa.int64()),
        ("streams", pa.list_(pa.string())),
        ("landed_us", pa.int64()),
    ]
)
FRONTIER_DIR = "_frontier"  # in the landing
AHEAD_DIR = "_ahead"  # in the landing: readings that begin in the future
NO_BOOT = -1  # of watermarks that older ingests wrote
IDENTITY = ("site", "gateway", "boot", "seq")  # of a reading; gateway names are unique only within their site
STAMPED = (*IDENTITY, "stream", "key", "t_min", "t_max")  # what pairs and matches need of every reading


def of(*names: str) -> pa.Schema:
    """Return these columns of the landing, in this order."""
    return pa.schema([SCHEMA.field(name) for name in names])


def json_in(text: str | None) -> Any:
    """The value of a text of `value` or `attrs`; None for null and for what no ingest has written: no JSON, NaN, too deep.

    >>> json_in('{"rssi": -60}'), json_in("NaN"), json_in(None)
    ({'rssi': -60}, None, None)
    """
    try:
        return None if text is None else _JSON.decode(text)
    except (ValueError, RecursionError):
        return None


def plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of texts without the dictionary encoding that stored readings use; other columns as they are."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _no_number(text: str) -> float:
    raise ValueError(f"found {text}, which is no JSON")


_JSON = json.JSONDecoder(parse_constant=_no_number)
