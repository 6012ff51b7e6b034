"""Result rows of a rule from two tables of readings: the part that every driver shares.

A reading table has the columns of READING, a result table those of RESULT. Repeats are recognised by their identity
(site, gateway, boot, seq), which includes the site because gateway names are unique only within their group. A reading is
never paired with itself, even if both sides of a rule are the same stream.

A result row is a pair or, for "left" and "anti", a reading of a without a pair: then all columns of b and the probability
are null, and `key` is the key of the reading.

Offsets of streams move the condition, not the stamps: (Y + o_b) - (X + o_a) lies in [lo, hi] exactly when Y - X lies in
[lo - o_b + o_a, hi - o_b + o_a]. So stamps stay as the readers reported them, and nothing can overflow.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.correlation.batch import api
from whenabouts_cloud.correlation.batch.join import PairsWithProbability
from whenabouts_cloud.correlation.nearest import nearest
from whenabouts_cloud.landing import schema as landing
from whenabouts_cloud.landing.schema import IDENTITY, STAMPED, plain_text
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.result_ids import Digests, digests, result_ids
from whenabouts_cloud.rules.coverage import TEXT, encode, repeated, taken
from whenabouts_cloud.rules.model import CorrelateRule

READING = landing.of(*STAMPED)
SIDE_COLUMNS = (*IDENTITY, "stream", "t_min", "t_max")

_TYPES = {field.name: TEXT if pa.types.is_string(field.type) else field.type for field in READING}
RESULT = pa.schema(
    [("result_id", pa.string()), ("rule", TEXT), ("key", TEXT)]
    + [(f"{side}_{name}", _TYPES[name]) for side in "ab" for name in SIDE_COLUMNS]
    + [("probability", pa.float64())]
)
NO_RESULT = RESULT.empty_table()


def first_of_each(table: pa.Table) -> npt.NDArray[np.int64]:
    """Return the row numbers, ascending, of the first row of every identity."""
    if table.num_rows == 0:
        return np.empty(0, np.int64)
    columns = [_code(table[name]) for name in IDENTITY]
    order = np.lexsort(columns)  # stable: of equal identities the earliest row comes first
    new = np.ones(len(order), bool)
    new[1:] = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    return np.sort(order[new])


def without_repeats(table: pa.Table) -> pa.Table:
    """Return the table with only the first row of every identity."""
    first = first_of_each(table)
    return table if len(first) == table.num_rows else table.take(pa.array(first))


def shift_us(rule: CorrelateRule) -> int:
    """Return the time to add to b's stamps relative to a's: the difference of the streams' offsets."""
    return rule.b.offset_us - rule.a.offset_us


def condition_of(rule: CorrelateRule) -> Condition:
    """Return the condition of a rule on stamps without the offsets of its streams."""
    shift, condition = shift_us(rule), rule.condition
    if shift == 0:
        return condition
    return Condition("between", lo=condition.lo_us - shift, hi=condition.hi_us - shift, confidence=condition.ct)


def reach_us(rule: CorrelateRule) -> tuple[int, int]:
    """(reach, shift): in a pair, b's middle is within reach of a's middle + shift; includes the rounding of both."""
    condition = condition_of(rule)
    return condition.band(2 * condition.longest_us) // 2 + 3, condition.doubled_centre // 2


def correlate(rule: CorrelateRule, a: pa.Table, b: pa.Table) -> pa.Table:
    """Return the whole result of a rule for two reading tables without repeats, ordered by the rows of a, then of b."""
    i, j, probability = matches(rule, a, b)
    lonely = np.ones(a.num_rows, bool)
    lonely[i] = False
    if rule.kind == "anti":
        return unmatched_rows(rule, a.filter(pa.array(lonely)))
    rows = pair_rows(rule, a, b, i, j, probability)
    if rule.top_k is not None:
        best = nearest(rows, i, rule.top_k, condition_of(rule), shift_us(rule))
        rows, i = rows.filter(pa.array(best)), i[best]
    if rule.kind == "inner":
        return rows
    unmatched = np.flatnonzero(lonely)
    order = np.argsort(np.concatenate([i, unmatched]), kind="stable")
    return pa.concat_tables([rows, unmatched_rows(rule, a.take(pa.array(unmatched)))]).take(pa.array(order))


def matches(rule: CorrelateRule, a: pa.Table, b: pa.Table) -> PairsWithProbability:
    """Return the row numbers in a and b of all pairs, and their probability, ordered by (a, b)."""
    a_key = b_key = a_at = b_at = None
    if rule.key_equal:
        a_at, b_at = (np.flatnonzero(x["key"].is_valid().to_numpy()) for x in (a, b))
        a, b = (x if len(at) == x.num_rows else x.take(pa.array(at)) for x, at in ((a, a_at), (b, b_at)))
        codes = _code(pa.chunked_array([*plain_text(a["key"]).chunks, *plain_text(b["key"]).chunks], pa.string()))
        a_key, b_key = codes[: a.num_rows], codes[a.num_rows :]
    a_min, a_max, b_min, b_max = (_ints(side, name) for side in (a, b) for name in ("t_min", "t_max"))
    i, j, probability = api.correlate(a_min, a_max, b_min, b_max, condition_of(rule), a_key, b_key, probability=True)
    other = ~_same_reading(a, b, i, j)
    if not other.all():
        i, j, probability = i[other], j[other], probability[other]
    return (i, j, probability) if a_at is None or b_at is None else (a_at[i], b_at[j], probability)


