"""All hypothesis strategies for event patterns: plans, events, orders of arrival, frontiers and batches.

Ties, duplicates, repeated types, zero windows, late events and several negations are drawn often. Plans are those a language
can write: an inner negation stands between positives of which all left ones come before all right ones.
"""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from reference.cep import Case, Event
from whenabouts_cloud.cep.uncertain.causal import Clocks
from whenabouts_cloud.pattern.plan import NEGATED, Alternative, EventClass, Negation, Plan, Program, Step

ATTRIBUTES = ("v", "u")
WINDOWS = st.sampled_from([8, 12, 5, 20, 3, 2, 1, 0])
COUNTS = st.sampled_from([12, 11, 10, 9, 8, 6, 4, 2, 1, 0])  # so most cases are large
values = st.sampled_from([0.0, 1.0, 2.0, -1.0, 0.5, float("nan")])


@st.composite
def comparisons(draw: st.DrawFn, elements: list[int]) -> Program:
    """A condition on columns of the elements, now and then with arithmetic or a connective."""

    def term() -> Program:
        kind = draw(st.sampled_from(["attribute", "attribute", "constant", "sum", "quotient", "negative"]))
        one: Program = (Step("attribute", draw(st.sampled_from(elements)), draw(st.integers(0, 1))),)
        if kind == "constant":
            return (Step("constant", value=draw(st.sampled_from([0.0, 1.0, 2.0]))),)
        if kind == "negative":
            return (*one, Step("negate"))
        if kind == "attribute":
            return one
        other: Program = (Step("attribute", draw(st.sampled_from(elements)), draw(st.integers(0, 1))),)
        return (*one, *other, Step("+" if kind == "sum" else "/"))

    def comparison() -> Program:
        return (*term(), *term(), Step(draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))))

    shape = draw(st.sampled_from(["one", "one", "and", "or", "not"]))
    if shape == "one":
        return comparison()
    if shape == "not":
        return (*comparison(), Step("not"))
    return (*comparison(), *comparison(), Step(shape))


@st.composite
def classes(draw: st.DrawFn, type_count: int, conditions: bool) -> tuple[EventClass, ...]:
    """One class for each type, sometimes wider ones or one with a condition."""
    drawn = [EventClass(frozenset({code})) for code in range(type_count)]
    if draw(st.booleans()):
        drawn.append(EventClass(frozenset(draw(st.sets(st.integers(0, type_count - 1), min_size=1)))))
    if conditions and draw(st.booleans()):
        drawn.append(EventClass(drawn[-1].types, draw(comparisons([0]))))
    return tuple(drawn)


@st.composite
def alternatives(draw: st.DrawFn, class_count: int, chain: bool, conditions: bool, spanning: bool) -> Alternative:
    """Steps one after the other; a step is one positive, or several in no order. Negations between steps and outside."""
    sizes = draw(st.lists(st.just(1) if chain else st.sampled_from([1, 1, 1, 2, 3]), min_size=1, max_size=4))
    while sum(sizes) > 4:
        sizes.pop()
    count = sum(sizes)
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    masks = [((1 << size) - 1) << start for size, start in zip(sizes, starts, strict=True)]
    before = tuple((1 << start) - 1 for size, start in zip(sizes, starts, strict=True) for _ in range(size))
    negations = []
    for _ in range(draw(st.sampled_from([1, 0, 1, 2]))):
        gap = draw(st.integers(0, len(sizes)))  # before step `gap`
        left, right = (masks[gap - 1] if gap else 0), (masks[gap] if gap < len(sizes) else 0)
        if spanning and draw(st.integers(0, 2)) == 0:  # over several steps, or beyond those at the ends
            ends = sorted([draw(st.integers(-1, len(sizes) - 1)), draw(st.integers(0, len(sizes)))])
            left = masks[ends[0]] if ends[0] >= 0 else 0
            right = masks[ends[1]] if ends[0] < ends[1] < len(sizes) else 0
        condition: Program = ()
        if conditions and draw(st.integers(0, 2)) == 0:
            condition = draw(comparisons([NEGATED, *range(count)]))
        negations.append(Negation(draw(st.integers(0, class_count - 1)), left, right, condition))
    return Alternative(
        classes=tuple(draw(st.lists(st.integers(0, class_count - 1), min_size=count, max_size=count))),
        columns=tuple(range(count)),
        before=before,
        negations=tuple(negations),
        conditions=tuple(draw(st.lists(comparisons(list(range(count))), max_size=1))) if conditions else (),
    )


def _side_by_side(alternatives: list[Alternative]) -> tuple[tuple[Alternative, ...], int]:
    """Alternatives with separate places, so that no two of them give the same match."""
    moved, width = [], 0
    for v in alternatives:
        columns = tuple(width + c for c in v.columns)
        moved.append(Alternative(v.classes, columns, v.before, v.negations, v.conditions))
        width += len(columns)
    return tuple(moved), width


