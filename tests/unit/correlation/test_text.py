"""Lines for people, and the examples in the documentation of the correlation."""

import doctest

import pytest

from whenabouts_cloud.correlation import text
from whenabouts_cloud.correlation.batch import one_by_one
from whenabouts_cloud.correlation.text import pair_text
from whenabouts_cloud.rules import model


@pytest.mark.parametrize("module", [one_by_one, text, model], ids=lambda m: m.__name__)
def test_documented_examples_run(module):
    """Every example in a docstring gives what it shows."""
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def pair(**changes):
    side = {"stream": "dock", "site": "s", "gateway": "g", "t_min": 86_399_999_000, "t_max": 86_400_000_001}
    return {f"{x}_{n}": v for x in "ab" for n, v in side.items()} | {"key": "E2", "probability": 1.0} | changes


def test_a_stamp_across_midnight_shows_both_dates():
    """The headline's date is not repeated, another one is shown."""
    assert "23:59:59.999000..1970-01-02T00:00:00.000001" in pair_text(pair())


def test_a_stamp_beyond_every_calendar_is_shown_as_a_number():
    """A wrong clock spoils no line."""
    assert "..9223372036854775807 us" in pair_text(pair(b_t_max=(1 << 63) - 1))
    assert pair_text(pair(a_t_min=-(1 << 63))).startswith("-9223372036854775808 us  E2")


def test_a_key_cannot_steer_the_terminal():
    """Control characters from a tag are shown, not sent."""
    assert "\x1b" not in pair_text(pair(key="\x1b[2J"))
    assert "\\x1b[2J" in pair_text(pair(key="\x1b[2J"))
