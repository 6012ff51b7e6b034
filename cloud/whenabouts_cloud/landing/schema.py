"""The columns of the landing, in the order of its files; readers select those that they need.

`value` and `attrs` are JSON, times are microseconds since 1970 UTC. Rows of `_frontier` have the fields of FRONTIER.
"""

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
        ("streams", pa.list_(pa.string())),
        ("landed_us", pa.int64()),
    ]
)


def of(*names: str) -> pa.Schema:
    """Return these columns of the landing, in this order."""
    return pa.schema([SCHEMA.field(name) for name in names])
