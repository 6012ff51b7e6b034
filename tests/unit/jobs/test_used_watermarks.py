"""The watermarks of the micro-batch that published last are those of its repetition."""

import pytest

from support.cloud.landing import EPOCH_US
from whenabouts_cloud.jobs.output.used_watermarks import NAME, UsedWatermarks, keep_watermarks, used_watermarks
from whenabouts_cloud.jobs.reading.source import Frontiers, Reading, growing_frame
from whenabouts_cloud.landing.layout import FRONTIER, Numbers, path_of
from whenabouts_cloud.landing.sealing import sealed
from whenabouts_cloud.landing.store import Store
from whenabouts_sim.chaos.parts.micro_batches import Spark

END = {".": {"number": 7}}


def watermark(frontier_us, gateway="g", boot=1):
    return {"site": "hall", "gateway": gateway, "boot": boot, "streams": ["s"], "frontier_us": frontier_us}


def test_the_newest_of_each_start_of_a_gateway_are_kept(tmp_path):
    out = Store.at(tmp_path)
    assert used_watermarks(out) is None
    said = [watermark(5), watermark(9), watermark(7), watermark(3, boot=2), watermark(4, "h")]
    keep_watermarks(out, END, said)
    assert used_watermarks(out) == UsedWatermarks(END, [watermark(9), watermark(3, boot=2), watermark(4, "h")])


@pytest.mark.parametrize("change", [lambda data: data.replace(b"9", b"8", 1), lambda data: data[:9], lambda _: b""])
def test_damaged_ones_are_not_used(tmp_path, change):
    out = Store.at(tmp_path)
    keep_watermarks(out, END, [watermark(9)])
    (tmp_path / NAME).write_bytes(change((tmp_path / NAME).read_bytes()))
    assert used_watermarks(out) is None


class Packed:
    """Work that returns the watermarks that it gets."""

    def watermarks(self, said, complete):
        yield [one["frontier_us"] for one in said], complete


def read(landing, used, left_out=frozenset()):
    """What a micro-batch over all that has landed reads of watermarks, and its end."""
    reader = growing_frame(Spark(), Reading(landing, (), left_out, Packed(), used=used))._reader
    end = reader.latestOffset({}, reader.getDefaultReadLimit())
    tasks = [one for one in reader.partitions({}, end) if isinstance(one, Frontiers)]
    return [said for one in tasks for said in reader.read(one)], end


def test_a_repetition_takes_them_though_their_file_is_damaged(tmp_path):
    landing = Store.at(tmp_path)
    name = path_of(FRONTIER, "2025-06-15T13", Numbers(1, 1))
    landing.write(name, sealed(watermark(EPOCH_US) | {"landed_us": EPOCH_US}) + b"\n")
    said, end = read(landing, None)
    assert said == [([EPOCH_US], True)]
    landing.write(name, b"damaged\n")
    assert read(landing, None, frozenset({name}))[0] == []
    assert read(landing, UsedWatermarks(end, [watermark(EPOCH_US)]), frozenset({name}))[0] == said
    assert read(landing, UsedWatermarks(END, [watermark(EPOCH_US)]), frozenset({name}))[0] == [], (
        "of another micro-batch"
    )
    assert read(landing, UsedWatermarks(end, []))[0] == []
