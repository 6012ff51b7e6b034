"""Many patterns in one engine against each in a separate one, after every block: an event decides groups of uses at once.

The streams fill and overflow the rings of recent events, and tie; classes share bits; patterns come and go meanwhile.
"""

from itertools import permutations, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_cloud.cep import engine
from whenabouts_cloud.cep.kernel.compile_plans import compile_plans
from whenabouts_cloud.cep.kernel.infa import FARTHEST
from whenabouts_cloud.cep.kernel.layout import META, RING
from whenabouts_cloud.cep.kernel.program import BITS, CLASS
from whenabouts_cloud.pattern.plan import Alternative, EventClass, Negation, Plan

WIDTH, WIDEST = 12, 1 << 50


def sequence(codes, window, negations, types, loose=False):
    """A chain of types with negations (type, place); `loose`: without an order between its first two."""
    count = len(codes)
    before = [(1 << i) - 1 for i in range(count)]
    if loose and count > 1:
        before[1] = 0
        negations = [(code, place) for code, place in negations if place in (0, count)]
    gaps = [
        Negation(code, 1 << place - 1 if place else 0, 1 << place if place < count else 0) for code, place in negations
    ]
    one = Alternative(tuple(codes), tuple(range(count)), tuple(before), tuple(gaps))
    return Plan(tuple(EventClass(frozenset({code})) for code in range(types)), (one,), count, window)


def some_plan(rng, codes, types, window):
    """A plan mostly over a few types, now and then longer than a path's word, with up to two negations anywhere."""
    length = int(rng.choice([1, 2, 2, 3, 3, 4, 11], p=[0.05, 0.2, 0.2, 0.25, 0.15, 0.1, 0.05]))
    chosen = rng.choice(codes, length).tolist()
    negations = [(int(rng.choice(codes)), int(rng.integers(0, length + 1))) for _ in range(rng.integers(0, 3))]
    return sequence(
        chosen,
        int(rng.choice([window, window, 3], p=[0.5, 0.2, 0.3] if window < WIDEST else [0.1, 0.1, 0.8])),
        negations,
        types,
        bool(rng.random() < 0.1),
    )


class Together:
    """An engine for many patterns, and one for each, which see the same events."""

    def __init__(self, plans, names, emit, k):
        self.names, self.emit, self.k = names, emit, k
        self.many = engine(plans, names, emit, k=k)
        self.alone = {n: (0, engine(plan, names, emit, k=k)) for n, plan in enumerate(plans)}

    def add(self, plan):
        """Add a pattern to all."""
        one = engine(plan, self.names, self.emit, k=self.k)
        if self.many.frontier is not None:
            one.advance(self.many.frontier)
        fed = self.many.fed
        self.alone[self.many.add(plan)] = (fed, one)

    def remove(self, number):
        """Remove a pattern from all."""
        self.many.remove(number)
        del self.alone[number]

    def check(self, step):
        """Both give the same results in a step, but of late events' changes one engine for all may know more."""
        expected = set()
        for number, (first, one) in self.alone.items():
            expected |= results(step(one), first, number)
        out = step(self.many)
        found = results(out, 0)
        assert expected <= found
        assert {kind for kind, *_ in found - expected} <= {"added", "removed"}
        assert len(found) == len(out.matches) + len(out.retractions) + len(out.late_added) + len(out.late_removed)
        waiting = sum(one.counters["waiting_matches"] for _, one in self.alone.values())
        assert self.many.counters["waiting_matches"] == waiting
        return len(out.matches)


def results(out, first, number=None):
    """Rows of all kinds with pattern and moment, their indices counted from the first event of the common stream."""
    kinds = (
        ("emitted", out.matches, out.emitted_at, out.pattern),
        ("back", out.retractions, out.retracted_by, out.retracted_pattern),
        ("added", out.late_added, out.late_added_by, out.late_added_pattern),
        ("removed", out.late_removed, out.late_removed_by, out.late_removed_pattern),
    )
    return {
        (kind, pattern if number is None else number, *(i if i < 0 else i + first for i in [*row, *pad(row), moment]))
        for kind, rows, moments, patterns in kinds
        for row, moment, pattern in zip(rows.tolist(), moments.tolist(), patterns.tolist(), strict=True)
    }


def pad(row):
    """Places up to the common width."""
    return [-1] * (WIDTH - len(row))


