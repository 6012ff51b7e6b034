"""What a power cut leaves of a checkpoint: Spark renames its files into place and does not sync them."""

import json

import pytest

from whenabouts_cloud.jobs.output.checkpoint import checkpoint_of

SOURCE = json.dumps({".": {"hour": "", "number": 4}})
FILES = {
    "offsets": f'v1\n{{"batchWatermarkMs":0}}\n{SOURCE}',
    "commits": 'v1\n{"nextBatchWatermarkMs":0}',
}


def _folder(tmp_path, log, text):
    """A checkpoint with a micro-batch 0 that is done, and a file of micro-batch 1."""
    for name, whole in FILES.items():
        (tmp_path / "_checkpoint" / name).mkdir(parents=True)
        (tmp_path / "_checkpoint" / name / "0").write_text(whole)
    if log == "commits":
        (tmp_path / "_checkpoint/offsets/1").write_text(FILES["offsets"])
    path = tmp_path / "_checkpoint" / log / "1"
    path.write_text(text)
    return path


@pytest.mark.parametrize("log", FILES)
def test_a_file_that_was_written_in_part_is_removed_wherever_it_ends(tmp_path, log):
    """Also at the end of a line, where what is there looks whole."""
    whole = FILES[log]
    for length in range(len(whole)):
        path = _folder(tmp_path / str(length), log, whole[:length])
        checkpoint_of(tmp_path / str(length))
        assert not path.exists(), f"{whole[:length]!r} was left"


@pytest.mark.parametrize("log", FILES)
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_whole_file_stays(tmp_path, log, end):
    path = _folder(tmp_path, log, FILES[log] + end)
    checkpoint_of(tmp_path)
    assert path.read_text() == FILES[log] + end


def test_a_source_of_which_nothing_is_known_is_a_line(tmp_path):
    path = _folder(tmp_path, "offsets", 'v1\n{"batchWatermarkMs":0}\n-')
    checkpoint_of(tmp_path)
    assert path.exists()
