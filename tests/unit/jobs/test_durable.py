"""Files appear whole or not at all."""

import pytest

from whenabouts_cloud.durable import appearing, write_durably


def test_a_file_takes_the_place_of_an_earlier_one_and_leaves_nothing_beside_it(tmp_path):
    """Written twice: the later content, one name in the folder."""
    for content in (b"first", b"second"):
        write_durably(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_writer_that_fails_changes_nothing(tmp_path):
    """The earlier file stays as it was, and what was half written is gone."""
    write_durably(tmp_path / "file", b"first")
    with pytest.raises(TypeError), appearing(tmp_path / "file") as file:
        file.writelines([b"half", None])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"first"
