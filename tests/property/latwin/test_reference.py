"""The definitions of windows over several processes, the printed algorithms and their theorems, held against each other."""

import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property.strategies_latwin import cases, computations
from reference.latwin import (
    Checker,
    Computation,
    Event,
    FullLattice,
    advanced,
    by_brute_force,
    clock_of,
    clocks_of,
    consistent,
    definitely,
    join,
    known_moves,
    meet,
    pasts,
    possibly,
    precedes,
    simulate,
)
from reference.latwin_paper import PaperLatWin
from support.search import SEED, examples, seeds


def final_clocks(case, hybrid):
    """Clocks that do not change any more: causal ones, or those by all stamps, as if all had been waited for."""
    return clocks_of(case.computation, case.computation.begins() if hybrid else ())


def steps(case, clocks):
    """Each accepted state: (process, number, windows before, windows after, lattice before, lattice after)."""
    checker = Checker(case.computation, case.window)
    windows = [list(w) for w in checker.windows()]
    before = by_brute_force(clocks, windows)
    for index in case.computation.arrivals:
        for taken in checker.push(index):
            p, state = case.computation.events[taken].process, case.computation.events[taken].state
            old = [list(w) for w in windows]
            windows[p] = [*windows[p], state][-case.window[p] :]
            after = by_brute_force(clocks, windows)
            yield p, state, old, [list(w) for w in windows], before, after
            before = after


# What a computation is.


@given(computations())
@settings(max_examples=examples(100))
def test_dense_clocks_are_the_closure_of_the_events(computation):
    """For every event, the knowledge that messages carry and merge equals its causal past."""
    closures = pasts(computation)
    for index, event in enumerate(computation.events):
        assert closures[index] == event.past
        assert event.clock == clock_of(computation, event.past)


@given(computations())
@settings(max_examples=examples(100))
def test_the_clock_of_the_later_state_suffices_for_the_order(computation):
    """State k precedes state l exactly if the end of k is in the past of the begin of l, or is it."""
    clocks, closures = clocks_of(computation), pasts(computation)
    for (i, k), (j, l) in itertools.permutations(clocks, 2):  # noqa: E741
        end, begin = computation.begin(i, k + 1), computation.begin(j, l)
        if i != j:
            assert precedes(clocks, i, k, j, l) == (end is not None and bool(closures[begin] >> end & 1))


@given(computations(), st.booleans())
@settings(max_examples=examples(100))
def test_every_known_order_is_that_of_true_time(computation, hybrid):
    """Stamps contain their true time, and events of a past truly came before."""
    for event in computation.events:
        assert event.lo <= event.t <= event.hi
    for index, past in enumerate(pasts(computation, computation.begins() if hybrid else ())):
        for other in range(len(computation.events)):
            if past >> other & 1 and other != index:
                assert computation.events[other].t < computation.events[index].t


@given(cases(any_order=True))
@settings(max_examples=examples(60))
def test_a_checker_takes_every_state_once_in_the_order_of_its_process(case):
    """For any order of arrival and any number of repeats."""
    taken = []
    checker = Checker(case.computation, case.window)
    for index in case.computation.arrivals:
        taken += checker.push(index)
    assert sorted(taken) == case.computation.begins()
    for p in range(case.computation.processes):
        numbers = [case.computation.events[i].state for i in taken if case.computation.events[i].process == p]
        assert numbers == list(range(len(numbers)))


# Three ways to the same lattice.


@given(cases(any_order=True), st.booleans())
@settings(max_examples=examples(150))
def test_brute_force_full_lattice_and_algorithms_agree_after_every_state(case, hybrid):
    """Equal states, least and greatest: by all tuples, by LAT cut to the windows, by Algorithms 1 to 3."""
    clocks = final_clocks(case, hybrid)
    paper = PaperLatWin(case.computation.processes, case.window)
    full = FullLattice(case.computation.processes)
    for p, state, _, windows, before, after in steps(case, clocks):
        paper.push(p, state, clocks[p, state])
        full.push(p, state, clocks[p, state])
        assert full.within(windows) == after
        assert paper.states == after
        assert paper.minimal == (meet(after) if after else None)
        assert paper.maximal == (join(after) if after else None)
        assert paper.grown - paper.pruned == len(after) - len(before)


# Theorems 1 to 7 and Lemma 3, on the sets by brute force.


