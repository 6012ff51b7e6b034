"""Conditions on events: as expressions, and compiled to programs for the stack machine of a plan.

A column is a number that a condition reads from an event: `value`, `t_min`, `t_max`, `key` (its code), a part of the name
that the key holds (`epc.rule_words`), or the name of an attribute. Text is compared for equality only. For a comparison
with a text in the rule the column is an indicator, named `antenna="left"`: 1 where the attribute is that text, 0 where it
is something else (`split_column` splits the name). Between events two text attributes compare by a code chosen by the code
that fills the columns: equal texts, equal numbers. A missing attribute is nan; no comparison with nan holds, and dividing
by zero gives nan too.

Allen's relations (Allen, Maintaining knowledge about temporal intervals, 1983) take [t_min, t_max] as a duration. They are
defined so that exactly one of the 13 holds for any two closed intervals, those of length zero included.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, cast

from whenabouts_cloud.epc.rule_words import WORDS
from whenabouts_cloud.pattern.plan import Op, Plan, Program, Step

MAX_DEPTH = 32  # of nested operations, as they are written
MAX_STEPS = 256  # of one condition
FIELDS = (
    "value",
    "t_min",
    "t_max",
    "key",
    "kind",
    "unit",
    "site",
    "gateway",
    "stream",
)  # of a reading, before attributes
NAMED = (*FIELDS, *WORDS)  # an attribute that is called like one of these is written attrs.NAME

# Relations of two intervals a and b: comparison of the begins, of the ends, and a further condition.
ALLEN = {
    "before": ("", "", "a.t_max < b.t_min"),
    "after": ("", "", "a.t_min > b.t_max"),
    "meets": ("<", "<", "a.t_max = b.t_min"),
    "met_by": (">", ">", "a.t_min = b.t_max"),
    "overlaps": ("<", "<", "a.t_max > b.t_min"),
    "overlapped_by": (">", ">", "a.t_min < b.t_max"),
    "starts": ("=", "<", ""),
    "started_by": ("=", ">", ""),
    "during": (">", "<", ""),
    "contains": ("<", ">", ""),
    "finishes": (">", "=", ""),
    "finished_by": ("<", "=", ""),
    "equals": ("=", "=", ""),
}


@dataclass(frozen=True)
class Reference:
    """An element by its name. If repeated: every repetition, the n-th, the last, or the one before each."""

    name: str
    index: int | Literal["last", "prev"] | None = None

    def text(self) -> str:
        """The expression in the rule language."""
        return self.name if self.index is None else f"{self.name}[{str(self.index).upper()}]"


@dataclass(frozen=True)
class Attribute:
    """A column of an event."""

    reference: Reference
    column: str

    def text(self) -> str:
        """The expression in the rule language."""
        return f"{self.reference.text()}.{self.column}"


@dataclass(frozen=True)
class Constant:
    """A number; durations are microseconds."""

    value: float

    def text(self) -> str:
        """The number as a decimal."""
        written = format(Decimal(repr(self.value)), "f")
        return written.rstrip("0").rstrip(".") if "." in written else written


@dataclass(frozen=True)
class TextIs:
    """Condition that an attribute is, or is not, this text."""

    attribute: Attribute
    word: str
    equal: bool = True

    @property
    def indicator(self) -> str:
        """Name of the column that it reads."""
        return f'{self.attribute.column}="{self.word}"'

    def text(self) -> str:
        """The expression in the rule language."""
        return f'{self.attribute.text()} {"=" if self.equal else "!="} "{self.word}"'


@dataclass(frozen=True)
class Related:
    """One of Allen's relations between two events, by its key in ALLEN."""

    relation: str
    a: Reference
    b: Reference

    def text(self) -> str:
        """The expression in the rule language."""
        return f"{self.a.text()} {self.relation.upper().replace('_', ' ')} {self.b.text()}"


