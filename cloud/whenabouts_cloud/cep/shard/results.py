"""Results of a rule about events in an order: rows of RESULT.

`events` has one entry for each filled place of the match, in the order of the pattern's text, with stamps as the readers
gave them; t_min is their least t_min, t_max their greatest t_max. `result_id` is a hash of the rule's name and of the stream
and identity at each place, so the same match has the same id in every run and driver. The status of a row is "match" or, for
ON ARRIVAL, "retracted": the emitted match with this id no longer holds.

`probability` is 1 for CERTAIN and that of the whole match for OVER. It is null for POSSIBLE and CAUSAL, which have none, and
in rows whose status is not "match". Names in `events` are dictionary-encoded, as each occurs many times; in files they are
plain texts.

A rule with COUNT emits rows of COUNT: the number of matches of a key whose last event lies in [t_min, t_max], both null
without EVERY; `exact` is false if there are that many or more. Its `result_id` is a hash of rule, key and t_min.

Cost: array operations; one hash a row.
"""

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.cep.shard.events import Floats, Ints
from whenabouts_cloud.landing.schema import IDENTITY, plain_text
from whenabouts_cloud.result_ids import digests, result_ids
from whenabouts_cloud.rules.coverage import TEXT
from whenabouts_cloud.rules.model import CepRule

PLACE = pa.struct(
    [
        ("name", TEXT),
        ("stream", TEXT),
        ("site", TEXT),
        ("gateway", TEXT),
        ("boot", pa.int64()),
        ("seq", pa.int64()),
        ("t_min", pa.int64()),
        ("t_max", pa.int64()),
    ]
)
PLACED = [field.name for field in list(PLACE)[1:]]
RESULT = pa.schema(
    [
        ("result_id", pa.string()),
        ("rule", pa.string()),
        ("key", pa.string()),
        ("status", pa.string()),
        ("t_min", pa.int64()),
        ("t_max", pa.int64()),
        ("probability", pa.float64()),
        ("events", pa.list_(PLACE)),
    ]
)
AGGREGATE = pa.struct([("name", pa.string()), ("value", pa.float64())])
COUNT = pa.schema(
    [
        ("result_id", pa.string()),
        ("rule", pa.string()),
        ("key", pa.string()),
        ("t_min", pa.int64()),
        ("t_max", pa.int64()),
        ("matches", pa.int64()),
        ("exact", pa.bool_()),
        ("aggregates", pa.list_(AGGREGATE)),
    ]
)


def match_rows(
    rule: CepRule, matches: Ints, events: pa.Table, status: str, probability: Floats | None = None
) -> pa.Table:
    """Rows of RESULT for matches (m, places) of rows of an event table; -1 where a place is not filled."""
    if not len(matches):
        return RESULT.empty_table()
    used, at = np.unique(matches, return_inverse=True)
    at = at.reshape(matches.shape)
    missing = int(used[0] == -1)
    events = events.take(pa.array(used[missing:]))
    taken = matches >= 0
    rows, places = np.nonzero(taken)
    chosen = at[rows, places] - missing
    stamps = [events[name].to_numpy() for name in ("t_min", "t_max")]
    starts = np.concatenate([[0], np.cumsum(taken.sum(axis=1))])
    key = plain_text(events["key"]).take(pa.array(chosen[starts[:-1]])) if rule.pattern.per_key else None
    column_of = {
        "result_id": _result_ids(rule, at - missing, events),
        "rule": pa.repeat(pa.scalar(rule.name), len(matches)),
        "key": pa.nulls(len(matches), pa.string()) if key is None else key,
        "status": pa.repeat(pa.scalar(status), len(matches)),
        "t_min": pa.array(np.minimum.reduceat(stamps[0][chosen], starts[:-1])),
        "t_max": pa.array(np.maximum.reduceat(stamps[1][chosen], starts[:-1])),
        "probability": pa.nulls(len(matches), pa.float64())
        if probability is None
        else pa.array(probability, from_pandas=True),
        "events": pa.ListArray.from_arrays(
            pa.array(starts, pa.int32()), _entries(rule, places, events.select(PLACED).take(pa.array(chosen)))
        ),
    }
    return pa.table([column_of[name] for name in RESULT.names], schema=RESULT)


def count_rows(
    rule: CepRule, keys: pa.Array, begin_us: int | None, matches: Ints, exact: Any, aggregates: Floats
) -> pa.Table:
    """Rows of COUNT for the keys that have matches with a last event in the stretch from `begin_us` on."""
    names = rule.count.names if rule.count else ()
    every_us = rule.count.every_us if rule.count else None
    ends = None if begin_us is None or every_us is None else begin_us + every_us - 1
    flat = pa.StructArray.from_arrays(
        [pa.array(list(names) * len(keys), pa.string()), pa.array(aggregates.reshape(-1), from_pandas=True)],
        fields=list(AGGREGATE),
    )
    ids = [
        hashlib.blake2b(f"{rule.name} {begin_us} {key}".encode(), digest_size=16).hexdigest()
        for key in keys.to_pylist()
    ]
    column_of = {
        "result_id": pa.array(ids, pa.string()),
        "rule": pa.repeat(pa.scalar(rule.name), len(keys)),
        "key": keys,
        "t_min": pa.repeat(pa.scalar(begin_us, pa.int64()), len(keys)),
        "t_max": pa.repeat(pa.scalar(ends, pa.int64()), len(keys)),
        "matches": pa.array(matches),
        "exact": pa.array(exact, pa.bool_()),
        "aggregates": pa.ListArray.from_arrays(pa.array(np.arange(len(keys) + 1) * len(names), pa.int32()), flat),
    }
    return pa.table([column_of[name] for name in COUNT.names], schema=COUNT)


def _entries(rule: CepRule, places: Ints, events: pa.Table) -> pa.StructArray:
    """One struct PLACE for each event."""
    names = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(rule.pattern.names, pa.string()))
    columns = [names, *(events[field.name].cast(field.type) for field in list(PLACE)[1:])]
    return pa.StructArray.from_arrays([_whole(x) for x in columns], fields=list(PLACE))


def _result_ids(rule: CepRule, at: Ints, events: pa.Table) -> pa.Array:
    """Site and gateway names have no spaces, so the joined text is unambiguous."""
    streams = pa.array(rule.type_names, pa.string()).take(events["type"])
    parts = [streams, *(events[name].cast(pa.string()) for name in IDENTITY)]
    return result_ids(rule.name, digests(_whole(pc.binary_join_element_wise(*parts, " ")).to_pylist()), at)


def _whole(column: Any) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.unify_dictionaries().combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
