"""Windows over the states of a group: what is held, what waits, what is refused, and the holes of the printed algorithms."""

import itertools

import numpy as np
import pytest

from whenabouts_cloud.latwin import All, Any, AtLeast, ConjunctionDetector, LatWin, LimitError, Local, Not, Related
from whenabouts_cloud.latwin.model.group import Group
from whenabouts_cloud.latwin.model.layout import CLOCK, COUNTER_NAMES, FOREVER, NEVER, NUMBER_LIMIT
from whenabouts_cloud.research.experiments.office import HOUR, Workload, simulate

TOGETHER = All(Local(0, {0}), Local(1, {1}))


def states(lattice):
    """The CGSs as tuples."""
    return [tuple(row) for row in lattice.states().tolist()]


def emitted(lattice, **expected):
    """True if the nonzero counters are these, apart from `accepted` and `released`."""
    counters = {name: value for name, value in lattice.counters.items() if value}
    return counters == {name: counters[name] for name in ("accepted", "released")} | expected


def test_states_that_know_of_no_end_stand_beside_each_other():
    """
    P0  0------1--------2      Each knows the other's end from the message: state 1 of P1
    P1  0----------1           knows of state 1 of P0, so the end of state 0 is behind it.
    """
    lattice = LatWin(2, 2)
    lattice.push(0, 0, (0, 0))
    assert (lattice.size, lattice.minimal, lattice.maximal, states(lattice)) == (0, None, None, [])
    assert not lattice.possibly(All())
    assert not lattice.definitely_in_window(All())
    lattice.push(1, 0, (0, 0))
    lattice.push(0, 1, (1, 0))
    lattice.push(1, 1, (1, 1))
    assert states(lattice) == [(0, 0), (1, 0), (1, 1)]
    lattice.push(0, 2, (2, 0))
    assert states(lattice) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert (lattice.size, lattice.minimal, lattice.maximal) == (4, (1, 0), (2, 1))
    assert lattice.edges().tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]


def test_reports_of_a_process_are_put_in_order_and_repeats_ignored():
    """State 2 waits for state 1; what has come before is counted and changes nothing."""
    lattice = LatWin(2, 3)
    lattice.push(1, 0, (0, 0))
    lattice.push(0, 0, (0, 0))
    lattice.push(0, 2, (2, 0))
    lattice.push(0, 2, (2, 0))
    assert states(lattice) == [(0, 0)]
    assert emitted(lattice, duplicates=1, waiting=1)
    lattice.push(0, 1, (1, 0))
    assert states(lattice) == [(0, 0), (1, 0), (2, 0)]
    lattice.push(0, 3, (3, 0))
    lattice.push(0, 1, (1, 0))
    lattice.push(0, 0, (0, 0))
    assert states(lattice) == [(1, 0), (2, 0), (3, 0)]
    assert emitted(lattice, duplicates=2, stale=1)


def test_a_process_that_has_not_come_leaves_the_lattice_empty_and_a_late_one_fills_it():
    """The first state of a late process may depend on the last of the others, without any lower bound beside it.

    P0  0---1---2---3             Theorem 4.2 of the paper looks for a CGS with the oldest state of P0 or P1's own
    P1               `->0---      oldest; (3, 0) has neither, and is one.
    """
    lattice = LatWin(2, 3)
    for number in range(4):
        lattice.push(0, number, (number, 0))
    assert lattice.size == 0
    lattice.push(1, 0, (3, 0))
    assert states(lattice) == [(3, 0)]


def test_def_over_the_window_is_not_sound():
    """w = 1, a true, then false, then b true on the other process whose report comes first: a and b were never together."""
    lattice = LatWin(2, 1)
    lattice.push(1, 0, (0, 0))
    lattice.push(0, 0, (0, 0))
    lattice.push(1, 1, (0, 1))
    assert states(lattice) == [(0, 1)]
    assert lattice.definitely_in_window(TOGETHER)
    lattice.push(0, 1, (1, 0))
    assert states(lattice) == [(1, 1)]


