"""The agent and the whole system on captures of a real M6e Nano."""

import pytest

from support.cloud.demo import check_replayed
from support.edge.agent import Bench, check_capture_published
from support.files.captures import folder


def test_a_capture_of_a_real_reader_is_published(tmp_path):
    """The agent reads it through replay:// and publishes its tags."""
    with Bench(tmp_path) as bench:
        check_capture_published(bench, folder("m6e-nano-serial", "read.transport"))


@pytest.mark.deep
@pytest.mark.timeout(500)
def test_the_captures_of_a_real_reader_are_replayed_through_the_whole_system(tmp_path):
    """A folder of captures plays as one; its frames are those of the head lines, its tags land at every gateway."""
    check_replayed(folder("m6e-nano-serial"), tmp_path, seed=4)
