"""Which files a reader of the landing has not read yet, when numbers are missing or files appear while it looks."""

import os

import pytest

from whenabouts_cloud.landing.index import START, PartIndex, Position
from whenabouts_cloud.landing.layout import DATA, FRONTIER, Numbers, path_of
from whenabouts_cloud.landing.store import Store

HOURS = ("2026-09-21T13", "2026-09-21T14")


def file_of(kind, hour, number):
    return path_of(kind, hour, Numbers(number, number))


def place(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(exist_ok=True, parents=True)
        (root / path).touch()


def test_after_a_missing_number_every_file_is_found_also_by_a_reader_that_has_planned_before(tmp_path):
    """A repair has moved number 1 away; who has listed up to number 0 goes on with 2, not with the next hour."""
    paths = [file_of(DATA, HOURS[n // 3], n) for n in (0, 2, 3)]
    place(tmp_path, *paths)
    for folder in [tmp_path, *tmp_path.iterdir()]:
        os.utime(folder, (1, 1))  # it has not changed for long
    index, end = PartIndex(Store.at(tmp_path)), Position(HOURS[0], 0)
    assert [one.path for one in index.upto(START, end)] == paths[:1]
    assert [one.path for one in index.after(end)] == paths[1:]


@pytest.mark.parametrize(("here", "then"), [(HOURS[0], HOURS[0]), (HOURS[0], HOURS[1]), (HOURS[1], HOURS[1])])
def test_a_file_that_appears_in_a_folder_that_has_just_been_listed_is_not_passed_over(
    tmp_path, here, then, monkeypatch
):
    """A watermark that covers it is found in the folder that is listed next."""
    last = FRONTIER if here == HOURS[1] else DATA
    place(tmp_path, file_of(DATA, HOURS[0], 1), file_of(last, here, 2))
    (tmp_path / FRONTIER / f"hour={HOURS[1]}").mkdir(parents=True, exist_ok=True)
    changed_ns, new = Store.changed_ns, [file_of(DATA, then, 3), file_of(FRONTIER, HOURS[1], 4)]

    def interrupted(store, path):
        if path == f"{FRONTIER}/hour={HOURS[1]}":
            place(tmp_path, *new)
        return changed_ns(store, path)

    monkeypatch.setattr(Store, "changed_ns", interrupted)
    assert [one.path for one in PartIndex(Store.at(tmp_path)).after(Position(here, 2))] == new


def test_a_listing_is_repeated_without_what_is_believed_of_folders(tmp_path, monkeypatch):
    """A file system of whole seconds gives a folder no new time when it changes again."""
    place(tmp_path, file_of(DATA, HOURS[0], 1), file_of(FRONTIER, HOURS[0], 2))
    folders = tmp_path / f"hour={HOURS[0]}", tmp_path / FRONTIER / f"hour={HOURS[0]}"
    index, end = PartIndex(Store.at(tmp_path)), Position(HOURS[0], 2)
    for folder in folders:
        os.utime(folder, (1, 1))
    assert index.after(end) == []
    new = [file_of(DATA, HOURS[0], 3), file_of(FRONTIER, HOURS[0], 4)]
    place(tmp_path, *new)
    os.utime(folders[0], (1, 1))
    monkeypatch.setattr(PartIndex, "_walk", lambda *_: iter(()))  # as behind a number that was moved away
    assert [one.path for one in index.after(end)] == new


def test_a_folder_that_changes_right_after_it_was_listed_is_listed_again(tmp_path, monkeypatch):
    """Within the same tick of its clock; and the reader goes on so late that the change is old."""
    place(tmp_path, file_of(DATA, HOURS[0], 1))
    folder, entries, now_ns = tmp_path / f"hour={HOURS[0]}", Store.entries, [10**18]
    os.utime(folder, ns=(10**18, 10**18))
    monkeypatch.setattr("whenabouts_cloud.landing.index.time.time_ns", lambda: now_ns[0])

    def interrupted(store, place_of=""):
        found = entries(store, place_of)
        if place_of == folder.name and now_ns == [10**18]:
            now_ns[0] += 10**10
            place(tmp_path, file_of(DATA, HOURS[0], 3))  # a repair has moved number 2 away
            os.utime(folder, ns=(10**18, 10**18))
        return found

    monkeypatch.setattr(Store, "entries", interrupted)
    index = PartIndex(Store.at(tmp_path))
    assert index.after(Position(HOURS[0], 1)) == []
    assert [one.path for one in index.after(Position(HOURS[0], 1))] == [file_of(DATA, HOURS[0], 3)]


def test_what_appears_while_a_listing_is_repeated_waits_for_the_next_one(tmp_path, monkeypatch):
    """So that a watermark is not read before what it covers."""
    place(tmp_path, file_of(DATA, HOURS[0], 1), file_of(DATA, HOURS[0], 3))
    (tmp_path / FRONTIER / f"hour={HOURS[1]}").mkdir(parents=True)
    changed_ns, numbers = Store.changed_ns, iter((4, 6))

    def interrupted(store, path):
        if path == f"{FRONTIER}/hour={HOURS[1]}":
            number = next(numbers)
            place(tmp_path, file_of(DATA, HOURS[0], number), file_of(FRONTIER, HOURS[1], number + 1))
        return changed_ns(store, path)

    monkeypatch.setattr(Store, "changed_ns", interrupted)
    found = PartIndex(Store.at(tmp_path)).after(Position(HOURS[0], 1))
    assert [one.numbers.last for one in found] == [3, 4, 5]
