"""Closed hours become few sorted files, and no reader sees a difference: whatever is killed, read or damaged meanwhile."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from support.child import environment
from support.cloud.ingest import NOW_US, at, batch
from support.cloud.landing import land, reading
from support.cloud.parts import Part
from support.cloud.s3 import BUCKET, s3_server
from whenabouts_cloud.cli import main
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.jobs.output.left_out import note_left_out
from whenabouts_cloud.landing import compaction
from whenabouts_cloud.landing.compaction import compact
from whenabouts_cloud.landing.damage import check, record_of
from whenabouts_cloud.landing.files import RANGES_KEY, DamagedFileError, check_file
from whenabouts_cloud.landing.history import History, frontiers_of, readings_of
from whenabouts_cloud.landing.scan import frontiers_in, read_piece
from whenabouts_cloud.landing.schema import SCHEMA
from whenabouts_cloud.landing.store import Store

HOUR_NS = 3_600 * 10**9


def later(hours=2):
    return time.time_ns() + hours * HOUR_NS


def content(store, start=None):
    """All readings, and what was said of frontiers, as a reader sees them."""
    history = History(store)
    end = history.latest(start or {})
    pieces = history.pieces(start or {}, end)
    rows = [
        tuple(map(str, row.values()))
        for one in readings_of(pieces)
        for row in read_piece(store, one, SCHEMA).to_pylist()
    ]
    said = [(one["gateway"], one["frontier_us"]) for one in frontiers_in(store, frontiers_of(pieces))]
    return Counter(rows), max(said, default=None), end


def ingested(folder, hours=3, each=40):
    """A landing that an ingest has written: some files an hour, the last hour is open."""
    now = [NOW_US]
    bridge = Bridge(landing := Landing(folder), lambda: now[0], ahead_margin_us=10**15)
    for hour in range(hours):
        for n in range(each):
            now[0] = NOW_US + hour * 3_600_000_000 + n * 2_000_000
            bridge.take(at(f"g{n % 3}"), batch(f"g{n % 3}", 0, (hour * each + n) * 5, 5), None)
            bridge.flush()
    landing.close()
    return Store.at(folder)


@pytest.fixture(scope="module")
def bucket():
    with s3_server():
        yield f"s3://{BUCKET}/compaction"


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_closed_hours_become_one_sorted_file_each_and_originals_go_after_the_grace(tmp_path, place, request):
    """The last hour stays as it is; a second run deletes what the first has replaced, a third does nothing."""
    each = 40 if place == "folder" else 8
    store = ingested(tmp_path / "l", each=each)
    if place == "bucket":
        local, store = store, Store.at(request.getfixturevalue("bucket"))
        for path in sorted(local.local.rglob("part-*")):
            store.write(path.relative_to(local.local).as_posix(), path.read_bytes())
    before = content(store)
    first = compact(store, time.time_ns(), HOUR_NS)
    assert (first.into, first.readings, first.deleted) == (2, 2 * each * 5, 0)
    assert content(store)[:2] == before[:2]
    second = compact(store, later(), HOUR_NS)
    assert (second.merged, second.deleted) == (0, first.merged)
    assert content(store)[:2] == before[:2]
    assert compact(store, later(), HOUR_NS) == compaction.Done()
    hours = sorted(one.name for one in store.entries() if one.name.startswith("hour="))
    assert [len(store.entries(hour)) for hour in hours] == [1, 1, each]
    [name] = [one.name for one in store.entries(hours[0])]
    with store.open(f"{hours[0]}/{name}") as file:
        rows = pq.ParquetFile(file).read(columns=["stream", "t_min"]).to_pylist()
    assert rows == sorted(rows, key=lambda row: (row["stream"], row["t_min"]))


@pytest.mark.parametrize("note", ["kept", "lost", "damaged"])
def test_a_run_lists_only_the_hours_that_may_have_something_to_do(tmp_path, monkeypatch, note):
    """Three hours are done and one is new: with the note of the run before only this one is listed, else all are."""
    store = ingested(tmp_path, hours=4, each=6)
    compact(store, time.time_ns(), HOUR_NS)
    compact(store, later(), HOUR_NS)
    part = Part(tmp_path)
    part.number, part.hour = 1000, 24 * 9
    part.data()
    if note != "kept":
        (tmp_path / compaction.MARK).unlink() if note == "lost" else (tmp_path / compaction.MARK).write_bytes(
            b"zzz\xff"
        )
    before, listed, entries = content(store), [], Store.entries
    monkeypatch.setattr(Store, "entries", lambda self, folder="": listed.append(folder) or entries(self, folder))
    assert compact(store, later(), HOUR_NS).into == 1
    assert sum("hour=" in folder for folder in listed) == (1 if note == "kept" else 4)
    assert content(store)[:2] == before[:2]


def test_a_reader_in_the_middle_of_an_hour_reads_the_rest_of_it_from_the_merged_file(tmp_path):
    """At every number: what was read before and what is read after are all readings, each once."""
    part, store = Part(tmp_path), Store.at(tmp_path)
    for n in range(12):
        part.frontier() if n % 4 == 3 else part.data()
    history, offsets = History(store), []
    for number in range(1, 13):
        end = history.latest({})
        offsets.append({".": end["."] | {"number": number}})
    halves = [[content(store, start)[0], start] for start in offsets]
    part.hour += 1
    part.data()
    compact(store, time.time_ns(), HOUR_NS)
    for remaining, start in halves:
        extra = content(store, start)[0] - remaining
        assert len(extra) == 2, "the two readings of the file that came later"
    compact(store, later(), HOUR_NS)
    for remaining, start in halves:
        assert len(content(store, start)[0] - remaining) == 2
        assert not remaining - content(store, start)[0]


CHILD = """
import sys, time
from whenabouts_cloud.landing import compaction
from whenabouts_cloud.landing.store import Store
print("ready", flush=True)
sys.stdin.readline()
for _ in range(2):
    compaction.compact(Store.at(sys.argv[1]), time.time_ns() + 10**13, 0)
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_kill_at_any_moment_loses_and_doubles_nothing_for_any_reader(tmp_path, seed):
    """SIGKILL at moments spread over the whole run; after each, a new reader and one in the middle see all; then it ends."""
    store = ingested(tmp_path / "l", hours=5, each=12)
    before = content(store)
    kills = 0
    for n in range(12):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, store.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
        )
        child.stdout.readline()
        child.stdin.write(b"\n")
        child.stdin.flush()
        try:
            child.wait((n * 3 + seed) * 0.004)
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
            kills += 1
        child.wait()
        child.stdin.close()
        child.stdout.close()
        assert content(store)[:2] == before[:2]
    assert kills > 3
    done = CliRunner().invoke(main, ["compact", "--landing", store.uri, "--grace", "0s", "--json"])
    assert done.exit_code == 0, done.output
    compact(store, later(), 0)
    assert content(store)[:2] == before[:2]
    hours = sorted((tmp_path / "l").glob("hour=*"))
    assert [len(list(hour.glob("part-*"))) for hour in hours[:-1]] == [1] * 4


