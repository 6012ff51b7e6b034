"""The landing in an object store, on a real S3 server: what a paused or killed ingest can still do harms nothing."""

import itertools
import json
from collections import Counter

import pytest

from support.cloud.ingest import NOW_US, at, batch, birth, heartbeat, reading
from support.cloud.s3 import BUCKET
from support.cloud.s3_proxy import s3_proxy
from whenabouts_cloud.frontier.gateways import latest_watermarks
from whenabouts_cloud.ingest import conditional
from whenabouts_cloud.ingest import dead_letter_files as files_module
from whenabouts_cloud.ingest import landing_writer as landing_module
from whenabouts_cloud.ingest import lease as lease_module
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.conditional import Conflict
from whenabouts_cloud.ingest.holding import LandingError, LandingLost
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.landing.history import everything, readings_of
from whenabouts_cloud.landing.index import START, PartIndex
from whenabouts_cloud.landing.layout import AHEAD, DATA, FRONTIER, Numbers, numbers_of, path_of
from whenabouts_cloud.landing.ranges import as_ranges
from whenabouts_cloud.landing.scan import read_piece
from whenabouts_cloud.landing.schema import of
from whenabouts_cloud.landing.store import Store

HOUR = "2026-09-21T14"
LEASE_S = 30.0


@pytest.fixture
def store(bucket_store):
    return bucket_store


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The clock of leases; waiting for one moves it."""
    now = [1000.0]
    monkeypatch.setattr(lease_module, "now_s", lambda: now[0])

    def sleep(duration_s):
        now[0] += duration_s

    monkeypatch.setattr(lease_module.acquire, "__defaults__", (LEASE_S, sleep))
    return now


def land(landing, *seqs):
    some = [reading("g1", 0, seq) for seq in seqs]
    return landing.write(some, as_ranges(("hall/g1", r.boot, r.seq) for r in some), NOW_US)


def landed(store):
    """How often each number of g1 is in the landing, as readers of the whole see it."""
    tables = [read_piece(store, one, of("seq")) for one in readings_of(everything(store))]
    return Counter(seq for table in tables for seq in table["seq"].to_pylist())


def numbers(store):
    """The numbers of all files, with how many files have each."""
    folders = (f"{kind}/hour={HOUR}".lstrip("/") for kind in (DATA, AHEAD, FRONTIER))
    names = (one.name for folder in folders for one in store.entries(folder))
    return Counter(found.first for name in names if (found := numbers_of(name)))


def known(landing):
    return sorted(
        seq for gateway, _, first, last in landing.recover() if gateway == "hall/g1" for seq in range(first, last + 1)
    )


def test_a_landing_in_a_bucket_is_written_and_read_as_one_in_a_folder(store, monkeypatch):
    """Readings, side output, frontiers, dead letters, snapshot and session; a restart knows all of it, without a wait."""
    monkeypatch.setattr(landing_module, "SNAPSHOT_EVERY", 3)
    landing = Landing(store)
    bridge = Bridge(landing, lambda: NOW_US + 10_000_000)
    bridge.take(at("g1", "birth"), birth("g1"), "birth")
    for first in range(0, 50, 10):
        bridge.take(at("g1"), batch("g1", 0, first, 10), first)
        bridge.take("nowhere", b"?", f"dead {first}")
        assert len(bridge.flush().tokens) == (3 if first == 0 else 2)
    bridge.take(at("g1", "heartbeat"), heartbeat("g1", 0, NOW_US, {0: (0, 49)}), "beat")
    bridge.flush()
    landing.close()
    assert landed(store) == Counter(range(50))
    assert latest_watermarks(store) == [("hall/g1", NOW_US, 0)]
    assert set(numbers(store)) == set(range(1, 1 + sum(numbers(store).values())))
    [letters] = store.entries("_dead")
    assert [json.loads(line)["topic"] for line in store.read(f"_dead/{letters.name}").splitlines()] == ["nowhere"] * 5
    again = Landing(store)
    assert (known(again), again.session) == (list(range(50)), landing.session)
    bridge = Bridge(again, lambda: NOW_US + 20_000_000)
    bridge.take(at("g1"), batch("g1", 0, 40, 20), "more")
    bridge.flush()
    assert landed(store) == Counter(range(60))


def test_a_second_ingest_is_refused_while_the_first_renews(store, clock):
    """With the name of its machine, and what to do."""
    first = Landing(store)

    def meanwhile(duration_s):
        clock[0] += duration_s
        first.keep()

    lease_module.acquire.__defaults__ = (LEASE_S, meanwhile)
    with pytest.raises(LandingError, match=r"landing s3://.*: another ingest, on .*, writes here; stop it, or give"):
        Landing(store)
    land(first, 0)


def test_a_killed_ingest_is_followed_by_another_that_knows_what_it_landed(store, clock):
    """After the duration of its lease; no number is used twice for readings."""
    for first in range(0, 6, 2):
        landing = Landing(store)  # and never closed
        assert known(landing) == list(range(first))
        land(landing, first)
        land(landing, first + 1)
    assert landed(store) == Counter(range(6))
    assert clock[0] >= 1000.0 + 2 * LEASE_S
    index = PartIndex(store)
    assert [file.numbers.first for file in index.after(START) if file.kind == DATA] == list(range(1, 9))


@pytest.mark.parametrize("kind", [DATA, AHEAD, FRONTIER])
def test_a_paused_ingest_that_wakes_up_between_its_check_and_its_write_finds_its_name_taken(store, kind):
    """Whatever kind its file is of: its number is taken under each name that the hour of its lease allows."""
    first = Landing(store)
    land(first, 0)
    second = Landing(store)
    with pytest.raises(Conflict):
        conditional.create(store, path_of(kind, HOUR, Numbers(2, 2)), b"late")
    land(second, 1)
    with pytest.raises(LandingLost, match="has taken over"):
        land(first, 2)
    with pytest.raises(LandingLost):
        first.write_frontiers([{"landed_us": NOW_US}])
    with pytest.raises(LandingLost):
        first.snapshot([])
    with pytest.raises(LandingLost):
        first.keep()
    first.close()
    land(second, 3)
    assert landed(store) == Counter([0, 1, 3])
    assert [numbers(store)[n] for n in range(1, 6)] == [1, 3, 1, 1, 0]


def test_a_write_that_comes_before_the_successor_has_occupied_its_name_counts(store, monkeypatch):
    """It was on its way when the lease was taken over: the successor knows its readings and goes on after it."""
    first, fence = Landing(store), Landing._fence
    land(first, 0)

    def late(successor):
        some = [reading("g1", 0, 1)]
        table = landing_module.to_table(some, NOW_US).replace_schema_metadata(
            {landing_module.RANGES_KEY: json.dumps(as_ranges([("hall/g1", 0, 1)]))}
        )
        conditional.create(store, path_of(DATA, HOUR, Numbers(2, 2)), landing_module._parquet(table))
        fence(successor)

    monkeypatch.setattr(Landing, "_fence", late)
    second = Landing(store)
    assert known(second) == [0, 1]
    land(second, 2)
    assert landed(store) == Counter(range(3))
    assert [numbers(store)[n] for n in range(1, 6)] == [1, 1, 3, 1, 0]


def test_a_successor_that_fails_before_it_has_occupied_the_names_leaves_that_to_the_next(store, monkeypatch):
    """The lease is not given back: the holder before both may still write."""
    first = Landing(store)
    land(first, 0)
    with monkeypatch.context() as patch:
        patch.setattr(landing_module, "_parquet", lambda _: (_ for _ in ()).throw(OSError("no memory")))
        with pytest.raises(LandingError, match="no memory"):
            Landing(store)
    third = Landing(store)
    with pytest.raises(Conflict):
        conditional.create(store, path_of(DATA, HOUR, Numbers(2, 2)), b"late")
    land(third, 1)
    assert landed(store) == Counter(range(2))


def test_a_file_whose_answer_was_lost_keeps_its_number_and_content(store):
    """A retry finds its own file; after an error the next write learns what became of it. Repeats have one identity."""
    with s3_proxy() as proxy:
        landing = Landing(Store.at(store.uri))
        land(landing, 0)
        proxy.lose = 1
        land(landing, 1)
        proxy.lose = 10
        with pytest.raises(OSError, match=r"."):
            land(landing, 2)
        proxy.lose = 0
        land(landing, 2, 3)
        landing.close()
    assert landed(store) == Counter([0, 1, 2, 2, 3])
    assert numbers(store) == Counter(range(1, 5))


def test_a_flush_takes_one_request_a_file(store):
    """Beside those that renew the lease and store the snapshot: one PUT for readings, one for frontiers."""
    with s3_proxy() as proxy:
        landing = Landing(Store.at(store.uri))
        now_us = itertools.count(NOW_US, 2_000_000)
        bridge = Bridge(landing, lambda: next(now_us))
        bridge.take(at("g1", "birth"), birth("g1"), None)
        bridge.flush()
        for count in range(3):
            bridge.take(at("g1"), batch("g1", 0, count * 10, 10), None)
            bridge.take(at("g1", "heartbeat"), heartbeat("g1", 0, NOW_US + count, {0: (0, count * 10 + 9)}), None)
            before = len(proxy.requests)
            bridge.flush()
            asked = [(method, path.rpartition("/")[2]) for method, path in proxy.requests[before:]]
            renewal = [("PUT", "lease")] if count == 0 else []  # with the hour
            first = 2 * count + 1
            files = [("PUT", f"part-{first:08d}.parquet"), ("PUT", f"part-{first + 1:08d}.json")]
            assert asked == [*renewal, *files]
        before = len(proxy.requests)
        bridge.take("nowhere", b"?", None)
        bridge.flush()
        bridge.take("nowhere", b"?", None)
        bridge.flush()
        methods = Counter(method for method, path in proxy.requests[before:] if "letters" in path)
        assert methods["PUT"] == 2
        landing.close()


def test_dead_letters_of_several_starts_have_one_limit(store, monkeypatch, caplog):
    """Each start begins an object of its own; when all are full further letters are counted."""
    monkeypatch.setattr(files_module, "MAX_OBJECTS", 2)
    for start in range(3):
        landing = Landing(store)
        bridge = Bridge(landing, lambda: NOW_US)
        for _ in range(2):
            bridge.take("nowhere", b"?", None)
            bridge.flush()
        landing.close()
        assert bridge.counters.dead_dropped == (2 if start == 2 else 0)
    names = sorted(one.name for one in store.entries("_dead"))
    assert [name[:12] for name in names] == ["letters-0001", "letters-0002"]
    assert [len(store.read(f"_dead/{name}").splitlines()) for name in names] == [2, 2]
    assert len([r for r in caplog.records if r.event == "dead_letters.full"]) == 1


def test_another_file_under_the_next_number_ends_the_ingest_with_a_sentence(store):
    """Nothing is overwritten; after a restart it goes on behind that file."""
    landing = Landing(store)
    land(landing, 0)
    table = landing_module.to_table([reading("g1", 0, 7)], NOW_US).replace_schema_metadata(
        {landing_module.RANGES_KEY: "[]"}
    )
    store.write(path_of(DATA, HOUR, Numbers(2, 2)), landing_module._parquet(table))
    with pytest.raises(
        LandingError, match="whose number is the next of this ingest; does another program write"
    ) as found:
        land(landing, 1)
    assert not isinstance(found.value, LandingLost)
    landing.close()
    land(Landing(store), 1)
    assert landed(store) == Counter([0, 7, 1])


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("hdfs://host/landing", "an ingest needs a store that writes under a condition"),
        (f"s3://not-{BUCKET}/landing", "cannot be used"),
    ],
)
def test_a_store_that_cannot_serve_is_named(bucket, uri, text):
    """Stores without conditions, and buckets that do not exist."""
    with pytest.raises(LandingError, match=text):
        Landing(Store(uri, Store.at(bucket).variables))
