"""Every operator gives the pairs of the definition, each once, whatever the order of arrival within the delays."""

import copy
from collections import Counter
from fractions import Fraction
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property.strategies import EPOCH_US
from reference.predicates import probability
from support.search import examples
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.operators import OPERATORS, operator
from whenabouts_cloud.research.operators.probe import Probe
from whenabouts_cloud.research.operators.target_bounds import GRID_STEPS, STEPS, Lengths, grid, least_sum, limits

NAMES = list(OPERATORS)
thresholds = st.sampled_from(["0.05", "0.2", "0.3", "0.5", "0.8", "0.95", "1", Fraction(1, 3), Fraction(7, 9)])


@lru_cache(100_000)
def definition(a, b, lo, hi):
    """P(lo <= Y - X <= hi), integrated in exact fractions."""
    return probability(a, b, lo, hi)


@st.composite
def conditions(draw):
    """All kinds, widths from 0 to far beyond the lengths."""
    kind = draw(st.sampled_from(["within", "between", "deadline", "delay"]))
    ct = draw(thresholds)
    if kind == "within":
        return Condition(kind, d=draw(st.integers(0, 40)), confidence=ct)
    low = draw(st.integers(-40, 40))
    high = low + draw(st.integers(0, 60))
    if kind == "between":
        return Condition(kind, lo=low, hi=high, confidence=ct)
    if kind == "deadline":
        return Condition(kind, d=high, window=-low if low <= 0 else draw(st.integers(max(0, -high), 40)), confidence=ct)
    return Condition(kind, d=low, window=high, confidence=ct)


