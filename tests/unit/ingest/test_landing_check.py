"""`landing check` finds every kind of damage, and a repair loses nothing that can still be read."""

import json
import os
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from support.cloud.ingest import NOW_US, files, identities, reading
from whenabouts_cloud.commands.landing.landing_check import landing_group
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.holding import LandingError
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.ledger import ledger_name
from whenabouts_cloud.landing.compaction import compact
from whenabouts_cloud.landing.damage import check
from whenabouts_cloud.landing.files import (
    LEFT_OUT_DIR,
    RANGES_KEY,
    DamagedFileError,
    check_file,
    damaged_ranges,
    readable_groups,
)
from whenabouts_cloud.landing.ranges import as_ranges
from whenabouts_cloud.landing.repair import BusyLandingError, locked
from whenabouts_cloud.landing.schema import SCHEMA
from whenabouts_cloud.landing.store import Store

EACH = 50
HOUR_US = 3_600_000_000


def land(landing, first, count=EACH, now_us=NOW_US, gateway="g1"):
    """Write one file as the ingest does."""
    readings = [reading(gateway, 0, seq) for seq in range(first, first + count)]
    ranges = as_ranges((ledger_name(r.site, r.gateway), r.boot, r.seq) for r in readings)
    return landing.folder / landing.write(readings, ranges, now_us)


@pytest.fixture
def four(tmp_path):
    """The files of a landing without an ingest, four in one hour."""
    landing = Landing(tmp_path / "landing")
    paths = [land(landing, EACH * n) for n in range(4)]
    landing.write_frontiers([{"site": "hall", "gateway": "g1", "frontier_us": 1, "streams": [], "landed_us": NOW_US}])
    landing.close()
    return paths


def run(folder: Path, *more: str):
    """The command: its exit code, and its object of JSON."""
    done = CliRunner().invoke(landing_group, ["check", "--landing", str(folder), "--json", *more])
    return done.exit_code, json.loads(done.stdout)


def folder_of(paths):
    """The landing of these files."""
    return paths[0].parents[1]


