"""What a reader's own clock is worth: its error is bounded by stamps that hold the truth, and a step is seen or excluded."""

from hypothesis import given
from hypothesis import strategies as st

from whenabouts_edge.readers.reader_clock import RESOLUTION_US, ReaderClock, in_words

PPM = 200
sighting = st.tuples(
    st.integers(0, 3_000_000),  # since the one before
    st.integers(0, 400_000),  # from the begin of its stamp
    st.integers(0, 400_000),  # to its end
    st.integers(-RESOLUTION_US, RESOLUTION_US),  # by which the reader rounds
)


def reports(sightings, error_us, ppm):
    """(true moment, reader's time, t_min, t_max) of each sighting, by a clock with this error and drift."""
    true_us = 1_750_000_000_000_000
    begin_us = true_us
    for after_us, before_us, behind_us, rounded_us in sightings:
        true_us += after_us
        drift_us = ppm * (true_us - begin_us) // 1_000_000
        yield true_us, true_us + error_us + drift_us + rounded_us, true_us - before_us, true_us + behind_us


@given(st.lists(sighting, min_size=1, max_size=40), st.integers(-(10**16), 10**16), st.integers(-PPM, PPM))
def test_a_clock_that_nothing_steps_makes_stamps_narrower_and_never_false(sightings, error_us, ppm):
    """The truth is in each, none is wider, and no step is seen."""
    clock = ReaderClock(PPM)
    for true_us, reader_us, t_min, t_max in reports(sightings, error_us, ppm):
        low, high = clock.narrowed(reader_us, t_min, t_max)
        assert t_min <= low <= true_us <= high <= t_max
    assert clock.steps == 0


@given(st.lists(sighting, min_size=1, max_size=40), st.data())
def test_a_clock_that_steps_at_will_moves_no_stamp_unless_it_is_said_to_be_steady(sightings, data):
    """Every time of the reader is random."""
    clock = ReaderClock()
    for true_us, _, t_min, t_max in reports(sightings, 0, 0):
        reader_us = true_us + data.draw(st.integers(-(10**10), 10**10))
        assert clock.narrowed(reader_us, t_min, t_max) == (t_min, t_max)


@given(st.lists(sighting, min_size=1, max_size=20), st.lists(sighting, min_size=1, max_size=20), st.booleans())
def test_a_step_beyond_the_bounds_is_counted_and_what_was_known_is_forgotten(before, after, forward):
    """Even if the operator was wrong, stamps hold the truth from the first report after the step on."""
    clock = ReaderClock(PPM)
    step_us = 10_000_000 if forward else -10_000_000
    for _, *report in reports(before, 0, 0):
        clock.narrowed(*report)
    for true_us, *report in reports(after, step_us, 0):
        low, high = clock.narrowed(*report)
        assert low <= true_us <= high
    assert clock.steps == 1


def test_questions_and_quick_reports_meet_at_a_few_milliseconds():
    """
    asked     |        |        |        five times a second
    seen          x  x    x  x    x      a report right behind a question and one that came at once decide
    """
    clock = ReaderClock(PPM)
    stamps = []
    for n in range(60):
        true_us = 1_199_000 + n * 37_000
        asked_us = true_us // 200_000 * 200_000
        stamps.append(clock.narrowed(true_us + 5_000_000, asked_us, true_us + 3_000))
    widths = [high - low for low, high in stamps]
    assert max(widths) > 150_000
    assert max(widths[30:]) < 15_000


def test_a_status_says_in_words_what_is_known_of_a_clock():
    """Ahead or behind, and how surely; a clock that was never set; no clock."""
    clock = ReaderClock()
    assert in_words(clock.counters) == ""
    clock.narrowed(12_500_000, 9_900_000, 10_100_000)
    assert in_words(clock.counters) == "its clock is 2.500 s ahead within 0.101 s"
    clock.narrowed(9_000_000, 10_900_000, 11_100_000)
    assert in_words(clock.counters) == "its clock is 2.000 s behind within 0.101 s, stepped 1 time"
    clock.narrowed(10**15, 10_900_000, 11_100_000)
    assert in_words(clock.counters) == "its clock does not give UTC, stepped 2 times"
