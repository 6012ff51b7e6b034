"""The law of repairs: no reading that can be read is lost, all that are lost are named, and none has other content."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.cloud.ingest import reading
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.landing.damage import check
from whenabouts_cloud.landing.ranges import as_ranges
from whenabouts_cloud.landing.repair import repair
from whenabouts_cloud.landing.schema import SCHEMA
from whenabouts_cloud.landing.store import Store
from whenabouts_sim.chaos.checks.landing.repairs import broken_repairs

COUNT = 5


@pytest.fixture
def file(tmp_path):
    """A file of a landing, between two others."""
    landing = Landing(Store.at(tmp_path))
    paths = []
    for first in (0, COUNT, 2 * COUNT):
        readings = [reading("g1", 0, number) for number in range(first, first + COUNT)]
        ranges = as_ranges((f"{one.site}/{one.gateway}", one.boot, one.seq) for one in readings)
        paths.append(tmp_path / landing.write(readings, ranges, 0))
    landing.close()
    return paths[1]


def change(path, at):
    """Change a bit. Returns what the file held before."""
    before = path.read_bytes()
    data = bytearray(before)
    data[at] ^= 1
    path.write_bytes(data)
    return {path: before}


def in_pages(path):
    """A place in the pages of a file."""
    return pq.read_metadata(path).row_group(0).column(6).dictionary_page_offset + 9


def in_ranges(path):
    """A place in the footer of a file that leaves its pages readable."""
    return path.read_bytes().rindex(b"hall/g1")


def in_a_name(path):
    """A place in the name of a column that readings need not have."""
    return path.read_bytes().rindex(b"vclock")


def in_an_offset(path):
    """A place in the footer that says where the dictionary of a column is."""
    data = path.read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    column = SCHEMA.get_field_index("t_min")
    offset = pq.read_metadata(path).row_group(0).column(column).dictionary_page_offset
    return data.index(as_varint(offset), begin) + 1


def as_varint(number):
    """A number of up to 13 bits as Thrift's compact protocol writes it."""
    zigzag = number << 1
    return bytes([zigzag & 127 | 128, zigzag >> 7])


def mended(path, at):
    """Change a bit, and repair the landing. Returns its folder, what the file held before, and the record of the repair."""
    folder, rotten = path.parents[1], change(path, at)
    repair(folder, check(folder), 0)
    [record] = (folder / "_damaged").rglob("*.json")
    return folder, rotten, record


@pytest.mark.parametrize("place", [in_pages, in_ranges, in_a_name])
def test_the_repair_of_the_product_breaks_no_law(file, place):
    folder, rotten, _ = mended(file, place(file))
    assert list(broken_repairs([folder], rotten)) == []


def test_a_lost_reading_that_is_not_named_breaks_it(file):
    folder, rotten, record = mended(file, in_pages(file))
    record.write_text(json.dumps({"new": None, "lost": [["hall/g1", 0, COUNT, 2 * COUNT - 2]]}))
    [text] = broken_repairs([folder], rotten)
    assert text.endswith(f"('hall', 'g1', 0, {2 * COUNT - 1}) is in no file, and is not among the lost")


def test_a_reading_that_can_still_be_read_and_was_not_written_breaks_it(file):
    folder, rotten, record = mended(file, in_ranges(file))
    (folder / json.loads(record.read_text())["new"]).unlink()
    assert len(list(broken_repairs([folder], rotten))) == 2 * COUNT  # nor is it named


def test_a_reading_with_another_content_breaks_it(file):
    folder, rotten, record = mended(file, in_ranges(file))
    new = folder / json.loads(record.read_text())["new"]
    table = pq.read_table(new)
    keys = pa.array(["OTHER"] * COUNT).cast(table.schema.field("key").type)
    pq.write_table(table.set_column(table.schema.get_field_index("key"), table.schema.field("key"), keys), new)
    texts = list(broken_repairs([folder], rotten))
    assert len(texts) == COUNT
    assert all(text.endswith("is not what it was") for text in texts)


def test_a_new_file_that_was_damaged_later_breaks_none(file):
    folder, rotten, record = mended(file, in_ranges(file))
    new = folder / json.loads(record.read_text())["new"]
    rotten |= change(new, in_pages(new))
    assert list(broken_repairs([folder], rotten)) == []


def test_a_new_file_that_is_repaired_itself_breaks_none(file):
    folder, rotten, record = mended(file, in_ranges(file))
    new = folder / json.loads(record.read_text())["new"]
    rotten |= change(new, in_pages(new))
    repair(folder, check(folder), 0)
    assert list(broken_repairs([folder], rotten)) == []


@pytest.mark.parametrize("place", [in_ranges, in_a_name, in_an_offset])
def test_one_changed_bit_of_a_footer_takes_nothing(file, place):
    """One in the place of a dictionary's page gave a column the values of another."""
    before = pq.read_table(file).to_pylist()
    folder, _, record = mended(file, place(file))
    said = json.loads(record.read_text())
    assert said["lost"] == []
    assert pq.read_table(folder / said["new"]).to_pylist() == before


def test_after_more_than_one_all_are_lost_and_named_by_the_files_beside(file):
    rotten = change(file, in_a_name(file))
    folder, _, record = mended(file, in_ranges(file))
    assert json.loads(record.read_text()) | {"problem": ""} == {
        "problem": "", "new": None, "lost": [["hall/g1", 0, COUNT, 2 * COUNT - 1]],
    }  # fmt: skip
    assert list(broken_repairs([folder], rotten)) == []


def test_a_file_that_was_merged_again_under_its_name_breaks_none(file):
    """The originals of a merged file were still there when that was moved away."""
    _, rotten, record = mended(file, in_pages(file))
    record.write_text(json.dumps({"new": None, "lost": []}))
    assert len(list(broken_repairs([file.parents[1]], rotten))) == COUNT
    file.write_bytes(rotten[file])
    assert list(broken_repairs([file.parents[1]], rotten)) == []