@st.composite
def plans(draw: st.DrawFn, *, chain: bool = False, points: bool = False, skips: bool = False) -> tuple[Plan, int]:
    """(plan, number of types). With `chain` what the baselines take: one chain, no conditions, no spanning."""
    type_count = draw(st.sampled_from([3, 2, 4, 1]))
    conditions = not chain and draw(st.integers(0, 2)) == 0
    kinds = draw(classes(type_count, conditions))
    several = 1 if chain else draw(st.sampled_from([1, 1, 1, 2]))
    alone = skips or chain or draw(st.booleans())
    drawn = [draw(alternatives(len(kinds), alone, conditions, not chain)) for _ in range(several)]
    every, width = _side_by_side(drawn)
    plan = Plan(
        classes=kinds,
        alternatives=every,
        width=width,
        window=draw(WINDOWS),
        strict_window=draw(st.booleans()),
        mode="certain",
        probability=Fraction(1),
        skip=draw(st.sampled_from(["to_next", "past_last"])) if skips else "none",
        per_key=draw(st.sampled_from([True, True, False])),
        longest=0 if points else draw(st.sampled_from([0, 0, 2, 5])),
        attributes=ATTRIBUTES if conditions else (),
    )
    return plan, type_count


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    chain: bool = False,
    points: bool = False,
    skips: bool = False,
    late: bool = False,
    orders: tuple[str, ...] = ("kbound", "source"),
) -> Case:
    """A plan with up to twelve events within the disorder bound (unless `late`), heartbeats and batch borders."""
    plan, type_count = draw(plans(chain=chain, points=points, skips=skips))
    order, k = draw(st.sampled_from(orders)), draw(st.sampled_from([8, 20, 3, 1, 0]))
    span, keys, sources = (
        draw(st.sampled_from([12, 6, 25])),
        draw(st.sampled_from([1, 1, 1, 2])),
        draw(st.integers(1, 3)),
    )
    origin = draw(st.sampled_from([0, -7, 1_790_000_000_000_000]))
    asked = [c for v in plan.alternatives for c in (*v.classes, *(n.event_class for n in v.negations))]
    # Types that matter come more often; one beyond the plan's moves the frontier and nothing else.
    types = sorted(code for c in asked for code in plan.classes[c].types) + list(range(type_count + 1))
    arriving = []
    delays = st.sampled_from(sorted({0, k // 2, k, *((k + 2, 2 * k + 5) if late else ())}))
    for _ in range(draw(COUNTS)):
        t = origin + draw(st.integers(0, span))
        event = Event(
            type_code=draw(st.sampled_from(types)),
            key=draw(st.integers(0, keys - 1)),
            t=t,
            t_max=t + (draw(st.integers(0, plan.longest)) if draw(st.booleans()) else 0),
            source=draw(st.integers(0, sources - 1)),
            attributes=tuple(draw(values) for _ in plan.attributes),
        )
        arriving.append((event.t_max + draw(delays), event))
    if order == "kbound":
        arriving = sorted(draw(st.permutations(arriving)), key=lambda pair: pair[0])
        events = [event for _, event in arriving]
    else:
        events = _per_source(draw, [event for _, event in arriving], sources)
    named = tuple(range(sources)) if order == "source" and not (late and draw(st.booleans())) else None
    case = Case(plan, type_count + 1, tuple(events), order, k, named, _advances(draw, order, events, late))
    return Case(
        *(getattr(case, name) for name in ("plan", "type_count", "events", "order", "k", "sources", "advances")),
        cuts=tuple(sorted(draw(st.sets(st.integers(1, max(1, len(events) - 1)), max_size=4)))),
    )


def _per_source(draw: st.DrawFn, events: list[Event], sources: int) -> list[Event]:
    """Each source in the order of t_max, woven together anyhow."""
    queues = {s: sorted((e for e in events if e.source == s), key=lambda e: e.t_max) for s in range(sources)}
    woven = []
    while any(queues.values()):
        source = draw(st.sampled_from([s for s, queue in queues.items() if queue]))
        woven.append(queues[source].pop(0))
    return woven


def _advances(
    draw: st.DrawFn, order: str, events: list[Event], late: bool
) -> tuple[tuple[int, int | dict[int, int]], ...]:
    """Watermarks that the rest of the events keep; with `late` they may be too high."""
    watermarks: list[tuple[int, int | dict[int, int]]] = []
    for after in sorted(draw(st.lists(st.integers(0, len(events)), max_size=2))):
        rest = events[after:]
        bold = draw(st.integers(0, 4)) if late else 0
        end = max((e.t_max for e in events), default=0) + 20
        if order == "kbound" or draw(st.integers(0, 3)) == 0:
            watermarks.append((after, min([e.t_max for e in rest], default=end) + bold))
        else:
            source = draw(st.sampled_from(sorted({e.source for e in events} or {0})))
            watermarks.append((after, {source: min([e.t_max for e in rest if e.source == source], default=end) + bold}))
    return tuple(watermarks)


@st.composite
def clocks_of(draw, events):
    """Vector clocks of two gateways that agree with true times inside the stamps: knowledge comes from strictly before."""
    true = [draw(st.integers(e.t, e.t_max)) for e in events]
    process = [draw(st.integers(0, 1)) for _ in events]
    known, vectors = np.zeros((2, 2), np.int64), np.zeros((len(events), 2), np.int64)
    for time in sorted(set(true)):
        before = known.copy()
        for i in (i for i in range(len(events)) if true[i] == time):
            p = process[i]
            known[p, p] += draw(st.integers(0, 1))
            if draw(st.booleans()):
                known[p] = np.maximum(known[p], before[1 - p])
            vectors[i] = known[p]
    rank = np.argsort(np.argsort(np.array(true, np.int64), kind="stable"), kind="stable")
    return Clocks(vectors, np.array(process, np.int64), rank)
