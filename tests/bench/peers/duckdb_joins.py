"""SEQ(A, B, !C, D, E, F, G) as a self-join in DuckDB, over a complete batch. Two ways, both exact.

`plain` joins on the key, as one writes it first: quadratic in the events of a key. `buckets` adds equality on
stretches of time as long as the window, the later elements in their own stretch and the one before: linear in the
events, at twice the rows.
"""

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

STRETCHES = 1_000_000  # of a key at most, so that key and stretch are one number
SIDE = "{name} AS (SELECT i, t, {place} AS q FROM events WHERE code = {code})"
QUERY = """
WITH {sides}
SELECT a.i AS a, b.i AS b, d.i AS d, e.i AS e, f.i AS f, g.i AS g FROM a
JOIN b ON b.q = a.q AND b.t > a.t AND b.t <= a.t + {window}
JOIN d ON d.q = a.q AND d.t > b.t AND d.t <= a.t + {window}
  AND NOT EXISTS (SELECT 1 FROM c WHERE c.q = b.q AND c.t > b.t AND c.t < d.t)
JOIN e ON e.q = a.q AND e.t > d.t AND e.t <= a.t + {window}
JOIN f ON f.q = a.q AND f.t > e.t AND f.t <= a.t + {window}
JOIN g ON g.q = a.q AND g.t > f.t AND g.t <= a.t + {window}
"""


def query(way: str, window: int) -> str:
    """The text of one way; times from 0 on."""
    stretch = f"key * {STRETCHES} + t // {window}"
    first, other = ("key", "key") if way == "plain" else (stretch, f"unnest([{stretch}, {stretch} - 1])")
    sides = (SIDE.format(name=x, place=other if n else first, code=n) for n, x in enumerate("abcdefg"))
    return QUERY.format(sides=", ".join(sides), window=window)


def matches(way: str, type_code: Any, key: Any, t: Any, window: int) -> Any:
    """Rows of the places of the events, types A .. G being 0 .. 6; on one thread, which takes the least CPU."""
    events = pa.table({"i": np.arange(len(t)), "key": key, "code": type_code, "t": t})
    connection = duckdb.connect(config={"threads": 1})
    connection.register("events", events)
    pairs = connection.execute(query(way, window)).fetchnumpy()
    return np.column_stack([pairs[x] for x in "abdefg"])
