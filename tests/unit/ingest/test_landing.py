"""The landing on a real file system: files whole or absent, recovery equal to the rows on disk, clear refusals."""

import errno
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from support.cloud.ingest import NOW_US, SITE, at, batch, birth, files, identities, letters, reading
from whenabouts_cloud import durable
from whenabouts_cloud.ingest import landing_writer as landing_module
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.holding import LandingError
from whenabouts_cloud.ingest.landing_writer import FRONTIER_KEPT_US, Landing
from whenabouts_cloud.landing.compaction import compact
from whenabouts_cloud.landing.damage import check
from whenabouts_cloud.landing.history import History
from whenabouts_cloud.landing.ranges import as_ranges
from whenabouts_cloud.landing.running_mark import RunningMark
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol import Reading

HOUR_US = 3_600_000_000


def land(landing: Landing, gateway: str, first: int, count: int, now_us: int = NOW_US) -> Path:
    readings = [reading(gateway, 0, seq) for seq in range(first, first + count)]
    return landing.folder / landing.write(readings, as_ranges(r.identity for r in readings), now_us)


def number(path: Path) -> int:
    return int(path.stem.split("-")[1])


def child(code: str, *arguments: object, before: Sequence[str] = ()) -> subprocess.CompletedProcess:
    """Python that ran this; `before`: the command that starts it."""
    return subprocess.run(
        [*before, sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.deep)])
def test_a_writer_killed_again_and_again_leaves_only_whole_files_that_the_ledger_knows(tmp_path, seed):
    """SIGKILL at 25 random moments: every file reads, no row twice, all acknowledged there, recovery equals the rows."""
    done = subprocess.run(
        [sys.executable, "-m", "support.cloud.ingest_writer", str(tmp_path), "25", str(seed)], capture_output=True,
        text=True, timeout=120, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    acknowledged = int(done.stdout)
    rows = identities(tmp_path)
    assert len(rows) == len(set(rows))
    assert {seq for _, _, seq in rows} >= set(range(acknowledged + 1))
    assert acknowledged > 25
    numbers = [number(path) for path in files(tmp_path)]
    assert len(numbers) == len(set(numbers))
    landing = Landing(tmp_path)
    assert not list(tmp_path.rglob(".part-*"))
    recovered = [(g.split("/")[1], b, n) for g, b, first, last in landing.recover() for n in range(first, last + 1)]
    assert sorted(recovered) == sorted(rows)
    assert number(land(landing, "g2", 0, 1)) == max(numbers) + 2  # one number is given to nothing, as it was killed
    assert all(letter["reason"] == "topic" for letter in letters(tmp_path)[:-1])


def test_leftovers_of_a_crash_are_removed_at_the_next_start(tmp_path):
    """Hidden half files go, whole ones stay."""
    landing = Landing(tmp_path)
    whole = land(landing, "g1", 0, 3)
    landing.close()
    half, frontier = (
        whole.with_name(".part-00000002.parquet"),
        tmp_path / "_frontier" / "hour=2026-09-21T14" / ".part-00000003.json",
    )
    half.write_bytes(whole.read_bytes()[:100])
    frontier.parent.mkdir(parents=True)
    frontier.write_text("{")
    Landing(tmp_path)
    assert whole.exists()
    assert not half.exists()
    assert not frontier.exists()


def test_a_half_file_that_another_program_renames_during_a_start_stops_no_ingest(tmp_path, monkeypatch):
    """It is gone when the start has listed it and would remove it."""
    landing = Landing(tmp_path)
    whole = land(landing, "g1", 0, 3)
    landing.close()
    half, unlink = whole.with_name(".part-00000002.parquet"), Path.unlink
    half.write_bytes(b"PAR1")

    def renamed_first(path, missing_ok=False):
        if path == half:
            half.rename(half.with_name("other"))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", renamed_first)
    Landing(tmp_path)
    assert not half.exists()


def test_an_hour_that_is_deleted_during_a_start_stops_no_ingest(tmp_path, monkeypatch):
    """It is gone when the start has listed it and looks for half files in it."""
    landing = Landing(tmp_path)
    hour = land(landing, "g1", 0, 3).parent
    landing.close()

    def then_deleted(look, given):
        def looked(path="."):
            if isinstance(path, int) or Path(path) != tmp_path:
                return look(path)
            found = list(look(path))
            shutil.rmtree(hour, ignore_errors=True)
            return given(found)

        return looked

    def marked(folder):
        mark = RunningMark(folder)
        monkeypatch.setattr("os.listdir", then_deleted(os.listdir, list))
        monkeypatch.setattr("os.scandir", then_deleted(os.scandir, nullcontext))
        return mark

    monkeypatch.setattr("whenabouts_cloud.ingest.holding.RunningMark", marked)
    Landing(tmp_path)
    assert not hour.exists()


def test_numbers_and_ledger_survive_a_clock_that_is_put_back(tmp_path, monkeypatch):
    """hour:   5        6 (snapshot)      5 again: the hours of folders do not go back"""
    monkeypatch.setattr(landing_module, "SNAPSHOT_EVERY", 2)
    bridge_time = [NOW_US]
    far_us = 10**15  # no reading counts as ahead
    bridge = Bridge(landing := Landing(tmp_path), lambda: bridge_time[0], ahead_margin_us=far_us)
    for step, hours in enumerate((0, 1, 0, 1, 0, -30)):
        bridge_time[0] = NOW_US + hours * HOUR_US
        bridge.take(at("g1"), batch("g1", 0, step * 4, 4), None)
        bridge.flush()
    landing.close()
    again = Landing(tmp_path)
    bridge = Bridge(again, lambda: NOW_US + 2 * HOUR_US)
    bridge.take(at("g1"), batch("g1", 0, 0, 30), None)
    bridge.flush()
    rows = identities(tmp_path)
    assert sorted(rows) == [("g1", 0, seq) for seq in range(30)]
    numbers = [(number(path), path.parent.name) for path in files(tmp_path)]
    assert [n for n, _ in sorted(numbers)] == sorted({n for n, _ in numbers})
    assert [hour for _, hour in sorted(numbers)] == sorted(hour for _, hour in numbers)
    assert len({hour for _, hour in numbers}) == 3


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"upto": "1", "since": "", "ranges": []}', "\ufffd"])
def test_a_damaged_snapshot_is_reported_and_can_be_deleted(tmp_path, text):
    """The error names file and cure; after the cure the files show what has landed."""
    landing = Landing(tmp_path)
    land(landing, "g1", 0, 3)
    landing.close()
    (tmp_path / "_ingest" / "ledger.json").write_text(text)
    with pytest.raises(LandingError, match=r"_ingest/ledger.json is damaged .* delete it"):
        Landing(tmp_path)
    (tmp_path / "_ingest" / "ledger.json").unlink()
    assert list(Landing(tmp_path).recover()) == [("g1", 0, 0, 2)]


