"""Which files a reader of the landing has not read yet, when numbers of files are missing."""

import os

from whenabouts_cloud.landing.index import START, PartIndex, Position
from whenabouts_cloud.landing.layout import DATA, Numbers, path_of
from whenabouts_cloud.landing.store import Store

HOURS = ("2026-09-21T13", "2026-09-21T14")


def test_after_a_missing_number_every_file_is_found_also_by_a_reader_that_has_planned_before(tmp_path):
    """A repair has moved number 1 away; who has listed up to number 0 goes on with 2, not with the next hour."""
    paths = [path_of(DATA, HOURS[n // 3], Numbers(n, n)) for n in (0, 2, 3)]
    for path in paths:
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).touch()
    for folder in [tmp_path, *tmp_path.iterdir()]:
        os.utime(folder, (1, 1))  # it has not changed for long
    index, end = PartIndex(Store.at(tmp_path)), Position(HOURS[0], 0)
    assert [one.path for one in index.upto(START, end)] == paths[:1]
    assert [one.path for one in index.after(end)] == paths[1:]
