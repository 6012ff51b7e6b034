"""The mark of a program that numbers files: what the next one learns from it."""

import pytest

from whenabouts_cloud.landing.running_mark import RunningMark

HOUR, NEXT = "2026-01-31T17", "2026-01-31T18"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "_ingest").mkdir()
    return tmp_path


def seen(folder):
    mark = RunningMark(folder)
    return mark.interrupted, mark.hour


def test_it_is_there_from_the_first_file_on_until_an_orderly_end(folder):
    mark = RunningMark(folder)
    assert seen(folder) == (False, "")
    mark.enter(HOUR)
    assert seen(folder) == (True, HOUR)
    mark.enter(NEXT)
    assert seen(folder) == (True, NEXT)
    mark.remove()
    mark.remove()
    assert seen(folder) == (False, "")


def test_it_is_written_once_an_hour_and_anew_by_the_one_that_found_it(folder):
    """Who finds a mark cannot know that it is durable."""
    RunningMark(folder).enter(HOUR)
    path = folder / "_ingest" / "running"
    second = RunningMark(folder)
    path.unlink()
    second.enter(HOUR)
    assert path.exists()
    path.unlink()
    second.enter(HOUR)
    assert not path.exists()


def test_of_a_damaged_mark_only_its_presence_counts(folder):
    (folder / "_ingest" / "running").write_bytes(b"9999\xff")
    assert seen(folder) == (True, "")