@given(cases(any_order=True), st.booleans())
@settings(max_examples=examples(100))
def test_theorem_1_the_states_of_the_windows_are_a_convex_sublattice(case, hybrid):
    """Meets and joins of LAT stay inside, and so does everything between two states."""
    clocks = final_clocks(case, hybrid)
    full = FullLattice(case.computation.processes)
    for p, state, _, _, _, after in steps(case, clocks):
        full.push(p, state, clocks[p, state])
        inside = sorted(after)[:12]
        for a, b in itertools.combinations(inside, 2):
            assert meet([a, b]) in after
            assert join([a, b]) in after
        if after:
            least, greatest = meet(after), join(after)
            between = {s for s in full.states() if all(a <= x <= b for a, x, b in zip(least, s, greatest, strict=True))}
            assert between == after


@given(cases(any_order=True), st.booleans())
@settings(max_examples=examples(150))
def test_theorems_2_and_4_to_7_hold_for_the_moves_of_the_lattice(case, hybrid):
    """Where the ends touch the windows, when it grows and is pruned, and what the new ends are."""
    clocks = final_clocks(case, hybrid)
    n = case.computation.processes
    for k, s, old, windows, before, after in steps(case, clocks):
        wide = [list(w) for w in old]
        wide[k].append(s)
        grown = by_brute_force(clocks, wide)
        if after:  # 2
            assert any(join(after)[p] == windows[p][-1] for p in range(n))
            assert any(meet(after)[p] == windows[p][0] for p in range(n))
        if before:  # 4.1
            top = join(before)
            can_grow = top[k] == old[k][-1] and consistent(clocks, (*top[:k], s, *top[k + 1 :]))
        elif old[k]:  # 4.2, which needs a predecessor in the window
            can_grow = any(g[k] == s and any(j != k and g[j] == wide[j][0] for j in range(n)) for g in grown)
        else:
            can_grow = bool(grown)
        assert can_grow == (grown != before)
        if grown != before:  # 5
            assert join(grown)[k] == s
            if not before:
                assert meet(grown)[k] == s
        if before and grown:
            assert meet(grown) == meet(before)
        stale = old[k][0] if len(old[k]) == case.window[k] else None
        can_prune = bool(grown) and stale is not None and meet(grown)[k] == stale  # 6
        assert can_prune == (after != grown)
        if can_prune and join(grown)[k] == stale:  # 7
            assert not after
        elif can_prune:
            assert join(after) == join(grown)
            assert meet(after)[k] == windows[k][0]


@given(cases(any_order=True), st.booleans())
@settings(max_examples=examples(80))
def test_lemma_3_what_a_failing_step_rules_out(case, hybrid):
    """If a process cannot step by itself, another of the state precedes its next, and nothing with the two is consistent."""
    clocks = final_clocks(case, hybrid)
    for _, _, _, windows, _, after in steps(case, clocks):
        for c, i in itertools.product(sorted(after)[:8], range(len(windows))):
            step = advanced(c, i)
            if step[i] in windows[i] and step not in after:
                j = next(j for j in range(len(c)) if j != i and precedes(clocks, j, c[j], i, step[i]))
                assert not any(g[j] <= c[j] and g[i] >= step[i] for g in after)


@given(cases())
@settings(max_examples=examples(100))
def test_the_order_by_stamps_only_ever_takes_states_away(case):
    """The lattice by causality and stamps is a part of that by causality; possibly by both implies possibly by one."""
    coarse, fine = final_clocks(case, False), final_clocks(case, True)
    for _, checker in known_moves(case.computation, case.window):
        windows = checker.windows()
        few, many = by_brute_force(fine, windows), by_brute_force(coarse, windows)
        assert few <= many
        for a, b in itertools.combinations(sorted(few)[:10], 2):
            assert {meet([a, b]), join([a, b])} <= few


# What is wrong with windows taken naively.

A, B = 0, 1


def lattice(clocks, windows):
    """Brute force over states written as {"a1": clock}: process letter and number."""
    named = {("ab".index(name[0]), int(name[1:])): clock for name, clock in clocks.items()}
    return by_brute_force(named, windows)


def test_hole_1_an_empty_window_has_no_lower_bound():
    """The first state of a process that joined late gives a lattice that line 2 of Algorithm 2 does not see.

    a:  a1 --- a2 --- a3 .
                         '-> b0      window of a: a1 a2 a3; consistent: (a3, b0), and a3 is no lower bound
    """
    for printed, expected in ((True, set()), (False, {(3, 0)})):
        paper = PaperLatWin(2, (3, 3), printed=printed)
        for number in range(4):
            paper.push(A, number, (number, 0))
        paper.push(B, 0, (3, 0))
        assert paper.states == expected