@pytest.mark.parametrize("content", [b"", b"PAR1", "foreign", "a link to nothing"])
def test_a_damaged_data_file_is_named(tmp_path, content):
    """A file without the end of Parquet, or without our numbers, is named, with what to do."""
    landing = Landing(tmp_path)
    path = land(landing, "g1", 0, 3)
    landing.close()
    if content == "foreign":
        pq.write_table(pa.table({"x": [1]}), path)
    elif content == "a link to nothing":
        path.unlink()
        path.symlink_to("nothing")
    else:
        path.write_bytes(content)
    with pytest.raises(LandingError, match=r"part-00000001.parquet is damaged .* landing check --landing .* --repair"):
        list(Landing(tmp_path).recover())


def test_a_start_finds_the_numbers_of_files_that_are_merged_and_deleted_while_it_reads(tmp_path):
    """It has listed them; then the merged file is listed, which has the numbers of all."""
    landing = Landing(tmp_path)
    for n in range(4):
        land(landing, "g1", 3 * n, 3, NOW_US + n // 3 * HOUR_US)
    landing.close()
    store, numbers = Store.at(tmp_path), Landing(tmp_path).recover()
    found = [next(numbers)]
    for later_ns in (0, 10**13):
        compact(store, time.time_ns() + later_ns, 0)
    assert len(files(tmp_path)) == 2
    found += numbers
    assert {seq for *_, first, last in found for seq in range(first, last + 1)} == set(range(12))


def test_files_of_others_in_the_hours_are_not_touched(tmp_path):
    """A compacted file with another kind of name neither stops the ingest nor is touched."""
    landing = Landing(tmp_path)
    path = land(landing, "g1", 0, 3)
    landing.close()
    foreign = path.with_name("part-00000-0c7c-c000.snappy.parquet")
    foreign.write_bytes(path.read_bytes())
    again = Landing(tmp_path)
    assert list(again.recover()) == [("g1", 0, 0, 2)]
    assert number(land(again, "g1", 3, 1)) == 2
    assert foreign.exists()


def test_two_ingests_on_one_landing_the_second_is_refused(tmp_path):
    """The lock shows another writer; it is released with its holder."""
    first = Landing(tmp_path)
    with pytest.raises(LandingError, match="another ingest writes here; stop it or name another folder"):
        Landing(tmp_path)
    first.close()
    Landing(tmp_path)


@pytest.mark.parametrize("folder", ["/proc/landing", "/dev/null/landing"])
def test_a_folder_that_cannot_be_written_is_named(folder):
    """No folder is made: the error has a remedy."""
    with pytest.raises(LandingError, match=rf"landing {folder}: cannot be written .*; name a folder that can"):
        Landing(Path(folder))


def test_the_session_name_belongs_to_the_landing(tmp_path):
    """A landing keeps its session at the broker; two landings never share one."""
    landing = Landing(tmp_path / "a")
    landing.close()
    assert Landing(tmp_path / "a").session == landing.session != Landing(tmp_path / "b").session


def test_readers_see_columns_and_types_of_the_layout_and_no_hidden_folder(tmp_path):
    """read_table and dataset read the folder as it is, with dead letters, frontiers, state and half files in it."""
    landing = Landing(tmp_path)
    bridge = Bridge(landing, lambda: NOW_US)
    values = [None, 1, 1.5, "ünï", True, -(1 << 63)]
    odd = [Reading(site=SITE, gateway="g1", boot=7, seq=n, stream="s", kind="measure", t_min=-5, t_max=n, value=value,
                   attrs={"b": 1, "a": "x"} if n else {}, clock_state="unbounded", vclock=(3, 0, 1)[:n])
           for n, value in enumerate(values)]  # fmt: skip
    landing.write(odd, as_ranges(r.identity for r in odd), NOW_US)
    bridge.take(at("g1", "birth"), birth("g1"), 1)
    bridge.take(at("g1", "heartbeat"), b"", 2)
    bridge.flush()
    landing.write_frontiers([{"landed_us": NOW_US}])
    landing.snapshot([])
    hour = next(tmp_path.glob("hour=*"))
    assert hour.name == "hour=2026-09-21T14"
    (hour / ".part-00000009.parquet").write_bytes(b"half")
    expected = {
        "site": "string", "gateway": "string", "boot": "int64", "seq": "int64", "stream": "string", "kind": "string",
        "key": "string", "value": "string", "unit": "string", "attrs": "string", "t_min": "int64", "t_max": "int64",
        "clock_state": "string", "landed_us": "int64",
    }  # fmt: skip
    for table in (pq.read_table(tmp_path), ds.dataset(tmp_path, partitioning="hive").to_table()):
        types = {field.name: str(field.type) for field in table.schema}
        assert {name: types[name] for name in expected} == expected
        assert types["vclock"].startswith("list<")
        assert types["vclock"].endswith("int64>")
        assert set(types) == {*expected, "vclock", "hour"}
        rows = table.to_pylist()
        assert [None if r["value"] is None else json.loads(r["value"]) for r in rows] == values
        assert [type(json.loads(r["value"])) for r in rows[1:]] == [type(v) for v in values[1:]]
        assert [r["attrs"] for r in rows] == [None] + ['{"a": "x", "b": 1}'] * 5
        assert [r["vclock"] for r in rows] == [[3, 0, 1][:n] for n in range(6)]
        assert {(r["t_min"], r["clock_state"], r["key"], r["unit"], r["landed_us"]) for r in rows} == {
            (-5, "unbounded", None, None, NOW_US)
        }


def test_old_frontier_files_are_dropped_and_foreign_ones_left(tmp_path):
    """Of older versions, a day after them; those in hours, and what is no frontier file of ours, stay."""
    landing = Landing(tmp_path)
    landing.write_frontiers([{"landed_us": NOW_US - 1}])
    for name in (*(f"part-{landed_us:017d}" for landed_us in (NOW_US - 1, NOW_US, NOW_US + 1)), "part-x"):
        (tmp_path / "_frontier" / f"{name}.json").touch()
    landing.drop_old_frontiers(NOW_US + FRONTIER_KEPT_US)
    assert sorted(path.stem for path in (tmp_path / "_frontier").iterdir()) == [
        "hour=2026-09-21T14", f"part-0{NOW_US}", f"part-0{NOW_US + 1}", "part-x"
    ]  # fmt: skip


def test_readings_frontiers_and_side_output_share_one_sequence_of_numbers(tmp_path):
    """So a number says what a frontier covers; a restart goes on after the highest, whatever kind of file has it."""
    landing = Landing(tmp_path)
    for _ in range(2):
        land(landing, "g1", 0, 1)
        landing.write_frontiers([{"landed_us": NOW_US}])
    landing.close()
    again = Landing(tmp_path)
    one = reading("g1", 0, 9)
    again.write([one], as_ranges([one.identity]), NOW_US, "_ahead")
    again.write_frontiers([{"landed_us": NOW_US}])
    named = {path.relative_to(tmp_path).parts[0]: [] for path in tmp_path.rglob("part-*")}
    for path in sorted(tmp_path.rglob("part-*")):
        named[path.relative_to(tmp_path).parts[0]].append(number(path))
    assert named == {"hour=2026-09-21T14": [1, 3], "_frontier": [2, 4, 6], "_ahead": [5]}


FULL_DISK = """
import sys, os, resource
from pathlib import Path
from support.cloud.ingest import at, batch, files, identities
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing
folder, how = Path(sys.argv[1]), sys.argv[2]
bridge = Bridge(Landing(folder))
bridge.take(at("g1"), batch("g1", 0, 0, 10), "a")
assert bridge.flush().tokens == ["a"]
before = files(folder)
if how == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
else:
    with open(folder / "_ballast", "wb", buffering=0) as ballast:
        try:
            while True: ballast.write(bytes(4096))
        except OSError as error:
            assert error.errno == 28
for number in range(2):
    bridge.take(at("g1"), batch("g1", 0, 10 + number * 500, 500), number)
    bridge.take("nowhere", bytes(5000), f"dead {number}")
    for attempt in range(2):
        try:
            bridge.flush()
        except OSError as error:
            print("OSError", error)
        else:
            sys.exit("the flush went well")
        assert files(folder) == before, "something is visible"
        assert not list(folder.rglob(".part-*")), "a half file takes up the disk"
        assert bridge.counters.landed == 10
if how == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
else:
    (folder / "_ballast").unlink()
done = bridge.flush()
assert done.tokens == [0, "dead 0", 1, "dead 1"], done.tokens
assert done.acks[0].landed == {0: 1009}
assert sorted(identities(folder)) == [("g1", 0, seq) for seq in range(1010)]
print("well")
"""


def test_a_file_size_limit_is_an_error_that_shows_nothing_and_passes(tmp_path):
    """The kernel refuses further bytes (EFBIG): OSError, nothing visible, no leftover, all there once it may write again."""
    done = child(FULL_DISK, tmp_path, "limit")
    assert done.stdout.endswith("well\n"), done.stderr
    assert "OSError [Errno 27]" in done.stdout


def small_disk(folder: Path) -> list[str]:
    """A command whose own arguments run where `folder` is a disk of half a megabyte: a mount that no other process sees.

    Without the superuser's rights it takes those of a user namespace, which the system must allow.
    """
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    mount = f'mount -t tmpfs -o size=512k tmpfs {shlex.quote(str(folder))} && exec "$@"'
    return ["unshare", *rights, "--mount", "sh", "-c", mount, "sh"]


def test_a_full_disk_is_an_error_that_shows_nothing_and_passes(tmp_path):
    """A real small file system without room (ENOSPC): as above, and all lands once there is room."""
    done = child(FULL_DISK, tmp_path, "full", before=small_disk(tmp_path))
    assert done.stdout.endswith("well\n"), done.stderr
    assert "OSError [Errno 28]" in done.stdout


def test_a_folder_that_cannot_be_synced_costs_its_file_the_number(tmp_path, monkeypatch):
    """
    written        0 | 0 1, but the folder's names cannot be made durable | 1 2
    jobs           0 | maybe 0 1                                          | 1 2, under a number of its own
    """
    bridge, sync = Bridge(Landing(tmp_path)), durable.sync
    history = History(Store.at(tmp_path))

    def fails(path):
        if path.name.startswith("hour="):
            monkeypatch.setattr(durable, "sync", sync)
            raise OSError(errno.EIO, "input/output error")
        sync(path)

    seen, read = {}, []
    for number in range(3):
        bridge.take(at("g1"), batch("g1", 0, number, 1), number)
        if number == 1:
            monkeypatch.setattr(durable, "sync", fails)
            with pytest.raises(OSError, match="input/output"):
                bridge.flush()
        else:
            bridge.flush()
        newest = history.latest(seen)
        for piece in history.pieces(seen, newest):
            read += pq.ParquetFile(tmp_path / piece.path).read(["seq"])["seq"].to_pylist()
        seen = newest
    assert read == [0, 1, 1, 2]  # jobs drop what comes again


def test_after_an_ingest_that_did_not_end_in_order_the_next_number_goes_to_a_file_that_says_nothing(tmp_path):
    """
    written        1 2, and a loss of power takes 2 | 2: nothing, 3
    jobs           1 2                              | would pass over another 2
    """
    first = Landing(tmp_path)
    land(first, "g1", 0, 1)
    first._holding._lock.close()  # as the system does for a process that was killed
    second = Landing(tmp_path)
    second.close()  # it wrote nothing, so the one that comes next must still do so
    third = Landing(tmp_path)
    written = land(third, "g1", 1, 1), land(third, "g1", 2, 1)
    assert [number(path) for path in written] == [3, 4]
    [nothing] = [path for path in files(tmp_path) if number(path) == 2]
    assert pq.read_metadata(nothing).num_rows == 0
    assert not [one for one in check(tmp_path).found if one.kind == "missing"]
    third.close()
    assert number(land(Landing(tmp_path), "g1", 3, 1)) == 5


@pytest.mark.parametrize("when", ["torn", "limit"])
def test_dead_letters_are_whole_lines_after_a_crash_and_a_full_disk(tmp_path, when):
    """A torn last line is cut off, a write that failed half way is undone and tried again."""
    code = """
import resource, sys
from pathlib import Path
from whenabouts_cloud.ingest.dead_letter_files import LettersInFolder
from whenabouts_cloud.ingest.dead_letters import DeadLetters
folder, when = Path(sys.argv[1]), sys.argv[2]
dead = DeadLetters(LettersInFolder(folder))
dead.add("t", b"first", "topic", "", 1)
dead.flush()
path = folder / "letters-0001.jsonl"
if when == "torn":
    with path.open("a") as file: file.write('{"landed_us": 5, "topic')
    dead = DeadLetters(LettersInFolder(folder))
dead.add("t", b"x" * 60000, "topic", "", 2)
if when == "limit":
    size = path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (30000, resource.RLIM_INFINITY))
    try: dead.flush()
    except OSError: pass
    else: sys.exit("no error")
    assert path.stat().st_size == size
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
dead.flush()
"""
    (tmp_path / "_dead").mkdir()
    done = child(code, tmp_path / "_dead", when)
    assert done.returncode == 0, done.stderr
    assert [letter["landed_us"] for letter in letters(tmp_path)] == [1, 2]


def test_after_a_killed_ingest_files_are_of_its_hour_or_later_though_the_clock_is_behind(tmp_path):
    """A loss of power took the only file of that hour, which jobs have read: they would pass over all of an earlier one."""
    first = Landing(tmp_path)
    land(first, "g1", 0, 1)
    taken = land(first, "g1", 1, 1, NOW_US + HOUR_US)
    first._holding._lock.close()
    taken.unlink()
    taken.parent.rmdir()
    second = Landing(tmp_path)
    assert land(second, "g1", 1, 1).parent.name == taken.parent.name
    second.close()
