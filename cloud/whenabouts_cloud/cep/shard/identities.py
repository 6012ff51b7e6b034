"""Identities of the events that an engine knows only by number, for all that may still be in a match, in few arrays.

An event gets the number by which the engine counts it. Repeats, with the same identity (site, gateway, boot, seq) and type,
get none. An event is forgotten when no event still to come can join it and no match waits with it. A repeat that arrives
after that is late by its gateway's watermark, so it does no harm.

Keys have numbers as well, because an engine takes numbers and texts must not be confused. A key keeps its number while one
of its events is stored. Gateways are numbered with their boot. Cost: 46 bytes an event; adding sorts old and new
identities.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.blobs import of_bytes, to_bytes
from whenabouts_cloud.cep.shard.events import EVENT, Ints, moved
from whenabouts_cloud.rules.coverage import codes, encode
from whenabouts_cloud.rules.model import CepRule

_NUMBERS = ("index", "type", "source", "stream", "seq", "t_min", "t_max", "key")
_TYPES = {"type": np.int16, "source": np.int32, "stream": np.int32, "key": np.int32}
_NO_KEY = -1


class Identities:
    """Identities, stamps and keys of events by the engine's number, in ascending order."""

    def __init__(self, rule: CepRule) -> None:
        self._rule = rule
        self.next = 0
        self._columns: dict[str, npt.NDArray[Any]] = {n: np.empty(0, _TYPES.get(n, np.int64)) for n in _NUMBERS}
        self._sources: list[tuple[str, str, int]] = []  # site, gateway, boot
        self._streams: list[str] = []
        self._keys = pa.array([], pa.string())
        self._key_numbers = np.empty(0, np.int64)
        self._next_key = 0

    def __len__(self) -> int:
        return len(self._columns["index"])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, without names and keys."""
        return sum(column.nbytes for column in self._columns.values())

    def add(self, events: pa.Table) -> tuple[Ints, Ints]:
        """Number events (EVENT); returns the rows that are no repeats, ascending, and the numbers of their keys."""
        new = {
            "type": events["type"].to_numpy(),
            "source": self._source_numbers(events),
            "seq": events["seq"].to_numpy(),
        }
        rows = self._first(new)
        if len(rows) < events.num_rows:
            events = events.take(pa.array(rows))
        new = {name: column[rows] for name, column in new.items()}
        new |= {name: events[name].to_numpy() for name in ("t_min", "t_max")}
        new["index"] = np.arange(self.next, self.next + len(rows))
        new["stream"] = self._stream_numbers(encode(events["stream"]))
        new["key"] = self._key_places(events["key"])
        self.next += len(rows)
        self._columns = {
            name: np.concatenate([old, new[name]]).astype(old.dtype, copy=False) for name, old in self._columns.items()
        }
        if not self._rule.pattern.per_key:
            return rows, np.zeros(len(rows), np.int64)
        return rows, self._key_numbers[new["key"]]

    def drop_last(self, count: int) -> None:
        """Remove the last `count` events; their numbers will be given again."""
        if count:
            self.next -= count
            self._columns = {name: column[:-count] for name, column in self._columns.items()}

    def rows(self, indices: Ints) -> pa.Table:
        """The stored events with these numbers, as a table of EVENT."""
        at = np.searchsorted(self._columns["index"], indices)
        if len(at) and (at.max() >= len(self) or not np.array_equal(self._columns["index"][at], indices)):
            raise LookupError("found a match of an event that is no longer stored, expected stored ones only")
        picked = {name: column[at] for name, column in self._columns.items()}
        site, gateway, boot = zip(*self._sources, strict=True) if self._sources else ((), (), ())
        source = pa.array(picked["source"])
        column_of = {
            "type": pa.array(picked["type"]),
            "site": pa.DictionaryArray.from_arrays(source, pa.array(site, pa.string())),
            "gateway": pa.DictionaryArray.from_arrays(source, pa.array(gateway, pa.string())),
            "boot": pa.array(boot, pa.int64()).take(source),
            "stream": pa.DictionaryArray.from_arrays(pa.array(picked["stream"]), pa.array(self._streams, pa.string())),
            "key": self._keys.take(pa.array(picked["key"], mask=picked["key"] == _NO_KEY)),
            **{name: pa.array(picked[name]) for name in ("seq", "t_min", "t_max")},
        }
        return pa.table([column_of[name] for name in EVENT.names], schema=EVENT)

    def rows_of(self, matches: Ints) -> tuple[pa.Table, Ints]:
        """The stored events of matches as a table of EVENT, and its row at each place; -1 stays where none is filled."""
        filled = matches >= 0
        numbers, at = _distinct(matches[filled])
        places = np.full(matches.shape, -1)
        places[filled] = at
        return self.rows(numbers), places

    def keys(self, numbers: Ints) -> pa.Array:
        """The keys with these numbers, of stored events."""
        return self._keys.take(pa.array(np.searchsorted(self._key_numbers, numbers)))

    def holds(self, indices: Ints) -> npt.NDArray[np.bool_]:
        """Mask of the numbers that are those of stored events, or -1 (no event)."""
        held: npt.NDArray[np.bool_] = np.isin(indices, self._columns["index"]) | (indices == -1)
        return held

    def keep_from(self, t_max_us: int, waiting: Ints | tuple[()] = ()) -> None:
        """Forget the events whose moved t_max is earlier, and names that only they had; but not those numbered `waiting`."""
        types = self._columns["type"]
        keep = moved(self._rule, types, self._columns["t_max"]) >= t_max_us
        keep[~keep] = np.isin(self._columns["index"][~keep], waiting)
        if keep.all():
            return
        self._columns = {name: column[keep] for name, column in self._columns.items()}
        self._columns["source"], used = _renumbered(self._columns["source"], len(self._sources))
        self._sources = [self._sources[n] for n in used.tolist()]
        self._columns["stream"], used = _renumbered(self._columns["stream"], len(self._streams))
        self._streams = [self._streams[n] for n in used.tolist()]
        keyed = self._columns["key"] != _NO_KEY
        places, used = _renumbered(self._columns["key"][keyed], len(self._keys))
        self._columns["key"][keyed] = places
        self._keys, self._key_numbers = self._keys.take(pa.array(used)), self._key_numbers[used]

    def snapshot(self) -> bytes:
        """The state as one Arrow IPC stream of arrays."""
        site, gateway, boot = zip(*self._sources, strict=True) if self._sources else ((), (), ())
        arrays = [pa.array(self._columns[name]) for name in _NUMBERS]
        arrays += [pa.array(site, pa.string()), pa.array(gateway, pa.string()), pa.array(boot, pa.int64())]
        arrays += [pa.array(self._streams, pa.string()), self._keys, pa.array(self._key_numbers)]
        arrays.append(pa.array([self.next, self._next_key]))
        wrapped = [pa.ListArray.from_arrays(pa.array([0, len(x)], pa.int32()), x) for x in arrays]
        return to_bytes(pa.table(wrapped, names=[str(n) for n in range(len(wrapped))]))

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot of the same rule."""
        table = of_bytes(snapshot)
        arrays = [column.chunk(0).values for column in table.columns]
        numbers, (site, gateway, boot, streams, keys, key_numbers, counters) = (
            arrays[: len(_NUMBERS)],
            arrays[len(_NUMBERS) :],
        )
        self._columns = {name: x.to_numpy().copy() for name, x in zip(_NUMBERS, numbers, strict=True)}
        self._sources = list(zip(site.to_pylist(), gateway.to_pylist(), boot.to_pylist(), strict=True))
        self._streams = streams.to_pylist()
        self._keys, self._key_numbers = keys, key_numbers.to_numpy().copy()
        self.next, self._next_key = counters.to_pylist()

    def _source_numbers(self, events: pa.Table) -> Ints:
        """The number of each event's site, gateway and boot; each distinct triple is looked up once."""
        site, gateway, boot = (encode(events["site"]), encode(events["gateway"]), _encoded_ints(events["boot"]))
        wide, long = max(len(gateway.dictionary), 1), max(len(boot.dictionary), 1)
        packed = pa.array((codes(site) * wide + codes(gateway)) * long + codes(boot)).dictionary_encode()
        sites, gateways, boots = (x.dictionary.to_pylist() for x in (site, gateway, boot))
        known = {source: n for n, source in enumerate(self._sources)}
        numbers = []
        for one in packed.dictionary.to_pylist():
            rest, b = divmod(one, long)
            s, g = divmod(rest, wide)
            numbers.append(known.setdefault((sites[s], gateways[g], boots[b]), len(known)))
        self._sources = list(known)
        return np.array(numbers, np.int64)[codes(packed)]

    def _stream_numbers(self, streams: pa.DictionaryArray) -> Ints:
        known = {name: n for n, name in enumerate(self._streams)}
        numbers = np.array([known.setdefault(name, len(known)) for name in streams.dictionary.to_pylist()], np.int64)
        self._streams = list(known)
        return numbers[codes(streams)]

    def _key_places(self, column: pa.ChunkedArray) -> Ints:
        """The place of each event's key in the list of keys; new keys are added."""
        encoded = encode(column)
        places = pc.index_in(encoded.dictionary, value_set=self._keys).fill_null(_NO_KEY).to_numpy(zero_copy_only=False)
        fresh = np.flatnonzero(places == _NO_KEY)
        places = places.astype(np.int64)
        places[fresh] = len(self._keys) + np.arange(len(fresh))
        self._keys = pa.concat_arrays([self._keys, encoded.dictionary.take(pa.array(fresh))])
        self._key_numbers = np.concatenate([self._key_numbers, self._next_key + np.arange(len(fresh))])
        self._next_key += len(fresh)
        at = encoded.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
        key_places: Ints = np.append(places, _NO_KEY)[at]
        return key_places

    def _first(self, new: dict[str, npt.NDArray[Any]]) -> Ints:
        """Rows of the new events that are the first of their identity among stored and new events."""
        types = len(self._rule.streams)
        source, of_type, seq = (
            np.concatenate([self._columns[name].astype(np.int64), new[name].astype(np.int64)])
            for name in ("source", "type", "seq")
        )
        group = source * types + of_type
        old = len(self)
        return first_of_each(group, seq, old)


