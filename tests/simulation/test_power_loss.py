"""The spool and a power cut at every write: the writes of SQLite are replayed up to there, with what a disk may do.

Of unsynced writes a disk may have kept none, all, some, or some of their sectors; a file may be missing
whose name was never made durable. Written by Python's own SQLite on a disk that is watched, read back by the spool.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from support.edge.pending import several
from whenabouts_edge.store.spool import BOOT_RANDOM_BITS, Spool
from whenabouts_protocol import decode_batch

SECTOR = 512
KEPT = ("nothing", "everything", "some writes", "some sectors")


def written(folder, seed, how):
    """The lines of a writer that ended well."""
    done = subprocess.run(
        [sys.executable, "-m", "support.edge.spool_writer", str(folder / "spool.sqlite"), str(seed), how],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Disk:
    """Files as they certainly are, and the operations since their last sync."""

    def __init__(self):
        self.files: dict[str, bytes] = {}
        self.pending: dict[str, list[dict]] = {}
        self.unnamed: set[str] = set()

    def reported(self, line):
        name, operation = line["file"], line["disk"]
        if operation == "create":
            self.files[name], self.pending[name] = b"", []
            self.unnamed.add(name)
        elif operation == "sync":
            for kept in self.pending[name]:
                self.files[name] = applied(self.files[name], kept)
            self.pending[name] = []
            if name.endswith(("-wal", "-journal")):  # SQLite syncs the folder when it first syncs one of these
                self.unnamed.clear()
        elif operation == "delete":
            self.files.pop(name, None)
            self.pending.pop(name, None)
        else:
            self.pending[name].append(line)

    def after_a_cut(self, kept, chance):
        """The files as they may be found."""
        files = {}
        for name, data in self.files.items():
            if name in self.unnamed and (kept == "nothing" or (kept != "everything" and chance.random() < 0.5)):
                continue
            for line in self.pending[name]:
                if kept == "everything" or (kept != "nothing" and chance.random() < 0.5):
                    data = applied(data, line, chance if kept == "some sectors" else None)
            files[name] = data
        return files


def applied(data, line, torn_by=None):
    """The data with one write or truncation; torn: only some of its sectors."""
    at = line["at"]
    if line["disk"] == "truncate":
        return data[:at].ljust(at, b"\0")
    new = bytes.fromhex(line["data"])
    result = bytearray(data.ljust(at + len(new), b"\0"))
    for begin in range(0, len(new), SECTOR):
        if torn_by is None or torn_by.random() < 0.5:
            part = new[begin : begin + SECTOR]
            result[at + begin : at + begin + len(part)] = part
    return bytes(result)


@cache
def readings_of(payload):
    """The readings of a stored message, which is found again behind hundreds of cuts."""
    return decode_batch(payload)


class Said:
    """Everything that the spool had reported by a moment."""

    def __init__(self):
        self.stored: dict[tuple[int, int], tuple[int, bytes]] = {}
        self.landing: dict[int, int] = {}
        self.landed: dict[int, int] = {}
        self.boots: list[int] = []
        self.kept: set[str] = set()  # keys of readings that wait for the clock, written down
        self._last = (0, 0)

    def hear(self, line):
        if "boot" in line:
            self.boots.append(line["boot"])
        elif "stored" in line:
            boot, first, last = line["stored"]
            self.stored[boot, first] = last, bytes.fromhex(line["payload"])
        elif "kept" in line:
            self.kept.update(line["kept"])
        elif "landing" in line:
            self._last = line["landing"]
            self.landing[self._last[0]] = max(self._last[1], self.landing.get(self._last[0], -1))
        elif "landed" in line:
            self.landed[self._last[0]] = max(self._last[1], self.landed.get(self._last[0], -1))


def lost(files, said, folder):
    """Stored messages that are missing, and deleted ones that are back; all other guarantees of a spool are asserted."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    spool = Spool(folder / "spool.sqlite", 1 << 30)
    try:
        assert spool.quarantined is None
        kept = {m.position: m for m in spool.after(None, 10**6)}
        missing = []
        for position, (last, payload) in said.stored.items():
            if last <= said.landed.get(position[0], -1):
                if position in kept:
                    missing.append(position)
            elif position in kept:
                assert kept[position].payload == payload
            elif last > said.landing.get(position[0], -1):
                missing.append(position)
        missing += misplaced(spool, kept, said)
        in_flight = [m for position, m in kept.items() if position not in said.stored]
        assert len(in_flight) <= 1
        for message in kept.values():
            readings = readings_of(message.payload)
            assert [(r.boot, r.seq) for r in readings] == [
                (message.boot, seq) for seq in range(message.first_seq, message.last_seq + 1)
            ]
        assert spool.state.readings == sum(m.last_seq - m.first_seq + 1 for m in kept.values())
        if not missing:
            assert all(boot >> BOOT_RANDOM_BITS < spool.boot >> BOOT_RANDOM_BITS for boot in said.boots)
        assert spool.boot not in said.boots
        assert spool.append(several(["after"])).first_seq == 0
    finally:
        spool.close()
        for path in folder.iterdir():
            path.unlink()
    return missing


