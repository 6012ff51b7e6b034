"""A reading holds what its fields allow and names the first field that does not."""

import pytest

from whenabouts_protocol.interval import Interval
from whenabouts_protocol.reading import FIELDS, MAX_ATTRS, MAX_VALUE_BYTES, TIME_US_MAX, Reading

USUAL = {"site": "s", "gateway": "g", "boot": 1, "seq": 2, "stream": "x", "kind": "tag", "t_min": 5, "t_max": 9}


class OddInt(int):
    """An integer that is no int by type."""


NUMBER = "expected an integer from 0 to 2^63 - 1"
NAME = "expected a name of 1 to 64 bytes without space / + #"
TEXT = "text of 1 to 256 bytes"
TIMES = "expected integers from 1 - 2^62 to 2^62 - 1, t_min <= t_max"
REFUSED = [
    *[("site", value, NAME) for value in (None, 5, "", "a/b", "+", "#", "a b", "x" * 65, "ä" * 33, "\ud800", b"s")],
    *[("gateway", value, NAME) for value in (None, "", "$SYS", ".", "..", "a\n", "a\x7f", "a\x85", "a\ufffe")],
    *[("boot", value, NUMBER) for value in (None, -1, 1 << 63, True, 1.0, "1", OddInt(1))],
    *[("seq", value, NUMBER) for value in (None, -1, 1 << 63, False, 1.0, "1", OddInt(1))],
    *[("stream", value, TEXT) for value in (None, "", "x" * 257, "€" * 86, "\ud800", 5, b"x")],
    *[("kind", value, "expected one of tag, measure, state, absent, gap") for value in (None, "", "Tag", 0, [])],
    *[("key", value, "expected None or " + TEXT) for value in ("", "x" * 257, "\udfff", 5, b"E2", ["E2"])],
    *[
        ("value", value, "expected None, an int64, a finite number, a bool or a short text")
        for value in (float("nan"), float("inf"), 1 << 63, -(1 << 63) - 1, "x" * (MAX_VALUE_BYTES + 1), b"x", [], {}, 1j)
    ],
    *[("unit", value, "expected None or " + TEXT) for value in ("", "x" * 257, 5)],
    *[
        ("attrs", value, f"expected at most {MAX_ATTRS} entries from text to number, text or bool")
        for value in (
            [], 5, {1: 1}, {True: 1}, {None: 1}, {"": 1}, {"a": None}, {"a": []}, {"a": float("inf")}, {"\ud800": 1},
            {"a": "\ud800"}, {"a": OddInt(1)}, {str(n): n for n in range(MAX_ATTRS + 1)},
        )
    ],
    *[
        ("clock_state", value, "expected one of bounded, free-running, unbounded")
        for value in (None, "", "Bounded", 0, {})
    ],
    *[
        ("vclock", value, "expected at most 64 counts from 0 to 2^63 - 1")
        for value in ((-1,), (True,), (1.0,), (1 << 63,), ("1",), [0] * 65, 5, "12", b"\x01", {1: 0})
    ],
]  # fmt: skip


@pytest.mark.parametrize(("field", "value", "expected"), REFUSED)
def test_a_field_out_of_its_range_is_refused_by_name(field, value, expected):
    """The text has the field, what was found and what was expected."""
    with pytest.raises(ValueError, match=r"^reading ") as caught:
        Reading(**{**USUAL, field: value})
    text = str(caught.value)
    assert text.startswith(f"reading {field}: found ")
    assert expected in text
    assert len(text) < 250


@pytest.mark.parametrize(
    ("t_min", "t_max"),
    [(9, 5), (None, 9), (5, None), (5.0, 9), (True, 9), (-TIME_US_MAX, 0), (0, TIME_US_MAX), ("5", "9")],
)
def test_a_stamp_that_is_no_interval_is_refused(t_min, t_max):
    """Both ends are named, because either may be the wrong one."""
    with pytest.raises(ValueError, match=r"^reading t_min, t_max: found ") as caught:
        Reading(**{**USUAL, "t_min": t_min, "t_max": t_max})
    assert TIMES in str(caught.value)


def test_every_field_but_the_usual_ones_has_a_default():
    """Fields that most readings lack are None or empty; a clock is bounded by default."""
    reading = Reading(**USUAL)
    assert [getattr(reading, f) for f in ("key", "value", "unit", "attrs", "clock_state", "vclock")] == [
        None, None, None, {}, "bounded", (),
    ]  # fmt: skip
    for missing in USUAL:
        with pytest.raises(TypeError, match=missing):
            Reading(**{name: value for name, value in USUAL.items() if name != missing})


def test_two_readings_do_not_share_attributes():
    """The empty map is each reading's own."""
    one, other = Reading(**USUAL), Reading(**USUAL)
    one.attrs["a"] = 1
    assert other.attrs == {}


def test_identity_and_interval():
    """(gateway, boot, seq) is its identity, [t_min, t_max] its time."""
    reading = Reading(**USUAL)
    assert reading.identity == ("g", 1, 2)
    assert reading.interval == Interval(5, 9)
    assert hash(reading) == hash(Reading(**{**USUAL, "stream": "y"}))


def test_equal_means_equal_in_type_too():
    """True is not 1 and 1 is not 1.0, neither as value nor as attribute."""
    for one, other in ((1, True), (1, 1.0), (0, False), ("1", 1)):
        assert Reading(**USUAL, value=one) != Reading(**USUAL, value=other)
        assert Reading(**USUAL, attrs={"a": one}) != Reading(**USUAL, attrs={"a": other})
    assert Reading(**USUAL, attrs={"a": 1, "b": 2}) == Reading(**USUAL, attrs={"b": 2, "a": 1})
    assert Reading(**USUAL, attrs={"a": 1}) != Reading(**USUAL, attrs={"b": 1})
    assert Reading(**USUAL) != "reading"
    assert Reading(**USUAL, vclock=[1, 2]) == Reading(**USUAL, vclock=(1, 2))


def test_a_reading_shows_all_of_itself():
    """repr has every field by name and makes an equal reading."""
    reading = Reading(**USUAL, key="E2", value=-0.5, unit="Cel", attrs={"a": True}, vclock=(1, 0))
    assert all(f"{field}=" in repr(reading) for field in FIELDS)
    assert eval(repr(reading)) == reading