def test_no_end_of_a_latest_state_is_taken_for_infinite():
    """State 1 of P1 knows state 1 of P0, the report of which is on its way: nothing stands beside it yet."""
    lattice = LatWin(2, 2)
    lattice.push(0, 0, (0, 0))
    lattice.push(1, 0, (0, 0))
    lattice.push(1, 1, (1, 1))
    assert states(lattice) == [(0, 0)]
    lattice.push(0, 1, (1, 0))
    assert states(lattice) == [(0, 0), (1, 0), (1, 1)]


def test_a_gap_is_held_until_it_is_renewed():
    """State 1 is lost: later states wait; restarted at state 2, the window holds the states from there on."""
    lattice = LatWin(2, 4)
    for number in (0, 2, 3):
        lattice.push(0, number, (number, 0))
    lattice.push(1, 0, (0, 0))
    assert states(lattice) == [(0, 0)]
    lattice.renew(0, 2)
    assert states(lattice) == [(2, 0), (3, 0)]
    lattice.push(0, 1, (1, 0))
    assert emitted(lattice, renewed=1, stale=1)
    lattice.renew(0, 9)
    assert (lattice.size, lattice.minimal) == (0, None)
    lattice.push(0, 9, (9, 0))
    assert states(lattice) == [(9, 0)]


def test_a_late_joiner_begins_at_a_later_number():
    """A process whose first states never come begins at the number that the caller gives."""
    lattice = LatWin(2, 2)
    lattice.push(0, 0, (0, 0))
    lattice.push(1, 7, (0, 7))
    assert lattice.size == 0
    lattice.renew(1, 7)
    assert states(lattice) == [(0, 7)]


def test_a_full_room_gives_the_gap_up():
    """With room for 3, state 5 does not fit beside 2, 3 and 4 while 1 is missing: the window restarts at 2."""
    lattice = LatWin(2, 8, room=3)
    lattice.push(1, 0, (0, 0))
    for number in (0, 2, 3):
        lattice.push(0, number, (number, 0))
    assert states(lattice) == [(0, 0)]
    lattice.push(0, 4, (4, 0))
    assert states(lattice) == [(2, 0), (3, 0), (4, 0)]
    assert emitted(lattice, gaps_given_up=1)
    lattice.push(0, 1_000, (1_000, 0))
    assert states(lattice) == [(1_000, 0)]
    assert emitted(lattice, gaps_given_up=2)


def test_time_orders_what_no_message_does():
    """
    P0  0 [0 .. 1]    1 [10 .. 11]              (0, 1) was never: state 1 of P0 had begun, and so ended state 0,
    P1  0 [0 .. 1]                1 [20 .. 21]  when state 1 of P1 began.
    """
    plain, hybrid = LatWin(2, 2), LatWin(2, 2, "hybrid")
    for lattice in (plain, hybrid):
        for process, state, clock, lo in [(0, 0, (0, 0), 0), (1, 0, (0, 0), 0), (0, 1, (1, 0), 10), (1, 1, (0, 1), 20)]:
            lattice.push(process, state, clock, lo, lo + 1)
    assert states(plain) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert states(hybrid) == [(0, 0), (1, 0), (1, 1)]


def test_an_eager_group_retracts_what_a_late_report_refutes():
    """State 1 of P1 comes before the earlier state 1 of P0: (0, 1) is emitted, and retracted."""
    lattice = LatWin(2, 2, "hybrid")
    lattice.push(0, 0, (0, 0), 0, 1)
    lattice.push(1, 0, (0, 0), 0, 1)
    lattice.push(1, 1, (0, 1), 20, 21)
    assert lattice.possibly(TOGETHER)
    lattice.push(0, 1, (1, 0), 10, 11)
    assert not lattice.possibly(TOGETHER)
    assert lattice.retracted == 1
    assert emitted(lattice, cuts=1, retracted=1)
    lattice.push(0, 2, (2, 0), 30, 31)
    assert lattice.retracted == 0