@dataclass(frozen=True)
class Operation:
    """An operation on one operand (`negate`, `not`), on two, or for `and` and `or` on two or more."""

    op: Op
    operands: "tuple[Expression, ...]"

    def text(self) -> str:
        """The operation in the rule language, with inner operations in brackets."""
        inner = [f"({x.text()})" if isinstance(x, Operation | TextIs | Related) else x.text() for x in self.operands]
        if self.op in ("negate", "not"):
            return f"{'-' if self.op == 'negate' else 'NOT '}{inner[0]}"
        first = self.operands[0]
        if (
            self.op == "!="
            and isinstance(first, Attribute)
            and first.column in WORDS
            and self.operands[1] == Constant(0.0)
        ):
            return inner[0]  # that the key holds it at all: a text is compared with no number
        return f" {self.op.upper()} ".join(inner)


Expression = Attribute | Constant | TextIs | Related | Operation


def split_column(column: str) -> tuple[str, str | None]:
    """Split a column into its attribute and, for an indicator, its text.

    >>> split_column('antenna="left"'), split_column("value")
    (('antenna', 'left'), ('value', None))
    """
    name, quote, word = column.partition('="')
    return name, word[:-1] if quote else None


def column_kind(column: str) -> Literal["field", "word", "attribute"]:
    """Where a column (without its text) comes from: a field of readings, the name in their keys, or their attributes."""
    return "field" if column in FIELDS else "word" if column in WORDS else "attribute"


def words_of(plan: Plan) -> tuple[str, ...]:
    """What the conditions of a plan read of the names in keys, each word once."""
    read = {split_column(column)[0] for column in plan.attributes}
    return tuple(word for word in WORDS if word in read)


def references(expression: Expression) -> Iterator[Reference]:
    """Yield every mention of an element, in the order of the text."""
    match expression:
        case Attribute(reference, _):
            yield reference
        case TextIs(attribute, _, _):
            yield attribute.reference
        case Related(_, a, b):
            yield a
            yield b
        case Operation(_, operands):
            for operand in operands:
                yield from references(operand)


def conjuncts(expression: Expression) -> Iterator[Expression]:
    """Yield the conditions that an expression joins by AND, with any brackets."""
    if isinstance(expression, Operation) and expression.op == "and":
        for operand in expression.operands:
            yield from conjuncts(operand)
    else:
        yield expression


def program(expression: Expression, element: Callable[[Reference], int], column: Callable[[str], int]) -> Program:
    """Compile an expression to steps; `element` numbers references, `column` numbers columns."""
    match expression:
        case Attribute(reference, name):
            return (Step("attribute", element(reference), column(name)),)
        case Constant(value):
            return (Step("constant", value=value),)
        case TextIs(attribute, _, equal):
            indicator = Step("attribute", element(attribute.reference), column(expression.indicator))
            return indicator, Step("constant", value=float(equal)), Step("=")
        case Related(relation, a, b):
            return program(_allen(relation, a, b), element, column)
        case Operation(op, operands):
            steps = program(operands[0], element, column)
            for operand in operands[1:]:
                steps += (*program(operand, element, column), Step(op))
            return (*steps, Step(op)) if len(operands) == 1 else steps


def both(programs: list[Program]) -> Program:
    """Join programs by AND; () always holds."""
    joined: Program = ()
    for one in programs:
        joined += (*one, Step("and")) if joined else one
    return joined


def stack_of(steps: Program) -> int:
    """Largest number of values on the stack while these steps run."""
    height = most = 0
    for step in steps:
        if step.op in ("attribute", "constant"):
            height += 1
        elif step.op not in ("negate", "not"):
            height -= 1
        most = max(most, height)
    return most


def _allen(relation: str, a: Reference, b: Reference) -> Expression:
    begins, ends, across = ALLEN[relation]
    sides = {"a": a, "b": b}
    conditions: list[Expression] = []
    for op, name in ((begins, "t_min"), (ends, "t_max")):
        if op:
            conditions.append(Operation(cast(Op, op), (Attribute(a, name), Attribute(b, name))))
    if across:
        left, op, right = across.split()
        one, other = (Attribute(sides[side], name) for side, name in (left.split("."), right.split(".")))
        conditions.append(Operation(cast(Op, op), (one, other)))
    return conditions[0] if len(conditions) == 1 else Operation("and", tuple(conditions))
