"""The detector of conjunctions by hand-made cases: times of verdicts, clock heartbeats, gaps, restarts, wrong reports."""

import numpy as np
import pytest

from whenabouts_cloud.latwin.conjunction import overlaps, queues
from whenabouts_cloud.latwin.conjunction.detector import ConjunctionDetector, Verdict
from whenabouts_cloud.latwin.model.layout import HEAD, ROW
from whenabouts_cloud.latwin.windows import all_true

A, B = 0, 1


def pair(window=4, order="causal", **more):
    """A detector of two processes of which both first states have come, false and stamped at time 0."""
    one = ConjunctionDetector(2, window, order, **more)
    one.push(A, 0, (0, 0), False, 0, 0)
    one.push(B, 0, (0, 0), False, 0, 0)
    return one


def test_possible_until_each_is_known_to_have_seen_the_other():
    """True together is possible at once, certain when both runs are known to have begun before either ended.

    a:  --- a1 true ----.---------.-> a2 false, knows b1
    b:  --- b1 true -----'-> b2 ---'      true, knows a1
    """
    one = pair()
    assert one.push(A, 1, (1, 0), True) == Verdict(False, False, False, False)
    emitted = one.push(B, 1, (0, 1), True)
    assert emitted.possibly
    assert not emitted.definitely
    emitted = one.push(B, 2, (1, 2), True)  # the run of b knows of a1
    assert not emitted.definitely  # but a1 may have ended before b1
    assert one.push(A, 2, (2, 1), False).definitely  # no: a2 knows of b1
    assert one.overlaps == [(1, 1)]


def test_the_windowed_verdict_may_be_false_and_the_sound_one_is_not():
    """a0 true, over, then b1 true, its report first: nothing was true together.

    a:  a0 true --- a1 false .
    b:  b0 false -------------'-> b1 true
    """
    one = ConjunctionDetector(2, 1)
    one.push(A, 0, (0, 0), True)
    one.push(B, 0, (0, 0), False)
    emitted = one.push(B, 1, (0, 1), True)
    assert emitted.definitely_in_window
    assert not emitted.definitely


def test_a_run_is_known_from_its_first_state_though_that_has_left_the_window():
    """Windows of one: a has gone on to a3 when the end of b comes, which knows only of a1; a knows of b2.

    a:  -- a1 true . - a2 true <-. - a3 true
    b:  -- b1 ------'-> b2 true -'- b3 false, knows a1
    """
    one = pair(window=1)
    one.push(A, 1, (1, 0), True)
    one.push(B, 1, (0, 1), False)
    one.push(B, 2, (1, 2), True)
    one.push(A, 2, (2, 2), True)
    assert one.overlaps == [(1, 2)]
    late = pair(window=1)
    late.push(A, 1, (1, 0), True)
    late.push(A, 2, (2, 0), True)
    late.push(A, 3, (3, 2), True)
    late.push(B, 1, (0, 1), False)
    assert late.push(B, 2, (1, 2), True).definitely
    assert late.overlaps == [(1, 2)]


def test_a_clock_only_report_is_enough():
    """It begins no state, moves no window, and shows that the open run lasted until it knew the others' begins."""
    one = pair()
    one.push(A, 1, (1, 0), True)
    assert not one.push(B, 1, (1, 1), True).definitely
    one.evidence(A, (1, 1))
    assert one.verdict.definitely
    assert one.overlaps == [(1, 1)]
    assert one.counters["clock_heartbeats"] == 1
    one.evidence(A, (0, 1))  # of a state that is over
    assert one.overlaps == []
    assert one.counters["clock_heartbeats_unused"] == 1


def test_a_heartbeat_is_enough_by_time():
    """No message was exchanged: both began by 12 at the latest, and each still lasted at 13 or later.

            10  11  12  13
    a begins [---]       |
    b begins     [---]   |
    """
    one = pair(order="hybrid")
    one.push(A, 1, (1, 0), True, 10, 11)
    assert not one.push(B, 1, (0, 1), True, 11, 12).definitely
    one.evidence(A, t=12)  # b may have begun at 12 itself
    one.evidence(B, t=13)
    assert not one.verdict.definitely
    one.evidence(A, t=13)
    assert one.verdict.definitely
    assert one.overlaps == [(1, 1)]