@given(st.integers(0, 10**6))
@settings(max_examples=examples(150))
def test_hole_1_closes_when_processes_begin_together(seed):
    """Where all first states come before everything else the line as printed is enough."""
    computation = simulate(Random(seed), 3, 20, delay=0, duplicates=False)
    window = (2, 3, 2)
    clocks = clocks_of(computation)
    paper = PaperLatWin(3, window, printed=True)
    checker = Checker(computation, window)
    for index in computation.arrivals:
        for taken in checker.push(index):
            event = computation.events[taken]
            paper.push(event.process, event.state, event.clock)
            if all(checker.windows()):
                assert paper.states == by_brute_force(clocks, checker.windows())


def by_next(queues):
    """Consistent global states where a state is taken to last until the next one in the queue, or for ever.

    `queues` hold (number, clock) per process, as they were enqueued.
    """
    states = set()
    for chosen in itertools.product(*(range(len(q)) for q in queues)):
        ends = [q[at + 1] if at + 1 < len(q) else None for q, at in zip(queues, chosen, strict=True)]
        clocks = [q[at][1] for q, at in zip(queues, chosen, strict=True)]
        n = len(queues)
        if not any(
            end is not None and clocks[j][i] >= end[1][i] for i, end in enumerate(ends) for j in range(n) if j != i
        ):
            states.add(tuple(q[at][0] for q, at in zip(queues, chosen, strict=True)))
    return states


def test_hole_2_the_latest_state_has_an_end_though_it_has_not_come():
    """A state that already knows of the end of a0 is consistent with it only as long as the report of a1 is on its way.

    a:  a0 --- a1 .          b1 knows that a0 is over
    b:  b0 --------'-> b1
    """
    late = [[(0, (0, 0))], [(0, (0, 0)), (1, (1, 1))]]
    complete = [[(0, (0, 0)), (1, (1, 0))], late[1]]
    assert (0, 1) in by_next(late)  # accepted, and no algorithm here can retract it
    assert (0, 1) not in by_next(complete)
    assert (0, 1) not in lattice({"a0": (0, 0), "b0": (0, 0), "b1": (1, 1)}, [[0], [0, 1]])


def test_hole_3_a_state_that_overtakes_its_predecessor_stretches_the_one_before():
    """Enqueued as they arrive, a2 before a1, the state a0 seems to last until a2 begins.

    a:  a0 --- a1 .----- a2      b1 knows that a0 is over
    b:  b0 --------'-> b1
    """
    b = [(0, (0, 0)), (1, (1, 1))]
    assert (0, 1) in by_next([[(0, (0, 0)), (2, (2, 0))], b])
    assert (0, 1) not in by_next([[(0, (0, 0)), (1, (1, 0)), (2, (2, 0))], b])
    paper = PaperLatWin(2, (3, 3))
    paper.push(A, 0, (0, 0))
    with pytest.raises(ValueError, match="found state 2, expected 1"):
        paper.push(A, 2, (2, 0))


def test_hole_4_an_execution_may_pass_by_the_windows():
    """Def over the windows holds though it never happened: a true, over, then b true; the report of b came first.

    a:  a0 true --- a1 false .
    b:  b0 false -------------'-> b1 true     windows of one: (a0, b0) and then, b1 dropped in between, never both
    """
    clocks = {"a0": (0, 0), "b0": (0, 0), "b1": (0, 1), "a1": (1, 0)}
    states = lattice(clocks, [[0], [1]])
    assert definitely(states, lambda g: g == (0, 1))
    events = (
        Event(A, 0, 0, 0, 0, True, (0, 0), True, 1),
        Event(B, 0, 0, 0, 0, True, (0, 0), False, 2),
        Event(A, 1, 1, 1, 1, True, (1, 0), False, 5),
        Event(B, 2, 2, 2, 1, True, (0, 1), True, 10),
    )
    checker = Checker(Computation(2, events, (0, 1, 3, 2)), (1, 1))
    for index in (0, 1, 3):
        checker.push(index)
    assert [list(w) for w in checker.windows()] == [[0], [1]]
    assert not checker.definitely()
    assert not checker.truly()


def windowed_definitely(checker, clocks):
    """The paper's Def: over the lattice of the windows."""
    return definitely(
        by_brute_force(clocks, checker.windows()), lambda g: all(checker.holds(p, s) for p, s in enumerate(g))
    )


