"""True times are read as they are written, and nothing else is."""

from whenabouts_cloud.dashboard.data.truth_file import NAME, TruthFile
from whenabouts_cloud.landing.store import Store

LINE = b'{"site": "s", "gateway": "g", "boot": 1, "seq": %d, "true_us": %d}\n'


def test_what_is_appended_is_read_once_its_line_is_whole(tmp_path):
    """A line that is being written waits."""
    file, truth = tmp_path / NAME, TruthFile(Store.at(tmp_path))
    assert not truth.follow()
    file.write_bytes(LINE % (1, 100) + (LINE % (2, 200))[:20])
    assert truth.follow()
    assert (truth.of("s", "g", 1, 1), truth.of("s", "g", 1, 2)) == (100, None)
    file.write_bytes(LINE % (1, 100) + LINE % (2, 200))
    assert truth.follow()
    assert truth.of("s", "g", 1, 2) == 200
    assert not truth.follow()


def test_lines_that_are_no_truth_are_left_out(tmp_path):
    """Whatever they are."""
    hostile = [
        b"[]",
        b"{}",
        b"nul",
        b"[" * 100_000,
        b'{"site": 1, "gateway": "g", "boot": 1, "seq": 1, "true_us": 1}',
        b"\xff",
    ]
    (tmp_path / NAME).write_bytes(b"\n".join(hostile) + b"\n" + LINE % (1, 100))
    truth = TruthFile(Store.at(tmp_path))
    truth.follow()
    assert len(truth) == 1
