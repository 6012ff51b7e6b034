"""A long history is taken in pieces, whose ends make sense to the reader."""

import os

import pytest
from pyarrow.fs import LocalFileSystem

from support.cloud.landing import land, reading, watermark
from support.cloud.parts import Part
from whenabouts_cloud.landing import history as history_module
from whenabouts_cloud.landing import index
from whenabouts_cloud.landing.history import History, everything, frontiers_of, readings_of
from whenabouts_cloud.landing.layout import DATA, Numbers, path_of
from whenabouts_cloud.landing.store import Store


def pieces(folder, max_bytes, **more):
    """The seq ranges of the pieces, and how many frontiers each has."""
    history, start, found = History(Store.at(folder)), {}, []
    while (end := history.latest(start, max_bytes, **more)) != start:
        some = history.pieces(start, end)
        found.append((len(readings_of(some)), len(frontiers_of(some))))
        start = end
    return found


def test_a_piece_has_at_least_one_file_and_at_most_the_bytes(tmp_path):
    """Files of the same size, two to a piece."""
    for n in range(5):
        size = land(tmp_path, [reading("g", n, "s", "k", 1, 1)]).stat().st_size
    assert pieces(tmp_path, 1) == [(1, 0)] * 5
    assert pieces(tmp_path, size * 5 // 2) == [(2, 0), (2, 0), (1, 0)]
    assert pieces(tmp_path, None) == pieces(tmp_path, size * 100) == [(5, 0)]


def test_a_job_s_pieces_end_with_a_frontier(tmp_path):
    """A job without watermarks would keep everything: where none has a number the history is not divided."""
    part = Part(tmp_path / "new")
    for step in "ddfddfdd":
        part.data() if step == "d" else part.frontier()
    assert pieces(tmp_path / "new", 1, upto_frontier=True) == [(2, 1), (2, 1), (2, 0)]
    for n in range(3):
        land(tmp_path / "old", [reading("g", n, "s", "k", 1, 1)])
        watermark(tmp_path / "old", {"g": n})
    assert pieces(tmp_path / "old", 1, upto_frontier=True) == [(3, 3)]


def test_pieces_of_several_ingests_are_whole_hours_of_all(tmp_path):
    """A gateway that has moved may have readings in one and the frontier over them in the other."""
    parts = [Part(tmp_path), Part(tmp_path / "ingest=b", "h")]
    for _ in range(3):
        for part in parts:
            part.data()
            part.frontier()
            part.hour += 1
    assert pieces(tmp_path, 1, upto_frontier=True) == pieces(tmp_path, 1) == [(2, 2)] * 3


@pytest.mark.parametrize("others", [0, 1])
def test_parts_that_appear_later_are_found(tmp_path, others):
    """A second ingest starts while a reader runs."""
    part, history = Part(tmp_path), History(Store.at(tmp_path))
    part.data()
    first = history.latest({})
    other = Part(tmp_path / "ingest=b", "h")
    for _ in range(others + 1):
        other.data()
    second = history.latest(first)
    assert second["ingest=b"]["number"] == others + 1
    assert len(history.pieces(first, second)) == others + 1


def test_a_part_that_appears_while_the_time_of_the_folder_stands_still_is_found(tmp_path):
    """Clocks of file systems have ticks of milliseconds, or of a second."""
    part, history = Part(tmp_path), History(Store.at(tmp_path))
    part.data()
    first, changed_ns = history.latest({}), tmp_path.stat().st_mtime_ns
    Part(tmp_path / "ingest=b", "h").data()
    os.utime(tmp_path, ns=(changed_ns, changed_ns))
    assert history.latest(first)["ingest=b"]["number"] == 1


def remote(monkeypatch, folder):
    """A store that says that it is no local folder."""
    monkeypatch.setattr(Store, "local", None)
    monkeypatch.setattr(Store, "_place", property(lambda self: (LocalFileSystem(), self.uri.removeprefix("far:"))))
    return Store(f"far:{folder}")


def test_of_several_parts_in_an_object_store_none_is_read_ahead_of_the_others(tmp_path, monkeypatch):
    """After a pause one has many new files, one few."""
    many, few = Part(tmp_path / "ingest=a"), Part(tmp_path / "ingest=b", "h")
    many.data()
    few.data()
    history = History(remote(monkeypatch, tmp_path))
    start = history.latest({})
    for _ in range(50):
        many.data()
    for _ in range(3):
        few.data()
    end = history.latest(start)
    assert (end["ingest=a"]["number"], end["ingest=b"]["number"]) == (51, 4)


@pytest.mark.parametrize("is_local", [True, False])
def test_of_several_parts_with_a_long_history_none_is_read_ahead_of_the_others(tmp_path, monkeypatch, is_local):
    """One has a few files in each hour, the other one file."""
    many, few = Part(tmp_path / "ingest=a"), Part(tmp_path / "ingest=b", "h")
    for hour in range(8):
        many.hour = few.hour = hour
        for _ in range(4):
            many.data()
        few.data()
    monkeypatch.setattr(index, "MOST_FOUND", 6)
    monkeypatch.setattr(history_module, "MOST_FOUND", 6)
    store = Store.at(tmp_path) if is_local else remote(monkeypatch, tmp_path)
    history, start, steps = History(store), {}, 0
    while (end := history.latest(start)) != start:
        assert end["ingest=a"]["hour"] == end["ingest=b"]["hour"]
        assert end["ingest=a"]["number"] == 4 * end["ingest=b"]["number"]
        history.pieces(start, end)
        history.forget(end)
        start, steps = end, steps + 1
    assert start["ingest=b"]["number"] == 8
    assert steps > 2


def test_a_long_history_of_merged_files_in_an_object_store_is_read_to_its_end(tmp_path, monkeypatch):
    """Also by a batch, which does not wait for the next listing."""
    for number in range(20):
        path = tmp_path / path_of(DATA, f"2026-11-20T{number:02d}", Numbers(10 * number + 1, 10 * number + 10))
        path.parent.mkdir()
        path.touch()
    monkeypatch.setattr(index, "MOST_FOUND", 6)
    monkeypatch.setattr(history_module, "MOST_FOUND", 6)
    assert len(everything(remote(monkeypatch, tmp_path))) == 20
