"""What the tasks of a job read, without Spark."""

import pytest

from support.cloud.landing import land, reading, watermark
from support.cloud.parts import Part
from whenabouts_cloud.frontier.gateways import latest_watermarks
from whenabouts_cloud.jobs.reading import source
from whenabouts_cloud.jobs.reading.source import Frontiers, Reading
from whenabouts_cloud.landing.files import DamagedFileError
from whenabouts_cloud.landing.history import everything
from whenabouts_cloud.landing.store import Store


class Seen:
    """A work that notes what it is given."""

    def __init__(self):
        self.tables, self.said = [], []

    def readings(self, landed):
        self.tables.append(landed["seq"].to_pylist())
        return iter(())

    def watermarks(self, said, complete):
        self.said.append(([one["frontier_us"] for one in said], complete))
        return iter(())


def reading_of(folder, seen, **more):
    return Reading(Store.at(folder), ("seq", "site"), more.pop("left_out", frozenset()), seen, **more)


def test_small_files_are_packed_together_up_to_a_number_of_readings(tmp_path, monkeypatch):
    """A file that is left out is not opened."""
    monkeypatch.setattr(source, "PACKED_ROWS", 4)
    paths = [land(tmp_path, [reading("g", 2 * n + i, "s", "k", 1, 1) for i in range(2)]) for n in range(5)]
    paths[1].write_bytes(b"damaged")
    name = paths[1].relative_to(tmp_path).as_posix()
    seen = Seen()
    some = reading_of(tmp_path, seen, left_out=frozenset([name]))
    for partition in some.partitions(everything(some.landing)):
        assert list(some.read(partition)) == []
    assert seen.tables == [[0, 1, 4, 5], [6, 7, 8, 9]]
    some = reading_of(tmp_path, seen)
    with pytest.raises(DamagedFileError, match=f"^{name}: found no whole Parquet file"):
        [list(some.read(partition)) for partition in some.partitions(everything(some.landing))]


def planned(folder, seen):
    """The watermarks of everything that a stream finds at once."""
    stream = source._Growing(reading_of(folder, seen))
    end = stream.latestOffset({}, None)
    for partition in stream.partitions({}, end):
        list(stream.read(partition))
    return [partition.complete for partition in stream.partitions({}, end) if isinstance(partition, Frontiers)]


def test_numbered_watermarks_of_one_ingest_take_effect_at_once(tmp_path):
    """Of several ingests, and those of older versions, which have no number, only with the next micro-batch."""
    part, seen = Part(tmp_path / "one"), Seen()
    part.data()
    part.frontier()
    assert planned(tmp_path / "one", seen) == [True]
    assert seen.said == [([2], True)]
    other = Part(tmp_path / "one" / "ingest=b", "h")
    other.data()
    other.frontier()
    assert planned(tmp_path / "one", seen) == [False]
    watermark(tmp_path / "old", {"g": 7})
    assert planned(tmp_path / "old", seen) == [False]


def test_the_latest_watermark_of_each_boot_of_a_gateway_counts_for_a_whole_landing(tmp_path):
    """In whatever order they were written, of old and new files; an older ingest named no boot."""
    watermark(tmp_path, {"g": 9, "h": 3})
    watermark(tmp_path, {"g": 7})
    part = Part(tmp_path / "ingest=a", "p")
    part.data()
    part.frontier()
    assert sorted(latest_watermarks(Store.at(tmp_path))) == [("hall/g", 9, 1), ("hall/h", 3, 1), ("s/p", 2, -1)]
