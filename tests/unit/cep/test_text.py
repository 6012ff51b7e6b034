"""A match as a line: readable, and safe to print whatever a reader sent."""

import doctest

from whenabouts_cloud import display_time
from whenabouts_cloud.cep.shard import text
from whenabouts_cloud.cep.shard.text import match_text


def row(**more):
    """A row of a result with one event."""
    event = {"name": "a", "stream": "shelf/1", "site": "s", "gateway": "g", "t_min": 0, "t_max": 0}
    return {"key": "E1", "status": "match", "t_min": 0, "t_max": 0, "probability": None, "events": [event], **more}


def test_the_examples_hold():
    """Those in the documentation of the function."""
    assert doctest.testmod(text).failed == 0
    assert doctest.testmod(text).attempted >= 4


def test_keys_cannot_steer_a_terminal_and_odd_times_are_shown():
    """Escape sequences are shown as such; a time beyond the calendar is a number; an event of another day has its date."""
    assert "  '\\x1b[2J'  " in match_text(row(key="\x1b[2J"))
    assert match_text(row(key=None)).split("  ")[1] == "-"
    far = 1 << 62
    assert match_text(row(t_min=far)).startswith(f"{far} us")
    assert "a shelf/1@s/g 1970-01-01T00:00:00.000000" in match_text(row(t_min=10**12))
    assert display_time.moment(far) is None
