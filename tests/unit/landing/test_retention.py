"""Old hours go as a whole, and nothing else does."""

import json
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from support.cloud.landing import land, reading, watermark
from support.cloud.parts import Part
from whenabouts_cloud.cli import main
from whenabouts_cloud.durable import sync
from whenabouts_cloud.landing import damage, retention
from whenabouts_cloud.landing.damage import check
from whenabouts_cloud.landing.retention import UnknownNeedError, retain
from whenabouts_cloud.landing.sealing import sealed
from whenabouts_cloud.landing.store import Store

NOW = datetime(2026, 11, 23, 5, 30, tzinfo=UTC)


def hours(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("hour=*"))


def test_hours_that_ended_so_many_days_ago_are_deleted_in_all_parts_and_kinds(tmp_path):
    """An hour that is not quite old enough stays; so does the last hour of a part that has landed nothing since."""
    for name, used in (("", (0, 28, 30, 80)), ("ingest=b", (1,))):
        part = Part(tmp_path / name)
        for part.hour in used:
            part.data()
            part.frontier()
    deleted = retain(Store.at(tmp_path), NOW, 2)
    assert deleted == ["_frontier/hour=2026-11-20T00", "hour=2026-11-20T00"]
    assert retain(Store.at(tmp_path), NOW, 2) == []
    assert hours(tmp_path) == [
        *(f"_frontier/hour=2026-11-{x}" for x in ("21T04", "21T06", "23T08")),
        *(f"hour=2026-11-{x}" for x in ("21T04", "21T06", "23T08")),
        "ingest=b/_frontier/hour=2026-11-20T01",
        "ingest=b/hour=2026-11-20T01",
    ]


def test_old_health_records_go_whatever_else_stays(tmp_path):
    """Also the last ones, and those of hours that a restart reads: it does not read these."""
    for part, hour in (("", "2026-11-20T00"), ("", "2026-11-21T04"), ("ingest=b", "2026-11-20T00")):
        (tmp_path / part / "_health" / f"hour={hour}").mkdir(parents=True)
    land(tmp_path, [reading("g", 1, "s", "k", 1, 1)], hour="2026-11-20T00")
    assert retain(Store.at(tmp_path), NOW, 2) == ["_health/hour=2026-11-20T00", "ingest=b/_health/hour=2026-11-20T00"]
    assert hours(tmp_path) == ["_health/hour=2026-11-21T04", "hour=2026-11-20T00"]


@pytest.mark.parametrize("mark", ["lock", "lease"])
def test_what_a_restart_of_the_ingest_reads_stays(tmp_path, mark):
    """Files that the ledger's snapshot does not cover; without a snapshot all of them. In an object store an ingest has a
    lease, in a folder a lock.
    """
    for day in ("01", "02", "03"):
        land(tmp_path, [reading("g", 1, "s", "k", 1, 1)], hour=f"2026-11-{day}T00")
    (tmp_path / "_ingest").mkdir()
    (tmp_path / "_ingest" / mark).touch()
    assert retain(Store.at(tmp_path), NOW, 2) == []
    (tmp_path / "_ingest" / "ledger.json").write_text('{"upto": 1, "since": "2026-11-02T00", "ranges": []}')
    assert retain(Store.at(tmp_path), NOW, 2) == ["hour=2026-11-01T00"]


