"""A board's birth and status: the same bytes as the protocol's encoder gives, and refused values."""

import pytest

from support.board.config import config
from whenabouts_edge.board.announce import birth, statuses
from whenabouts_edge.board.run import opened
from whenabouts_protocol import Birth, Status, encode_birth, encode_status
from whenabouts_protocol.layout import CONDITIONS

ORIGIN = ("hall", "gw", 7 << 32)
STREAMS = [
    ("gate/tags", "tag", None, 15_000_000, 5_000_000, 1_000_000, 4333, 0, None),
    ("b/t", "measure", "Cel", 1 << 40, 0),
]


@pytest.mark.parametrize(
    ("streams", "group", "view", "build"), [(STREAMS, None, ["gw"], ""), (STREAMS[:1], "portals", ["a", "gw"], "1.2")]
)
def test_a_birth_is_that_of_the_protocol(streams, group, view, build):
    """With a group and without."""
    assert birth(*ORIGIN, streams, group, view, build) == encode_birth(Birth(*ORIGIN, streams, group, view, build))


def test_a_status_is_that_of_the_protocol():
    """Each condition."""
    assert statuses(*ORIGIN) == {name: encode_status(Status(*ORIGIN, name)) for name in CONDITIONS}


@pytest.mark.parametrize("text", ["", "x" * 257, "\ud800", 5])
def test_values_that_no_message_may_hold_are_not_announced(text):
    """A stream, a unit, a group; a build may be empty."""
    for streams, group, build in (
        ([(text, "tag", None, 0, 0)], None, ""),
        ([("s", "tag", text, 0, 0)], None, ""),
        ([], text, ""),
        ([], None, text or "x" * 257),
    ):
        with pytest.raises(ValueError, match="expected text"):
            birth(*ORIGIN, streams, group, [], build)


def test_a_board_with_a_name_that_is_none_does_not_start(tmp_path):
    """Neither with one that is no topic level, nor with a stream without a name."""
    flash_log = {"folder": str(tmp_path / "flash"), "segments": 2, "segment_bytes": 4096}
    reader = {"port": "/dev/null", "kind": "rdm6300", "stream": "s"}
    with pytest.raises(ValueError, match="site"):
        opened(config(site="a/b", flash_log=flash_log, readers=[reader]))
    with pytest.raises(ValueError, match="expected text"):
        opened(config(flash_log=flash_log, readers=[{**reader, "stream": ""}]))