def cut(path):
    """Keep 60 % of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])


def empty(path):
    """Keep nothing of it."""
    path.write_bytes(b"")


def flip(path):
    """Change one bit in the middle of the keys, which no decoder need notice."""
    data, keys = bytearray(path.read_bytes()), pq.read_metadata(path).row_group(0).column(6)
    data[keys.dictionary_page_offset + keys.total_compressed_size // 2] ^= 4
    path.write_bytes(data)


def other_columns(path):
    """Put a table of something else there."""
    pq.write_table(pa.table({"x": [1]}), path)


def other_readings(path):
    """Drop the last reading, and keep the metadata."""
    table = pq.read_table(path)
    pq.write_table(table.slice(0, EACH - 1), path)


DAMAGES = [cut, empty, flip, other_columns, other_readings]


def test_a_whole_landing_has_exit_code_0(four):
    """All files are read, and counted with their readings; also as text."""
    assert run(folder_of(four)) == (0, {"whole": True, "files": 4, "readings": 4 * EACH, "found": []})
    done = CliRunner().invoke(landing_group, ["check", "--landing", str(folder_of(four))])
    assert (done.exit_code, done.stdout) == (0, "4 files, 200 readings that can be read, 0 problems\n")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_with_the_readings_that_are_lost(four, damage):
    """Cut, emptied, altered by a bit, replaced, short of a reading: the file, and the numbers that no other file holds."""
    damage(four[1])
    code, report = run(folder_of(four))
    assert code == 1
    [found] = report["found"]
    assert found["file"] == four[1].relative_to(folder_of(four)).as_posix()
    assert found["kind"] == "damaged"
    assert found["lost"] == [["hall/g1", 0, EACH, 2 * EACH - 1]]


@pytest.mark.parametrize("damage", DAMAGES)
def test_after_a_repair_the_landing_is_whole_and_the_ingest_starts(four, damage):
    """The damaged file is kept elsewhere; what could be read has a new number; new files do not collide with it."""
    folder = folder_of(four)
    damage(four[1])
    before = four[1].read_bytes()
    if damage not in (flip, other_readings):  # the ingest reads footers only
        with pytest.raises(LandingError, match="landing check --landing"):
            Bridge(Landing(folder))
    code, report = run(folder, "--repair")
    [found] = report["found"]
    assert code == 0
    assert run(folder)[0] == 0
    assert (folder / "_damaged" / found["file"]).read_bytes() == before
    assert found["lost"] == [["hall/g1", 0, EACH, 2 * EACH - 1]]
    assert sorted(seq for _, _, seq in identities(folder)) == [*range(EACH), *range(2 * EACH, 4 * EACH)]
    landing = Landing(folder)
    Bridge(landing)
    written = land(landing, 4 * EACH)
    landing.close()
    assert written.name > max(path.name for path in files(folder) if path != written)
    assert run(folder)[0] == 0


def test_a_file_in_the_place_of_another_is_found(four):
    """Two files that were swapped lose nothing; a copy in the place of a file is found, and what it displaced is lost."""
    folder = folder_of(four)
    contents = [path.read_bytes() for path in four]
    four[1].write_bytes(contents[2])
    four[2].write_bytes(contents[1])
    code, report = run(folder, "--repair")
    assert (code, [one["lost"] for one in report["found"]]) == (0, [[], []])
    assert run(folder) == (0, {"whole": True, "files": 4, "readings": 4 * EACH, "found": []})
    four[3].write_bytes(contents[0])
    code, report = run(folder)
    assert code == 1
    [found] = report["found"]
    assert found["problem"] == "found the content of file number 1 of an ingest, expected its own"


def test_a_bit_of_the_footer_that_changes_readings_is_found(four):
    """Every byte of the footer is damaged in turn: the check finds it, or the readings are what they were."""
    whole = pq.read_table(four[1])
    data = four[1].read_bytes()
    for place in range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data)):
        four[1].write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
        try:
            check_file(Store.at(four[1].parent), four[1].name)
        except DamagedFileError:
            continue
        assert pq.read_table(four[1]).equals(whole), place


def test_the_readings_of_a_merged_file_that_is_cut_are_listed(tmp_path):
    """Its numbers follow from the merged files beside it."""
    folder = tmp_path / "landing"
    landing = Landing(folder)
    for n in range(8):
        land(landing, EACH * n, now_us=NOW_US + n // 2 * HOUR_US)
    landing.close()
    for _ in range(2):
        compact(Store.at(folder), time.time_ns() + 10**9, 0)
    [merged] = folder.glob("**/part-00000003-00000004.parquet")
    cut(merged)
    code, report = run(folder)
    assert code == 1
    assert [one["lost"] for one in report["found"]] == [[["hall/g1", 0, 2 * EACH, 4 * EACH - 1]]]


def test_row_groups_that_still_read_are_rescued(four):
    """Half a file is altered: the other half has a new number, and only the rest is lost."""
    folder, path = folder_of(four), four[3]
    rows = pq.read_table(path)
    ranges = {RANGES_KEY: rows.schema.metadata[RANGES_KEY]}  # without the checksum of the footer that was
    pq.write_table(rows.replace_schema_metadata(ranges), path, row_group_size=EACH // 2, write_page_checksum=True)
    flip(path)
    _, report = run(folder, "--repair")
    [found] = report["found"]
    assert found["lost"] == [["hall/g1", 0, 3 * EACH, 3 * EACH + EACH // 2 - 1]]
    assert found["new"].endswith("part-00000006.parquet")
    rescued = pq.ParquetFile(folder / found["new"])
    assert rescued.metadata.num_rows == EACH // 2
    assert json.loads(rescued.metadata.metadata[RANGES_KEY]) == [["hall/g1", 0, 3 * EACH + EACH // 2, 4 * EACH - 1]]


def test_after_one_changed_bit_of_a_footer_all_is_rescued(four):
    """Its checksum tells which bit: here one in the name of a column."""
    folder, path = folder_of(four), four[3]
    before, data = pq.read_table(path).to_pylist(), bytearray(path.read_bytes())
    data[data.rindex(b"vclock")] ^= 1
    path.write_bytes(data)
    _, report = run(folder, "--repair")
    [found] = report["found"]
    assert found["lost"] == []
    assert pq.read_table(folder / found["new"]).to_pylist() == before


def test_a_name_of_a_column_that_is_no_text_any_more_is_damage_as_any_other(four):
    """The check named the file, and the repair ended with a traceback."""
    folder, path = folder_of(four), four[1]
    path.write_bytes(path.read_bytes().replace(b"vclock", b"vcl\xefck"))
    _, report = run(folder, "--repair")
    [found] = report["found"]
    assert (found["new"], found["lost"]) == (None, [["hall/g1", 0, EACH, 2 * EACH - 1]])
    assert run(folder)[0] == 0


def test_of_two_damaged_neighbours_each_lost_reading_is_named_once_and_no_number_is_left_out(four):
    """Without footers both files may have held all between their neighbours; those of the second can still be read."""
    folder = folder_of(four)
    cut(four[1])
    second = bytearray(four[2].read_bytes())
    second[second.rindex(b"hall/g1")] ^= 1
    four[2].write_bytes(second)
    _, report = run(folder, "--repair")
    assert [one["lost"] for one in report["found"]] == [[["hall/g1", 0, EACH, 2 * EACH - 1]], []]
    assert [one["new"] and one["new"][-21:] for one in report["found"]] == [None, "part-00000006.parquet"]
    assert run(folder) == (0, {"whole": True, "files": 3, "readings": 3 * EACH, "found": []})


def test_a_file_that_is_missing_between_others_is_reported_until_a_repair_has_recorded_it(tmp_path):
    """Part 2 of 1 to 4; the newest file is missed because the snapshot knows its number."""
    landing, folder = Landing(tmp_path), tmp_path
    paths = [land(landing, EACH * n) for n in range(4)]
    landing.snapshot([("hall/g1", 0, 0, 4 * EACH - 1)])
    landing.close()
    paths[1].unlink()
    paths[3].unlink()
    code, report = run(folder)
    assert code == 1
    assert [(one["kind"], one["file"][-21:]) for one in report["found"]] == [
        ("missing", "part-00000002.parquet"),
        ("missing", "part-00000004.parquet"),
    ]
    assert [one["lost"] for one in report["found"]] == [
        [["hall/g1", 0, EACH, 2 * EACH - 1]],
        [["hall/g1", 0, 3 * EACH, 4 * EACH - 1]],
    ]
    assert run(folder, "--repair")[0] == 0
    assert run(folder)[0] == 0


def test_hours_that_were_deleted_are_not_missed(tmp_path):
    """hour:  0  1  2  3, of which 0 and 2 are deleted as a whole, as the manual allows."""
    landing = Landing(tmp_path)
    paths = [land(landing, EACH * n, now_us=NOW_US + n * HOUR_US) for n in range(4)]
    landing.snapshot([("hall/g1", 0, 0, 4 * EACH - 1)])
    landing.close()
    for n in (0, 2):
        shutil.rmtree(paths[n].parent)
    assert run(tmp_path)[0] == 0


def test_a_file_that_is_put_back_gets_a_new_name(four):
    """A job left it out, or a repair moved it: jobs do not read its name twice."""
    folder = folder_of(four)
    content = four[1].read_bytes()
    cut(four[1])
    run(folder, "--repair")
    four[1].write_bytes(content)
    (folder / LEFT_OUT_DIR / four[2].relative_to(folder)).parent.mkdir(parents=True)
    (folder / LEFT_OUT_DIR / four[2].relative_to(folder)).touch()
    code, report = run(folder)
    assert (code, [one["kind"] for one in report["found"]]) == (1, ["unseen", "unseen"])
    assert run(folder, "--repair")[0] == 0
    assert [path.name[5:13] for path in files(folder)] == ["00000001", "00000004", "00000006", "00000007"]
    assert len(set(identities(folder))) == len(identities(folder)) == 4 * EACH
    assert run(folder)[0] == 0


def test_a_file_that_disappears_during_a_check_tells_nothing(tmp_path):
    """An ingest, or the merging of files, may run beside it."""
    assert damaged_ranges(tmp_path / "part-00000001.parquet") is None
    assert list(readable_groups(tmp_path / "part-00000001.parquet")) == []


def test_what_can_be_read_of_another_programs_file_is_rescued(four):
    """It has a column more, and nothing of an ingest in its footer; a row group of it is damaged."""
    folder = folder_of(four)
    table = pq.read_table(four[1]).replace_schema_metadata(None)
    path = folder / "hour=2026-01-01T00" / "other.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(
        table.append_column("note", pa.array(["x"] * EACH)), path, row_group_size=EACH // 2, write_page_checksum=True
    )
    for other in four:
        other.unlink()
    data = bytearray(path.read_bytes())
    times = pq.read_metadata(path).row_group(0).column(SCHEMA.get_field_index("t_min"))
    data[times.dictionary_page_offset + times.total_compressed_size - 1] ^= 1
    path.write_bytes(data)
    _, report = run(folder, "--repair")
    [new] = [one["new"] for one in report["found"] if one["kind"] == "damaged"]
    assert pq.read_metadata(folder / new).num_rows == EACH // 2


def test_a_file_whose_name_is_no_text_is_told_as_damaged(four):
    """The check ended with a traceback."""
    folder = folder_of(four)
    (folder / "hour=2026-01-01T00").mkdir(exist_ok=True)
    Path(os.fsdecode(os.fsencode(folder / "hour=2026-01-01T00") + b"/part-\xff.parquet")).write_bytes(b"x")
    [found] = check(folder).found
    assert (found.kind, "found no readable file" in found.problem) == ("damaged", True)


def test_an_empty_file_that_jobs_do_not_read_again_is_not_told(tmp_path):
    """A loss of power took a file that a job had left out, and the ingest used its number up."""
    landing = Landing(tmp_path / "landing")
    first = land(landing, 0)
    landing._holding._lock.close()  # it is killed
    landing = Landing(tmp_path / "landing")
    land(landing, EACH)
    landing.close()
    nothing = first.with_name("part-00000002.parquet").relative_to(folder_of([first]))
    marker = folder_of([first]) / LEFT_OUT_DIR / nothing
    marker.parent.mkdir(parents=True)
    marker.touch()
    assert run(folder_of([first])) == (0, {"whole": True, "files": 3, "readings": 2 * EACH, "found": []})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("_frontier/part-00000000000000007.json", b'{"site": "ha'),
        ("_frontier/part-00000000000000008.json", b""),
        ("_dead/letters-0001.jsonl", b'{"topic": "a"}\n{"top\n'),
        ("_ingest/ledger.json", b'{"upto": 1'),
    ],
)
def test_files_beside_the_readings_are_checked(four, name, content):
    """A frontier, a line of dead letters, the snapshot: found, and moved away by a repair; then the ingest starts."""
    folder = folder_of(four)
    (folder / name).write_bytes(content)
    code, report = run(folder)
    assert (code, [(one["file"], one["kind"]) for one in report["found"]]) == (1, [(name, "beside")])
    assert run(folder, "--repair")[0] == 0
    assert (folder / "_damaged" / name).read_bytes() == content
    Bridge(Landing(folder))
    assert run(folder)[0] == 0


def test_a_line_of_dead_letters_that_a_crash_left_incomplete_is_no_damage(four):
    """It was never acknowledged, and the ingest cuts it off; in a file to which nothing is added any more it is."""
    folder = folder_of(four)
    for name in ("letters-0001.jsonl", "letters-0002.jsonl"):
        (folder / "_dead" / name).write_bytes(b'{"topic": "a"}\n{"top')
    (folder / "_dead" / "orfid-day.jsonl").write_bytes(b'{"line": 1}\n')  # of an import: comes last by its name
    [found] = run(folder)[1]["found"]
    assert found["file"] == "_dead/letters-0001.jsonl"


def test_a_file_that_is_merged_and_deleted_during_a_check_is_not_damaged(four, monkeypatch):
    def merged_first(store, name):
        for _ in range(2):  # the second run deletes what the first has merged
            compact(Store.at(folder), time.time_ns() + 10**9, 0)
        return check_file(store, name)

    folder = folder_of(four)
    landing = Landing(folder)
    land(landing, 4 * EACH, now_us=NOW_US + HOUR_US)  # so the hour before is closed
    landing.close()
    monkeypatch.setattr("whenabouts_cloud.landing.damage.check_file", merged_first)
    report = check(folder)
    assert not any(path.exists() for path in four)
    assert (report.found, report.files, report.readings) == ([], 1, EACH)
    monkeypatch.undo()
    assert (check(folder).found, check(folder).readings) == ([], 5 * EACH)


def test_after_a_repair_of_the_only_file_of_an_hour_no_file_is_put_into_an_earlier_one(four):
    """Nothing could be rescued, the clock is set back, and jobs have left the hour that it shows."""
    folder = folder_of(four)
    landing = Landing(folder)
    last = land(landing, 4 * EACH, now_us=NOW_US + HOUR_US)
    landing.close()
    empty(last)
    assert run(folder, "--repair")[0] == 0
    landing = Landing(folder)
    assert land(landing, 5 * EACH).parent == last.parent
    landing.close()
    assert check(folder).newest_hour == last.parent.name.removeprefix("hour=")


def test_a_repair_refuses_while_an_ingest_runs_and_a_check_does_not(four):
    """Both would give numbers to files."""
    landing = Landing(folder_of(four))
    done = CliRunner().invoke(landing_group, ["check", "--landing", str(landing.folder), "--repair"])
    assert done.exit_code == 1
    assert "an ingest writes here; stop it, then repair" in done.stderr
    assert run(landing.folder)[0] == 0
    with pytest.raises(BusyLandingError), locked(landing.folder):
        pass
    landing.close()


def test_every_file_is_told_to_the_progress_and_the_text_names_the_command(four):
    """One line for a file, one for each range that is lost, one that says what to do."""
    folder, told = folder_of(four), []
    cut(four[1])
    assert len(check(folder, told.append).found) == sum(told) - 3 == 1
    done = CliRunner().invoke(landing_group, ["check", "--landing", str(folder)])
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{four[1].relative_to(folder)}: found no whole Parquet file (")
    assert lines[1] == "  not in another file: readings of hall/g1, boot 0, numbers 50 to 99"
    assert lines[-1] == f"Repair it with: whenabouts-cloud landing check --landing {folder} --repair"


@pytest.mark.parametrize("damage", [cut, empty], ids=lambda one: one.__name__)
def test_the_number_of_a_file_that_was_moved_away_is_not_given_again(tmp_path, damage):
    """A job that had read that number, or left the file out, would never read another file of it."""
    landing = Landing(tmp_path / "landing")
    path = land(landing, 0)
    landing.close()
    damage(path)
    assert run(folder_of([path]), "--repair")[0] == 0
    again = Landing(tmp_path / "landing")
    assert land(again, 0).name == "part-00000002.parquet"
    again.close()


def test_a_repair_after_a_killed_ingest_gives_the_next_number_to_nothing(tmp_path):
    """A loss of power may have taken a file of that number, which jobs have read."""
    landing = Landing(tmp_path / "landing")
    path = land(landing, 0)
    landing._holding._lock.close()  # it is killed
    data = bytearray(path.read_bytes())
    data[data.rindex(b"vclock")] ^= 1
    path.write_bytes(data)
    assert run(folder_of([path]), "--repair")[0] == 0
    [nothing, rescued] = sorted(path.parents[1].glob("hour=*/part-*.parquet"))
    assert (nothing.name, rescued.name) == ("part-00000002.parquet", "part-00000003.parquet")
    assert pq.read_metadata(nothing).num_rows == 0
    again = Landing(tmp_path / "landing")
    assert land(again, 100).name == "part-00000004.parquet"  # the repair ended in order
    again.close()
    assert run(folder_of([path]))[0] == 0


def test_what_a_repair_rescues_goes_to_the_newest_hour_of_the_landing(tmp_path):
    """Though the clock was set back by hours since: jobs have left the hour that it shows."""
    later_us = time.time_ns() // 1000 + 5 * HOUR_US
    landing = Landing(tmp_path / "landing")
    path = land(landing, 0, now_us=later_us)
    landing.close()
    data = bytearray(path.read_bytes())
    data[data.rindex(b"vclock")] ^= 1
    path.write_bytes(data)
    assert run(folder_of([path]), "--repair")[0] == 0
    [rescued] = path.parents[1].glob("hour=*/part-*.parquet")
    assert (rescued.parent, rescued.name) == (path.parent, "part-00000002.parquet")
