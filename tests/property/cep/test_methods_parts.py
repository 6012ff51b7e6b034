"""The parts of the baselines: the frontier against the definition, stacks against sorted lists, gaps by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property.strategies_cep import cases
from reference.cep import moments
from support.search import examples
from whenabouts_cloud.cep.kernel.layout import FOREVER, NEVER
from whenabouts_cloud.cep.runtime.disorder import Disorder
from whenabouts_cloud.pattern.plan import Alternative, EventClass, Negation, Plan
from whenabouts_cloud.research.baselines.baseline import Baseline
from whenabouts_cloud.research.baselines.sequence import chain_of, finality_time, gap
from whenabouts_cloud.research.baselines.stacks import empty_stacks, insert, number_of, renewed


@given(cases(late=True))
@settings(max_examples=examples(150))
def test_the_frontier_is_that_of_the_definition_after_every_event(case):
    """By K-bound and by source, with heartbeats between, whatever the blocks, through its arrays."""
    watermark = Disorder(case.order, case.k, None if case.sources is None else list(case.sources))
    frontiers, first = [], 0
    stops = {*case.cuts, len(case.events), *(after for after, _ in case.advances)}
    for end in range(len(case.events) + 1):
        if end in stops:
            events = case.events[first:end]
            t, source = (np.array(c, np.int64) for c in ([e.t_max for e in events], [e.source for e in events]))
            frontiers += watermark.after(t, source).tolist()
            first = end
            watermark = Disorder.of(watermark.arrays)
        frontiers += [watermark.advance(frontier) for after, frontier in case.advances if after == end]
    assert frontiers == [NEVER if m.frontier is None else m.frontier for m in moments(case)[:-1]]


operations = st.lists(
    st.tuples(st.integers(-3, 12), st.integers(0, 1), st.integers(0, 30), st.integers(0, 3)), max_size=120
)


@given(operations)
@settings(max_examples=examples(80))
def test_stacks_hold_what_has_come_in_order_and_drop_what_is_outdated(operations):
    """Against sorted lists; ties stay in the order of arrival; nothing at or after the bound is ever lost."""
    stacks, expected, bound = empty_stacks(2), {}, NEVER
    for index, (key, c, t, rise) in enumerate(operations):
        bound = max(bound, t - 12) if rise == 3 else bound
        while insert(stacks, 2, key, c, t, index, bound) < 0:
            stacks = renewed(stacks, 2, bound)
        expected.setdefault((key, c), []).append((t, index))
    for (key, c), events in expected.items():
        number = number_of(stacks, key)
        first, last = stacks.bounds[number * 2 + c, 1:3] if number >= 0 else (0, 0)
        held = [tuple(row) for row in stacks.pool[first:last].tolist()]
        assert [e for e in held if e[0] >= bound] == [e for e in sorted(events) if e[0] >= bound]


def test_idle_keys_leave_nothing():
    """A hundred thousand keys, each used once, in the space of those of a moment."""
    stacks = empty_stacks(1)
    for key in range(100_000):
        while insert(stacks, 1, key, 0, key, key, key - 10) < 0:
            stacks = renewed(stacks, 1, key - 10)
    assert sum(array.nbytes for array in stacks) < 20_000


def test_gaps_and_their_finality_on_the_time_line():
    """SEQ(!X, A, !X, B, !X) within 10, A at 20 and B at 25: [15, 20), (20, 25) and (25, 30]; final when 31 is reached."""
    negations = tuple(Negation(1, left, right) for left, right in ((0, 1), (1, 2), (2, 0)))
    alternative = Alternative((0, 0), (0, 1), (0, 1), negations)
    plan = Plan((EventClass(frozenset({0})), EventClass(frozenset({1}))), (alternative,), 2, 10)
    chain, t = chain_of(plan, 2), np.array([20, 25])
    assert [gap(chain, n, t) for n in range(3)] == [(15, 20), (21, 25), (26, 31)]
    assert finality_time(chain, t) == 31
    strict = chain_of(Plan(plan.classes, plan.alternatives, 2, 10, strict_window=True), 2)
    assert [gap(strict, n, t) for n in range(3)] == [(16, 20), (21, 25), (26, 30)]


def test_a_method_without_a_kernel_cannot_run():
    """The common base class cannot run as a method."""
    plan = Plan((EventClass(frozenset({0})),), (Alternative((0,), (0,), (0,)),), 1, 1)
    with pytest.raises(TypeError, match="_empty"):
        Baseline(plan, 1, k=0)
    assert FOREVER > 0 > NEVER
