"""Progress of long work (`whenabouts_cloud.progress`): a bar on a terminal, lines without one."""

import io

import pytest

from whenabouts_cloud.progress import EVERY_S, progress


class Output(io.StringIO):
    """A text buffer that is a terminal or is not."""

    def __init__(self, terminal):
        super().__init__()
        self._terminal = terminal

    def isatty(self):
        return self._terminal


@pytest.fixture
def now():
    """A clock that stands still until it is moved."""
    return [0.0]


def test_without_a_terminal_a_line_comes_now_and_then_with_rate_and_rest(now):
    """None at the beginning, and none at the end: the result of the work follows."""
    out = Output(False)
    with progress("landing", 1000, "readings", lambda: now[0], out) as advance:
        advance(100)
        assert out.getvalue() == ""
        now[0] = EVERY_S
        advance(150)
        assert out.getvalue() == "landing: 250 of 1,000 readings, 25 readings/s, 30 s left\n"
        now[0] = EVERY_S + 1
        advance(10)
        now[0] = 3 * EVERY_S
        advance(740)
    assert out.getvalue().count("\n") == 1


def test_on_a_terminal_a_bar_shows_position_and_rate(now):
    """With the unit of the work."""
    out = Output(True)
    with progress("landing", 4, "readings", lambda: now[0], out) as advance:
        for _ in range(4):
            now[0] += 0.5
            advance(1)
    assert "4/4" in out.getvalue()
    assert "2 readings/s" in out.getvalue()
