"""The board follows its indices in a thread, whatever they do."""

import threading

from support.waiting import until
from whenabouts_cloud.dashboard.board import Board


class Source:
    """An index with some slices of work, each of which may be an error."""

    def __init__(self, *slices):
        self.version = 0
        self.slices = list(slices)
        self.called = threading.Event()

    def follow(self, budget_s):
        self.called.set()
        if not self.slices:
            return False
        one = self.slices.pop(0)
        if isinstance(one, Exception):
            raise one
        self.version += 1
        return one


def test_all_work_is_done_in_slices():
    """One index does not wait for the end of another's work."""
    landed, results = Source(*[True] * 50, False), Source(False)
    with Board(landed=landed, results=results) as board:
        until(lambda: board.version() == {"landing": 51, "results": 1, "rules": 0}, "all slices")
        assert board.problems() == []


def test_an_index_that_fails_is_named_and_asked_again():
    """The others go on meanwhile."""
    landed, results = Source(OSError("disk\n gone")), Source(False)
    board = Board(landed=landed, results=results)
    board.step()
    assert board.problems() == ["landing: cannot be read (disk gone)"]
    assert results.version == 1
    board.step()
    assert board.problems() == []


def test_an_error_is_logged_once(caplog):
    """However often it occurs; another one is logged, too."""
    board = Board(landed=Source(OSError("a"), OSError("a"), OSError("b")))
    for _ in range(3):
        board.step()
    assert [record.getMessage() for record in caplog.records] == [
        "landing: cannot be read (a)", "landing: cannot be read (b)",
    ]  # fmt: skip


def test_the_end_comes_at_once():
    """The thread waits for it, not for a time."""
    landed = Source()
    with Board(landed=landed) as board:
        assert landed.called.wait(30)
    assert not board.alive


def test_a_board_of_nothing_knows_nothing():
    """Nor does it fail."""
    board = Board()
    assert (board.streams(), board.keys("a", 5), board.version()) == ((), [], {"rules": 0})
