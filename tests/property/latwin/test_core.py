"""The lattice of the windows after every report, in every order of arrival, against the definitions by brute force."""

import itertools

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from property.strategies_latwin import cases
from reference.latwin import by_brute_force, clocks_of, definitely, join, known_moves, meet, possibly
from reference.latwin_paper import PaperLatWin
from support.search import examples
from whenabouts_cloud.latwin.model.layout import CLOCK, FOREVER
from whenabouts_cloud.latwin.model.predicate import All, Any, AtLeast, Local, Not, Related
from whenabouts_cloud.latwin.windows.lattice import LatWin

ROOM = 64  # more than any of these computations needs


def push(lattice, one):
    """An event of a computation as a report, or as a clock heartbeat."""
    if one.begins:
        lattice.push(one.process, one.state, one.clock, one.lo, one.hi)
    else:
        lattice.evidence(one.process, one.clock, one.lo)


def windows_of(lattice):
    """The numbers held, per process."""
    return [range(*ends) for ends in lattice.ring.heads[:, :2].tolist()]


def states_of(lattice):
    """The CGSs of the lattice, after a check that its size and bounds agree with them."""
    states = [tuple(row) for row in lattice.states().tolist()]
    assert states == sorted(set(states))
    assert lattice.size == len(states)
    assert lattice.minimal == (meet(states) if states else None)
    assert lattice.maximal == (join(states) if states else None)
    return set(states)


@st.composite
def trees(draw, processes, depth=3):
    """A predicate over the states of so many processes, of every kind of node."""
    kind = draw(st.sampled_from(["local", "local", "related", "all", "any", "not", "at least"] if depth else ["local"]))
    if kind == "local":
        true = draw(st.frozensets(st.integers(0, 9)))
        return Local(draw(st.integers(0, processes - 1)), draw(st.sampled_from([true, true.__contains__])))
    if kind == "related":
        some = draw(st.lists(st.integers(0, processes - 1), min_size=1, max_size=processes, unique=True))
        modulus = draw(st.integers(1, 5))
        return Related(some, lambda *numbers: sum(x * (i + 1) for i, x in enumerate(numbers)) % modulus == 0)
    if kind == "not":
        return Not(draw(trees(processes, depth - 1)))
    parts = draw(st.lists(trees(processes, depth - 1), max_size=4))
    if kind == "at least":
        return AtLeast(draw(st.integers(0, 4)), parts)
    return (All if kind == "all" else Any)(*parts)


@pytest.mark.compiles
@given(cases(any_order=True), st.data())
@settings(max_examples=examples(150), deadline=None)
def test_the_lattice_is_that_of_the_definition_after_every_report(case, data):
    """CGSs, ends, Pos and Def of any predicate equal brute force over the windows, in any order of arrival."""
    n = case.computation.processes
    predicate = data.draw(trees(n))
    lattice = LatWin(n, case.window, room=ROOM)
    for index, checker in known_moves(case.computation, case.window):
        push(lattice, case.computation.events[index])
        assert windows_of(lattice) == checker.windows()
        states = by_brute_force(checker.clocks(), checker.windows())
        assert states_of(lattice) == states
        assert lattice.retracted == 0
        for form in (predicate, predicate.__call__):
            assert lattice.possibly(form) == possibly(states, predicate)
            assert lattice.definitely_in_window(form) == definitely(states, predicate)


@pytest.mark.compiles
@given(cases(any_order=True), st.booleans(), st.data())
@settings(max_examples=examples(75), deadline=None)
def test_a_lattice_that_is_not_stored_gives_the_same_results(case, hybrid, data):
    """Walked on demand or stored: CGSs, Pos and Def are equal after every report."""
    n = case.computation.processes
    predicate = data.draw(trees(n))
    order = "hybrid" if hybrid else "causal"
    kept, walked = LatWin(n, case.window, order), LatWin(n, case.window, order, store=False)
    for index in case.computation.arrivals:
        push(kept, case.computation.events[index])
        push(walked, case.computation.events[index])
        assert states_of(kept) == states_of(walked)
        for form in (predicate, predicate.__call__):
            assert kept.possibly(form) == walked.possibly(form)
            assert kept.definitely_in_window(form) == walked.definitely_in_window(form)
    assert walked.retracted is None