def unmatchable(rule: CorrelateRule, table: pa.Table) -> npt.NDArray[np.bool_]:
    """Return a mask of readings that can be in no pair: longer than any that matches, or without the compared key."""
    # Two's complement: the difference of any two int64 is right as uint64.
    length = _ints(table, "t_max").view(np.uint64) - _ints(table, "t_min").view(np.uint64)
    none: npt.NDArray[np.bool_] = np.zeros(table.num_rows, bool)
    none[length > np.uint64(min(rule.condition.longest_us, (1 << 64) - 1))] = True
    if rule.key_equal:
        none[table["key"].is_null().to_numpy()] = True
    return none


def pair_rows(
    rule: CorrelateRule,
    a: pa.Table,
    b: pa.Table,
    i: npt.NDArray[np.int64],
    j: npt.NDArray[np.int64],
    probability: npt.NDArray[np.float64],
) -> pa.Table:
    """Return the pairs of rows i of a and j of b as rows of RESULT."""
    a, i = _used(a, i)
    b, j = _used(b, j)
    at = np.stack([i, j + a.num_rows], axis=1)
    ids = result_ids(rule.name, np.concatenate([_digests(a), _digests(b)]), at)
    columns = [ids, repeated(rule.name, len(ids)), _shared_keys(rule, a["key"], b["key"], i, j)]
    columns += [taken(side[name], rows) for side, rows in ((a, i), (b, j)) for name in SIDE_COLUMNS]
    return pa.table([*columns, pa.array(probability)], schema=RESULT)


def unmatched_rows(rule: CorrelateRule, a: pa.Table) -> pa.Table:
    """Return readings of a that are in no pair as rows of RESULT."""
    ids = result_ids(rule.name, _digests(a), np.arange(a.num_rows)[:, None])
    every = np.arange(a.num_rows)
    columns = [ids, repeated(rule.name, len(ids)), taken(a["key"], every)]
    columns += [taken(a[name], every) for name in SIDE_COLUMNS]
    columns += [pa.nulls(a.num_rows, field.type) for field in RESULT][len(columns) :]
    return pa.table(columns, schema=RESULT)


def _used(side: pa.Table, at: npt.NDArray[np.int64]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """The rows that occur in `at`, and their places among these."""
    used = np.zeros(side.num_rows, bool)
    used[at] = True
    return side.filter(pa.array(used)), (np.cumsum(used) - 1)[at]


def _digests(side: pa.Table) -> Digests:
    """Of identities."""
    return digests([encode(side[name]) for name in ("site", "gateway")], _ints(side, "boot"), _ints(side, "seq"))


def _shared_keys(rule: CorrelateRule, a: pa.ChunkedArray, b: pa.ChunkedArray, i: Any, j: Any) -> pa.Array:
    """The key of both readings of each pair, null where they differ."""
    a_keys = taken(a, i)
    if rule.key_equal:
        return a_keys
    same = pc.fill_null(pc.equal(a_keys.cast(pa.string()), taken(b, j).cast(pa.string())), False)
    return pc.if_else(same, a_keys.cast(pa.string()), pa.scalar(None, pa.string())).cast(TEXT)


def _same_reading(a: pa.Table, b: pa.Table, i: Any, j: Any) -> npt.NDArray[np.bool_]:
    """Mask of the pairs of a reading with itself; numbers are compared first, as they are rarely equal."""
    same: npt.NDArray[np.bool_] = (_ints(a, "seq")[i] == _ints(b, "seq")[j]) & (
        _ints(a, "boot")[i] == _ints(b, "boot")[j]
    )
    at = np.flatnonzero(same)
    for name in ("gateway", "site"):
        at = at[_equal(a[name].take(pa.array(i[at])), b[name].take(pa.array(j[at])))]
    same[:] = False
    same[at] = True
    return same


def _ints(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    array: npt.NDArray[np.int64] = table[name].to_numpy()
    return array


def _code(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The column itself when it holds numbers, else a number for each distinct text."""
    if pa.types.is_integer(column.type):
        numbers: npt.NDArray[np.int64] = column.to_numpy()
        return numbers
    encoded = plain_text(column).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes: npt.NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _equal(x: pa.ChunkedArray, y: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    same: npt.NDArray[np.bool_] = pc.equal(plain_text(x), plain_text(y)).to_numpy()
    return same