def test_a_second_run_at_the_same_time_leaves_a_part_to_the_first(tmp_path, monkeypatch):
    """It begins while the first is writing a merged file, which both would write under the same hidden name."""
    store, second = ingested(tmp_path, hours=2, each=6), []
    (tmp_path / "ingest=other").mkdir()
    before, ranges = content(store), compaction.numbers_in

    def meanwhile(tables):
        monkeypatch.setattr(compaction, "numbers_in", ranges)
        thread = threading.Thread(target=lambda: second.append(compact(store, time.time_ns(), HOUR_NS)))
        thread.start()
        thread.join()
        return ranges(tables)

    monkeypatch.setattr(compaction, "numbers_in", meanwhile)
    first = compact(store, time.time_ns(), HOUR_NS)
    assert (first.into, first.busy) == (1, ())
    assert second == [compaction.Done(busy=("",))]
    assert check(tmp_path).found == []
    assert content(store)[:2] == before[:2]


def test_an_ingest_that_starts_meanwhile_leaves_the_half_file_to_the_run(tmp_path, monkeypatch):
    """It removes only what an ingest has left."""
    store, ranges = ingested(tmp_path, hours=2, each=6), compaction.numbers_in
    before = content(store)

    def meanwhile(tables):
        Landing(tmp_path).close()
        return ranges(tables)

    monkeypatch.setattr(compaction, "numbers_in", meanwhile)
    assert compact(store, time.time_ns(), HOUR_NS).into == 1
    assert content(store)[:2] == before[:2]