def test_a_damaged_snapshot_does_not_say_what_may_go(tmp_path):
    """A changed digit, half a file, another type: all of that ingest stays, and the error says what to do."""
    part = tmp_path / "ingest=b"
    for day in ("01", "02", "03"):
        land(part, [reading("g", 1, "s", "k", 1, 1)], hour=f"2026-11-{day}T00")
    snapshot = part / "_ingest" / "ledger.json"
    snapshot.parent.mkdir()
    sound = sealed({"upto": 1, "since": "2026-11-02T00", "ranges": []})
    for damaged in (sound.replace(b"-02T", b"-03T"), sound[:20], b'{"upto": 1}', sealed({"since": 3})):
        snapshot.write_bytes(damaged)
        with pytest.raises(UnknownNeedError, match=r"^ingest=b/_ingest/ledger.json is damaged, .* delete it"):
            retain(Store.at(tmp_path), NOW, 2)
    for folder in (tmp_path, tmp_path / "ingest=c"):
        for day in ("01", "03"):
            land(folder, [reading("g", 1, "s", "k", 1, 1)], hour=f"2026-11-{day}T00")
    shown = CliRunner().invoke(main, ["retain", "--landing", str(tmp_path), "--days", "2", "--json"])
    assert shown.exit_code == 1
    assert json.loads(shown.stdout) == {"deleted": ["hour=2026-11-01T00", "ingest=c/hour=2026-11-01T00"]}
    assert "ingest=b/_ingest/ledger.json is damaged" in shown.stderr
    snapshot.write_bytes(sound)
    assert retain(Store.at(tmp_path), NOW, 2) == ["ingest=b/hour=2026-11-01T00"]


def test_a_kill_leaves_no_half_of_an_hour_that_anybody_sees(tmp_path, monkeypatch):
    """It gets a hidden name first; the next run deletes what is left of it."""
    for day in ("01", "03"):
        for n in range(3):
            land(tmp_path, [reading("g", n, "s", "k", 1, 1)], hour=f"2026-11-{day}T00")
    watermark(tmp_path, {"g": 1})

    def killed(store, folder):
        next((store.local / folder).iterdir()).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(retention.Store, "remove_folder", killed)
        with pytest.raises(KeyboardInterrupt):
            retain(Store.at(tmp_path), NOW, 2)
    assert hours(tmp_path) == ["hour=2026-11-03T00"]
    assert len(list((tmp_path / ".gone-hour=2026-11-01T00").iterdir())) == 2
    assert retain(Store.at(tmp_path), NOW, 2) == []
    assert not list(tmp_path.glob(".gone-*"))


@pytest.mark.parametrize("step", range(4))
def test_a_check_misses_nothing_of_an_hour_of_which_a_kill_has_left_a_part(tmp_path, step, monkeypatch):
    part = Part(tmp_path)
    for part.hour in (0, 1, 80):
        part.data()
        part.frontier()
        part.data()
    left = iter(range(step))

    def killed(folder):
        if next(left, None) is None:
            raise KeyboardInterrupt
        sync(folder)

    with monkeypatch.context() as patched:
        patched.setattr(retention, "sync", killed)
        with pytest.raises(KeyboardInterrupt):
            retain(Store.at(tmp_path), NOW, 2)
    assert not [one for one in check(tmp_path).found if one.kind == "missing"]
    retain(Store.at(tmp_path), NOW, 2)
    assert hours(tmp_path) == ["_frontier/hour=2026-11-23T08", "hour=2026-11-23T08"]


def test_a_check_misses_nothing_of_an_hour_that_is_deleted_while_it_looks(tmp_path, monkeypatch):
    """Its readings were listed, its watermarks are not there any more."""
    part = Part(tmp_path)
    for part.hour in (0, 80):
        part.data()
        part.frontier()
        part.data()
    listed = damage.data_files

    def then_deleted(folder):
        yield from list(listed(folder))
        retain(Store.at(tmp_path), NOW, 2)

    monkeypatch.setattr(damage, "data_files", then_deleted)
    assert not [one for one in check(tmp_path).found if one.kind == "missing"]


def test_the_command_says_what_it_has_deleted_and_needs_a_landing(tmp_path):
    """Days are whole and at least one."""
    for day in ("01", "03"):
        land(tmp_path / "l", [reading("g", 1, "s", "k", 1, 1)], hour=f"2026-11-{day}T00")
    run = CliRunner().invoke(main, ["retain", "--landing", str(tmp_path / "l"), "--days", "2", "--json"])
    assert json.loads(run.stdout) == {"deleted": ["hour=2026-11-01T00"]}
    for place, days, text in (("l", "0", "0 is not in the range"), ("none", "9", "found nothing at")):
        run = CliRunner().invoke(main, ["retain", "--landing", str(tmp_path / place), "--days", days])
        assert run.exit_code == 2
        assert text in run.output