def test_a_patient_group_waits_until_every_process_is_known_to_be_as_far():
    """State 1 of P1 at 20 waits for word that P0 is at 20 or later; a state of P0 at 10 may still come, and does."""
    lattice = LatWin(2, 2, "hybrid", patient=True)
    lattice.push(0, 0, (0, 0), 0, 1)
    lattice.push(1, 0, (0, 0), 0, 1)
    lattice.push(1, 1, (0, 1), 20, 21)
    assert states(lattice) == [(0, 0)]
    lattice.evidence(0, t=19)
    lattice.push(0, 1, (1, 0), 19, 30)
    assert states(lattice) == [(0, 0), (1, 0)]
    lattice.evidence(0, t=20)
    assert states(lattice) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert lattice.counters["waiting"] == 0


def test_a_patient_group_lets_in_what_happened_before_first():
    """State 1 of P1 knows state 1 of P0: however early its stamp, it waits for that."""
    lattice = LatWin(2, 2, "hybrid", patient=True)
    lattice.push(0, 0, (0, 0), 0, 9)
    lattice.push(1, 0, (0, 0), 0, 9)
    lattice.push(1, 1, (1, 1), 0, 9)
    assert states(lattice) == [(0, 0)]
    lattice.push(0, 1, (1, 0), 0, 9)
    assert states(lattice) == [(0, 0), (1, 0), (1, 1)]


def test_a_patient_group_with_a_full_room_lets_in_without_waiting():
    """P0 reports nothing more: with room for 2, each further state of P1 pushes the oldest that waits into the window."""
    lattice = LatWin(2, 4, "hybrid", patient=True, room=2)
    lattice.push(0, 0, (0, 0), 0, 1)
    for number in range(5):
        lattice.push(1, number, (0, number), 10 * number, 10 * number + 1)
    assert states(lattice) == [(0, 0), (0, 1), (0, 2)]
    assert emitted(lattice, forced_releases=2, waiting=2)


def test_a_process_of_which_nothing_has_come_holds_nobody_back():
    """Patient: P2 is silent; the others go on. Its first state is let in once its time is known as far as theirs."""
    lattice = LatWin(3, 2, "hybrid", patient=True)
    for process in (0, 1):
        lattice.push(process, 0, (0, 0, 0), 0, 1)
    lattice.push(0, 1, (1, 0, 0), 10, 11)
    lattice.evidence(1, t=50)
    assert lattice.counters["waiting"] == 0
    lattice.push(2, 0, (0, 0, 0), 0, 1)
    lattice.push(2, 1, (0, 0, 1), 5, 6)
    assert lattice.size == 0
    lattice.evidence(2, t=50)
    assert states(lattice) == [(0, 0, 0), (0, 0, 1), (1, 0, 1)]
    assert lattice.counters["retracted"] == 0


@pytest.mark.parametrize("window", [4, [1, 2, 5], [9, 2, 9], [3, 64 - 4, 1], 17])
def test_windows_of_any_size_are_packed_alike(window):
    """Sizes that fit a word or not: concurrent states make the whole product."""
    lattice = LatWin(3, window, store=True)
    sizes = [window] * 3 if isinstance(window, int) else window
    for process, number in itertools.product(range(3), range(70)):
        clock = [0, 0, 0]
        clock[process] = number
        lattice.push(process, number, clock)
    assert lattice.size == np.prod(sizes)
    assert states(lattice) == list(itertools.product(*(range(70 - w, 70) for w in sizes)))
    odd = Related((0, 2), lambda a, b: (a + b) % 2 == 1)
    assert lattice.possibly(odd) == any((a + c) % 2 for a, _, c in states(lattice))
    assert not lattice.possibly(All(odd, Not(odd)))


