"""Lanes are numbered in the order of their discovery and listed by name."""

import numpy as np
import pyarrow as pa
import pytest

from whenabouts_cloud.dashboard.data import lane_table
from whenabouts_cloud.dashboard.data.lane_table import OTHERS, LaneTable
from whenabouts_cloud.landing.scan import encoded


def rows(*names):
    """Readings of readers."""
    columns = [pa.array(column, pa.string()) for column in zip(*names, strict=True)]
    return pa.table(columns, names=["site", "gateway", "stream"]).cast(encoded(("site", "gateway", "stream")))


@pytest.mark.parametrize("combined", [0, lane_table.MOST_COMBINED])
def test_the_same_reader_has_the_same_number_in_each_table(combined, monkeypatch):
    """Also where the texts have other codes, where one is null, and where there are too many texts to combine in a table."""
    monkeypatch.setattr(lane_table, "MOST_COMBINED", combined)
    table = LaneTable()
    first = table.numbers(rows(("s", "g", "b"), ("s", "g", "a"), ("s", "g", "b"), ("s", None, "a")))
    assert first[0] == first[2]
    assert sorted(set(first.tolist())) == [0, 1, 2]
    again = table.numbers(rows(("s", "g", "a"), ("s", None, "a"), ("s", "g", "b")))
    assert again.tolist() == [first[1], first[3], first[0]]


def test_lanes_are_sorted_by_name_and_found_by_any_part_of_it():
    """Whatever the case of its letters."""
    table = LaneTable()
    table.numbers(rows(("b", "g", "x"), ("a", "g", "Dock"), ("a", "f", "dock")))
    assert [name for name, _ in table.chosen("")] == [("a", "f", "dock"), ("a", "g", "Dock"), ("b", "g", "x")]
    assert [name for name, _ in table.chosen("DOCK")] == [("a", "f", "dock"), ("a", "g", "Dock")]


def test_readers_beyond_the_limit_are_counted_in_no_lane(monkeypatch):
    """So that hostile names cannot fill the memory."""
    monkeypatch.setattr(lane_table, "MAX_LANES", 2)
    table = LaneTable()
    lanes = table.numbers(rows(("s", "g", "a"), ("s", "g", "b"), ("s", "g", "c")))
    table.add(lanes, np.array([1, 2, 3]), np.array([2, 3, 4]))
    assert sorted(lanes.tolist()) == [OTHERS, 0, 1]
    assert (len(table), table.others) == (2, 1)


def test_a_lane_knows_its_readings_and_their_first_and_last_time():
    """Nothing before the first reading is counted."""
    table = LaneTable()
    lanes = table.numbers(rows(("s", "g", "a"), ("s", "g", "a")))
    name = ("s", "g", "a")
    assert table.lane(name, 0, None)[4:7] == (0, None, None)
    table.add(lanes, np.array([5, 1]), np.array([6, 9]))
    assert table.lane(name, 0, 7)[4:] == (2, 1, 9, 7)
    assert table.shares().tolist() == [1.0]
