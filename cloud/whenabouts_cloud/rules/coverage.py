"""Which readings belong to which streams, for whole tables: every distinct triple of names is compared once.

The sides of a rule CORRELATE are its streams, less the readings whose keys do not satisfy the rule's conditions on them.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.epc.columns import word_column
from whenabouts_cloud.rules.model import CorrelateRule, Stream, TagIs, name_regex

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
TEXT = pa.dictionary(pa.int32(), pa.string())
_NOT_DERIVED = r"(?!\$)"


def covered(streams: Sequence[Stream], readings: pa.Table) -> Mask:
    """(readings, streams): True where a reading belongs to a stream. Needs the columns site, gateway and stream."""
    covers, triple = _covers(streams, readings)
    return covers[triple]


def sides_of(rule: CorrelateRule, readings: pa.Table) -> Mask:
    """(readings, 2): True where a reading is one of a, or of b. Needs the column key too."""
    sides = covered((rule.a, rule.b), readings)
    for number, tags in enumerate(rule.tags):
        if tags:
            at = np.flatnonzero(sides[:, number])
            sides[at, number] = tagged(tags, readings["key"].take(pa.array(at)))
    return sides


def tagged(tags: Sequence[TagIs], keys: Any) -> Mask:
    """True for the keys that satisfy all of these conditions."""
    encoded, satisfied = encode(keys), np.ones(len(keys), bool)
    for tag in tags:
        meant = word_column(encoded, tag.word)
        fits = [(text == tag.text) == tag.equal for text in meant.dictionary.to_pylist()]
        satisfied &= np.array([*fits, False])[meant.indices.fill_null(len(fits)).to_numpy(zero_copy_only=False)]
    return satisfied


def belongings(streams: Sequence[Stream], readings: pa.Table) -> tuple[Ints, Ints]:
    """(row, stream) of each reading and stream that it belongs to, by row and then by stream."""
    covers, triple = _covers(streams, readings)
    if covers.sum(axis=1).max() > 1:
        row, stream = np.nonzero(covers[triple])
        return row, stream
    only = np.where(covers.any(axis=1), covers.argmax(axis=1), -1)[triple]
    row = np.flatnonzero(only >= 0)
    return row, only[row]


def streams_in(names: Sequence[str]) -> pc.Expression:
    """True for stored readings of these streams; names or patterns as in rules, such as dock/tags and shelf/#."""
    plain = [name for name in names if not set(name) & {"+", "#"}]
    condition = pc.field("stream").isin(pa.array(plain, pa.string()))
    for pattern in (name for name in names if set(name) & {"+", "#"}):
        text = name_regex(pattern).removeprefix(_NOT_DERIVED)  # the library has no look-ahead
        mine = _matches(f"^(?:{text})\\z")  # not "$", which a line end at the end would pass too
        condition |= mine & ~_matches(r"^\$") if pattern[0] in "+#" else mine
    return condition


def _matches(regex: str) -> pc.Expression:
    return pc.match_substring_regex(pc.field("stream"), regex)


def _covers(streams: Sequence[Stream], readings: pa.Table) -> tuple[Mask, Ints]:
    """(triples, streams): True where a distinct triple of names belongs to a stream; and the triple of each reading."""
    site, gateway, stream = (encode(readings[name]) for name in ("site", "gateway", "stream"))
    named = [one.dictionary.to_pylist() for one in (site, gateway, stream)]
    places = [codes(site), codes(gateway), codes(stream)]
    if all(one.gateway is None for one in streams):
        named[1], places[1] = [""], np.zeros_like(places[1])  # few triples
    (sites, gateways, names), (at_site, at_gateway, at_stream) = named, places
    triple = (at_site * max(len(gateways), 1) + at_gateway) * max(len(names), 1) + at_stream
    distinct = pa.array(triple).dictionary_encode()
    covers = np.zeros((max(len(distinct.dictionary), 1), len(streams)), bool)
    for n, packed in enumerate(distinct.dictionary.to_pylist()):
        rest, one_stream = divmod(packed, len(names))
        one_site, one_gateway = divmod(rest, len(gateways))
        covers[n] = [one.matches(sites[one_site], gateways[one_gateway], names[one_stream]) for one in streams]
    return covers, codes(distinct)


def may_cover(streams: Sequence[Stream]) -> pc.Expression:
    """True for all readings that `covered` takes, and for few others: by what the statistics of files can decide."""
    return functools.reduce(operator.or_, (_may_cover(stream) for stream in streams))


def of_kinds(readings: pa.Table, kinds: Sequence[str]) -> Mask:
    """True for the readings of these kinds."""
    kind = encode(readings["kind"])
    mine = np.array([*(name in kinds for name in kind.dictionary.to_pylist()), False])
    at = kind.indices.fill_null(len(mine) - 1).to_numpy(zero_copy_only=False)
    of_these: Mask = mine[at]
    return of_these


def encode(column: Any) -> pa.DictionaryArray:
    """Dictionary-encode a column of texts, whose parts may be encoded already, each in its own way."""
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # in an older pyarrow, for no or several chunks
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        return column.cast(TEXT)
    return column.cast(pa.string()).dictionary_encode()


def taken(column: pa.ChunkedArray, rows: Any) -> pa.Array:
    """Rows of a column of numbers or texts; numpy takes them several times as fast as Arrow."""
    if pa.types.is_integer(column.type):
        return pa.array(column.to_numpy()[rows])
    encoded = encode(column)
    if encoded.null_count:
        return encoded.take(pa.array(rows))
    return pa.DictionaryArray.from_arrays(pa.array(encoded.indices.to_numpy()[rows]), encoded.dictionary)


def repeated(text: str, count: int) -> pa.DictionaryArray:
    """A column of one text."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text], pa.string()))


def codes(column: pa.DictionaryArray) -> Ints:
    """The indices of an encoded column without nulls."""
    numbers: Ints = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _may_cover(stream: Stream) -> pc.Expression:
    name = pc.field("stream")
    fixed = stream.pattern.partition("+")[0].partition("#")[0]
    if fixed == stream.pattern:
        wanted = name == fixed
    else:
        begin = fixed.removesuffix("/")  # "dock/#" covers "dock" too
        wanted = name >= begin
        if (end := _behind(begin)) is not None:
            wanted &= name < end
    for owner in ("site", "gateway"):
        if (only := getattr(stream, owner)) is not None:
            wanted &= pc.field(owner) == only
    return wanted


def _behind(begin: str) -> str | None:
    """The least text, in the order of its bytes, that is greater than all that begin so; None: there is none."""
    last = ord(begin[-1]) + 1 if begin else 0x110000
    if last > 0x10FFFF:
        return None if not begin else _behind(begin[:-1])
    return begin[:-1] + chr(0xE000 if last == 0xD800 else last)  # surrogates have no bytes