def misplaced(spool, kept, said):
    """Readings that wait for the clock and are lost, or both wait and are stored."""
    waiting = [one.key for one in spool.waiting.read("bench", "gw")]
    assert len(waiting) == len(set(waiting))
    stored = {r.key for message in kept.values() for r in readings_of(message.payload)}
    gone = {r.key for _, payload in said.stored.values() for r in readings_of(payload)}
    return [key for key in waiting if key in stored | gone] + sorted(said.kept - set(waiting) - stored - gone)


def cuts(lines, folder, seed):
    """(number of the disk's operation, what was kept, messages lost) for a cut behind every one of them.

    Files that were tried since the spool's last report are not tried again: with all synced, every way keeps the same.
    """
    disk, said, chance, number = Disk(), Said(), random.Random(seed), 0
    tried = []
    for line in lines:
        if "disk" not in line:
            said.hear(line)
            tried.clear()
            continue
        disk.reported(line)
        number += 1
        for kept in KEPT:
            files = disk.after_a_cut(kept, chance)
            if files not in tried:
                tried.append(files)
                yield number, kept, lost(files, said, folder)


@pytest.fixture
def quick():
    """A folder in memory where there is one: nothing in it needs to outlive a cut of the real power."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 6))])
def test_a_power_cut_at_any_write_takes_nothing_that_was_stored(tmp_path, quick, seed):
    """Behind every write, sync, truncation and deletion of three boots, four ways in which a disk may have kept the rest."""
    lines = written(tmp_path, seed, "whole")
    operations = {line["disk"] for line in lines if "disk" in line}
    assert operations >= {"create", "write", "sync", "delete"}
    assert any(line.get("disk") == "write" and line["file"] == "spool.sqlite" for line in lines)
    number = 0
    for number, kept, missing in cuts(lines, quick, seed):
        assert missing == [], f"cut behind operation {number}, kept {kept}"
    assert number > 150


def test_a_spool_that_does_not_wait_for_the_disk_would_lose_readings(tmp_path, quick):
    """These cuts find the readings that synchronous=NORMAL loses: the test above can fail."""
    missing_by_cut = [missing for _, _, missing in cuts(written(tmp_path, 1, "careless"), quick, 1)]
    assert sum(bool(missing) for missing in missing_by_cut) > 20


def test_a_disk_that_refuses_any_call_costs_only_what_is_refused(tmp_path):
    """
    Sixty spools, in each another call of SQLite to the disk fails (full, or an error of writing or of syncing), once or for
    a while. Everything that append reported as stored is stored; a refused message uses no number; when the disk works
    again the spool goes on.
    """
    rounds, said = [], None
    for line in written(tmp_path, 7, "refusing"):
        if "round" in line:
            said = Said()
            rounds.append((line["round"], said, []))
        if "refused" in line:
            rounds[-1][2].append(line["refused"])
        said.hear(line)
    assert len(rounds) == 60
    assert sum(len(refused) for _, _, refused in rounds) >= 30
    for number, said, _ in rounds:
        spool = Spool(tmp_path / f"{number}.sqlite", 1 << 30)
        assert spool.quarantined is None
        kept = {m.position: m for m in spool.after(None, 10**6)}
        assert misplaced(spool, kept, said) == []
        spool.close()
        [boot] = said.boots
        for (_, first), (last, payload) in said.stored.items():
            if last > said.landing.get(boot, -1):
                assert kept[boot, first].payload == payload
        assert len(set(kept) - set(said.stored)) == 1  # appended when the disk worked again
        numbers = [seq for (_, first), (last, _) in sorted(said.stored.items()) for seq in range(first, last + 1)]
        assert numbers == list(range(len(numbers)))
