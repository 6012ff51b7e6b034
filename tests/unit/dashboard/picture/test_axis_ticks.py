"""Ticks of a time axis."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenabouts_cloud.dashboard.picture.axis_ticks import STEPS, label, ticks


@given(st.integers(-(2**52), 2**52), st.integers(1, 2**51), st.integers(2, 40))
def test_ticks_are_multiples_of_the_least_step_that_fits(from_us, span_us, most):
    """All lie in the time, none is missing, and they are told apart by their labels."""
    step, found = ticks(from_us, from_us + span_us, most)
    assert len(found) <= most
    assert found == list(range(-(-from_us // step) * step, from_us + span_us + 1, step))[:most]
    assert step in STEPS
    smaller = [one for one in STEPS if one < step]
    assert not smaller or span_us // smaller[-1] >= most
    if found and abs(from_us) < 2**50 and span_us < 86_400_000_000:
        assert len({label(us, step) for us in found}) == len(found)


@pytest.mark.parametrize(
    ("step", "text"),
    [(1, "19:59:02.123456"), (10, "19:59:02.12345"), (1000, "19:59:02.123"), (500_000, "19:59:02.1"),
     (1_000_000, "19:59:02"), (3_600_000_000, "19:59"), (86_400_000_000, "2026-11-26")],
)  # fmt: skip
def test_a_label_has_as_many_digits_as_its_step_needs(step, text):
    """In UTC."""
    assert label(1_795_723_142_123_456, step) == text


def test_a_time_that_no_calendar_has_is_a_number():
    """Nothing is raised."""
    assert label(2**62, 1) == f"{2**62} us"