@given(cases(any_order=True))
@settings(max_examples=examples(75), deadline=None)
def test_the_lattice_is_that_of_the_papers_algorithms(case):
    """Algorithms 1 to 3, corrected, have the same CGSs after each state that enters a window."""
    lattice = LatWin(case.computation.processes, case.window, room=ROOM)
    paper = PaperLatWin(case.computation.processes, case.window)
    for index, checker in known_moves(case.computation, case.window):
        for taken in checker.accepted[lattice.counters["released"] :]:
            one = case.computation.events[taken]
            paper.push(one.process, one.state, one.clock)
        push(lattice, case.computation.events[index])
        assert states_of(lattice) == paper.states
        assert (lattice.minimal, lattice.maximal) == (paper.minimal, paper.maximal)


@given(cases(any_order=True, heartbeats=False), st.data())
@settings(max_examples=examples(150), deadline=None)
def test_order_by_time_removes_refuted_states_and_counts_them(case, data):
    """Eager: after every report the CGSs are those of all reports so far; CGSs that a report retracts are counted."""
    n = case.computation.processes
    predicate = data.draw(trees(n))
    lattice = LatWin(n, case.window, "hybrid", room=ROOM)
    before, retracted = set(), 0
    for index, checker in known_moves(case.computation, case.window):
        push(lattice, case.computation.events[index])
        clocks = checker.clocks(hybrid=True)
        states = by_brute_force(clocks, checker.windows())
        assert states_of(lattice) == states
        for process, window in enumerate(checker.windows()):
            for number in window:
                known = lattice.ring.window[process, number % case.window[process], CLOCK:].tolist()
                assert all(a <= b for a, b in zip(known, clocks[process, number], strict=True))
        assert lattice.possibly(predicate) == possibly(states, predicate)
        assert lattice.definitely_in_window(predicate) == definitely(states, predicate)
        kept = {s for s in before if all(x in w for x, w in zip(s, checker.windows(), strict=True))}
        assert lattice.retracted >= len(kept - states)
        retracted += lattice.retracted
        assert lattice.counters["retracted"] == retracted
        before = states
    event(f"retracted: {bool(retracted)}")
    assert lattice.counters["contradictions"] == 0


@given(cases(any_order=True))
@settings(max_examples=examples(75), deadline=None)
def test_heartbeats_refine_no_further_than_its_own_stamps(case):
    """With clock heartbeats the CGSs lie between those of the states' stamps with the heartbeats' and without."""
    n = case.computation.processes
    lattice = LatWin(n, case.window, "hybrid", room=ROOM)
    for index, checker in known_moves(case.computation, case.window):
        push(lattice, case.computation.events[index])
        every = clocks_of(case.computation, [*checker.accepted, *checker.heartbeats])
        most = by_brute_force(checker.clocks(hybrid=True), checker.windows())
        assert by_brute_force(every, checker.windows()) <= states_of(lattice) <= most
    assert lattice.counters["contradictions"] == 0


@given(st.booleans().flatmap(lambda any_order: cases(any_order=any_order)))
@settings(max_examples=examples(150), deadline=None)
def test_patience_retracts_nothing(case):
    """Patient: after every report the CGSs of what was let in are those by all stamps, of what is yet to come too."""
    n = case.computation.processes
    lattice = LatWin(n, case.window, "hybrid", patient=True, room=ROOM)
    final = clocks_of(case.computation, case.computation.begins())
    for index in case.computation.arrivals:
        one = case.computation.events[index]
        if one.begins:
            push(lattice, one)
        assert states_of(lattice) == by_brute_force(final, windows_of(lattice))
        assert lattice.counters["retracted"] == 0


