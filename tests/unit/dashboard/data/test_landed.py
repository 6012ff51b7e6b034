"""The index of a landing answers as the readings themselves would, at every moment that it calls exact."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from support import search
from support.cloud.landing import EPOCH_US, land, reading, watermark
from whenabouts_cloud.dashboard.data import landed as landed_module
from whenabouts_cloud.dashboard.data.landed import LandedIndex, TooManyError
from whenabouts_cloud.landing.compaction import compact
from whenabouts_cloud.landing.store import Store

HOUR = "2026-11-20T18"


def index_of(folder):
    """An index that has read all."""
    index = LandedIndex(Store.at(folder))
    while index.follow(10):
        pass
    return index


def some_readings(rng, count, first=0):
    """Readings of two gateways with two readers each, of any width."""
    rows = []
    for n in range(count):
        t_min = EPOCH_US + int(rng.integers(0, 5_000_000))
        names = f"gw-{rng.integers(2)}", f"line-{rng.integers(2)}"
        rows.append(
            reading(names[0], first + n, names[1], f"k{rng.integers(9)}", t_min, t_min + int(rng.integers(0, 900_000)))
        )
    return rows


def by_hand(rows, lane, from_us, column_us, columns):
    found = [0] * columns
    for row in rows:
        at = ((row["t_min"] + row["t_max"]) // 2 - from_us) // column_us
        if (row["site"], row["gateway"], row["stream"]) == (lane.site, lane.gateway, lane.stream) and 0 <= at < columns:
            found[at] += 1
    return found


@pytest.mark.parametrize("seed", search.seeds(24))
def test_counts_are_those_of_the_readings(tmp_path, seed):
    """At any width of columns, finer and coarser than what is kept, while files arrive."""
    rng = np.random.default_rng(seed)
    index, rows = LandedIndex(Store.at(tmp_path)), []
    for _ in range(3):
        new = some_readings(rng, int(rng.integers(1, 40)), len(rows))
        rows += new
        land(tmp_path, new)
        while index.follow(10):
            pass
        lanes, total = index.lanes("", 0, 100)
        assert total == len({(row["gateway"], row["stream"]) for row in rows})
        assert sum(lane.readings for lane in lanes) == len(rows) == index.summary().readings
        for column in (1, 7, 1000, 1024, 65536, 999_983, 2**22):
            begin = EPOCH_US // column * column - column * int(rng.integers(0, 3))
            found = index.counts([lane.number for lane in lanes], begin, column, 50)
            assert found.exact
            assert found.cells.tolist() == [by_hand(rows, lane, begin, column, 50) for lane in lanes]


def test_before_all_is_counted_numbers_are_estimates_and_say_so(tmp_path):
    """The footers tell how many there are; the first file tells of whom."""
    for n in range(4):
        land(tmp_path, [reading("gw", 100 * n + m, "dock", "k", EPOCH_US + m, EPOCH_US + m) for m in range(100)])
    index = LandedIndex(Store.at(tmp_path), monotonic_s=lambda: 0.0)
    seen = []
    while index.follow(0.0):
        seen.append(index.summary())
        assert index.counts([], 0, 1024, 1).exact == seen[-1].exact
    assert sum(not one.exact for one in seen) > 3
    assert all((one.counted < 1) == (not one.exact) for one in seen)
    assert index.summary().counted == 1
    assert index.summary().readings == 400


def test_nothing_is_exact_before_the_landing_was_listed(tmp_path):
    """An empty landing is known to be empty only then, and that is news."""
    index = LandedIndex(Store.at(tmp_path))
    assert (index.summary().exact, index.summary().counted, index.version) == (False, 0.0, 0)
    index.follow(10)
    assert (index.summary().exact, index.summary().counted, index.version) == (True, 1.0, 1)
    index.follow(10)
    assert index.version == 1


@pytest.mark.parametrize("reader", ["blocks_of", "read_block"])
def test_nothing_is_exact_while_the_last_file_is_being_read(tmp_path, monkeypatch, reader):
    """A question that comes in between must not take what is missing for nothing."""
    land(tmp_path, [reading("gw", 1, "dock", "k", EPOCH_US, EPOCH_US)])
    index, seen, whole = LandedIndex(Store.at(tmp_path)), [], getattr(landed_module, reader)

    def read(*arguments):
        seen.append(index.summary().exact)
        return whole(*arguments)

    monkeypatch.setattr(landed_module, reader, read)
    while index.follow(10):
        pass
    assert seen == [False]
    assert index.summary().exact


def test_single_readings_are_those_that_touch_the_time(tmp_path):
    """And their columns are whole."""
    rows = some_readings(np.random.default_rng(1), 50)
    land(tmp_path, rows)
    found = index_of(tmp_path).rows(EPOCH_US + 10**6, EPOCH_US + 2 * 10**6)
    expected = {row["seq"] for row in rows if row["t_min"] <= EPOCH_US + 2 * 10**6 and row["t_max"] >= EPOCH_US + 10**6}
    assert set(found["seq"].to_pylist()) == expected


def test_a_time_with_too_many_readings_is_refused_with_what_to_do(tmp_path, monkeypatch):
    """Rather than read for minutes."""
    monkeypatch.setattr(landed_module, "ROWS", 10)
    land(tmp_path, some_readings(np.random.default_rng(1), 50))
    with pytest.raises(
        TooManyError, match="found 50 readings to look through, expected at most 10: choose a shorter time"
    ):
        index_of(tmp_path).rows(EPOCH_US, EPOCH_US + 10**7)


def test_one_reading_is_found_by_its_identity(tmp_path):
    """None if there is none."""
    rows = some_readings(np.random.default_rng(2), 20)
    land(tmp_path, rows)
    index, row = index_of(tmp_path), rows[7]
    found = index.reading(row["site"], row["gateway"], row["boot"], row["seq"], row["t_min"], row["t_max"])
    assert found == row
    assert index.reading("other", row["gateway"], row["boot"], row["seq"], row["t_min"], row["t_max"]) is None


def test_a_frontier_is_the_latest_of_its_gateway(tmp_path):
    """Whatever the order of the files."""
    land(tmp_path, [reading("gw", 1, "dock/tags", "k", EPOCH_US, EPOCH_US)])
    for us in (5, 9, 7):
        watermark(tmp_path, {"gw": EPOCH_US + us})
    [lane], _ = index_of(tmp_path).lanes("", 0, 10)
    assert lane.frontier_us == EPOCH_US + 9


def test_a_damaged_file_is_named_and_the_others_are_counted(tmp_path):
    """Nothing is raised."""
    land(tmp_path, [reading("gw", 1, "dock", "k", EPOCH_US, EPOCH_US)]).write_bytes(b"PAR1 nonsense PAR1")
    land(tmp_path, [reading("gw", 2, "dock", "k", EPOCH_US, EPOCH_US)])
    seen = index_of(tmp_path).summary()
    assert (seen.readings, seen.damaged) == (1, 1)
    assert "found no whole Parquet file" in seen.problems[0]


def test_after_files_were_merged_nothing_is_missing_or_counted_twice(tmp_path):
    """What was listed has gone; the index begins anew by itself."""
    for n in range(5):
        land(tmp_path, [reading("gw", n, "dock", "k", EPOCH_US + n, EPOCH_US + n)], hour=HOUR)
    land(tmp_path, [reading("gw", 5, "dock", "k", EPOCH_US + 5, EPOCH_US + 5)], hour="2026-11-20T19")
    index = index_of(tmp_path)
    later_ns = 1_900_000_000 * 10**9
    compact(Store.at(tmp_path), later_ns, 0)
    compact(Store.at(tmp_path), later_ns + 10**9, 0)
    assert len(list((tmp_path / f"hour={HOUR}").glob("part-*.parquet"))) == 1
    index.rows(EPOCH_US, EPOCH_US + 10)
    while index.follow(10):
        pass
    assert index.summary().readings == 6
    assert sorted(index.rows(EPOCH_US, EPOCH_US + 10)["seq"].to_pylist()) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("reader", ["blocks_of", "frontiers_in"])
def test_a_file_that_goes_before_it_is_read_is_not_damaged(tmp_path, monkeypatch, reader):
    """It was merged with others just then; the index begins anew, and calls nothing exact before that."""
    landed = land(tmp_path, [reading("gw", 1, "dock", "k", EPOCH_US, EPOCH_US)])
    file = {"blocks_of": landed, "frontiers_in": watermark(tmp_path, {"gw": EPOCH_US})}[reader]
    index, whole, aside = LandedIndex(Store.at(tmp_path)), getattr(landed_module, reader), tmp_path / ".aside"

    def read(*arguments):
        file.rename(aside)
        return whole(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(landed_module, reader, read)
        index.follow(10)
    assert (index.summary().damaged, index.summary().exact) == (0, False)
    aside.rename(file)
    while index.follow(10):
        pass
    [lane], _ = index.lanes("", 0, 10)
    assert (index.summary().readings, lane.frontier_us, index.summary().exact) == (1, EPOCH_US, True)


def test_keys_of_the_newest_files_are_suggested(tmp_path):
    """Those that begin with some letters, sorted."""
    land(tmp_path, [reading("gw", n, "dock", f"{'ab'[n % 2]}{n}", EPOCH_US, EPOCH_US) for n in range(6)])
    index = index_of(tmp_path)
    assert index.keys("a", 2) == ["a0", "a2"]
    assert index.keys("c", 5) == []


def test_a_landing_of_another_program_is_shown_as_far_as_it_goes(tmp_path):
    """Columns that it lacks are empty."""
    (tmp_path / "hour=2026-11-20T18").mkdir()
    file = land(tmp_path, [reading("gw", 1, "dock", "k", EPOCH_US, EPOCH_US + 2)])
    pq.write_table(pq.read_table(file).select(["site", "gateway", "boot", "seq", "stream", "t_min", "t_max"]), file)
    index = index_of(tmp_path)
    assert index.summary().readings == 1
    assert index.rows(EPOCH_US, EPOCH_US)["key"].to_pylist() == [None]