def test_the_half_file_of_a_killed_run_is_removed_by_the_next_one(tmp_path):
    """Of readings and of frontiers, whatever the next one merges; an ingest's stays."""
    store = ingested(tmp_path, hours=2, each=6)
    hour = min(one.name for one in store.entries() if one.name.startswith("hour="))
    halves = [
        tmp_path / hour / ".part-00000001-00000005.parquet",
        tmp_path / f"_frontier/{hour}/.part-00000001-00000003.json",
    ]
    own = tmp_path / hour / ".part-00000009.parquet"
    for path in (*halves, own):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1")
    compact(store, time.time_ns(), HOUR_NS)
    assert [path.exists() for path in (*halves, own)] == [False, False, True]


def test_an_ingest_goes_on_beside_it_and_restarts_after_it(tmp_path):
    """Its ledger still knows every reading, although the files it was rebuilt from are merged."""
    store = ingested(tmp_path / "l")
    compact(store, time.time_ns(), 0)
    compact(store, later(), 0)
    bridge = Bridge(landing := Landing(tmp_path / "l"), lambda: NOW_US + 3 * 3_600_000_000)
    bridge.take(at("g0"), batch("g0", 0, 0, 5), None)
    bridge.take(at("g0"), batch("g0", 0, 10_000, 5), None)
    bridge.flush()
    landing.close()
    assert (bridge.counters.repeats, bridge.counters.landed) == (5, 5)
    done = CliRunner().invoke(main, ["landing", "check", "--landing", store.uri, "--json"])
    assert json.loads(done.stdout)["found"] == []


def test_a_damaged_file_stays_as_it_is_and_is_named(tmp_path):
    """What lies before and after it is merged; nothing hides it."""
    paths = [land(tmp_path, [reading("g", n, "s", "k", n, n)], hour="2026-11-20T01") for n in range(7)]
    land(tmp_path, [reading("g", 9, "s", "k", 9, 9)], hour="2026-11-20T02")
    paths[3].write_bytes(paths[3].read_bytes()[:-50])
    store = Store.at(tmp_path)
    compact(store, time.time_ns(), 0)
    compact(store, later(), 0)
    names = sorted(path.name for path in paths[0].parent.iterdir())
    assert names == ["part-00000001-00000003.parquet", "part-00000004.parquet", "part-00000005-00000007.parquet"]


def test_a_file_whose_footer_differs_from_its_checksum_is_not_merged(tmp_path):
    """Jobs leave it out; merged, its readings would come back, perhaps altered, under whole checksums."""
    store = ingested(tmp_path, hours=2, each=7)
    path = sorted(tmp_path.glob("hour=*/part-*.parquet"))[3]
    path.write_bytes(path.read_bytes().replace(b"vclock", b"vclocj"))
    [text] = compact(store, later(), 0).unreadable
    assert text.startswith(f"{path.relative_to(tmp_path)}: found no whole Parquet file (its footer differs")
    compact(store, later(), 0)
    names = sorted(one.name for one in path.parent.iterdir())
    assert names == ["part-00000001-00000003.parquet", "part-00000004.parquet", "part-00000005-00000007.parquet"]