def test_one_process_is_a_chain():
    """With a single process each state is a CGS, and Def is Pos."""
    lattice = LatWin(1, 64)
    for number in range(100):
        lattice.push(0, number, (number,))
    assert lattice.states().ravel().tolist() == list(range(36, 100))
    assert lattice.definitely_in_window(Local(0, {50}))
    assert not lattice.definitely_in_window(Local(0, {20}))


def test_a_box_that_is_too_large_is_walked_instead():
    """16 processes with windows of 4: refused with the limit named, and walked without being stored."""
    with pytest.raises(LimitError, match=r"found 4294967296 choices of 64 states, expected at most 67108864 of 64"):
        LatWin(16, 4)
    lattice = LatWin(16, 4, store=False)
    for number in range(3):
        for process in range(16):
            lattice.push(process, number, [number] * (process + 1) + [max(0, number - 1)] * (15 - process))
    assert (lattice.size, lattice.minimal, lattice.maximal) == (33, (0,) * 16, (2,) * 16)
    assert lattice.possibly(AtLeast(16, [Local(p, {1}) for p in range(16)]))
    assert lattice.definitely_in_window(Any(Local(3, {1}), Local(2, {9})))
    assert len(lattice.edges()) == 32
    assert lattice.retracted is None


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ((3, 0, (0, 0)), "process: found 3, expected 0 to 1"),
        ((-1, 0, (0, 0)), "process: found -1, expected 0 to 1"),
        ((0, -1, (0, 0)), "state: found -1, expected a number from 0"),
        ((0, 1.5, (0, 0)), "state: found 1.5, expected a number from 0"),
        ((0, NUMBER_LIMIT, (0, 0)), "state: found 281474976710656"),
        ((0, 0, (0,)), "clock: found 1 entries, expected 2"),
        ((0, 0, (0, 0, 0)), "clock: found 3 entries, expected 2"),
        ((0, 1, (0, 0)), "expected the number of the state, 1, as entry 0"),
        ((0, 0, (0, -1)), "expected 2 numbers of states"),
        ((0, 0, (0, 1 << 80)), "expected 2 numbers of states"),
        ((0, 0, (0, "x")), "expected 2 numbers of states"),
        ((0, 0, (0.5, 0)), "expected 2 numbers of states"),
        ((0, 0, np.array([0.5, 0])), "expected 2 numbers of states"),
        ((0, 0, (0, 0), 5, 4), "time: found 5 to 4"),
        ((0, 0, (0, 0), 0.5, 4), "time: found 0.5 to 4"),
        ((0, 0, (0, 0), 0, 1 << 80), "time: found 0 to"),
        ((0, 0, (0, 0), 0, FOREVER + 1), "time: found 0 to"),
        ((0, 0, (0, 0), NEVER - 1, 0), "time: found -"),
        ((0, 0, np.array([[0, 0]])), "clock: found 1 entries, expected 2"),
        ((0, 0, np.zeros(3, np.int64)), "clock: found 3 entries, expected 2"),
    ],
)
def test_a_wrong_report_is_refused_and_changes_nothing(report, expected):
    """The error has what was found and what was expected; window, lattice and counters stay."""
    lattice = LatWin(2, 2, "hybrid")
    lattice.push(0, 0, (0, 0), 0, 1)
    lattice.push(1, 0, (0, 0), 0, 1)
    before = lattice.snapshot()
    with pytest.raises(ValueError, match=expected):
        lattice.push(*report)
    assert lattice.snapshot() == before
    assert states(lattice) == [(0, 0)]


