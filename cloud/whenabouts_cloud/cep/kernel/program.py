"""Plans as the tables that the machine code reads: classes shared among patterns, uses of a class, elements, negations.

Classes that are equal, in one pattern or in many, become one, so that an event is stored once and touches only the patterns
that have a use for it. A pattern without a key has classes of its own, whose chains hang on main node 0.

A use of a class is in vain as long as another class that the pattern needs is not there. So a class with many uses has for
each the sets of classes, as bits, that must have an event before this one, and after it; an event is compared with all of
them in one pass, and uses that need nothing after it come first, since most events come in order.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep.kernel.conditions import CODES, COLUMN_T_MAX, COLUMN_T_MIN, STEPS
from whenabouts_cloud.cep.kernel.layout import NEGATED_PLACE, POSITIVES
from whenabouts_cloud.jit import Array
from whenabouts_cloud.pattern.plan import NEGATED, TIME_LIMIT, Plan, Resolved
from whenabouts_cloud.pattern.plan import Program as Condition

STAMPS = {"t_min": COLUMN_T_MIN, "t_max": COLUMN_T_MAX}  # attributes that are the stamps
CERTAIN, POSSIBLE, UNORDERED = 0, 1, 2  # what the search asks of an order: certain, possible, nothing


class Program(NamedTuple):
    """Tables in machine form, a row per thing; the columns are named below."""

    type_start: Array  # by type: where its classes begin in type_class
    type_class: Array
    klass: Array
    use: Array
    need: Array  # by use: the classes that must have an event before this one, and after it, in certain order
    variant: Array
    element: Array
    negation: Array
    condition: Array
    step: Array  # code, element, column
    step_value: Array


# A class: row of Block.true or -1, whether by key, its uses as a positive, how many negations of it there are; where those
# of its uses end that need nothing after it; whether they are many; the widest of their windows.
K_TRUE, K_KEYED, K_USE, K_USE_END, K_FORBID, K_USE_LAST, K_MANY, K_WINDOW = 0, 1, 2, 3, 4, 5, 6, 7
MANY, BITS = 8, 62  # uses of a class from which on they are many; bits of a set: classes 62 apart share one
# A use: in a plain variant also the classes before and after it in the chain (else -1), and the window; so that most uses
# of an event are seen to be in vain with one row.
U_VARIANT, U_POSITION, U_BEFORE, U_AFTER, U_WINDOW = 0, 1, 2, 3, 4
# A variant. Refined: its order and negations are decided outside. Offered: its matches go to `candidates`, for that or for
# an after-match skip. Plain: a chain of certain order, without conditions across events, whose matches are told directly.
V_PLAN, V_WINDOW, V_ORDER, V_REFINED, V_OFFERED, V_PLAIN, V_WIDTH, V_ELEMENT = 0, 1, 2, 3, 4, 5, 6, 7
V_NEGATION, V_NEGATION_END, V_CONDITION, V_CONDITION_END = 8, 9, 10, 11
E_CLASS, E_COLUMN, E_BEFORE, E_AFTER = 0, 1, 2, 3
# A negation: mask, the positives that must be bound to decide it; the steps of its condition; in a chain, if it lies between
# two positives, the later one (else -1) and the earlier one.
N_CLASS, N_LEFT, N_RIGHT, N_MASK, N_FIRST, N_LAST, N_LEVEL, N_LOWER = 0, 1, 2, 3, 4, 5, 6, 7
C_MASK, C_FIRST, C_LAST = 0, 1, 2


@dataclass
class Compiled:
    """The tables and what Python needs beside them."""

    program: Program
    plans: dict[int, Plan]  # by number
    kinds: tuple["Kind", ...]  # what each class asks of an event
    attributes: tuple[str, ...]  # that are stored with the events
    needed: tuple[str, ...]  # columns that feed must be given
    conditions: list[tuple[Array, Resolved]]  # types and condition of each row of Block.true
    variants: list[tuple[int, int]]  # number of the plan, and place in it, of each variant
    width: int
    most: int  # positives of a variant at most
    classes: int
    hold: int
    longest: int


def hold_of(plans: Iterable[Plan]) -> int:
    """Ticks behind the frontier that events are held: the widest window; for a plan with a leading negation two of them.

    So what an event that is late by at most a window would have added is known there too: the gap before it.
    """
    return max((plan.window * (2 if _has_leading_negation(plan) else 1) for plan in plans), default=0)


def _has_leading_negation(plan: Plan) -> bool:
    return any(not negation.left for variant in plan.variants for negation in variant.negations)


class Kind(NamedTuple):
    """A class among all patterns: equal ones share a chain of events."""

    types: frozenset[int]
    condition: Resolved
    keyed: bool
    since: int  # index of the first event that its chain has; 0: all that can still be in a match


@dataclass
class _Tables:
    classes: dict[Kind, int] = field(default_factory=dict)
    steps: list[tuple[int, int, int, float]] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)


def compile_plans(
    plans: Sequence[Plan] | Mapping[int, Plan], types: int, longest: int | None = None,
    since: Mapping[int, int] | None = None,
) -> Compiled:  # fmt: skip
    """The tables of some plans, by number or in order, over type codes 0 .. types - 1.

    `since` are, by number, the indices of the first events that plans see; those of different ones share no chains.

    Raises:
        ValueError: a plan has too many positives or steps, or a window out of range.
    """
    tables, starts = _Tables(), since or {}
    numbered = dict(plans) if isinstance(plans, Mapping) else dict(enumerate(plans))
    class_of = {
        number: [_class(tables, plan, n, starts.get(number, 0)) for n in range(len(plan.classes))]
        for number, plan in numbered.items()
    }
    element: list[tuple[int, int, int, int]] = []
    negation: list[tuple[int, ...]] = []
    condition: list[tuple[int, int, int]] = []
    variant: list[tuple[int, ...]] = []
    uses: list[list[tuple[int, ...]]] = [[] for _ in tables.classes]  # need and use
    names: list[tuple[int, int]] = []
    for number, plan in numbered.items():
        window = plan.window - (1 if plan.strict_window else 0)
        if not 0 <= plan.window < TIME_LIMIT:
            raise ValueError(f"window of pattern {number}: found {plan.window} ticks, expected 0 .. 2^60")
        for place, one in enumerate(plan.variants):
            count, v = len(one.classes), len(variant)
            begun = len(element), len(negation), len(condition)
            if not 0 < count <= POSITIVES:
                raise ValueError(f"variant of pattern {number}: found {count} positives, expected 1 .. {POSITIVES}")
            order = {"certain": CERTAIN, "causal": UNORDERED}.get(plan.mode, POSSIBLE)
            before = _closure(one.before) if order != UNORDERED else [0] * count
            chain = all(mask == (1 << i) - 1 for i, mask in enumerate(before))
            for i, c in enumerate(one.classes):
                after = sum(1 << j for j in range(count) if before[j] >> i & 1)
                own = class_of[number][c]
                element.append((own, one.columns[i], before[i], after))
            everything = (1 << count) - 1
            for n in one.negations:
                first, last, mask = _steps(tables, plan, n.condition)
                # The match's own events are no violation, so those that may lie in the gap must be bound.
                inner = chain and n.left and n.right
                mask = (1 << (mask | n.left | n.right).bit_length()) - 1 if inner else everything
                between = ((n.right & -n.right).bit_length() - 1, n.left.bit_length() - 1) if inner else (-1, -1)
                negation.append((class_of[number][n.event_class], n.left, n.right, mask, first, last, *between))
            for one_condition in one.conditions:
                first, last, mask = _steps(tables, plan, one_condition)
                condition.append((mask, first, last))
            bare = not one.conditions and not any(n.condition for n in one.negations)
            refined = order != CERTAIN
            offered = refined or plan.skip != "none"
            plain = chain and bare and not offered
            variant.append((
                number, window, order, int(refined), int(offered), int(plain), count, begun[0], begun[1], len(negation),
                begun[2], len(condition),
            ))  # fmt: skip
            names.append((number, place))
            neighbours = [-1, *(class_of[number][c] if plain else -1 for c in one.classes), -1]
            own_classes = [class_of[number][c] for c in one.classes]
            for i, own in enumerate(own_classes):
                after = _bits(c for j, c in enumerate(own_classes) if before[j] >> i & 1)
                need = (_bits(own_classes[j] for j in range(i) if before[i] >> j & 1), after)
                need = need if order == CERTAIN else (0, 0)
                if window >= 0:  # nothing is shorter than nothing
                    uses[own].append((*need, v, i, neighbours[i], neighbours[i + 2], window))
    by_type: list[list[int]] = [[] for _ in range(types)]
    class_true: list[int] = []
    conditions: list[tuple[Array, Resolved]] = []
    for (codes, steps, _keyed, _since), c in tables.classes.items():
        for code in codes:
            if not 0 <= code < types:
                raise ValueError(f"type code of a class: found {code}, expected 0 .. {types - 1}")
            by_type[code].append(c)
        class_true.append(len(conditions) if steps else -1)
        if steps:
            conditions.append((np.array(sorted(codes), np.int64), steps))
    klass = _klass(tables, class_true, uses, Counter(row[0] for row in negation))
    program = Program(
        np.cumsum([0, *map(len, by_type)]), np.array([c for row in by_type for c in row], np.int64), _table(klass, 8),
        _table([row[2:] for rows in uses for row in rows], 5), _table([row[:2] for rows in uses for row in rows], 2),
        _table(variant, 12), _table(element, 4), _table(negation, 8),
        _table(condition, 3), _table([step[:3] for step in tables.steps], 3),
        np.array([step[3] for step in tables.steps], np.float64),
    )  # fmt: skip
    needed = dict.fromkeys(name for plan in numbered.values() for name in plan.attributes if name not in STAMPS)
    return Compiled(
        program, numbered, tuple(tables.classes), tuple(tables.attributes), tuple(needed), conditions, names,
        max((plan.width for plan in numbered.values()), default=0),
        max((len(v.classes) for plan in numbered.values() for v in plan.variants), default=0),
        len(tables.classes), hold_of(numbered.values()),
        max((plan.longest for plan in numbered.values()), default=0) if longest is None else longest,
    )  # fmt: skip


def _klass(
    tables: _Tables, true: list[int], uses: list[list[tuple[int, ...]]], forbidden: Counter[int]
) -> list[tuple[int, ...]]:
    """The rows of the classes; puts the uses of each in order."""
    found: list[tuple[int, ...]] = []
    end = 0
    for c, kind in enumerate(tables.classes):
        rows = uses[c]
        rows.sort(key=lambda row: row[1] != 0)
        begun, last = end, end + sum(row[1] == 0 for row in rows)
        end += len(rows)
        many = len(rows) > max(MANY, len(uses) // 2)  # else the sets of the event would cost more than they spare
        widest = max((row[-1] for row in rows), default=0)
        found.append((true[c], int(kind.keyed), begun, end, forbidden[c], last, int(many), widest))
    return found


def _class(tables: _Tables, plan: Plan, number: int, since: int) -> int:
    """The number among all classes."""
    one = plan.classes[number]
    steps = tuple((s.op, 0, plan.attributes[s.column] if s.op == "attribute" else None, s.value) for s in one.condition)
    return tables.classes.setdefault(Kind(one.types, steps, plan.per_key, since), len(tables.classes))


def _steps(tables: _Tables, plan: Plan, condition: Condition) -> tuple[int, int, int]:
    """First and last step, and the positives that are named."""
    if len(condition) > STEPS:
        raise ValueError(f"condition: found {len(condition)} steps, expected at most {STEPS}")
    first, mask = len(tables.steps), 0
    for step in condition:
        column, element = 0, step.element
        if step.op == "attribute":
            name = plan.attributes[step.column]
            if name not in STAMPS and name not in tables.attributes:
                tables.attributes.append(name)
            column = STAMPS[name] if name in STAMPS else tables.attributes.index(name)
            mask |= 0 if element == NEGATED else 1 << element
        tables.steps.append((CODES[step.op], NEGATED_PLACE if element == NEGATED else element, column, step.value))
    return first, len(tables.steps), mask


def _closure(before: Sequence[int]) -> list[int]:
    """All that comes before each, directly or not; each stands behind what comes before it."""
    found: list[int] = []
    for i, mask in enumerate(before):
        if mask >> i:
            raise ValueError(f"positive {i}: found one before it that is listed after it, expected an order by time")
        for j in range(i):
            if mask >> j & 1:
                mask |= found[j]
        found.append(mask)
    return found


def _bits(classes: Iterable[int]) -> int:
    """A set of classes."""
    found = 0
    for c in classes:
        found |= 1 << c % BITS
    return found


def _table(rows: Sequence[tuple[int, ...]], width: int) -> Array:
    return np.array(rows, np.int64).reshape(-1, width)
