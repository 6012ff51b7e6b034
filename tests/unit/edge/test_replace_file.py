"""Files that are replaced whole, on a real disk."""

import os
import stat

import pytest

from whenabouts_edge.replace_file import replace_file


@pytest.fixture
def path(tmp_path):
    """A file with an older text and permissions of its own, and a umask that takes almost all bits."""
    file = tmp_path / "status.json"
    file.write_text("old")
    file.chmod(0o640)
    before = os.umask(0o077)
    yield file
    os.umask(before)


def names(path):
    return sorted(one.name for one in path.parent.iterdir())


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize(("mode", "bits"), [(0o644, 0o644), (0o600, 0o600), (None, 0o600)])
def test_a_file_is_replaced_with_its_permissions(path, mode, bits, durable):
    """Those that were asked for whatever the umask, else those of the umask; the old file's do not count."""
    replace_file(path, "new \N{SNOWMAN}\n", mode, durable=durable)
    assert path.read_bytes() == "new \N{SNOWMAN}\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == bits
    assert names(path) == ["status.json"]


def test_a_text_that_cannot_be_written_leaves_the_old_file(path):
    """A lone surrogate has no UTF-8 form: no new file stays beside the old one."""
    with pytest.raises(UnicodeEncodeError):
        replace_file(path, "new \udc80", 0o600, durable=True)
    assert (path.read_text(), names(path)) == ("old", ["status.json"])


def test_a_folder_in_the_place_of_the_file_is_left_alone(tmp_path):
    """The rename fails, and the new file goes."""
    (tmp_path / "taken" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="taken"):
        replace_file(tmp_path / "taken", "new", durable=True)
    assert [one.name for one in tmp_path.iterdir()] == ["taken"]
    assert (tmp_path / "taken" / "inside").is_dir()


def test_a_missing_folder_is_an_error(tmp_path):
    """It is not made: the caller knows its owner and permissions."""
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "missing" / "file", "new", durable=True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_left_by_a_killed_program_is_no_obstacle(path):
    """Even one that others may read: the new text is never written into it."""
    left = path.with_name(".status.json.new")
    left.write_text("half")
    left.chmod(0o666)
    replace_file(path, "new", 0o600, durable=True)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)
    assert names(path) == ["status.json"]
