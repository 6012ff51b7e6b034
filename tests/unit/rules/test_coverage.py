"""Tables are divided among streams as single readings are."""

import dataclasses

import pyarrow as pa
import pytest

from whenabouts_cloud.rules.coverage import belongings, covered, encode, of_kinds
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