def test_time_that_comes_late_retracts_what_was_possible():
    """b1 seemed to be while a1 was; then a2 comes, which certainly began before b1.

            10   12   14  15
    a   a1 true  [a2]
    b                 [b1 true]
    """
    one = pair(order="hybrid")
    one.push(A, 1, (1, 0), True, 10, 10)
    assert one.push(B, 1, (0, 1), True, 14, 15).possibly
    emitted = one.push(A, 2, (2, 0), False, 12, 13)
    assert emitted.retracted
    assert not emitted.possibly
    calm = pair(order="hybrid", patient=True)
    calm.push(A, 1, (1, 0), True, 10, 10)
    assert not calm.push(B, 1, (0, 1), True, 14, 15).possibly  # a may still report something before 14
    assert calm.push(A, 2, (2, 0), False, 12, 13) == Verdict(False, False, False, False)


def test_all_overlaps_that_become_certain_by_one_report_are_emitted_in_order():
    """A long run of a that is known to last only at its end; b was on three times meanwhile.

    a:  -- a1 true .--------------------------------- a2 false, knows b6
    b:  ------------'-> b1 true  b2  b3 true  b4  b5 true  b6
    """
    one = pair(window=8)
    one.push(A, 1, (1, 0), True)
    for number in range(1, 7):
        assert not one.push(B, number, (1, number), number % 2 == 1).definitely
    assert one.push(A, 2, (2, 6), False).definitely
    assert one.overlaps == [(1, 1), (1, 3), (1, 5)]


def test_a_repeated_report_emits_nothing_new():
    """The verdict is that of the windows as they stand, no overlap is emitted again, and the repeat is counted."""
    one = pair()
    one.push(A, 1, (1, 0), True)
    emitted = one.push(B, 1, (1, 1), True)
    assert one.push(B, 1, (1, 1), True) == emitted
    assert one.push(A, 0, (0, 0), False) == emitted
    assert one.overlaps == []
    assert one.counters["duplicates"] == 2


def test_a_report_that_closes_a_gap_is_judged_for_all_windows_it_makes():
    """Windows of one: the condition was possible with b1, which has left when b2 followed; the verdict is emitted anyway."""
    one = pair(window=1)
    one.push(A, 1, (1, 0), True)
    assert not one.push(B, 2, (0, 2), False).possibly  # waits
    assert one.push(B, 1, (0, 1), True).possibly
    assert not one.push(B, 1, (0, 1), True).possibly  # the windows as they stand


@pytest.mark.compiles
def test_after_a_gap_a_run_begins_with_the_first_state_that_came():
    """States 2 and 3 of b are lost; b4 is true, and so may the lost ones have been: only from b4 on it is known."""
    one = pair()
    one.push(A, 1, (1, 0), True)
    one.push(B, 1, (1, 1), True)
    one.renew(B, 4)
    assert not one.verdict.possibly
    assert one.push(B, 4, (1, 4), True).possibly
    assert not one.verdict.definitely
    assert not one.push(A, 2, (2, 3), True).definitely  # a knows of a lost state
    assert one.push(A, 3, (3, 4), True).definitely
    assert one.overlaps == [(1, 4)]


def test_a_first_state_that_knows_of_others_joined_late():
    """b joined when a1 was over. An entry 0 in the clock of a2 does not say that b0 had begun, though b is still on.

    a:  a0 --- a1 true --- a2 false .
    b:                               '-> b0 true --- (b1 true)
    """
    one = ConjunctionDetector(2, 4)
    one.push(A, 0, (0, 0), False)
    one.push(A, 1, (1, 0), True)
    one.push(A, 2, (2, 0), False)
    assert not one.push(B, 0, (2, 0), True).definitely
    assert not one.push(A, 3, (3, 0), True).definitely
    one.push(B, 1, (3, 1), True)
    assert one.push(A, 4, (4, 1), True).definitely  # entry 1: it was there
    assert one.overlaps == [(3, 0)]


def test_a_first_state_with_a_time_is_not_taken_as_given():
    """Two concurrent first states may have begun at any time: with stamps it is known when both were certainly on."""
    timeless, timed = ConjunctionDetector(2, 4), ConjunctionDetector(2, 4, "hybrid")
    timeless.push(A, 0, (0, 0), True)
    assert timeless.push(B, 0, (0, 0), True).definitely
    timed.push(A, 0, (0, 0), True, 0, 1)
    assert not timed.push(B, 0, (0, 0), True, 50, 51).definitely
    timed.evidence(A, t=52)
    assert timed.verdict.definitely  # b at 50 has seen a, which began by 1, and a was still on when b had begun