def test_wrong_heartbeats_and_renewals_are_refused():
    """A process there is not, a clock of another group, a state that has been."""
    lattice = LatWin(2, 2)
    lattice.push(0, 0, (0, 0))
    lattice.push(0, 1, (1, 0))
    before = lattice.snapshot()
    for wrong in (
        lambda: lattice.evidence(2, t=5),
        lambda: lattice.evidence(0, (0, 0, 0)),
        lambda: lattice.evidence(0, (-1, 0)),
    ):
        with pytest.raises(ValueError, match="expected"):
            wrong()
    for process, state in ((0, 1), (2, 0), (-1, 0), (0, -1)):
        with pytest.raises(ValueError, match=f"found process {process}, state {state}"):
            lattice.renew(process, state)
    assert lattice.snapshot() == before


@pytest.mark.parametrize(
    "arguments",
    [(0, 4), (65, 1), (2, 0), (2, [4]), (2, 5000), (2, 4, "total"), (2, 4, "causal", True), (2, 4, "hybrid", False, 0)],
)
def test_a_group_that_cannot_be_is_refused(arguments):
    """Numbers of processes, windows, orders, and patience without times."""
    with pytest.raises(ValueError, match="expected"):
        LatWin(*arguments)


def test_a_predicate_of_other_processes_or_parts_is_refused():
    """The lattice has processes 0 and 1."""
    for lattice in (LatWin(2, 2), LatWin(2, 2, store=False)):
        for process in (0, 1):
            lattice.push(process, 0, (0, 0))
        with pytest.raises(ValueError, match=r"found one of processes \[2\], expected 0 to 1"):
            lattice.possibly(Local(2, {0}))
    with pytest.raises(ValueError, match="part of a predicate"):
        All(Local(0, {0}), len)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="each once"):
        Related((0, 0), max)


def test_states_that_know_of_each_other_are_decided_over_the_global_states():
    """No step leads past a1 and b1, each of which claims to know the other; clocks alone would say that one avoids it."""
    for lattice in (LatWin(2, 4), LatWin(2, 4, store=False)):
        for process, state, clock in (
            (0, 0, (0, 0)), (1, 0, (0, 0)), (1, 1, (1, 1)), (0, 1, (1, 1)), (1, 2, (0, 2)), (0, 2, (2, 0)),
        ):  # fmt: skip
            lattice.push(process, state, clock)
        both = All(Local(0, {2}), Local(1, {1}))
        assert lattice.states().tolist() == [[0, 0], [1, 1], [1, 2], [2, 1], [2, 2]]
        assert lattice.possibly(both)
        assert lattice.definitely_in_window(both)


def test_a_predicate_is_evaluated_for_a_state_only_when_it_is_new():
    """A leaf sees each state of its process once, however often it is needed."""
    asked = []
    lattice, either = LatWin(2, 2), Any(Local(0, lambda number: asked.append(number) or number == 3), Local(1, {9}))
    lattice.push(1, 0, (0, 0))
    for number in range(5):
        lattice.push(0, number, (number, 0))
        for _ in range(3):
            assert lattice.possibly(either) == lattice.definitely_in_window(either) == (number in (3, 4))
    assert asked == [0, 1, 2, 3, 4]


def test_a_snapshot_is_small_and_bound_to_its_kind_of_group():
    """9 processes, windows of 4, in a full office: within 2 KB; other groups and other bytes are refused."""
    office = simulate(Workload(processes=9, duration_us=4 * HOUR), seed=3)
    lattice, largest = LatWin(9, 4, "hybrid"), 0
    for row in zip(office.process, office.state, office.clock, office.lo, office.hi, strict=True):
        lattice.push(*row)
        largest = max(largest, len(lattice.snapshot()))
    assert 500 < largest <= 2048
    blob = lattice.snapshot()
    for other in (
        LatWin(9, 4),
        LatWin(9, [4] * 8 + [3], "hybrid"),
        LatWin(8, 4, "hybrid"),
        LatWin(9, 4, "hybrid", True),
    ):
        with pytest.raises(ValueError, match="snapshot: found"):
            other.restore(blob)
    for broken in (
        b"",
        blob[:100],
        b'{"version": 2}\n',
        b"[]\n" + blob,
        blob.replace(b'"version": 2', b'"version": 9'),
    ):
        with pytest.raises(ValueError, match="snapshot: found"):
            LatWin(9, 4, "hybrid").restore(broken)


