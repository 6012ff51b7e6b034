"""Counting without listing: on any plan and any course of events the numbers of the matches that the definition lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property.strategies_cep import cases
from reference import cep as definition
from support.cep.checks import columns
from support.search import examples
from whenabouts_cloud.cep import Pattern, detect
from whenabouts_cloud.cep.count.counter import NotCountableError, counter
from whenabouts_cloud.cep.count.state import SLOT, enter, find, leave

NAMES = [f"T{n}" for n in range(6)]
WEIGHTS = np.array([3.0, np.nan, -1.0, 4.0, 0.0, np.nan, 2.0, 8.0, 1.0, -5.0, 6.0, 7.0])  # by index of the event
FUNCTIONS = {"sum": np.sum, "min": np.min, "max": np.max, "avg": np.mean}
COUNTED = settings(max_examples=examples(400), deadline=None)


def is_countable(plan):
    """Chains whose conditions name one event each."""

    def named(program):
        return {step.element for step in program if step.op == "attribute"}

    return all(
        v.is_chain
        and all(len(named(c)) <= 1 for c in v.conditions)
        and all(named(n.condition) <= {definition.NEGATED} for n in v.negations)
        for v in plan.alternatives
    )


def aggregates_of(plan):
    """Every function on the first and on the last place of a match."""
    return [(function, f"{place}.weight") for place in sorted({0, plan.width - 1}) for function in FUNCTIONS]


def emitted_by(case, moment):
    """The matches counted at the moment: the frontier is past their last event, and past the window where it decides."""
    candidates = definition.candidates(case.plan, case.events, definition.accepted(case))
    return [
        match.row
        for match in candidates
        if not match.violators
        and moment.frontier is not None
        and moment.frontier > max(case.events[i].t for i in match.chosen)
        and definition.finalized(case.plan, match, case.events, moment.frontier)
    ]


def by_key(case, rows):
    """Of each key the number of its matches and their aggregates."""
    keys = [case.events[max(row)].key if case.plan.per_key else 0 for row in rows]
    counted = {}
    for key in sorted(set(keys)):
        mine = [row for row, its in zip(rows, keys, strict=True) if its == key]
        counted[key] = (len(mine), [aggregate(mine, *one) for one in aggregates_of(case.plan)])
    return counted


def aggregate(rows, function, of):
    """Over all matches that have the place and, at it, a weight."""
    place = int(of.partition(".")[0])
    present = [WEIGHTS[row[place]] for row in rows if row[place] >= 0 and not np.isnan(WEIGHTS[row[place]])]
    return FUNCTIONS[function](present) if present else np.nan


def course(case, cuts, through_snapshots):
    """(place in the moments, counts emitted so far) after each call, the counter, and the late events."""
    counting = counter(case.plan, NAMES[: case.type_count], case.k, case.order, case.sources, aggregates_of(case.plan))
    emitted, late, place, first, result = {}, [], -1, 0, []
    places = {m.event: n for n, m in enumerate(definition.moments(case)) if m.event >= 0}

    def note(out, now):
        assert list(out.keys) == sorted(set(out.keys.tolist()))
        assert all(out.matches > 0)
        for key, count in zip(out.keys.tolist(), out.matches.tolist(), strict=True):
            emitted[key] = emitted.get(key, 0) + count
        late.extend(out.late.tolist())
        result.append((now, dict(emitted)))

    for end in range(len(case.events) + 1):
        if first < end and (end in cuts or end == len(case.events) or any(a == end for a, _ in case.advances)):
            fed = columns(case, first, end)
            del fed["t_max"]
            fed["attributes"] = fed["attributes"] | {"weight": WEIGHTS[first:end]}
            place = places[end - 1]
            note(counting.feed(**fed), place)
            first = end
            counting = counter.restore(counting.snapshot()) if through_snapshots else counting
        for _, frontier in (a for a in case.advances if a[0] == end):
            place += 1
            note(counting.advance(frontier), place)
    note(counting.finish(), place + 1)
    return result, counting, late


def check(case, cuts, through_snapshots=False):
    """At every moment, of every key, what the definition lists; the aggregates at the end."""
    if not is_countable(case.plan):
        with pytest.raises(NotCountableError, match="use the engine"):
            counter(case.plan, NAMES[: case.type_count], case.k, case.order, case.sources)
        return
    moments = definition.moments(case)
    result, counting, late = course(case, cuts, through_snapshots)
    for place, emitted in result:
        assert emitted == {key: count for key, (count, _) in by_key(case, emitted_by(case, moments[place])).items()}
    rows = emitted_by(case, moments[-1])
    assert set(rows) == definition.final(case)
    assert counting.totals.matches == len(rows)
    expected = [aggregate(rows, *one) for one in aggregates_of(case.plan)]
    np.testing.assert_allclose(list(counting.totals.aggregates.values()), expected, rtol=1e-12)
    assert late == [m.event for m in moments if m.late]
    assert counting.counters["keys"] == counting.counters["live_starts"] == counting.counters["held_events"] == 0


@pytest.mark.compiles
@COUNTED
@given(cases(points=True))
def test_any_plan_is_counted_as_the_definition_lists_it(case):
    """One event at a time, at every moment: keys, counts and times of emission; other plans are refused with a reason."""
    check(case, set(range(len(case.events))))


@COUNTED
@given(cases(points=True, chain=True))
def test_a_sequence_is_counted_at_any_batch_borders(case):
    """In the case's batches, and through a snapshot after each of them."""
    check(case, set(case.cuts))
    check(case, set(case.cuts), through_snapshots=True)