def test_a_group_goes_on_from_a_snapshot():
    """Verdict, witness and emitted overlaps are as before; a snapshot of another group is refused."""
    one = pair()
    one.push(A, 1, (1, 0), True)
    one.push(B, 1, (1, 1), True)
    again = ConjunctionDetector(2, 4)
    again.restore(one.snapshot())
    assert again.verdict == one.verdict
    assert again.witness == one.witness == (1, 1)
    assert again.push(A, 2, (2, 1), False) == one.push(A, 2, (2, 1), False)
    assert again.overlaps == one.overlaps == [(1, 1)]
    with pytest.raises(ValueError, match="snapshot"):
        ConjunctionDetector(3, 4).restore(one.snapshot())


def test_the_state_of_a_group_of_nine_is_two_kilobytes():
    """Windows of four, numbers and times as after a year."""
    n, number, t = 9, 30_000, 1_790_000_000_000_000
    one = ConjunctionDetector(n, 4, "hybrid")
    for p in range(n):
        one.renew(p, number)
    for step in range(4):
        for p in range(n):
            clock = [number + step - (q != p and (p * q + step) % 3) for q in range(n)]
            clock[p] = number + step
            begin = t + 61_000_000 * step + 1_234_567 * p
            one.push(p, number + step, clock, (step + p) % 2, begin - 100_000, begin + 100_000)
    assert one.counters["released"] == 4 * n
    assert len(one.snapshot()) <= 2048


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ((2, 1, (0, 1), True), "process: found 2, expected 0 to 1"),
        ((-1, 1, (0, 1), True), "process: found -1, expected 0 to 1"),
        ((A, -1, (-1, 0), True), "state: found -1"),
        ((A, 1, (1, 0, 0), True), "clock: found 3 entries, expected 2"),
        ((A, 1, (1,), True), "clock: found 1 entries, expected 2"),
        ((A, 1, (2, 0), True), "expected the number of the state, 1, as entry 0"),
        ((A, 1, (1, -3), True), "clock: found"),
        ((A, 1, (1, 1 << 70), True), "clock: found"),
        ((A, 1, (1, 0), True, 5, 4), "time: found 5 to 4"),
    ],
)
def test_a_wrong_report_is_refused_and_changes_nothing(report, text):
    """With what was found and expected; by itself or in a batch with valid reports."""
    one = pair(order="hybrid")
    one.push(B, 1, (0, 1), True, 1, 1)
    before = one.snapshot()
    with pytest.raises(ValueError, match=text):
        one.push(*report)
    assert one.snapshot() == before
    assert one.push(A, 1, (1, 0), True, 2, 2).possibly


def test_a_wrong_row_refuses_the_whole_batch():
    """The row is named and nothing of the batch has been taken in."""
    one = ConjunctionDetector(2, 4, "hybrid")
    before = one.snapshot()
    with pytest.raises(ValueError, match="row 1: clock: found"):
        one.feed([A, B], [0, 0], [(0, 0), (0, 7)], [True, True])
    with pytest.raises(ValueError, match="row 0: time: found 5 to 4"):
        one.feed([A], [0], [(0, 0)], [True], [5], [4])
    with pytest.raises(ValueError, match="columns: found shapes"):
        one.feed([A, B], [0, 0], [(0, 0)], [True, True])
    assert one.snapshot() == before
    assert one.feed([A, B], [0, 0], [(0, 0)] * 2, [True, True]).possibly.tolist() == [False, True]


def test_plain_and_numpy_numbers_are_the_same():
    """A report may have any type of integers and booleans."""
    one, other = pair(), pair()
    for p, s, c, h in ((A, 1, (1, 0), True), (B, 1, (1, 1), True), (A, 2, (2, 1), False)):
        emitted = one.push(p, s, c, h)
        assert other.push(np.int32(p), np.int64(s), np.array(c, np.int16), np.bool_(h)) == emitted
    assert one.overlaps == other.overlaps == [(1, 1)]