def test_every_order_of_arrival_and_every_prefix():
    """Events of three types, all orders: chains of up to three with a negation in every place, one event a step."""
    chains = [chain for n in (1, 2, 3) for chain in product(range(3), repeat=n)]
    plans = [
        sequence(chain, 3, [(n % 3, place)] if place <= len(chain) else [], 3)
        for n, chain in enumerate(chains)
        for place in ((n + 1) % 5, 4)
    ]
    assert compile_plans(plans, 3).program.classes[:, CLASS.many].all()
    kinds, times = np.array([0, 1, 2, 0, 1]), np.array([0, 1, 2, 2, 4])
    matches = 0
    for number, order in enumerate(permutations(range(5))):
        few = [plan for n, plan in enumerate(plans) if n % 8 == number % 8]
        both = Together(plans[: 40 - len(few)] + few, "ABC", ("sure", "arrival")[number % 2], 9)
        for i in order:
            matches += both.check(lambda one, i=i: one.feed(kinds[i : i + 1], [0], times[i : i + 1]))
        matches += both.check(lambda one: one.finish())
    assert matches > 1000


@st.composite
def courses(draw):
    """A seed, and the shape of a course that tests some limit of the groups and rings."""
    dense = draw(st.booleans())
    return {
        "seed": draw(st.integers(0, 1 << 32)),
        "types": draw(st.sampled_from([4, 7, BITS + 3])),
        "events": draw(st.sampled_from([40, 3 * RING])) if dense else 60,
        "window": draw(st.sampled_from([2, 8] if dense else [8, 20, 1 << 59])),
        "pace": draw(st.sampled_from([8, 20])) if dense else 1,  # events a tick
        "keys": draw(st.sampled_from([1, 2])),
        "k": draw(st.sampled_from([0, 4, 12])),
        "late": draw(st.booleans()),
        "emit": draw(st.sampled_from(["sure", "arrival"])),
        "origin": draw(st.sampled_from([0, -9, 1_790_000_000_000_000, FARTHEST - 3])),
    }


@given(courses())
@settings(max_examples=examples(60), deadline=None)
def test_many_patterns_emit_what_each_emits_separately(course):
    """After every block, through snapshots, with patterns added and removed between."""
    rng = np.random.default_rng(course["seed"])
    types, events = course["types"], course["events"]
    codes = [0, 1, 2, BITS, BITS + 1] if types > BITS else range(types)
    rare = course["pace"] > 1 and course["window"] > 2  # else matches would be too many
    drawn = [some_plan(rng, codes, types, course["window"]) for _ in range(70 if types > BITS else 30)]
    plans = [plan for plan in drawn if not rare or plan.width <= 2]
    both = Together(plans, [f"T{n}" for n in range(types)], course["emit"], course["k"])
    t = course["origin"] + np.arange(events) // course["pace"]
    delay = rng.integers(0, course["k"] + 1 + 2 * course["late"], events) * (rng.random(events) < 0.4)
    order = np.argsort(np.arange(events) // course["pace"] + delay, kind="stable")
    kinds = rng.choice(codes, events) if not rare else rng.choice([*codes, types - 1], events)
    keys, place = rng.integers(0, course["keys"], events), 0
    while place < events:
        size = int(rng.choice([1, 5, 30]))
        rows = order[place : place + size]
        both.check(lambda one, rows=rows: one.feed(kinds[rows], keys[rows], t[rows]))
        place += size
        change = rng.random()
        if change < 0.1:
            both.many = engine.restore(both.many.snapshot())
        elif change < 0.2:
            both.add(some_plan(rng, codes, types, 3) if not rare else plans[0])
        elif change < 0.25:
            both.remove(min(both.alone))
    both.check(lambda one: one.finish())


def test_a_ring_that_overflows_is_not_asked():
    """
    t      0  1 ..  70  71        B, 70 times C, A: more than the ring keeps; the first event is found all the same
    """
    plans = [sequence((1, 2, 0), 80, [], 3), *(sequence((1, 0), w, [], 3) for w in range(60, 80))]
    one = engine(plans, "ABC", k=0)
    count = RING + 6
    one.feed([1] + [2] * count, [0] * (count + 1), np.arange(count + 1))
    out = one.feed([0], [0], [count + 1])
    assert (out.pattern == 0).sum() == count
    assert set(out.pattern.tolist()) == {0, *range(1 + count + 1 - 60, len(plans))}


def test_rings_start_anew_when_patterns_change_and_are_asked_again_when_they_are_complete():
    """
    t      0 1 2         3          9 .. 12
           A B A         pattern    the ring knows all within a window again
    """
    plans = [sequence((0, 1), w, [], 3) for w in range(1, 14)]
    one = engine(plans, "ABC", k=0)
    one.feed([0, 1, 0], [0, 0, 0], [0, 1, 2])
    one.add(sequence((0, 1), 4, [], 3))
    assert len(one.feed([1], [0], [3]).matches) == 13 + 11
    assert one.state.meta[META.recent_since] == 2
    assert one.feed([0, 1], [0, 0], [19, 20]).pattern.tolist() == list(range(14))
