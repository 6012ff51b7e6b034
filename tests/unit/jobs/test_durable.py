"""Files appear whole or not at all."""

import pytest

from whenabouts_cloud import durable
from whenabouts_cloud.durable import appearing, make_folder, write_durably


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


class Synced(list):
    """Paths."""


@pytest.fixture
def synced(monkeypatch):
    """The folders that are synced, in order. A path in `failing` cannot be."""
    done, failing = Synced(), []

    def sync(path):
        if path in failing:
            raise OSError(5, "Input/output error")
        done.append(path)

    monkeypatch.setattr(durable, "sync", sync)
    monkeypatch.setattr(durable, "_named", set())
    done.failing = failing
    return done


def test_each_folder_is_durable_before_one_is_made_in_it(tmp_path, synced):
    """The lowest that was there is synced too: a run that was killed may have made it. A process does it once."""
    make_folder(tmp_path / "a" / "b")
    assert synced == [tmp_path.parent, tmp_path, tmp_path / "a"]
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "c")
    assert synced[3:] == [tmp_path / "a"]


def test_a_folder_whose_name_could_not_be_synced_is_synced_again(tmp_path, synced):
    synced.failing.append(tmp_path)
    with pytest.raises(OSError, match="error"):
        make_folder(tmp_path / "a")
    assert (tmp_path / "a").exists()
    synced.failing.clear()
    make_folder(tmp_path / "a" / "b")
    assert synced == [tmp_path.parent, tmp_path, tmp_path / "a"]
