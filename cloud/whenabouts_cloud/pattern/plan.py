"""A pattern as input for the kernels: classes of events, and alternatives, which are sets of elements in a partial order.

A class is the requirement on an event to match an element: its types and the conditions on this event only. Elements of one
class, in one pattern or in many, share one chain of stored events. An alternative has no choices: OR and repetition are
unfolded, so its positives are a fixed list. `before[i]` is the set, as bits, of the positives strictly before positive i.

A negation forbids events of a class between the latest of its left positives and the earliest of its right ones, both
excluded. Without left ones it reaches back to the last positive's time less the window, included; without right ones
forward to the first positive's time plus the window, included.

Selection strategies are negations too: NEXT forbids, between neighbours, events that could be the later one; STRICT forbids
any event of the key. So every strategy depends only on the set of events.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

Mode = Literal["certain", "possible", "over", "causal"]
Skip = Literal["none", "to_next", "past_last"]
Op = Literal["attribute", "constant", "+", "-", "*", "/", "negate", "=", "!=", "<", "<=", ">", ">=", "and", "or", "not"]
MAX_STACK = 64
TIME_LIMIT = 1 << 60  # stamps, windows and slacks stay below: sums of a few of them fit 64 bits
NEGATED = -1  # as an element of a step: the negated event


@dataclass(frozen=True)
class Step:
    """One step of a condition in postfix order, for a machine with a stack of numbers; truth is 1 and 0.

    `attribute` pushes column `column` of positive `element` (or of the negated event, NEGATED); `constant` pushes `value`.
    Columns are numbers, t_min and t_max are columns like others; `pattern.expressions` defines how text becomes a number.
    Comparisons with a missing value (nan) are false, `!=` too; dividing by zero gives nan. The stack holds at most MAX_STACK
    numbers.
    """

    op: Op
    element: int = 0
    column: int = 0
    value: float = 0.0


Program = tuple[Step, ...]
# Steps as an engine runs them: op, element, column, value.
Resolved = tuple[tuple[str, int, Any, float], ...]


@dataclass(frozen=True)
class EventClass:
    """Events of one of these type codes that satisfy the condition, whose steps name the event as element 0."""

    types: frozenset[int]
    condition: Program = ()


@dataclass(frozen=True)
class Negation:
    """No event of the class, satisfying the condition, between the positives of `left` and those of `right` (bits)."""

    event_class: int
    left: int
    right: int
    condition: Program = ()


@dataclass(frozen=True)
class Alternative:
    """Positives in an order that agrees with time; `columns[i]` is the place of positive i in a match of the pattern.

    Each condition is one that must hold; it can be decided once all positives that it names are chosen.
    """

    classes: tuple[int, ...]
    columns: tuple[int, ...]
    before: tuple[int, ...]
    negations: tuple[Negation, ...] = ()
    conditions: tuple[Program, ...] = ()

    @property
    def is_chain(self) -> bool:
        """True if each positive comes after all earlier ones of the list."""
        return all(mask == (1 << i) - 1 for i, mask in enumerate(self.before))


@dataclass(frozen=True)
class Plan:
    """One pattern for a fixed list of type names; a match has `width` places, -1 where its alternative has no positive.

    `longest` is the longest expected stamp of the events, in ticks like `window`; 0 for points.
    """

    classes: tuple[EventClass, ...]
    alternatives: tuple[Alternative, ...]
    width: int
    window: int
    strict_window: bool = False
    mode: Mode = "certain"
    probability: Fraction = Fraction(1)
    skip: Skip = "none"
    per_key: bool = True
    longest: int = 0
    attributes: tuple[str, ...] = ()  # columns that conditions read, for `pattern.expressions.split_column`


class Compilable(Protocol):
    """A pattern that can be compiled to a plan for a list of type names."""

    def plan(self, type_names: Sequence[str]) -> Plan: ...


def plan_of(pattern: Compilable | Plan, type_names: Sequence[str]) -> Plan:
    """Compile a pattern; return a plan unchanged."""
    return pattern if isinstance(pattern, Plan) else pattern.plan(type_names)
