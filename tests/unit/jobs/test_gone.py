"""A file that a failure names and that is not there any more."""

import pytest

from support.cloud.landing import EPOCH_US, land, reading
from whenabouts_cloud.jobs.reading.gone import names_gone
from whenabouts_cloud.landing.history import everything
from whenabouts_cloud.landing.scan import encoded, read_piece
from whenabouts_cloud.landing.store import Store


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_that_is_gone_is_told_from_a_damaged_one(tmp_path, is_gone):
    """Both are unreadable to a task, whose error is in the middle of what Spark tells."""
    file = land(tmp_path, [reading("gw", 1, "dock", "k", EPOCH_US, EPOCH_US)])
    landing = Store.at(tmp_path)
    [piece] = everything(landing)
    file.unlink() if is_gone else file.write_bytes(b"nonsense")
    with pytest.raises(Exception, match=r"^hour=") as caught:
        read_piece(landing, piece, encoded(["key"]))
    kind = type(caught.value)
    text = f"Traceback:\n  line 3: found it\n{kind.__module__}.{kind.__name__}: {caught.value}\n\tat Java"
    assert names_gone(landing, text) is is_gone


def test_a_failure_of_another_kind_names_no_file(tmp_path):
    """Such as one of Java."""
    assert not names_gone(Store.at(tmp_path), "java.lang.OutOfMemoryError: found no room")
