"""Tables are divided among streams as single readings are."""

import dataclasses

import pyarrow as pa
import pytest

from whenabouts_cloud.rules.coverage import belongings, covered, encode, may_cover, of_kinds
from whenabouts_cloud.rules.model import Stream

NAMES = [
    "dock/tags",
    "shelf/1",
    "shelf/2/left",
    "shelf",
    "shelf/1\n",
    "shelf/1/2",
    "$rule/tags",
    "Shelf/1",
    "",
    "shelf.1",
]
EVERY = pa.Table.from_pylist(
    [{"site": s, "gateway": g, "stream": n} for s in ("hall", "shop") for g in ("g0", "g1") for n in NAMES]
)


@pytest.mark.parametrize("pattern", ["shelf/1", "shelf/+", "shelf/#", "+/tags", "#"])
def test_a_table_and_the_stream_agree_on_which_readings_belong_to_it(pattern):
    """Wildcards, line ends and derived streams, with and without a site or a gateway; columns plain or encoded in parts."""
    whole = Stream("s", pattern, 0)
    streams = [whole, dataclasses.replace(whole, site="hall"), dataclasses.replace(whole, site="hall", gateway="g1")]
    expected = [[one.matches(**named) for one in streams] for named in map(renamed, EVERY.to_pylist())]
    halves = [EVERY.slice(0, 7), EVERY.slice(7)]
    encoded = [pa.table({x: half[x].dictionary_encode() for x in half.schema.names}) for half in halves]
    for some in (EVERY, pa.concat_tables(encoded)):
        assert covered(streams, some).tolist() == expected
        for chosen in (streams, streams[2:]):  # of several streams at once, and of one
            row, stream = belongings(chosen, some)
            both = [(r, n) for r, ones in enumerate(expected) for n, one in enumerate(ones[-len(chosen) :]) if one]
            assert list(zip(row.tolist(), stream.tolist(), strict=True)) == both
    assert covered(streams, EVERY.slice(0, 0)).shape == (0, 3)


@pytest.mark.parametrize("pattern", ["shelf/1", "shelf/+", "shelf/#", "+/tags", "#", "a\ud7ff/+", "a\U0010ffff/#"])
def test_a_filter_of_files_keeps_every_reading_that_a_stream_covers(pattern):
    """And leaves out what differs in the fixed part of the name, in its site or its gateway; nulls belong to no stream."""
    odd = [{"site": "hall", "gateway": "g1", "stream": name} for name in ("a\ud7ff/x", "a\U0010ffff/\U0010ffff", None)]
    every = pa.concat_tables([EVERY, pa.Table.from_pylist(odd)])
    whole = Stream("s", pattern, 0)
    one = dataclasses.replace(whole, site="hall", gateway="g1")
    for streams in ([whole], [one], [one, Stream("t", "dock/tags", 0)]):
        kept = every.filter(may_cover(streams)).to_pylist()
        wanted = [x for x in every.to_pylist() if x["stream"] and any(s.matches(**renamed(x)) for s in streams)]
        assert [x for x in kept if x in wanted] == wanted
    kept = every.filter(may_cover([one])).to_pylist()
    assert {(x["site"], x["gateway"]) for x in kept} == {("hall", "g1")}
    if pattern.startswith("shelf"):
        assert all(x["stream"].startswith("shelf") for x in kept)


def renamed(row):
    return {"site": row["site"], "gateway": row["gateway"], "stream": row["stream"]}


def test_readings_of_some_kinds_are_marked():
    """A kind that nobody knows, and none."""
    kinds = pa.table({"kind": ["tag", "gap", None, "new", "tag"]})
    assert of_kinds(kinds, ["tag", "new"]).tolist() == [True, False, False, True, True]
    assert of_kinds(kinds.slice(0, 0), ["tag"]).tolist() == []


def test_parts_encoded_in_different_ways_become_one():
    """Codes mean the same in the whole column."""
    parts = [pa.array(["b", None]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()]
    assert encode(pa.chunked_array(parts)).to_pylist() == ["b", None, "a", "b"]
    assert encode(pa.chunked_array([], pa.string())).to_pylist() == []