@COUNTED
@given(cases(points=True, late=True))
def test_late_events_are_left_out_and_reported(case):
    """Events that break the disorder bound take no part in any count."""
    check(case, set(case.cuts))


PATTERNS = [
    "SEQ(A, B+ b, !C, D) WITHIN 12",
    "SEQ(A, B{2,4} b, D d) WITHIN 12 NEXT",
    "SEQ(A, B, D) WITHIN 12 STRICT",
    "AND(A, B) WITHIN 6 NEXT",
    "SEQ((A | B) x, !D, OR(C, SEQ(B, A))) WITHIN < 9",
    "AND(SEQ(A, B, D), !C) WITHIN 9",
    "SEQ(!C, A, B, !D) WITHIN 9 WHERE A.v > 1 AND C.v < 3",
    "SEQ(AND(!C, SEQ(A, A)), B) WITHIN 15 WHERE B.v = 2",
    "SEQ(A, SEQ(B, !A, B), !C) WITHIN < 8 ACROSS KEYS",
    "SEQ(A, B{1,3} b) WITHIN 9 WHERE b[2].v > 1",
]


@settings(max_examples=examples(25), deadline=None)
@given(st.data())
@pytest.mark.parametrize("text", PATTERNS)
def test_patterns_of_the_language_are_counted_as_listed(text, data):
    """A hundred events with many ties, in any order within K: per key the numbers and aggregates of detect's rows."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    count, k = data.draw(st.sampled_from([100, 40])), data.draw(st.sampled_from([0, 5]))
    t = np.sort(rng.integers(0, count // 2, count))
    t = t[np.argsort(t + rng.integers(0, k + 1, count), kind="stable")]
    kinds, keys = rng.integers(0, 4, count), rng.integers(0, 2, count)
    v = rng.choice([0.0, 1.0, 2.0, 3.0, np.nan], count)
    pattern = Pattern.parse(text)
    rows = detect(pattern, list("ABCD"), kinds, keys, t, attributes={"v": v})
    label = pattern.names[-1].partition("[")[0]
    if label == pattern.names[0] or "#" in label:
        label = pattern.names[-1]
    places = [n for n, name in enumerate(pattern.names) if name == label or name.startswith(f"{label}[")]
    asked = [(function, f"{label}.v") for function in FUNCTIONS]
    counting = counter(pattern, list("ABCD"), k=k, aggregates=asked)
    outs = [counting.feed(kinds[:50], keys[:50], t[:50], attributes={"v": v[:50]})]
    outs += [counting.feed(kinds[50:], keys[50:], t[50:], attributes={"v": v[50:]}), counting.finish()]
    emitted = {}
    for out in outs:
        for key, matches in zip(out.keys.tolist(), out.matches.tolist(), strict=True):
            emitted[key] = emitted.get(key, 0) + matches
    of = keys[rows.max(axis=1)] if pattern.per_key else np.zeros(len(rows), int)
    assert emitted == {int(key): int(n) for key, n in zip(*np.unique(of, return_counts=True), strict=True)}
    taken = rows[:, places].ravel()
    weights = v[taken[taken >= 0]]
    weights = weights[~np.isnan(weights)]
    expected = [f(weights) if len(weights) else np.nan for f in FUNCTIONS.values()]
    np.testing.assert_allclose(list(counting.totals.aggregates.values()), expected, rtol=1e-12)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(-9, 9), st.sampled_from([1, 1 << 32, 1 << 59])), max_size=60))
def test_keys_are_found_until_they_leave(steps):
    """The table of keys, half full and with keys that share a place, against a dictionary."""
    table, slots, known = np.full(8, -1, np.int64), np.zeros((64, 8), np.int64), {}
    for slot, (comes, number, spread) in enumerate(steps):
        key = number * spread
        if comes and key not in known and len(known) < 7:
            slots[slot, SLOT.key] = key
            enter(table, key, slot)
            known[key] = slot
        elif not comes and key in known:
            leave(table, slots, key)
            del known[key]
        for one in {key, *known}:
            assert find(table, slots, one) == known.get(one, -1)