def test_windows_that_emit_much_at_once():
    """A batch that emits more overlaps than there was room for at first."""
    one = ConjunctionDetector(2, [2, 400])
    count = 199
    process = [A, A, B, *[B] * (2 * count), A]
    state = [0, 1, 0, *range(1, 2 * count + 1), 2]
    clock = [(0, 0), (1, 0), (0, 0), *((1, k) for k in range(1, 2 * count + 1)), (2, 2 * count)]
    holds = [False, True, False, *(k % 2 == 1 for k in range(1, 2 * count + 1)), False]
    out = one.feed(process, state, clock, holds)
    assert out.overlaps.tolist() == [[1, k] for k in range(1, 2 * count + 1, 2)]
    assert set(out.overlap_row.tolist()) == {len(process) - 1}


def test_true_states_are_found_across_the_end_of_the_ring():
    """States 2, 3, 4 in three places: they lie in the order 3, 4, 2."""
    one = ConjunctionDetector(1, 3)
    for number, holds in enumerate([True, True, True, False, True]):
        one.push(A, number, (number,), holds)
    heads, true, search = (
        one.ring.heads,
        one.ring.window[:, :, ROW.holds],
        np.zeros((len(all_true.SEARCH), 1), np.int64),
    )
    assert all_true.begin(heads, search)
    assert search[:3].tolist() == [[0], [0], [2]]  # origin, choice, least
    assert [all_true.next_true(heads, true, search, A, number) for number in (2, 3, 4, 5)] == [2, 4, 4, -1]
    assert [overlaps.previous_true(one.ring, A, number) for number in (4, 3, 2, 1)] == [4, 2, 2, -1]
    runs = one.ring.window[A, :, ROW.run]
    assert runs.tolist() == [-1, 4, 0]  # of states 3, 4 and 2: the run of state 2 began with state 0


@pytest.mark.compiles
def test_the_least_and_the_greatest_choice_meet_in_the_middle():
    """A choice of states moves up past what another is known to have left, and down before it.

    a:  a0 --- a1 .--- a2       b1 knows a1, so (a0, b1) is not consistent
    b:  b0 -------'-> b1
    """
    one = ConjunctionDetector(2, 3)
    for p, number, clock in ((A, 0, (0, 0)), (A, 1, (1, 0)), (A, 2, (2, 0)), (B, 0, (0, 0)), (B, 1, (1, 1))):
        one.push(p, number, clock, True)
    heads, window, row = one.ring.heads, one.ring.window, all_true.SEARCH
    search = np.zeros((len(row), 2), np.int64)
    search[[row.origin, row.least]] = (0, 0), (0, 1)
    assert all_true.climb(heads, window, window[:, :, ROW.holds], search, row.least, False)
    assert search[row.least].tolist() == [1, 1]
    heads[A, HEAD.next] = 1
    all_true.descend(heads, window, search)
    assert search[row.greatest].tolist() == [0, 0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"process": [0.5]}, {"state": [0.5]}, {"clock": [[0, 0.5]]}, {"holds": [0.5]}, {"process": ["a"]}, {"state": None},
        {"t_min": [0.5]}, {"t_min": [float("nan")]}, {"t_max": [float("inf")]}, {"t_min": [None]},
    ],
)  # fmt: skip
def test_columns_of_other_numbers_are_refused(wrong):
    """Not cut off to whole ones; and no row is taken in."""
    one = ConjunctionDetector(2, 4, "hybrid")
    columns = {"process": [0], "state": [0], "clock": [[0, 0]], "holds": [True], "t_min": [0], "t_max": [1]} | wrong
    [name] = wrong
    with pytest.raises(ValueError, match=f"{name}: found .*, expected whole numbers"):
        one.feed(**columns)
    assert one.counters["accepted"] == 0


def test_a_verdict_given_again_is_the_same_but_emits_nothing():
    """The windows alone decide; only overlaps are remembered."""
    one = ConjunctionDetector(2, 3)
    one.push(A, 0, (0, 0), True)
    assert one.push(B, 0, (0, 0), True) == Verdict(True, True, True, False)
    work, emitted = np.zeros((len(overlaps.WORK), 2), np.int64), np.zeros((4, 2), np.int64)
    everything = queues.POSSIBLY | queues.DEFINITELY | queues.IN_WINDOW
    assert queues.judge(one.ring, work, emitted) == everything
    assert work[overlaps.WORK.overlaps, 0] == 0
