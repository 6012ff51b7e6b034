"""Reading health records (`whenabouts_cloud.health.reader`): stretches of time, and what is new."""

import json

import pytest

from support.cloud.landing import land, reading
from whenabouts_cloud.health import reader as reader_module
from whenabouts_cloud.health.reader import Follower, records
from whenabouts_cloud.health.records import hour_of
from whenabouts_cloud.landing.files import data_files
from whenabouts_cloud.landing.history import everything
from whenabouts_cloud.landing.store import Store

H = 3_600_000_000
AT = 500_000 * H


def line(at_us, gateway="g1", kind="status", **more):
    return json.dumps({"type": kind, "at_us": at_us, "site": "s", "gateway": gateway, "boot": 1} | more) + "\n"


def put(store, hour_us, text, name="part-a-0001.jsonl", part=""):
    folder = f"{part}/_health" if part else "_health"
    data = text if type(text) is bytes else text.encode()
    store.write(f"{folder}/hour={hour_of(hour_us)}/{name}", data)


@pytest.fixture
def store(place):
    """A landing in a folder, and one in an object store."""
    return Store.at(place)


def test_a_stretch_of_time_has_the_records_of_all_parts_hour_by_hour(store):
    """Both ends belong to it; types can be chosen; only the hours that it touches are opened."""
    for n in range(3):
        put(store, AT + n * H, line(AT + n * H) + line(AT + n * H + 5, kind="birth"))
    put(store, AT + H, line(AT + H, "g2"), part="ingest=b")
    put(store, AT + 9 * H, line(AT + H, "in the wrong hour"))
    assert [(r["gateway"], r["type"], r["at_us"] - AT) for r in records(store, AT + 1, AT + 2 * H)] == [
        ("g1", "birth", 5), ("g1", "status", H), ("g1", "birth", H + 5), ("g2", "status", H), ("g1", "status", 2 * H),
    ]  # fmt: skip
    assert [r["at_us"] - AT for r in records(store, AT, AT + 2 * H, ["birth"])] == [5, H + 5]
    assert list(records(store, -(1 << 63), -1)) == []
    assert len(list(records(store, -(1 << 63), (1 << 63) - 1))) == 8


def test_what_is_no_record_is_skipped(store, monkeypatch):
    """Torn, foreign and endless lines, other files; a landing without records has none."""
    assert list(records(store, 0, 1 << 60)) == []
    monkeypatch.setattr(reader_module, "READ_BYTES", 400)
    good = line(AT)
    put(store, AT, f"\n[]\n{{\nnull\n{'9' * 5000}\n{'[' * 3000}\n{good}\xff\x00\n{good[:20]}\n{good}{good[:-1]}")
    put(store, AT, good, name=".part-hidden.jsonl")
    put(store, AT, good, name="part-a.json")
    assert len(list(records(store, 0, 1 << 60))) == 2
    assert len(Follower(store).new()) == 2


def test_a_follower_returns_each_record_once(store):
    """
    first    the last two hours with records, of three      later   what was added, a torn line once it is whole
    """
    now = [0.0]
    follower = Follower(store, lambda: now[0])
    assert follower.new() == []
    for n in range(3):
        put(store, AT + n * H, line(AT + n * H))
    now[0] += 100
    assert [r["at_us"] - AT for r in follower.new()] == [H, 2 * H]
    now[0] += 100
    assert follower.new() == []
    more = line(AT + 2 * H, "g2")
    put(store, AT + 2 * H, line(AT + 2 * H) + more[:30])
    put(store, AT + H, line(AT + H) + line(AT + H, "late"))
    now[0] += 100
    assert [r["gateway"] for r in follower.new()] == ["late"]
    put(store, AT + 2 * H, line(AT + 2 * H) + more)
    put(store, AT + 3 * H, line(AT + 3 * H, "g3"))
    put(store, AT + 3 * H, line(AT + 3 * H, "b"), part="ingest=b")
    now[0] += 100
    assert sorted(r["gateway"] for r in follower.new()) == ["b", "g2", "g3"]


def test_an_object_store_is_not_asked_more_often_than_it_is_written(bucket_store):
    """Until then there is nothing new."""
    store, now = bucket_store, [0.0]
    follower = Follower(store, lambda: now[0])
    assert follower.new() == []
    put(store, AT, line(AT))
    now[0] += 1
    assert follower.new() == []
    now[0] += 60
    assert len(follower.new()) == 1


def test_a_follower_returns_many_records_in_pieces(tmp_path, monkeypatch):
    """None twice, none left out."""
    monkeypatch.setattr(reader_module, "MAX_NEW", 100)
    monkeypatch.setattr(reader_module, "READ_BYTES", 2000)
    store = Store.at(tmp_path)
    put(store, AT, "".join(line(AT + n) for n in range(500)))
    follower, found = Follower(store), []
    while some := follower.new():
        assert len(some) < 200
        found += [r["at_us"] - AT for r in some]
    assert found == list(range(500))


def test_readers_of_readings_do_not_see_health_records(tmp_path):
    """Jobs and the check; not even a file of theirs in its folder."""
    land(tmp_path, [reading("g", 1, "s", "k", 1, 1)])
    store = Store.at(tmp_path)
    expected = list(data_files(tmp_path))
    put(store, AT, line(AT))
    (tmp_path / "_health" / "part-00000002.parquet").write_bytes(expected[0].read_bytes())
    assert list(data_files(tmp_path)) == expected
    assert len(everything(store)) == 1
