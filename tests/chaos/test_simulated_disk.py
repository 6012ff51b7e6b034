"""The simulated disk: what a power cut keeps, and what it may take."""

import os
import sqlite3
from random import Random

import pytest

from support.search import seeds
from whenabouts_cloud.durable import make_folder, sync_file_system, write_durably
from whenabouts_sim.chaos.machine.disk import Disks


@pytest.fixture
def disk(tmp_path):
    disks = Disks(tmp_path)
    with disks.in_use():
        yield disks.add("machine")


def test_a_file_that_was_written_durably_survives(disk):
    for seed in seeds(80):
        path = disk.root / f"folder-{seed}" / "file"
        make_folder(path.parent)
        write_durably(path, b"content")
        disk.cut_power(Random(seed))
        assert path.read_bytes() == b"content"


def test_of_a_file_that_was_not_synced_any_prefix_may_be_left(disk):
    left = set()
    for seed in range(200):
        path = disk.root / "file"
        path.write_bytes(b"abc")
        disk.sync(str(disk.root))
        disk.cut_power(Random(seed))
        left.add(path.read_bytes())
        path.unlink()
    assert left == {b"", b"a", b"ab", b"abc"}


def test_a_name_that_was_not_synced_may_be_gone_or_lead_to_the_file_before(disk):
    left = set()
    for seed in range(50):
        path = disk.root / "file"
        write_durably(path, b"before")
        new = disk.root / "new"
        with new.open("wb") as file:
            file.write(b"after")
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
        disk.cut_power(Random(seed))
        left.add((path.read_bytes(), new.exists()))
    assert left == {(b"before", False), (b"before", True), (b"after", False)}


def test_a_sync_of_the_file_system_keeps_everything(disk):
    path = disk.root / "a" / "b" / "file"
    for seed in seeds(80):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(str(seed).encode())
        sync_file_system(disk.root)
        disk.cut_power(Random(seed))
        assert path.read_bytes() == str(seed).encode()


def test_a_sync_of_a_folder_that_is_refused_keeps_no_name_and_the_next_one_does(disk):
    (disk.root / "file").write_bytes(b"content")
    disk.folders_left = 0
    with pytest.raises(OSError, match="Input/output error"):
        disk.sync(str(disk.root))
    assert disk.failed
    assert not disk.tree.synced
    disk.sync(str(disk.root))
    assert "file" in disk.tree.synced


def test_syncs_before_the_refused_one_are_done_and_those_of_files_do_not_count(disk):
    path = disk.root / "file"
    path.write_bytes(b"content")
    disk.folders_left = 1
    disk.sync(str(disk.root))
    disk.sync(str(path))
    assert "file" in disk.tree.synced
    with pytest.raises(OSError, match="Input/output error"):
        sync_file_system(disk.root)


def test_a_file_that_a_power_cut_brings_back_keeps_its_time(disk):
    """Its name was deleted, and the folder not synced."""
    came_back = 0
    for seed in seeds(20):
        path = disk.root / f"file-{seed}"
        write_durably(path, b"content")
        os.utime(path, ns=(5, 5))
        path.unlink()
        disk.cut_power(Random(seed))
        came_back += path.exists()
        assert not path.exists() or path.stat().st_mtime_ns == 5
    assert came_back


def _committed(path, pragma: str) -> None:
    """Commit ten rows in a database that writes ahead, and leave it open as a killed process would."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA locking_mode=EXCLUSIVE")
    database.execute("PRAGMA journal_mode=WAL")
    database.execute(pragma)
    database.execute("CREATE TABLE row (number INTEGER)")
    for number in range(10):
        with database:
            database.execute("INSERT INTO row VALUES (?)", (number,))
    _OPEN.append(database)


_OPEN: list[sqlite3.Connection] = []


@pytest.mark.parametrize(
    ("pragma", "all_stay"), [("PRAGMA synchronous=FULL", True), ("PRAGMA synchronous=NORMAL", False)]
)
def test_a_commit_of_sqlite_survives_if_it_was_synced(disk, pragma, all_stay):
    kept = []
    for seed in range(12):
        path = disk.root / f"{seed}.sqlite"
        _committed(path, pragma)
        disk.cut_power(Random(seed))
        _OPEN.pop().close()
        copy = disk.root / f"copy-{seed}.sqlite"
        for suffix in ("", "-wal"):
            source = path.with_name(path.name + suffix)
            if source.exists():
                copy.with_name(copy.name + suffix).write_bytes(source.read_bytes())
        database = sqlite3.connect(copy)
        has = database.execute("SELECT name FROM sqlite_master").fetchall()
        kept.append(database.execute("SELECT count(*) FROM row").fetchone()[0] if has else 0)
        database.close()
    assert (set(kept) == {10}) == all_stay


def test_a_database_closes_as_on_a_real_disk_with_its_log_written_back_and_removed(disk):
    path = disk.root / "closed.sqlite"
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE row (number INTEGER)")
    database.close()
    assert [name.name for name in disk.root.iterdir()] == ["closed.sqlite"]


def test_a_full_disk_refuses_what_is_written_and_takes_it_later(disk):
    path = disk.root / "file"
    disk.full = True
    with pytest.raises(OSError, match="No space left"):
        path.write_bytes(b"content")
    with pytest.raises(OSError, match="No space left"):
        write_durably(path, b"content")
    disk.full = False
    write_durably(path, b"content")
    assert path.read_bytes() == b"content"


def test_a_bit_that_has_changed_stays_changed_after_a_power_cut(disk):
    path = disk.root / "file"
    write_durably(path, bytes(100))
    disk.rot(path, Random(1), 50)
    disk.rot(disk.root / "missing", Random(1))
    disk.cut_power(Random(1))
    assert path.read_bytes()[:50] == bytes(50)
    assert sum(byte.bit_count() for byte in path.read_bytes()) == 1
