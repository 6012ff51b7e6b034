"""Results of a rule about events in an order: rows of RESULT.

`events` has one entry for each filled place of the match, in the order of the pattern's text, with stamps as the readers
gave them; t_min is their least t_min, t_max their greatest t_max. `result_id` is a hash of the rule's name and of the stream
and identity at each place, so the same match has the same id in every run and driver. The status of a row is "match" or, for
ON ARRIVAL, "retracted": the emitted match with this id no longer holds.

`probability` is 1 for CERTAIN and that of the whole match for OVER. It is null for POSSIBLE and CAUSAL, which have none, and
in rows whose status is not "match". Texts that repeat are dictionary-encoded; in files they are plain texts.

A rule with COUNT emits rows of COUNT: the number of matches of a key whose last event lies in [t_min, t_max], both null
without EVERY; `exact` is false if there are that many or more. Its `result_id` is a hash of rule, key and t_min.

Cost: 0.05 us a place.
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from whenabouts_cloud.cep.shard.events import ENCODED, Floats, Ints
from whenabouts_cloud.cep.shard.match_columns import EventColumns, columns_of_matches
from whenabouts_cloud.result_ids import Digests, digests, result_ids
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
    if not len(matches):
        return RESULT.empty_table()
    used = np.zeros(events.num_rows + 1, bool)
    used[matches] = True  # the last for places that are not filled
    row = np.append(np.cumsum(used[:-1]) - 1, -1)
    known = _Known.of(rule, events.filter(pa.array(used[:-1])))
    parts = []
    for begin in range(0, len(matches), PART):
        part = slice(begin, begin + PART)
        parts.append(
            _match_rows(rule, row[matches[part]], known, status, None if probability is None else probability[part])
        )
    return pa.concat_tables(parts)


class _Known(NamedTuple):
    """What is known of the events of matches: numbers, texts by number, digests, and keys of rules that have them."""

    numbers: EventColumns
    texts: dict[str, pa.StringArray]
    digests: Digests
    keys: pa.DictionaryArray | None

    @classmethod
    def of(cls, rule: CepRule, events: pa.Table) -> "_Known":
        texts = {name: encode(events[name]) for name in ENCODED}
        types = pa.array(events["type"].to_numpy().astype(np.int32))
        names = [
            pa.DictionaryArray.from_arrays(types, pa.array(rule.type_names, pa.string())),
            texts["site"],
            texts["gateway"],
        ]
        made = digests(names, *(events[name].to_numpy() for name in ("boot", "seq")))
        columns = {name: texts[name].indices if name in ENCODED else events[name] for name in EventColumns._fields}
        numbers = EventColumns(*(column.to_numpy() for column in columns.values()))
        keys = encode(events["key"]) if rule.pattern.per_key else None
        return cls(numbers, {name: x.dictionary for name, x in texts.items()}, made, keys)


def _match_rows(rule: CepRule, at: Ints, known: _Known, status: str, probability: Floats | None) -> pa.Table:
    matches, places, placed = columns_of_matches(at, known.numbers)
    named = placed._asdict() | {"name": places}
    texts = known.texts | {"name": pa.array(rule.pattern.names, pa.string())}
    entries = [
        pa.DictionaryArray.from_arrays(pa.array(named[field.name]), texts[field.name])
        if field.name in texts
        else pa.array(named[field.name])
        for field in PLACE
    ]
    starts = pa.array(np.append(np.int32(0), matches.end))
    column_of = {
        "result_id": result_ids(rule.name, known.digests, at),
        "rule": repeated(rule.name, len(at)),
        "key": pa.nulls(len(at), TEXT) if known.keys is None else taken(pa.chunked_array([known.keys]), matches.first),
        "status": repeated(status, len(at)),
        "t_min": pa.array(matches.t_min),
        "t_max": pa.array(matches.t_max),
        "probability": pa.nulls(len(at), pa.float64())
        if probability is None
        else pa.array(probability, from_pandas=True),
        "events": pa.ListArray.from_arrays(starts, pa.StructArray.from_arrays(entries, fields=list(PLACE))),
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