@pytest.mark.parametrize("by", ["a job", "a repair"])
@pytest.mark.parametrize("back", ["before", "after"])
def test_a_file_that_jobs_do_not_read_again_stays_until_a_repair_has_renamed_it(tmp_path, by, back):
    """It was damaged, and is put back whole, before or after the others are merged."""
    store = ingested(tmp_path, hours=2, each=7)
    path = sorted(tmp_path.glob("hour=*/part-*.parquet"))[3]
    name = path.relative_to(tmp_path).as_posix()
    if by == "a job":
        note_left_out(store, [name])
    else:
        record_of(tmp_path, name).parent.mkdir(parents=True)
        record_of(tmp_path, name).write_text("{}")
    if back == "after":
        path.rename(tmp_path / "_kept")
    done = compact(store, time.time_ns(), 0)
    if back == "after":
        (tmp_path / "_kept").rename(path)
    else:
        assert done.unreadable[0].startswith(f"{name}: it was left out or moved")
    compact(store, later(), 0)
    assert [(one.file, one.kind) for one in check(tmp_path).found] == [(name, "unseen")]
    assert len(list(path.parent.iterdir())) == (3 if back == "before" else 2)


def test_an_empty_file_that_a_job_has_left_out_is_merged(tmp_path):
    """As a loss of power leaves it: it has no readings that a job could miss, and no check tells of it."""
    store = ingested(tmp_path, hours=2, each=3)
    path = sorted(tmp_path.glob("hour=*/part-*.parquet"))[1]
    pq.write_table(SCHEMA.empty_table().replace_schema_metadata({RANGES_KEY: "[]"}), path)
    note_left_out(store, [path.relative_to(tmp_path).as_posix()])
    done = compact(store, time.time_ns(), 0)
    assert (done.merged, done.into, done.unreadable) == (3, 1, ())


def test_large_hours_become_several_files(tmp_path, monkeypatch):
    """A merged file is sorted in memory: it has a limited number of readings."""
    monkeypatch.setattr(compaction, "MOST_ROWS", 7)
    part, store = Part(tmp_path), Store.at(tmp_path)
    for _ in range(8):
        part.data()
    part.hour += 1
    part.data()
    before = content(store)[0]
    compact(store, time.time_ns(), 0)
    compact(store, later(), 0)
    hour = next(tmp_path.glob("hour=2026-11-20T00"))
    assert sorted(path.name for path in hour.iterdir()) == [
        f"part-{first:08d}-{last:08d}.parquet" for first, last in ((1, 3), (4, 6), (7, 8))
    ]
    assert content(store)[0] == before


@pytest.mark.parametrize("name", [b"vclock", b"clock_state"])
def test_originals_stay_while_the_merged_file_is_damaged_anywhere(tmp_path, name):
    """In its footer, whose names of columns nobody else checks; then what was merged is read from no file at all."""
    store = ingested(tmp_path, hours=2, each=7)
    originals = sorted(tmp_path.glob("hour=*/part-*.parquet"))[:7]
    compact(store, time.time_ns(), 0)
    [merged] = [path for path in originals[0].parent.iterdir() if path not in originals]
    merged.write_bytes(merged.read_bytes().replace(name, name[:-1] + b"j"))
    compact(store, later(), 0)
    assert all(path.exists() for path in originals)


def test_originals_stay_while_a_page_of_the_merged_file_is_damaged(tmp_path):
    """Of whatever column: each bit of a page is covered by its checksum."""
    store = ingested(tmp_path, hours=2, each=7)
    originals = sorted(tmp_path.glob("hour=*/part-*.parquet"))[:7]
    compact(store, time.time_ns(), 0)
    [merged] = [path for path in originals[0].parent.iterdir() if path not in originals]
    content = merged.read_bytes()
    group = pq.ParquetFile(merged).metadata.row_group(0)
    for number in range(group.num_columns):
        column = group.column(number)
        at = column.data_page_offset + column.total_compressed_size // 2
        merged.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with contextlib.suppress(DamagedFileError):
            check_file(store, merged.relative_to(tmp_path).as_posix())
            continue  # this bit is none that is read
        compact(store, later(), 0)
        assert all(path.exists() for path in originals), column.path_in_schema