def test_the_windows_of_the_papers_office_have_the_published_sizes():
    """Table II, n = 4 and 6: 78 and 768 on average; samplers of random phase give 68 and 714, aligned ones 72 and 784."""
    for n, aligned, size in ((4, True, 78), (4, False, 78), (6, True, 768), (6, False, 768)):
        office = simulate(Workload(processes=n, duration_us=60 * HOUR, aligned=aligned), seed=5)
        lattice, sizes = LatWin(n, 4), []
        for row in zip(office.process.tolist(), office.state.tolist(), office.clock, strict=True):
            lattice.push(*row)
            sizes.append(lattice.size)
        assert 0.8 * size < np.mean(sizes) < 1.2 * size


def test_what_every_group_does_needs_no_lattice():
    """The counters are named once, and a group by itself cannot be made."""
    assert set(LatWin(1, 1).counters) == {*COUNTER_NAMES, "waiting"}
    with pytest.raises(TypeError, match="abstract"):
        Group(2, 4)  # type: ignore[abstract]


@pytest.mark.parametrize("watcher", [LatWin, ConjunctionDetector])
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"processes": 2.5}, "processes: found 2.5"), ({"processes": "3"}, "processes: found '3'"),
        ({"window": 2.5}, "window: found 2.5"), ({"window": None}, "window: found None"),
        ({"window": [2.5, 1]}, "window: found"), ({"room": 2.5}, "room: found 2.5"),
    ],
)  # fmt: skip
def test_a_group_is_made_of_whole_numbers(watcher, wrong, text):
    """Any other value is reported like every other wrong argument; numpy's integers are whole numbers."""
    with pytest.raises(ValueError, match=text):
        watcher(**{"processes": 2, "window": 4, **wrong})
    assert watcher(np.int64(2), np.int64(4)).counters["accepted"] == 0


@pytest.mark.parametrize("watcher", [LatWin, ConjunctionDetector])
@pytest.mark.parametrize("kind", [list, tuple, np.array, np.int32, np.uint16, ">i8", "strided"])
def test_a_clock_is_a_sequence_or_an_array_of_whole_numbers(watcher, kind):
    """Arrays of any integers, also with gaps between the entries."""
    one = watcher(2, 4)
    for number in range(3):
        entries = [number, max(0, number - 1)]
        if kind == "strided":
            clock = np.array([entries, entries]).T[:, 0]
        else:
            clock = kind(entries) if kind in (list, tuple, np.array) else np.array(entries, kind)
        one.push(np.int64(0), np.int16(number), clock, *([True] if watcher is ConjunctionDetector else []))
    assert one.ring.window[0, :3, CLOCK:].tolist() == [[0, 0], [1, 0], [2, 1]]


@pytest.mark.parametrize("watcher", [LatWin, ConjunctionDetector])
@pytest.mark.parametrize(
    ("process", "clock", "text"),
    [
        (1.0, (0, 0), "process: found 1.0"), ("0", (0, 0), "process: found 0"), (None, (0, 0), "process: found None"),
        (0, None, "clock: found None"), (0, 5, "clock: found 5"),
    ],
)  # fmt: skip
def test_reports_of_another_kind_are_refused(watcher, process, clock, text):
    """With what was found and expected, and nothing is changed."""
    one = watcher(2, 4)
    before = one.snapshot()
    with pytest.raises(ValueError, match=f"{text}, expected"):
        one.push(process, 0, clock, *([True] if watcher is ConjunctionDetector else []))
    with pytest.raises(ValueError, match=r"renewal: found process 0, state 1\.5, expected"):
        one.renew(0, 1.5)
    assert one.snapshot() == before
