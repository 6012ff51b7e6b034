"""Verdicts on conjunctions of local predicates, which visit no global state, against those on all of them."""

from hypothesis import event, given, settings
from hypothesis import strategies as st

from property.strategies_latwin import cases
from reference.latwin import definitely, known_moves, possibly
from support.search import examples
from whenabouts_cloud.latwin.model.layout import HEAD
from whenabouts_cloud.latwin.model.predicate import All, Local
from whenabouts_cloud.latwin.windows import all_true
from whenabouts_cloud.latwin.windows.lattice import LatWin


@st.composite
def conjunctions(draw, processes, states=12):
    """Local predicates of all processes, or of some, and of some more than one."""
    true = st.lists(st.booleans(), min_size=states, max_size=states).map(
        lambda row: {k for k, one in enumerate(row) if one}
    )
    chosen = draw(st.one_of(st.just(list(range(processes))), st.lists(st.integers(0, processes - 1), max_size=6)))
    locals_ = [Local(process, draw(true)) for process in chosen]
    cut = draw(st.integers(0, len(locals_)))
    return locals_[0] if len(locals_) == 1 else All(All(*locals_[:cut]), *locals_[cut:])


def verdicts(lattice, predicate):
    """Pos and Def."""
    return lattice.possibly(predicate), lattice.definitely_in_window(predicate)


@given(cases(any_order=True), st.booleans(), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_the_verdict_on_a_conjunction_is_that_over_all_global_states(case, hybrid, data):
    """Stored and walked, by clocks or also by time: equal to brute force, and honest clocks agree."""
    n = case.computation.processes
    predicate = data.draw(conjunctions(n))
    order = "hybrid" if hybrid else "causal"
    stored, walked = LatWin(n, case.window, order), LatWin(n, case.window, order, store=False)
    for index, _ in known_moves(case.computation, case.window):
        one = case.computation.events[index]
        for lattice in (stored, walked):
            if one.begins:
                lattice.push(one.process, one.state, one.clock, one.lo, one.hi)
            else:
                lattice.evidence(one.process, one.clock, one.lo)
        assert stored._cgss._judge(stored.ring, predicate) in (
            all_true.IMPOSSIBLE, all_true.POSSIBLE, all_true.UNAVOIDABLE,
        )  # fmt: skip
        states = set(map(tuple, stored.states().tolist()))
        expected = possibly(states, predicate), definitely(states, predicate)
        event(f"possible, unavoidable: {expected}")
        assert verdicts(stored, predicate) == verdicts(walked, predicate) == expected


def asked_of_held(lattice, false, process):
    """A local predicate, false for some states, that may be asked only for those in the window."""

    def holds(number):
        assert lattice.ring.heads[process, HEAD.first] <= number < lattice.ring.heads[process, HEAD.next]
        return number not in false

    return Local(process, holds)


@given(st.integers(2, 4), st.integers(1, 4), st.booleans(), st.data())
@settings(max_examples=examples(400), deadline=None)
def test_clocks_that_contradict_each_other_give_the_verdict_over_all_global_states(n, width, patient, data):
    """Clocks that nobody honest reports: of two states each knows the other, or one knows another without its past.

    Also with processes that restart; a predicate is asked only for states held.
    """
    lattice, following = LatWin(n, width, "hybrid" if patient else "causal", patient), [0] * n
    false = [data.draw(st.sets(st.integers(0, 9), max_size=4)) for _ in range(n)]
    some = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
    predicate = All(*(asked_of_held(lattice, false[p], p) for p in some))
    steps = st.tuples(st.integers(0, n - 1), st.integers(0, 9).map(bool), st.booleans())
    firsts = [(process, True, True) for process in range(n)]
    for process, begins, asked in firsts + data.draw(st.lists(steps, min_size=n, max_size=20)):
        behind = data.draw(st.lists(st.sampled_from([9, 3, 2, 1, 0]), min_size=n, max_size=n))
        if not begins:
            following[process] += data.draw(st.integers(0, 2))
            lattice.renew(process, following[process])
        else:
            clock = [max(0, end - less) for end, less in zip(following, behind, strict=True)]
            clock[process] = following[process]
            at = sum(following)
            lattice.push(process, following[process], clock, at, at + data.draw(st.integers(0, 3)))
            following[process] += 1
        if asked:
            verdict = lattice._cgss._judge(lattice.ring, predicate)
            event(f"clocks disagree: {verdict == all_true.CLOCKS_DISAGREE}")
            assert verdicts(lattice, predicate) == verdicts(lattice, ~~predicate)
            assert lattice.possibly(predicate) == possibly(set(map(tuple, lattice.states().tolist())), predicate)