@st.composite
def streams(draw):
    """(condition, watermarks, events in the order of arrival); stamps crowd together, many are equal or points."""
    condition = draw(conditions())
    origin = draw(st.sampled_from([0, -17, EPOCH_US]))
    watermarks, events = {}, []
    for side in "ab":
        rho, delay = draw(st.sampled_from([0, 0, 1, 4])), draw(st.sampled_from([0, 3, 25]))
        pi = rho + draw(st.sampled_from([0, 1, 6, 20]))
        watermarks |= {f"rho_{side}": rho, f"pi_{side}": pi, f"delay_{side}": delay}
        for index in range(draw(st.integers(0, 9))):
            t_max = origin + draw(st.integers(0, 120))
            t_min = t_max - draw(st.sampled_from([rho, pi, (rho + pi) // 2]))
            events.append((t_max + draw(st.sampled_from([0, delay // 2, delay])), side, index, t_min, t_max))
    order = draw(st.permutations(range(len(events))))
    events = sorted((events[n] for n in order), key=lambda e: e[0])  # equal arrivals in any order
    return condition, watermarks, events


def expected(condition, events):
    """The definition's pairs among the events."""
    sides = {s: [(i, (low, high)) for _, side, i, low, high in events if side == s] for s in "ab"}
    return {
        (i, j)
        for i, x in sides["a"]
        for j, y in sides["b"]
        if definition(x, y, condition.lo_us, condition.hi_us) >= condition.ct
    }


def once(pairs):
    """As a set; no pair came twice."""
    assert [pair for pair, count in Counter(pairs).items() if count > 1] == []
    return set(pairs)


@pytest.mark.parametrize("name", ["simple", "simple_sort", "eager", "banded"])
@given(streams(), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_at_every_prefix_the_pairs_are_those_of_the_definition(name, case, data):
    """Each tuple gives at once the pairs with all that came before, heartbeats change nothing, nothing is late."""
    condition, watermarks, events = case
    op = operator(name, condition, **watermarks)
    pairs = []
    for count, (now, side, index, t_min, t_max) in enumerate(events, 1):
        if data.draw(st.booleans()):
            assert op.advance(now) == []
        pairs += op.push(side, index, t_min, t_max, now)
        assert once(pairs) == expected(condition, events[:count])
        assert op.counters.pairs == len(pairs)
    assert op.flush() == []
    assert op.counters.late == 0
    assert_forgets(op, events, pairs)


@pytest.mark.parametrize("name", ["lazy", "lookup"])
@given(streams(), st.sampled_from([1, 2, 5, None]), st.sampled_from([1, 10, 60, None]), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_at_every_prefix_a_lazy_operator_gives_the_pairs_of_the_definition_early_or_when_flushed(
    name, case, block, every, data
):
    """By count, by time or by both: the pairs so far and those that a flush adds are the definition's pairs, each once."""
    condition, watermarks, events = case
    if block is None and every is None:
        block = 3
    op = operator(name, condition, block=block, every=every, **watermarks)
    pairs = []
    for count, (now, side, index, t_min, t_max) in enumerate(events, 1):
        if data.draw(st.booleans()):
            pairs += op.advance(now)
        pairs += op.push(side, index, t_min, t_max, now)
        rest = copy.deepcopy(op).flush()
        assert once(pairs + rest) == expected(condition, events[:count])
    pairs += op.flush()
    counts = op.counters
    assert counts.pairs == len(pairs)
    assert counts.sure + counts.hits + counts.evaluations >= len(pairs)
    assert counts.late == 0
    assert_forgets(op, events, pairs)


def assert_forgets(op, events, pairs):
    """When time has gone on far enough nothing is held, and what was dropped is counted."""
    if events:
        op.advance(max(e[0] for e in events) + 1000)
        counts = op.counters
        assert (counts.buffer_a, counts.buffer_b) == (0, 0)
        assert counts.purged_a + counts.purged_b + counts.unmatchable == counts.tuples == len(events)


@pytest.mark.compiles
@pytest.mark.parametrize("name", NAMES)
@given(streams(), st.integers(1, 6))
@settings(max_examples=examples(60), deadline=None)
def test_arrays_and_single_tuples_give_the_same_pairs(name, case, size):
    """Neighbouring arrivals of one side pushed together, with their own arrival times."""
    condition, watermarks, events = case
    op = operator(name, condition, **watermarks, **({"block": 3} if name in ("lazy", "lookup") else {}))
    pairs, at = [], 0
    while at < len(events):
        end = at + 1
        while end < len(events) and end - at < size and events[end][1] == events[at][1]:
            end += 1
        now, sides, index, t_min, t_max = (list(x) for x in zip(*events[at:end], strict=True))
        pairs += op.push(sides[0], index, t_min, t_max, now)
        at = end
    assert once(pairs + op.flush()) == expected(condition, events)
    assert op.counters.late == 0


@pytest.mark.parametrize("name", NAMES)
@given(streams(), st.sampled_from([0, 2, 30]), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_only_pairs_with_a_late_tuple_can_be_missing(name, case, more, data):
    """Arrivals later than the delay join the tuples still held; each is counted and reported, and no pair comes twice."""
    condition, watermarks, events = case
    events = sorted(
        ((now + data.draw(st.sampled_from([0, 0, more])), *rest) for now, *rest in events), key=lambda e: e[0]
    )  # fmt: skip
    op = operator(name, condition, **watermarks, **({"block": 3} if name in ("lazy", "lookup") else {}))
    results = []
    for now, side, index, t_min, t_max in events:
        results += op.push(side, index, t_min, t_max, now)
    late = {(x.side, x.index) for x in op.take_late()}
    assert late == {(side, i) for now, side, i, _, t_max in events if now - t_max > watermarks[f"delay_{side}"]}
    assert op.counters.late == len(late)
    assert op.take_late() == []
    pairs, whole = once(results + op.flush()), expected(condition, events)
    assert pairs <= whole
    assert all(("a", i) in late or ("b", j) in late for i, j in whole - pairs)


@pytest.mark.parametrize("name", NAMES)
@given(streams(), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_lengths_beyond_the_stated_ones_are_joined_and_counted(name, case, data):
    """rho and pi stated too narrow: a pair is missing only with such a tuple, and all are there while nothing is dropped."""
    condition, watermarks, events = case
    patient = watermarks | {"delay_a": 10_000, "delay_b": 10_000}
    for side in "ab":
        patient[f"rho_{side}"] = patient[f"pi_{side}"] = data.draw(st.integers(0, watermarks[f"pi_{side}"]))
    op = operator(name, condition, **patient, **({"block": 3} if name in ("lazy", "lookup") else {}))
    pairs = []
    for now, side, index, t_min, t_max in events:
        pairs += op.push(side, index, t_min, t_max, now)
    assert once(pairs + op.flush()) == expected(condition, events)


@given(conditions(), st.integers(-120, 120), st.integers(0, 60), st.integers(0, 60))
@settings(max_examples=examples(400), deadline=None)
def test_the_probe_decides_as_the_definition(condition, distance, w1, w2):
    """In integers, ties included; the distance of the middles is kept whole by lengths of equal parity."""
    w2 += (distance + w1 + w2 + condition.doubled_centre) % 2
    a = (0, w1)
    low = (distance + condition.doubled_centre + w1 - w2) // 2
    b = (low, low + w2)
    by_definition = definition(a, b, condition.lo_us, condition.hi_us) >= condition.ct
    assert Probe(condition).holds(distance, w1, w2) == by_definition
    assert Probe(condition).holds(-distance, w2, w1) == by_definition


@given(conditions(), st.booleans(), st.integers(0, 30), st.integers(0, 2500), st.integers(0, 30), st.integers(0, 30),
       st.data())  # fmt: skip
@settings(max_examples=examples(300), deadline=None)
def test_sure_matches_and_what_is_left_out_never_does(condition, base_in_a, rho, more, target_rho, target_more, data):
    """Targets around the limits of a base, in both orders and in the grid, decided one by one; classes hold many lengths."""
    base, target = Lengths(rho, rho + more), Lengths(target_rho, target_rho + target_more)
    holds = Probe(condition).holds
    shift = condition.doubled_centre if base_in_a else -condition.doubled_centre
    w1 = data.draw(st.sampled_from([base.rho, base.pi, (base.rho + base.pi) // 2, min(base.pi, base.rho + 1)]))
    w2 = data.draw(st.integers(target.rho, target.pi))
    for order in ("max", "middle"):
        table = limits(condition, order, base_in_a=base_in_a, base=base, target=target)
        first, sure_first, sure_last, last = table.row(w1)
        edges = [x + n for x in (first, sure_first, sure_last, last) for n in range(-3, 4)]
        for at in edges:
            doubled = 2 * at - w2 if order == "max" else at + w1  # of the target, the base's minimum being 0
            if (doubled - w2) % 2:
                continue
            match = holds(doubled - w1 - shift, w1, w2)
            assert match or not sure_first <= at <= sure_last
            assert not match or first <= at <= last
    cells = grid(condition, base=base, target=target)
    i, j = (w1 - cells.base_rho) // cells.base_step, (w2 - cells.target_rho) // cells.target_step
    assert i < GRID_STEPS
    assert len(table.rows) <= STEPS
    for distance in range(cells.sure[i][j] - 3, cells.sure[i][j] + 1):
        assert distance < 0 or holds(distance, w1, w2)
    assert not any(holds(cells.reach[i][j] + n, w1, w2) for n in range(1, 4))


@given(st.integers(0, 400), st.integers(0, 400), thresholds)
@settings(max_examples=examples(300), deadline=None)
def test_the_least_sum_is_the_quantile_of_two_uniforms(w1, w2, ct):
    """C(s*) reaches ct and nothing clearly smaller does, by the definition with wide limits on one side."""
    ct = Condition("within", d=0, confidence=ct).ct
    s = least_sum(w1, w2, float(ct))
    for step, reaches in ((1e-6, True), (-1e-6, False)):
        # P(U1 + U2 <= s) is that of Y - X <= s for X in [-w1, 0], Y in [0, w2], in millionths of a tick.
        scaled = round((s + step) * 10**9)
        p = definition((-w1 * 10**9, 0), (0, w2 * 10**9), -(10**13), scaled)
        assert (p >= ct) is (reaches or (s <= 0 and scaled >= 0))
