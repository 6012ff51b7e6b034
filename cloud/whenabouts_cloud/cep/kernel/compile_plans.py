"""Compiles plans to the tables of `program`.

Equal classes, in one pattern or in many, become one, so that an event is stored once and only the patterns that use it are
searched. A pattern without a key has separate classes; their chains are in node 0.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from whenabouts_cloud.cep.kernel.conditions import CODES, COLUMN_T_MAX, COLUMN_T_MIN, STEPS
from whenabouts_cloud.cep.kernel.group_uses import Groups, Placed, in_chain
from whenabouts_cloud.cep.kernel.layout import NEGATED_PLACE, POSITIVES
from whenabouts_cloud.cep.kernel.program import (
    CERTAIN,
    MANY,
    POSSIBLE,
    UNORDERED,
    AlternativeRow,
    Class,
    ConditionRow,
    ElementRow,
    Group,
    Negation,
    Program,
    StepRow,
    Use,
)  # fmt: skip
from whenabouts_cloud.jit import Array
from whenabouts_cloud.pattern import plan as pattern
from whenabouts_cloud.pattern.plan import NEGATED, TIME_LIMIT, Plan, Resolved

STAMPS = {"t_min": COLUMN_T_MIN, "t_max": COLUMN_T_MAX}  # attributes that are the stamps


@dataclass
class Compiled:
    """The tables, and the data that Python needs beside them."""

    program: Program
    plans: dict[int, Plan]  # by number
    kinds: tuple["Kind", ...]  # definition of each class
    attributes: tuple[str, ...]  # stored with the events
    needed: tuple[str, ...]  # columns that each feed must contain
    conditions: list[tuple[Array, Resolved]]  # types and condition of each row of Block.true
    alternatives: list[tuple[int, int]]  # number of the plan, and place in it, of each alternative
    width: int
    most: int  # the most positives of an alternative
    classes: int
    recent: bool  # True if the kernel needs the recent events of each key
    hold: int
    longest: int


def hold_of(plans: Iterable[Plan], longest: int) -> int:
    """Ticks that events are stored behind the frontier: the widest window, counted twice for a plan with a leading negation.

    Twice, so that the gap before the matches that an event late by at most a window would have added is still stored. CAUSAL
    adds the longest stamp: the window is between stamps, so true times in a gap may be further from its end.
    """
    return max((_hold(plan, longest) for plan in plans), default=0)


def _hold(plan: Plan, longest: int) -> int:
    return plan.window * (2 if _has_leading_negation(plan) else 1) + (longest if plan.mode == "causal" else 0)


def _has_leading_negation(plan: Plan) -> bool:
    return any(not negation.left for alternative in plan.alternatives for negation in alternative.negations)


class Kind(NamedTuple):
    """Definition of a class, for all patterns: equal classes share a chain of events."""

    types: frozenset[int]
    condition: Resolved
    keyed: bool
    since: int  # index of the first event of its chain; 0: all events that can still be in a match


@dataclass
class _Tables:
    """Rows of the tables while they are built."""

    classes: dict[Kind, int] = field(default_factory=dict)
    uses: list[list[Placed]] = field(default_factory=list)  # by class
    alternatives: list[AlternativeRow] = field(default_factory=list)
    elements: list[ElementRow] = field(default_factory=list)
    negations: list[Negation] = field(default_factory=list)
    conditions: list[ConditionRow] = field(default_factory=list)
    steps: list[StepRow] = field(default_factory=list)
    step_values: list[float] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)


def compile_plans(
    plans: Sequence[Plan] | Mapping[int, Plan], types: int, longest: int | None = None,
    since: Mapping[int, int] | None = None,
) -> Compiled:  # fmt: skip
    """Compile plans, given by number or in order, to tables over type codes 0 .. types - 1.

    `since` maps a plan's number to the index of the first event that it sees; plans with different ones share no chains.

    Raises:
        ValueError: a plan has too many positives or steps, or a window out of range.
    """
    tables, starts = _Tables(), since or {}
    numbered = dict(plans) if isinstance(plans, Mapping) else dict(enumerate(plans))
    class_of = {
        number: [_class(tables, plan, n, starts.get(number, 0)) for n in range(len(plan.classes))]
        for number, plan in numbered.items()
    }
    tables.uses = [[] for _ in tables.classes]
    for number, plan in numbered.items():
        if not 0 <= plan.window < TIME_LIMIT:
            raise ValueError(f"window of pattern {number}: found {plan.window} ticks, expected 0 .. 2^60")
        for alternative in plan.alternatives:
            _add_alternative(tables, number, plan, alternative, class_of[number])
    by_type = _classes_by_type(tables, types)
    conditions = [(np.array(sorted(kind.types), np.int64), kind.condition) for kind in tables.classes if kind.condition]
    classes, groups = _class_rows(tables)
    program = Program(
        type_start=np.cumsum([0, *map(len, by_type)]), type_class=np.array([c for row in by_type for c in row], np.int64),
        classes=_table(Class, classes), uses=_table(Use, [one.use for uses in tables.uses for one in uses]),
        groups=_table(Group, groups.groups), levels=groups.levels,
        alternatives=_table(AlternativeRow, tables.alternatives),
        elements=_table(ElementRow, tables.elements), negations=_table(Negation, tables.negations),
        conditions=_table(ConditionRow, tables.conditions), steps=_table(StepRow, tables.steps),
        step_values=np.array(tables.step_values, np.float64),
    )  # fmt: skip
    if longest is None:
        longest = max((plan.longest for plan in numbered.values()), default=0)
    needed = dict.fromkeys(name for plan in numbered.values() for name in plan.attributes if name not in STAMPS)
    return Compiled(
        program=program, plans=numbered, kinds=tuple(tables.classes), attributes=tuple(tables.attributes),
        needed=tuple(needed), conditions=conditions,
        alternatives=[(number, place) for number, plan in numbered.items() for place in range(len(plan.alternatives))],
        width=max((plan.width for plan in numbered.values()), default=0),
        most=max((len(v.classes) for plan in numbered.values() for v in plan.alternatives), default=0),
        classes=len(tables.classes), recent=bool(groups.groups), hold=hold_of(numbered.values(), longest), longest=longest,
    )  # fmt: skip


def _add_alternative(
    tables: _Tables, number: int, plan: Plan, alternative: pattern.Alternative, class_of: Sequence[int]
) -> None:
    """Add an alternative of a plan, with elements, negations, conditions and uses; `class_of` is by class of the plan."""
    count = len(alternative.classes)
    if not 0 < count <= POSITIVES:
        raise ValueError(f"alternative of pattern {number}: found {count} positives, expected 1 .. {POSITIVES}")
    order = {"certain": CERTAIN, "causal": UNORDERED}.get(plan.mode, POSSIBLE)
    before = _closure(alternative.before) if order != UNORDERED else [0] * count
    after = [sum(1 << j for j in range(count) if before[j] >> i & 1) for i in range(count)]
    chain = all(mask == (1 << i) - 1 for i, mask in enumerate(before))
    element, negation, condition = len(tables.elements), len(tables.negations), len(tables.conditions)
    classes = [class_of[c] for c in alternative.classes]
    tables.elements += map(ElementRow, classes, alternative.columns, before, after)
    for one in alternative.negations:
        tables.negations.append(_negation(tables, plan, one, class_of[one.event_class], count, chain))
    for steps in alternative.conditions:
        first, last, mask = _steps(tables, plan, steps)
        tables.conditions.append(ConditionRow(mask, first, last))
    refined = order != CERTAIN
    decided_outside = refined or plan.skip != "none"
    plain = (
        chain
        and not decided_outside
        and not alternative.conditions
        and not any(one.condition for one in alternative.negations)
    )
    window = plan.window - (1 if plan.strict_window else 0)
    tables.alternatives.append(AlternativeRow(
        plan=number, window=window, order=order, refined=int(refined), decided_outside=int(decided_outside),
        width=count, element=element, negation=negation, negation_end=len(tables.negations), condition=condition,
        condition_end=len(tables.conditions),
    ))  # fmt: skip
    if window < 0:  # a strict window of 0 admits no match
        return
    neighbours = [-1, *(classes if plain else [-1] * count), -1]
    for i, own in enumerate(classes):
        in_order = chain and order == CERTAIN
        use = Use(len(tables.alternatives) - 1, i, int(plain), element, count, window, neighbours[i], neighbours[i + 2])
        if in_order:
            tables.uses[own].append(in_chain(use, classes))
            continue
        needed = (before[i], after[i]) if order == CERTAIN else (0, 0)
        earlier, later = ([c for j, c in enumerate(classes) if mask >> j & 1] for mask in needed)
        tables.uses[own].append(Placed(use, earlier, later, True))


def _negation(
    tables: _Tables, plan: Plan, one: pattern.Negation, event_class: int, count: int, chain: bool
) -> Negation:
    """The row of a negation of an alternative with `count` positives."""
    first, last, mask = _steps(tables, plan, one.condition)
    if not (chain and one.left and one.right):
        return Negation(event_class, one.left, one.right, (1 << count) - 1, first, last, -1, -1)
    # An event of the match does not violate it, so positives that may lie in the gap must be bound.
    mask = (1 << (mask | one.left | one.right).bit_length()) - 1
    level, lower = (one.right & -one.right).bit_length() - 1, one.left.bit_length() - 1
    return Negation(event_class, one.left, one.right, mask, first, last, level, lower)


def _classes_by_type(tables: _Tables, types: int) -> list[list[int]]:
    by_type: list[list[int]] = [[] for _ in range(types)]
    for kind, c in tables.classes.items():
        for code in kind.types:
            if not 0 <= code < types:
                raise ValueError(f"type code of a class: found {code}, expected 0 .. {types - 1}")
            by_type[code].append(c)
    return by_type


def _class_rows(tables: _Tables) -> tuple[list[Class], Groups]:
    """Rows of the classes, and the groups of the uses of those that have many. Sorts these uses."""
    rows, groups = list[Class](), Groups(len(tables.classes))
    negations = Counter(row.event_class for row in tables.negations)
    # With fewer uses, looking at what is around an event would cost more than it saves.
    many = {c for c, uses in enumerate(tables.uses) if len(uses) > max(MANY, len(tables.classes) // 2)}
    around = {element.event_class for c in many for one in tables.uses[c] for element in _elements_of(tables, one.use)}
    end, conditions = 0, 0
    for c, kind in enumerate(tables.classes):
        begin, uses = end, tables.uses[c]
        end += len(uses)
        if c in many:
            tables.uses[c] = groups.add(begin, uses)
        widest = max((one.use.window for one in uses), default=0)
        true = conditions if kind.condition else -1
        conditions += true >= 0
        mine = groups.classes[-1] if c in many else (0, 0, 0)
        one = int(kind.keyed), begin, end, negations[c], int(c in many), *mine, int(c in around), widest
        rows.append(Class(true, *one))
    return rows, groups


def _elements_of(tables: _Tables, use: Use) -> list[ElementRow]:
    alternative = tables.alternatives[use.alternative]
    return tables.elements[alternative.element : alternative.element + alternative.width]


def _class(tables: _Tables, plan: Plan, number: int, since: int) -> int:
    """Number of a plan's class among the classes of all plans."""
    one = plan.classes[number]
    steps = tuple((s.op, 0, plan.attributes[s.column] if s.op == "attribute" else None, s.value) for s in one.condition)
    return tables.classes.setdefault(Kind(one.types, steps, plan.per_key, since), len(tables.classes))


def _steps(tables: _Tables, plan: Plan, condition: pattern.Program) -> tuple[int, int, int]:
    """First step, last step (exclusive) and the positives that the condition names, as bits."""
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
        tables.steps.append(StepRow(CODES[step.op], NEGATED_PLACE if element == NEGATED else element, column))
        tables.step_values.append(step.value)
    return first, len(tables.steps), mask


def _closure(before: Sequence[int]) -> list[int]:
    """For each positive, all positives before it, directly or not; each positive is listed after those before it."""
    closed: list[int] = []
    for i, mask in enumerate(before):
        if mask >> i:
            raise ValueError(f"positive {i}: found one before it that is listed after it, expected an order by time")
        for j in range(i):
            if mask >> j & 1:
                mask |= closed[j]
        closed.append(mask)
    return closed


def _table(row: Any, rows: Sequence[tuple[int, ...]]) -> Array:
    """A table of rows of this type."""
    return np.array(rows, np.int64).reshape(-1, len(row._fields))