def first_of_each(group: Ints, number: Ints, old: int) -> Ints:
    """Places, counted from `old`, of the rows from there on that are the first of their (group, number) among all rows."""
    if not len(group):
        return np.empty(0, np.int64)
    groups, low, high = int(group.max()) + 1, int(number.min()), int(number.max())
    if (high - low + 1) * groups < 1 << 62:
        packed = (number - low) * groups + group
        order = np.argsort(packed, kind="stable")
        ordered = packed[order]
        new = ordered[1:] != ordered[:-1]
    else:
        order = np.lexsort((group, number))
        new = (group[order][1:] != group[order][:-1]) | (number[order][1:] != number[order][:-1])
    first = np.zeros(len(group), bool)
    first[order[0]] = True
    first[order[1:][new]] = True
    return np.flatnonzero(first[old:])


def _distinct(numbers: Ints) -> tuple[Ints, Ints]:
    """The distinct numbers, ascending, and the place of each among them; sorted only if they are few of a wide range."""
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if high - low > 8 * len(numbers):
        return np.unique(numbers, return_inverse=True)
    found = np.zeros(high - low + 1, bool)
    found[numbers - low] = True
    places: Ints = np.cumsum(found)[numbers - low] - 1
    return np.flatnonzero(found) + low, places


def _encoded_ints(column: pa.ChunkedArray) -> pa.DictionaryArray:
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], column.type)
    return whole.dictionary_encode()


def _renumbered(numbers: npt.NDArray[Any], count: int) -> tuple[npt.NDArray[Any], Ints]:
    """The numbers renumbered without gaps, and the old numbers in use."""
    used = np.flatnonzero(np.bincount(numbers, minlength=count))
    place = np.zeros(max(count, 1), numbers.dtype)
    place[used] = np.arange(len(used))
    return place[numbers], used
