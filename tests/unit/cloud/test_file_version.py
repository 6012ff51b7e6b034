"""Noticing that a file was changed or replaced (`whenabouts_cloud.file_version`)."""

import os

from whenabouts_cloud.file_version import file_version


def test_a_file_of_the_same_size_and_time_that_took_its_place_is_another_version(tmp_path):
    """As when an older copy is renamed over it; the same file has one version, an absent one none."""
    path, other = tmp_path / "f", tmp_path / "other"
    assert file_version(path) is None
    for one in (path, other):
        one.write_text("text")
        os.utime(one, ns=(5, 5))
    before = file_version(path)
    assert file_version(path) == before
    other.rename(path)
    assert file_version(path) not in (before, None)
