"""What a job over a whole landing reads, and in which order (`jobs.batch`)."""

import pytest

from support.latwin.states import definitely
from whenabouts_cloud.jobs import batch
from whenabouts_cloud.jobs.engines.latwin import LATWIN


class ListedError(Exception):
    """The files of readings are listed."""


def test_watermarks_are_read_before_files_of_readings_are_listed(tmp_path, monkeypatch):
    """Otherwise one that lands in between covers readings that the job does not have."""
    seen = []

    def listed(*_):
        raise ListedError

    monkeypatch.setattr(batch, "latest_watermarks", seen.append)
    monkeypatch.setattr(batch, "whole_frame", listed)
    with pytest.raises(ListedError):
        batch.publish_whole(LATWIN, [definitely(2)], None, tmp_path / "landing", tmp_path / "out", 1)
    assert [one.uri for one in seen] == [str(tmp_path / "landing")]