@given(cases(any_order=True))
@settings(max_examples=examples(75), deadline=None)
def test_a_patient_group_lets_all_in_once_all_times_are_known(case):
    """When all reports have come and each process has reported a time beyond all stamps, nothing waits."""
    n = case.computation.processes
    lattice = LatWin(n, case.window, "hybrid", patient=True, room=ROOM)
    for index in case.computation.arrivals:
        if case.computation.events[index].begins:
            push(lattice, case.computation.events[index])
    for process in range(n):
        lattice.evidence(process, t=FOREVER)
    assert lattice.counters["waiting"] == 0
    assert lattice.counters["retracted"] == 0
    eager = LatWin(n, case.window, "hybrid", room=ROOM)
    for index in case.computation.arrivals:
        if case.computation.events[index].begins:
            push(eager, case.computation.events[index])
    assert states_of(lattice) == states_of(eager)


@pytest.mark.compiles
@given(cases(any_order=True), st.sampled_from([("causal", False), ("hybrid", False), ("hybrid", True)]), st.data())
@settings(max_examples=examples(75), deadline=None)
def test_a_restored_snapshot_continues_without_a_difference(case, mode, data):
    """A lattice restored at any moment gives the results of the one that went on, counters included."""
    n = case.computation.processes
    order, patient = mode
    lattice = LatWin(n, case.window, order, patient)
    cut = data.draw(st.integers(0, len(case.computation.arrivals)))
    for place, index in enumerate(case.computation.arrivals):
        if place == cut:
            other = LatWin(n, case.window, order, patient)
            other.restore(lattice.snapshot())
            lattice = other
        push(lattice, case.computation.events[index])
    whole = LatWin(n, case.window, order, patient)
    for index in case.computation.arrivals:
        push(whole, case.computation.events[index])
    assert states_of(lattice) == states_of(whole)
    assert lattice.counters == whole.counters
    assert lattice.snapshot() == whole.snapshot()


@pytest.mark.compiles
@given(cases(any_order=True, heartbeats=False), st.booleans(), st.data())
@settings(max_examples=examples(75), deadline=None)
def test_a_restarted_process_has_only_states_from_there_on(case, hybrid, data):
    """After a renewal the windows go on from the state named; the CGSs are those of the windows held."""
    n = case.computation.processes
    lattice = LatWin(n, case.window, "hybrid" if hybrid else "causal", room=ROOM)
    moment = data.draw(st.integers(0, len(case.computation.arrivals)))
    process, ahead = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, 3))
    for place, (index, checker) in enumerate(known_moves(case.computation, case.window)):
        push(lattice, case.computation.events[index])
        if place == moment:
            begin = windows_of(lattice)[process].stop + ahead
            lattice.renew(process, begin)
            assert windows_of(lattice)[process].start >= begin  # more if more had waited than the window holds
        come = [*checker.accepted, *checker.waiting]
        every = clocks_of(case.computation, come if hybrid else ())
        emitted = by_brute_force(clocks_of(case.computation), windows_of(lattice))
        states = states_of(lattice)
        assert by_brute_force(every, windows_of(lattice)) <= states <= emitted


@given(cases(any_order=True))
@settings(max_examples=examples(50), deadline=None)
def test_edges_are_the_single_steps(case):
    """Edges join the CGSs that differ by one state of one process."""
    lattice = LatWin(case.computation.processes, case.window, room=ROOM)
    for index in case.computation.arrivals:
        push(lattice, case.computation.events[index])
    rows = lattice.states().tolist()
    steps = [
        [a, b]
        for a, b in itertools.permutations(range(len(rows)), 2)
        if sorted(y - x for x, y in zip(rows[a], rows[b], strict=True)) == [0] * (len(rows[a]) - 1) + [1]
    ]
    assert lattice.edges().tolist() == sorted(steps)
