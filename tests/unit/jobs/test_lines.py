"""Results as lines: readable, and safe to print whatever a reader sent."""

import doctest

from whenabouts_cloud import display_time
from whenabouts_cloud.jobs.output import lines
from whenabouts_cloud.jobs.output.lines import match_text, pair_text


def match(**more):
    """A row of a match with one event."""
    event = {"name": "a", "stream": "shelf/1", "site": "s", "gateway": "g", "t_min": 0, "t_max": 0}
    return {"key": "E1", "status": "match", "t_min": 0, "t_max": 0, "probability": None, "events": [event], **more}


def pair(**changes):
    """A row of a pair whose readings span midnight."""
    side = {"stream": "dock", "site": "s", "gateway": "g", "t_min": 86_399_999_000, "t_max": 86_400_000_001}
    return {f"{x}_{n}": v for x in "ab" for n, v in side.items()} | {"key": "E2", "probability": 1.0} | changes


def test_the_examples_hold():
    """Those in the documentation of the functions."""
    assert doctest.testmod(lines).failed == 0
    assert doctest.testmod(lines).attempted >= 10


def test_a_stamp_of_another_day_has_its_date():
    """The date that the line begins with is not repeated."""
    assert "23:59:59.999000..1970-01-02T00:00:00.000001" in pair_text(pair())
    assert "a shelf/1@s/g 1970-01-01T00:00:00.000000" in match_text(match(t_min=10**12))


def test_a_stamp_beyond_every_calendar_is_shown_as_a_number():
    """A wrong clock spoils no line."""
    assert "..9223372036854775807 us" in pair_text(pair(b_t_max=(1 << 63) - 1))
    assert pair_text(pair(a_t_min=-(1 << 63))).startswith("-9223372036854775808 us  E2")
    far = 1 << 62
    assert match_text(match(t_min=far)).startswith(f"{far} us")
    assert display_time.moment(far) is None


def test_a_key_cannot_steer_the_terminal():
    """Control characters from a tag are shown, not sent; no key is a dash."""
    assert "\x1b" not in pair_text(pair(key="\x1b[2J"))
    assert "\\x1b[2J" in pair_text(pair(key="\x1b[2J"))
    assert "  '\\x1b[2J'  " in match_text(match(key="\x1b[2J"))
    assert match_text(match(key=None)).split("  ")[1] == "-"
