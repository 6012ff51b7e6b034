"""Results of a rule about events in an order: rows of RESULT.

`events` has one entry for each filled place of the match, in the order of the pattern's text, with stamps as the readers
gave them; t_min is their least t_min, t_max their greatest t_max. `result_id` is a hash of the rule's name and of the stream
and identity at each place, so the same match has the same id in every run and driver. The status of a row is "match" or, for
ON ARRIVAL, "retracted": the emitted match with this id no longer holds.

`probability` is 1 for CERTAIN and that of the whole match for OVER. It is null for POSSIBLE and CAUSAL, which have none, and
in rows whose status is not "match". Texts that repeat are dictionary-encoded; in files they are plain texts.

A rule with COUNT emits rows of COUNT: the number of matches of a key whose last event lies in [t_min, t_max], both null
without EVERY; `exact` is false if there are that many or more. Its `result_id` is a hash of rule, key and t_min.

Cost: array operations, 0.1 us a place.
"""

import functools
import hashlib
from typing import Any

import numpy as np
import pyarrow as pa

from whenabouts_cloud.cep.shard.events import Floats, Ints
from whenabouts_cloud.frontier.times import INT64_MAX, INT64_MIN
from whenabouts_cloud.result_ids import digests, result_ids
from whenabouts_cloud.rules.coverage import TEXT, encode, repeated, taken
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
        ("rule", TEXT),
        ("key", TEXT),
        ("status", TEXT),
        ("t_min", pa.int64()),
        ("t_max", pa.int64()),
        ("probability", pa.float64()),
        ("events", pa.list_(PLACE)),
    ]
)
PART = 1 << 16  # matches whose rows are made at once: arrays of some MB, which stay in the cache
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
    parts = [RESULT.empty_table()]
    for begin in range(0, len(matches), PART):
        part = slice(begin, begin + PART)
        parts.append(
            _match_rows(rule, matches[part], events, status, None if probability is None else probability[part])
        )
    return pa.concat_tables(parts)


def _match_rows(rule: CepRule, matches: Ints, events: pa.Table, status: str, probability: Floats | None) -> pa.Table:
    used = np.zeros(events.num_rows + 1, bool)
    used[matches] = True  # the last for places that are not filled
    events = events.filter(pa.array(used[:-1]))
    at = np.append(np.cumsum(used[:-1]) - 1, -1)[matches]
    filled = at >= 0
    chosen, places = (
        at[filled].astype(np.int32),
        np.broadcast_to(np.arange(at.shape[1], dtype=np.int32), at.shape)[filled],
    )
    starts = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
    key = taken(events["key"], chosen[starts[:-1]]) if rule.pattern.per_key else None
    column_of = {
        "result_id": _result_ids(rule, at, events),
        "rule": repeated(rule.name, len(matches)),
        "key": pa.nulls(len(matches), TEXT) if key is None else key,
        "status": repeated(status, len(matches)),
        "t_min": pa.array(_over_places(np.minimum, events["t_min"], at, INT64_MAX)),
        "t_max": pa.array(_over_places(np.maximum, events["t_max"], at, INT64_MIN)),
        "probability": pa.nulls(len(matches), pa.float64())
        if probability is None
        else pa.array(probability, from_pandas=True),
        "events": pa.ListArray.from_arrays(pa.array(starts, pa.int32()), _entries(rule, places, events, chosen)),
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


def _entries(rule: CepRule, places: Any, events: pa.Table, chosen: Any) -> pa.StructArray:
    """One struct PLACE for each chosen row of the events."""
    columns = {name: taken(events[name], chosen) for name in PLACED[:-1]}
    columns["name"] = pa.DictionaryArray.from_arrays(pa.array(places), pa.array(rule.pattern.names, pa.string()))
    points = events["t_min"].equals(events["t_max"])
    columns["t_max"] = columns["t_min"] if points else taken(events["t_max"], chosen)
    return pa.StructArray.from_arrays([columns[field.name] for field in PLACE], fields=list(PLACE))


def _over_places(combine: np.ufunc, column: pa.ChunkedArray, at: Ints, empty: int) -> Ints:
    """Combine a number of the events at the places of each match."""
    numbers = np.append(column.to_numpy(), empty)
    combined: Ints = functools.reduce(combine, (numbers[place] for place in at.T))
    return combined


def _result_ids(rule: CepRule, at: Ints, events: pa.Table) -> pa.Array:
    streams = pa.DictionaryArray.from_arrays(
        pa.array(events["type"].to_numpy().astype(np.int32)), pa.array(rule.type_names, pa.string())
    )
    names = [streams, encode(events["site"]), encode(events["gateway"])]
    return result_ids(rule.name, digests(names, *(events[name].to_numpy() for name in ("boot", "seq"))), at)
