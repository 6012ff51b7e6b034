"""Health records on disk and in object stores (`whenabouts_cloud.health.writer`), as their reader finds them."""

import errno
import threading

import pytest

from support.cloud.ingest import NOW_US, SITE
from whenabouts_cloud.health import writer as writer_module
from whenabouts_cloud.health.reader import records
from whenabouts_cloud.health.recorder import Recorder
from whenabouts_cloud.health.writer import HealthFiles, HealthWriter
from whenabouts_cloud.landing.layout import HEALTH
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol import Status

S = 1_000_000


@pytest.fixture
def part(place):
    """A landing in a folder, and one in an object store."""
    return Store.at(place)


def online(recorder, *gateways, at_us=NOW_US):
    for gateway in gateways:
        recorder.status(Status(SITE, gateway, 7, "online"), at_us)


def gateways_in(store):
    return [one["gateway"] for one in records(store, 0, 1 << 60)]


def test_what_is_kept_can_be_read_hour_by_hour(part):
    """Each call adds to the hour's file; the next hour has its own, which repeats the last statuses."""
    recorder = Recorder()
    writer = HealthWriter(part, recorder)
    writer.write()
    assert part.entries(HEALTH) == []
    online(recorder, "g1")
    writer.write()
    online(recorder, "g2")
    writer.write()
    assert gateways_in(part) == ["g1", "g2"]
    online(recorder, "g3", at_us=NOW_US + 3600 * S)
    writer.write()
    assert gateways_in(part) == ["g1", "g2", "g1", "g2", "g3", "g3"]
    hours = sorted(one.name for one in part.entries(HEALTH))
    assert [len(part.entries(f"{HEALTH}/{hour}")) for hour in hours] == [1, 1]


def test_an_object_has_a_limit(part, monkeypatch):
    """Beyond it another one of the same hour begins; nothing is lost."""
    monkeypatch.setattr(writer_module, "OBJECT_BYTES", 300)
    files = HealthFiles(part)
    recorder = Recorder()
    for n in range(6):
        online(recorder, f"g{n}")
        [(hour, line)] = recorder.take()
        files.append(hour, line)
    assert gateways_in(part) == [f"g{n}" for n in range(6)]
    assert len(part.entries(f"{HEALTH}/hour={hour}")) == (1 if part.local else 3)


def test_what_cannot_be_written_waits_and_is_counted_and_told(tmp_path, monkeypatch, caplog):
    """
    disk      fine    full, after half a line   full     fine
    records    g1              g2                g3       all, each once
    """
    recorder = Recorder()
    writer = HealthWriter(Store.at(tmp_path), recorder)
    online(recorder, "g1")
    writer.write()
    real, full = writer_module._appended, [True]

    def appended(path, size, lines):
        if full[0]:
            with path.open("ab") as file:
                file.write(lines[:20])
            raise OSError(errno.ENOSPC, "no space")
        return real(path, size, lines)

    monkeypatch.setattr(writer_module, "_appended", appended)
    for name in ("g2", "g3"):
        online(recorder, name)
        writer.write()
    assert recorder.counters.health_failed == 2
    assert [record.event for record in caplog.records] == ["health.unwritable"]
    full[0] = False
    for _ in range(2):
        writer.write()
    assert gateways_in(Store.at(tmp_path)) == ["g1", "g2", "g3"]


def test_a_folder_that_cannot_be_written_ends_nothing(tmp_path):
    """A file in the place of the folder: every attempt is counted."""
    (tmp_path / HEALTH).write_text("in the way")
    recorder = Recorder()
    writer = HealthWriter(Store.at(tmp_path), recorder, every_s=0.01)
    online(recorder, "g1")
    writer.start()
    writer.close()
    assert recorder.counters.health_failed >= 1


def test_a_store_that_hangs_holds_nobody_up(tmp_path, monkeypatch):
    """Recording goes on, and the end comes in time."""
    monkeypatch.setattr(writer_module, "CLOSE_S", 0.1)
    begun, go_on = threading.Event(), threading.Event()

    def hangs(path, size, lines):
        begun.set()
        assert go_on.wait(60)
        return size

    monkeypatch.setattr(writer_module, "_appended", hangs)
    recorder = Recorder()
    writer = HealthWriter(Store.at(tmp_path), recorder, every_s=0.01)
    writer.start()
    online(recorder, "g1")
    assert begun.wait(60)
    online(recorder, "g2")
    writer.close()
    assert recorder.counters.health_records == 2
    go_on.set()


def test_an_hour_that_was_deleted_meanwhile_comes_back_without_holes(tmp_path):
    """The file begins anew: no zeros where the old content was."""
    files = HealthFiles(Store.at(tmp_path))
    files.append("2026-01-31T17", b"x" * 100 + b"\n")
    [path] = (tmp_path / HEALTH / "hour=2026-01-31T17").iterdir()
    path.unlink()
    files.append("2026-01-31T17", b"y\n")
    assert path.read_bytes() == b"y\n"


def test_two_ingests_of_one_part_never_write_one_file(tmp_path):
    """As when one has lost its lease and writes once more."""
    for _ in range(2):
        HealthFiles(Store.at(tmp_path)).append("2026-01-31T17", b"{}\n")
    assert len(list((tmp_path / HEALTH / "hour=2026-01-31T17").iterdir())) == 2
