"""The law of what jobs read: of a file of which a bit has changed nothing that was not written."""

from contextlib import suppress

import pytest

from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.jobs.reading import source
from whenabouts_cloud.landing.files import DamagedFileError, data_files
from whenabouts_cloud.landing.history import Piece
from whenabouts_cloud.landing.scan import encoded
from whenabouts_cloud.landing.sealing import sealed, unsealed
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol import Reading
from whenabouts_sim.chaos.parts.landing_files import frontier_files
from whenabouts_sim.chaos.parts.true_reads import watched
from whenabouts_sim.world.clocks import EPOCH_US

STAMP = {"t_min": EPOCH_US, "t_max": EPOCH_US + 1}
ROW = {"site": "hall", "gateway": "gw", "frontier_us": EPOCH_US, "streams": ["dock/tags"], "landed_us": EPOCH_US}


@pytest.fixture
def store(tmp_path):
    """Two files with a reading each, and one of a watermark."""
    landing = Landing(Store.at(tmp_path / "landing"))
    for seq in range(2):
        one = Reading(
            site="hall", gateway="gw", boot=1, seq=seq, stream="dock/tags", kind="tag", key=f"K{seq}", **STAMP
        )
        landing.write([one], [("hall/gw", 1, seq, seq)], EPOCH_US)
    landing.write_frontiers([ROW])
    landing.close()
    return landing.store


def read(store, path, rotten):
    """What a job reads of a file, and what the law says of it."""
    piece, said = Piece(path.relative_to(store.local).as_posix(), "", "", 0, 0, False), []
    with watched(rotten, said.append), suppress(DamagedFileError):
        if path.suffix == ".json":
            list(source.frontiers_in(store, [piece]))
        else:
            source.read_piece(store, piece, encoded(["key", "t_min", "vclock"]))
    return said


def test_other_readings_than_were_written_are_told(store):
    first, second = sorted(data_files(store.local))
    before = first.read_bytes()
    first.write_bytes(second.read_bytes())
    [text] = read(store, first, {first: before})
    assert "has changed, and a job read ('K1', " in text
    assert read(store, second, {first: before}) == []


def test_other_watermarks_than_were_written_are_told(store):
    [path] = frontier_files(store.local)
    before = path.read_bytes()
    path.write_bytes(sealed(unsealed(before) | {"frontier_us": EPOCH_US + 1}) + b"\n")
    [text] = read(store, path, {path: before})
    assert f"a job read ('hall', 'gw', {EPOCH_US + 1}, " in text
    path.write_bytes(sealed(ROW | {"streams": ["desk/tags"]}) + b"\n")
    assert len(read(store, path, {path: before})) == 1


def test_a_file_that_is_read_as_it_was_or_not_at_all_breaks_no_law(store):
    for path in (*data_files(store.local), *frontier_files(store.local)):
        before = path.read_bytes()
        assert read(store, path, {path: before}) == []
        path.write_bytes(before[: len(before) // 2])
        assert read(store, path, {path: before}) == []
