"""The list of damaged files that a query leaves out."""

import time

import pytest

from support.cloud.landing import EPOCH_US, land, reading
from whenabouts_cloud.jobs.output import left_out
from whenabouts_cloud.jobs.output.left_out import DamagedInputError, LeftOut
from whenabouts_cloud.landing.compaction import compact
from whenabouts_cloud.landing.files import LEFT_OUT_DIR
from whenabouts_cloud.landing.history import everything
from whenabouts_cloud.landing.layout import FRONTIER, Numbers, path_of
from whenabouts_cloud.landing.sealing import sealed
from whenabouts_cloud.landing.store import Store


@pytest.fixture
def query(tmp_path):
    """A query over a landing, with its output folder."""
    (tmp_path / "out").mkdir()
    return LeftOut(Store.at(tmp_path / "a landing"), Store.at(tmp_path / "out"))


@pytest.mark.parametrize("whole", [False, True])
def test_a_query_lists_again_when_a_file_is_gone_which_is_not_damaged(query, whole):
    """It was merged and deleted after it had been listed: the merged file is read instead."""
    for n in range(2):
        land(query.landing.local, [reading("g", n, "s", "k", EPOCH_US, EPOCH_US)], n)
    land(query.landing.local, [reading("g", 2, "s", "k", EPOCH_US, EPOCH_US)], hour="2026-11-20T19")
    files = everything(query.landing)
    for later_ns in (0, 10**13):
        compact(query.landing, time.time_ns() + later_ns, 0)
    with pytest.raises(DamagedInputError) as error:
        query.check(files, whole)
    assert error.value.problems == {}
    assert query.names() == []
    assert not (query.landing.local / LEFT_OUT_DIR).exists()
    query.check(everything(query.landing), whole)


def test_of_files_that_are_gone_and_damaged_ones_the_damaged_are_left_out(query):
    """A link to nothing is listed and cannot be opened: it is not gone, or the query would be started again for ever."""
    paths = [land(query.landing.local, [reading("g", n, "s", "k", EPOCH_US, EPOCH_US)], n) for n in range(3)]
    names = [path.relative_to(query.landing.local).as_posix() for path in paths]
    files = everything(query.landing)
    paths[0].unlink()
    paths[1].write_bytes(b"")
    paths[2].unlink()
    paths[2].symlink_to("nothing")
    with pytest.raises(DamagedInputError) as error:
        query.check(files)
    assert list(error.value.problems) == query.names() == names[1:]
    assert not (query.landing.local / LEFT_OUT_DIR / names[0]).exists()


def test_a_listing_of_all_damaged_files_names_none_that_goes_meanwhile(query, monkeypatch):
    path = land(query.landing.local, [reading("g", 0, "s", "k", EPOCH_US, EPOCH_US)])
    files = everything(query.landing)
    path.unlink()
    monkeypatch.setattr(left_out, "everything", lambda landing: files)
    assert left_out.damaged_in(query.landing) == {}


def test_a_list_in_which_a_bit_has_changed_leaves_out_no_other_file(query):
    """It would name the sound one. The damaged file is found anew when it is read."""
    paths = [land(query.landing.local, [reading("g", n, "s", "k", EPOCH_US, EPOCH_US)], n) for n in range(2)]
    damaged, sound = (path.relative_to(query.landing.local).as_posix() for path in paths)
    paths[0].write_bytes(b"")
    with pytest.raises(DamagedInputError):
        query.check(everything(query.landing))
    [written] = query.out.local.glob("*.json")
    whole = written.read_bytes()
    for content in (whole.replace(damaged.encode(), sound.encode()), whole[:9], b"\xff"):
        written.write_bytes(content)
        assert query.names() == []
        with pytest.raises(DamagedInputError):
            query.check(everything(query.landing))
        assert query.names() == [damaged]


def test_a_landing_that_cannot_be_written_is_no_fault(query):
    """The note for the check of the landing is a help only."""
    path = land(query.landing.local, [reading("g", 0, "s", "k", EPOCH_US, EPOCH_US)], 0)
    path.write_bytes(b"")
    (query.landing.local / "_damaged").write_text("no folder")
    with pytest.raises(DamagedInputError, match="found an empty file"):
        query.check(everything(query.landing))
    assert len(query.names()) == 1


def test_a_damaged_file_of_watermarks_is_found_when_a_task_could_not_read_it(query):
    """Later ones say as much; until then the job waits."""
    land(query.landing.local, [reading("g", 0, "s", "k", EPOCH_US, EPOCH_US)], 0)
    row = {"site": "hall", "gateway": "g", "frontier_us": EPOCH_US, "streams": ["s"], "landed_us": EPOCH_US}
    name = path_of(FRONTIER, "2025-06-15T13", Numbers(7, 7))
    query.landing.write(name, sealed(row).replace(b"g", b"h", 1) + b"\n")
    files = everything(query.landing)
    query.check(files)
    with pytest.raises(DamagedInputError, match="differs from its checksum") as error:
        query.check(files, whole=True)
    assert list(error.value.problems) == [name]
    query.check(files, whole=True)


def test_a_query_lists_again_when_a_task_could_not_read_a_file_that_was_merged_meanwhile(query):
    """It read the original, which it had listed; now the merged file is listed, and is whole."""
    path = land(query.landing.local, [reading("g", 0, "s", "k", EPOCH_US, EPOCH_US)], 0)
    name, files = path.relative_to(query.landing.local).as_posix(), everything(query.landing)
    query.look_again(files, "ValueError: no file")
    query.look_again(files, f"DamagedFileError: {name}: but it can be read")
    with pytest.raises(DamagedInputError) as error:
        query.look_again(files, "DamagedFileError: hour=2025-06-15T13/part-00000009.parquet: no whole file")
    assert error.value.problems == {}
    assert query.names() == []
    path.write_bytes(b"")
    with pytest.raises(DamagedInputError, match="found an empty file"):
        query.look_again(files, f"DamagedFileError: {name}: found an empty file")