def test_hole_4_is_met_often_and_the_whole_lattice_is_free_of_it():
    """Of random verdicts many over windows are contradicted by true time, none over the lattice of all that is known."""
    emitted = false = sure = 0
    tried = seeds(150)
    for seed in tried:
        computation = simulate(Random(seed), 2, 18, receives="silent")
        clocks = clocks_of(computation)
        for _, checker in known_moves(computation, (2, 2)):
            if windowed_definitely(checker, clocks):
                emitted += 1
                false += not checker.truly()
            if checker.definitely():
                sure += 1
                assert checker.truly()
    assert emitted > 2 * len(tried)
    assert false > emitted / 50
    assert sure > len(tried) / 2


@given(cases(most_processes=3, most_steps=16, most_window=3), st.booleans())
@settings(max_examples=examples(80))
def test_definitely_over_all_that_is_known_is_true(case, hybrid):
    """However late, doubled or out of order reports come, by causality only or with stamps."""
    for _, checker in known_moves(case.computation, case.window):
        if checker.definitely(hybrid):
            assert checker.truly()


@given(cases(most_processes=3, most_steps=16, most_window=3))
@settings(max_examples=examples(60))
def test_definitely_over_all_that_is_known_only_gains_by_stamps(case):
    """A finer order has fewer ways through the lattice, so fewer that miss."""
    for _, checker in known_moves(case.computation, case.window):
        assert checker.definitely(True) or not checker.definitely(False)


def test_hole_4_definitely_over_windows_is_not_monotone():
    """Some computation loses the windowed verdict when stamps refine the order; possibly is never gained."""
    lost = 0
    for seed in seeds(120):
        computation = simulate(Random(seed), 2, 16, error=1, receives="silent")
        coarse, fine = clocks_of(computation), clocks_of(computation, computation.begins())
        for _, checker in known_moves(computation, (2, 2)):

            def all_hold(g, checker=checker):
                return all(checker.holds(p, s) for p, s in enumerate(g))

            lost += windowed_definitely(checker, coarse) and not windowed_definitely(checker, fine)
            windows = checker.windows()
            assert possibly(by_brute_force(coarse, windows), all_hold) or not possibly(
                by_brute_force(fine, windows), all_hold
            )
    assert lost > 0


def office(seed, receives, lag, n=5, changes=150):
    """States (process, number, clock) in the order of arrival: each change to true is broadcast, and at once received.

    `receives`: whether a receive begins a state. A report is under way for up to `lag` reports of others.
    """
    random = Random(seed)
    clocks, reports, holds = [[0] * n for _ in range(n)], [(p, 0, (0,) * n) for p in range(n)], [False] * n

    def begin(p):
        clocks[p][p] += 1
        reports.append((p, clocks[p][p], tuple(clocks[p])))

    for _ in range(changes):
        p = random.randrange(n)
        holds[p] = not holds[p]
        begin(p)
        for q in range(n) if holds[p] else ():
            if q != p:
                clocks[q] = [max(a, b) for a, b in zip(clocks[q], clocks[p], strict=True)]
                if receives:
                    begin(q)
    due = [place + random.uniform(0, lag) for place in range(len(reports))]
    for p in range(n):  # in order per process
        own = [place for place, report in enumerate(reports) if report[0] == p]
        for place, when in zip(own, sorted(due[place] for place in own), strict=True):
            due[place] = when
    return [reports[place] for place in sorted(range(len(reports)), key=due.__getitem__)]


def average_size(receives, lag, window=3):
    """Mean number of consistent global states of full windows, over two runs, in a deep run over four."""
    sizes = []
    for seed in range(4 if SEED else 2):
        reports = office(seed, receives, lag)
        lattice = PaperLatWin(5, (window,) * 5)
        for process, state, clock in reports:
            lattice.push(process, state, clock)
            if all(len(w) == window for w in lattice.windows):
                sizes.append(len(lattice.states))
    return sum(sizes) / len(sizes)


def test_hole_5_receives_that_begin_states_make_the_lattice_large_and_delays_do_not():
    """Every broadcast gives n - 1 states that know nothing of each other; late reports change the sizes little."""
    at_once, late, silent = average_size(True, 0), average_size(True, 12), average_size(False, 0)
    assert at_once > 3 * silent
    assert abs(late - at_once) < (at_once - silent) / 2
