"""From two tables of readings and a rule to the rows of its result: the part every driver shares.

A reading table has the columns of READING, a result table those of RESULT. Repeats are recognised by their identity
(site, gateway, boot, seq); the site is in it because gateway names are only unique within their group. A reading is never
paired with itself, which matters when both sides of a rule are the same stream.
"""

import hashlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.correlation.kernel import pairs
from whenabouts_cloud.rules.model import CorrelateRule

READING = pa.schema(
    [
        ("site", pa.string()),
        ("gateway", pa.string()),
        ("boot", pa.int64()),
        ("seq", pa.int64()),
        ("stream", pa.string()),
        ("key", pa.string()),
        ("t_min", pa.int64()),
        ("t_max", pa.int64()),
    ]
)
IDENTITY = ("site", "gateway", "boot", "seq")
SIDE_COLUMNS = ("site", "gateway", "boot", "seq", "stream", "t_min", "t_max")

RESULT = pa.schema(
    [("result_id", pa.string()), ("rule", pa.string()), ("key", pa.string())]
    + [(f"{side}_{name}", READING.field(name).type) for side in "ab" for name in SIDE_COLUMNS]
    + [("probability", pa.float64())]
)


def first_of_each(table: pa.Table) -> npt.NDArray[np.int64]:
    """Row numbers, ascending, of the first row of every identity."""
    if table.num_rows == 0:
        return np.empty(0, np.int64)
    columns = [_code(table[name]) for name in IDENTITY]
    order = np.lexsort(columns)  # stable: of equal identities the earliest row comes first
    new = np.ones(len(order), bool)
    new[1:] = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    return np.sort(order[new])


def without_repeats(table: pa.Table) -> pa.Table:
    """The table with the first row of every identity."""
    first = first_of_each(table)
    return table if len(first) == table.num_rows else table.take(pa.array(first))


def correlate(rule: CorrelateRule, a: pa.Table, b: pa.Table) -> pa.Table:
    """All result rows of a rule for two reading tables without repeats, ordered by the rows of a, then of b."""
    a_key = b_key = None
    if rule.key_equal:
        a, b = (x.filter(pc.is_valid(x["key"])) for x in (a, b))
        codes = _code(pa.chunked_array([*_plain(a["key"]).chunks, *_plain(b["key"]).chunks], pa.string()))
        a_key, b_key = codes[: a.num_rows], codes[a.num_rows :]
    i, j, probability = pairs(
        a_key, _ints(a, "t_min"), _ints(a, "t_max"), b_key, _ints(b, "t_min"), _ints(b, "t_max"), rule.condition
    )
    a, b = a.take(pa.array(i)), b.take(pa.array(j))
    rows = _result(rule, a, b, probability)
    itself = np.all([_equal(a[name], b[name]) for name in IDENTITY], axis=0)
    return rows.filter(pa.array(~itself)) if itself.any() else rows


def result_id(rule: str, a: tuple[str, str, int, int], b: tuple[str, str, int, int]) -> str:
    """Hash of rule and both identities: the same pair has the same id in every run and driver.

    Site and gateway names have no spaces, so the joined text is unambiguous.
    """
    return hashlib.blake2b(" ".join(map(str, (rule, *a, *b))).encode(), digest_size=16).hexdigest()


def _result(rule: CorrelateRule, a: pa.Table, b: pa.Table, probability: npt.NDArray[np.float64]) -> pa.Table:
    identities = [zip(*(side[name].to_pylist() for name in IDENTITY), strict=True) for side in (a, b)]
    ids = [result_id(rule.name, x, y) for x, y in zip(*identities, strict=True)]
    a_key, b_key = _plain(a["key"]), _plain(b["key"])
    shared = pc.if_else(pc.fill_null(pc.equal(a_key, b_key), False), a_key, pa.scalar(None, pa.string()))
    columns = [pa.array(ids, pa.string()), pa.array([rule.name] * len(ids), pa.string()), shared]
    columns += [_plain(side[name]) for side in (a, b) for name in SIDE_COLUMNS]
    return pa.table([*columns, pa.array(probability)], schema=RESULT)


def _ints(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    array: npt.NDArray[np.int64] = table[name].to_numpy()
    return array


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without dictionary encoding, of which stored readings make use."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _code(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The column itself when it holds numbers, else a number for each distinct text."""
    if pa.types.is_integer(column.type):
        numbers: npt.NDArray[np.int64] = column.to_numpy()
        return numbers
    encoded = _plain(column).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes: npt.NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _equal(x: pa.ChunkedArray, y: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    same: npt.NDArray[np.bool_] = pc.equal(_plain(x), _plain(y)).to_numpy()
    return same
