"""Dense vector clocks against the definition of "happened before" as a path through what processes did."""

from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_protocol.vector_clock import VectorClock


@st.composite
def histories(draw):
    """Actions of 1 to 4 processes, in one true order: ("state", p), ("send", p) or ("receive", p, number of the send)."""
    processes = draw(st.integers(1, 4))
    steps, sends = [], []
    for at in range(draw(st.integers(0, 25))):
        process = draw(st.integers(0, processes - 1))
        what = draw(st.sampled_from(["state", "send", "receive"]))
        if what == "receive":
            if not sends:
                continue
            steps.append((what, process, draw(st.sampled_from(sends))))  # any order, again and again, from oneself too
        else:
            steps.append((what, process, None))
            if what == "send":
                sends.append(len(steps) - 1)
        assert at < 25
    return processes, steps


def reachable(processes, steps):
    """For each step the set of steps that happened before it or are it: along a process, and from send to receive."""
    last, before = [frozenset()] * processes, []
    for at, (_, process, sent) in enumerate(steps):
        known = last[process] | {at} | (before[sent] if sent is not None else frozenset())
        before.append(known)
        last[process] = known
    return before


def run(processes, steps):
    """begin[process][state] = (clock, step) at the beginning of each local state, by the rules of the module."""
    clocks = [VectorClock((0,) * processes) for _ in range(processes)]
    begin = [[(clock, None)] for clock in clocks]
    carried = {}
    for at, (what, process, sent) in enumerate(steps):
        if what == "state":
            clocks[process] = clocks[process].ticked(process)
            begin[process].append((clocks[process], at))
        elif what == "send":
            carried[at] = clocks[process]
        else:
            clocks[process] = clocks[process].merged(carried[sent])
    return begin


@settings(max_examples=examples(300), deadline=None)
@given(histories())
def test_a_clock_knows_exactly_the_states_that_ended_before(history):
    """State k of i precedes state l of j (k has ended before l began) exactly if V_j^l[i] >= k + 1."""
    processes, steps = history
    before, begin = reachable(processes, steps), run(processes, steps)
    for i in range(processes):
        for k in range(len(begin[i])):
            end = begin[i][k + 1][1] if k + 1 < len(begin[i]) else None  # the step that ended state k
            for j in range(processes):
                for clock, started in begin[j]:
                    precedes = end is not None and started is not None and end in before[started]
                    assert clock.knows_state(i, k) == precedes


@settings(max_examples=examples(300), deadline=None)
@given(histories(), st.data())
def test_a_global_state_is_consistent_exactly_if_no_state_of_it_precedes_another(history, draw):
    """G is consistent iff V_{j,G[j]}[i] <= G[i] for all i != j, and the own entry is the number of the state."""
    processes, steps = history
    before, begin = reachable(processes, steps), run(processes, steps)
    chosen = [draw.draw(st.integers(0, len(states) - 1)) for states in begin]
    by_clock = all(
        begin[j][chosen[j]][0].counts[i] <= chosen[i] for i in range(processes) for j in range(processes) if i != j
    )
    ends = [begin[i][k + 1][1] if k + 1 < len(begin[i]) else None for i, k in enumerate(chosen)]
    by_path = not any(
        ends[i] is not None and begin[j][chosen[j]][1] is not None and ends[i] in before[begin[j][chosen[j]][1]]
        for i in range(processes)
        for j in range(processes)
        if i != j
    )
    assert by_clock == by_path
    for process, states in enumerate(begin):
        assert [clock.counts[process] for clock, _ in states] == list(range(len(states)))


clocks = st.lists(st.integers(0, 3), min_size=3, max_size=3).map(VectorClock)


@settings(max_examples=examples(200), deadline=None)
@given(clocks, clocks, clocks)
def test_merging_is_a_least_upper_bound(a, b, c):
    """Order, repetition and grouping of merges change nothing; the result dominates both and nothing smaller does."""
    assert a.merged(b) == b.merged(a)
    assert a.merged(a) == a
    assert a.merged(b).merged(c) == a.merged(b.merged(c))
    assert a.merged(b).dominates(a)
    if c.dominates(a) and c.dominates(b):
        assert c.dominates(a.merged(b))
    assert a.concurrent(b) == (not a.dominates(b) and not b.dominates(a))
    assert hash(a.merged(b)) == hash(b.merged(a))
