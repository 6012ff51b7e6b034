"""Predicates on the local states of several gateways, for rules about a group.

A value is `name.attr` of a state of the STREAM with this name; a bare name means its `value`. It is a number (truth counts
as 1 and 0), a text, or missing. A bare value holds when it is not 0. A comparison with a missing value is unknown: neither
it nor its opposite holds, and NOT of unknown is unknown (Kleene's strong three-valued logic). So a rule never treats as true
what a gateway did not know. Text has no order: only = and != apply; a text and a number are different.

A predicate on one stream is local: one gateway can decide it. `alternatives` writes a predicate as a disjunction of
conjunctions of local predicates, which can be detected without enumerating global states.
"""

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Sign = Literal["=", "!=", "<", "<=", ">", ">="]
Scalar = float | str | None
Values = Mapping["Value", Scalar]
Test = Callable[[Values], bool]

MAX_ALTERNATIVES = 64  # conjunctions that a predicate may be written as
NEGATED: dict[Sign, Sign] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
TURNED: dict[Sign, Sign] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARE: dict[Sign, Callable[[float, float], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class Value:
    """A value of the states of a stream; as a predicate it means that it is not 0."""

    stream: str
    name: str = "value"

    def text(self) -> str:
        """The predicate in the rule language."""
        return self.stream if self.name == "value" else f"{self.stream}.{self.name}"


@dataclass(frozen=True)
class Comparison:
    """Comparison of a value with another value, a number or a text."""

    sign: Sign
    left: Value
    right: Value | float | str

    def text(self) -> str:
        """The predicate in the rule language."""
        return f"{self.left.text()} {self.sign} {_side(self.right)}"


@dataclass(frozen=True)
class Not:
    """Negation of a predicate."""

    part: "Predicate"

    def text(self) -> str:
        """The predicate in the rule language."""
        return f"NOT {_bracketed(self.part)}"


@dataclass(frozen=True)
class AllOf:
    """Conjunction of two or more predicates."""

    parts: "tuple[Predicate, ...]"

    def text(self) -> str:
        """The predicate in the rule language."""
        return " AND ".join(_bracketed(part) for part in self.parts)


@dataclass(frozen=True)
class AnyOf:
    """Disjunction of two or more predicates."""

    parts: "tuple[Predicate, ...]"

    def text(self) -> str:
        """The predicate in the rule language."""
        return " OR ".join(_bracketed(part) for part in self.parts)


@dataclass(frozen=True)
class AtLeast:
    """At least `count` of the parts hold."""

    count: int
    parts: "tuple[Predicate, ...]"

    def text(self) -> str:
        """The predicate in the rule language."""
        return f"{self.count} OF ({', '.join(part.text() for part in self.parts)})"


Predicate = Value | Comparison | Not | AllOf | AnyOf | AtLeast
Alternative = dict[str, Predicate]
"""A conjunction: a local predicate for each stream that it names."""


def values_of(predicate: Predicate) -> tuple[Value, ...]:
    """All values in a predicate, each once, in the order of the text."""
    return tuple(dict.fromkeys(_values(predicate)))


def streams_of(predicate: Predicate) -> tuple[str, ...]:
    """All streams in a predicate, each once, in the order of the text."""
    return tuple(dict.fromkeys(value.stream for value in _values(predicate)))


def alternatives(predicate: Predicate) -> list[Alternative] | None:
    """Conjunctions of local predicates; the predicate holds exactly when at least one of them does.

    None if a comparison names two streams, so that no such form exists. No conjunction implies another one.

    Raises:
        ValueError: there are more than MAX_ALTERNATIVES.
    """
    try:
        conjunctions = _alternatives(predicate, True)
    except _NeedsSeveralGateways:
        return None
    return [
        one
        for n, one in enumerate(conjunctions)
        if not any(_implies(one, x) for x in conjunctions[:n] + conjunctions[n + 1 :])
    ]


def test(predicate: Predicate) -> Test:
    """The predicate as a function of values, True if it is known to hold. Values not given are missing."""
    truth = _truth(predicate)
    return lambda values: truth(values) is True


def _truth(predicate: Predicate) -> Callable[[Values], bool | None]:
    """The predicate as a function of values: True, False, or None for unknown."""
    match predicate:
        case Value():
            return lambda values: _compared("!=", values.get(predicate), 0.0)
        case Comparison(sign, left, right):
            if isinstance(right, Value):
                return lambda values: _compared(sign, values.get(left), values.get(right))
            return lambda values: _compared(sign, values.get(left), right)
        case Not(part):
            inner = _truth(part)
            return lambda values: None if (truth := inner(values)) is None else not truth
        case AllOf(parts):
            return _at_least(len(parts), parts)
        case AnyOf(parts):
            return _at_least(1, parts)
        case AtLeast(count, parts):
            return _at_least(count, parts)


def _at_least(count: int, parts: "tuple[Predicate, ...]") -> Callable[[Values], bool | None]:
    every = [_truth(part) for part in parts]

    def counted(values: Values) -> bool | None:
        truths = [one(values) for one in every]
        if truths.count(True) >= count:
            return True
        return False if len(truths) - truths.count(False) < count else None

    return counted


class _NeedsSeveralGateways(Exception):
    """A predicate of two streams that is no combination of local predicates."""


def _values(predicate: Predicate) -> Iterable[Value]:
    match predicate:
        case Value():
            yield predicate
        case Comparison(_, left, right):
            yield left
            if isinstance(right, Value):
                yield right
        case Not(part):
            yield from _values(part)
        case AllOf(parts) | AnyOf(parts) | AtLeast(_, parts):
            for part in parts:
                yield from _values(part)


def _alternatives(predicate: Predicate, wanted: bool) -> list[Alternative]:
    """Alternatives of the predicate if `wanted`, else of its negation."""
    names = streams_of(predicate)
    if len(names) == 1:
        return [{names[0]: predicate if wanted else _opposite(predicate)}]
    match predicate:
        case Not(part):
            return _alternatives(part, not wanted)
        case AllOf(parts) | AnyOf(parts):
            parted = [_alternatives(part, wanted) for part in parts]
            return _each(parted) if isinstance(predicate, AllOf) == wanted else _any(parted)
        case AtLeast(count, parts):
            needed = count if wanted else len(parts) - count + 1
            parted = [_alternatives(part, wanted) for part in parts]
            return _any(_each(list(some)) for some in itertools.combinations(parted, needed))
    raise _NeedsSeveralGateways


def _opposite(predicate: Predicate) -> Predicate:
    return predicate.part if isinstance(predicate, Not) else Not(predicate)


def _any(parted: Iterable[list[Alternative]]) -> list[Alternative]:
    conjunctions: list[Alternative] = []
    for one in parted:
        conjunctions += [x for x in one if x not in conjunctions]
        _check(len(conjunctions))
    return conjunctions


def _each(parted: list[list[Alternative]]) -> list[Alternative]:
    conjunctions: list[Alternative] = [{}]
    for some in parted:
        _check(len(conjunctions) * len(some))
        conjunctions = [_both(a, b) for a in conjunctions for b in some]
    return conjunctions


def _both(a: Alternative, b: Alternative) -> Alternative:
    joined = dict(a)
    for name, more in b.items():
        parts = dict.fromkeys([*_conjuncts(joined[name]), *_conjuncts(more)]) if name in joined else {more: None}
        joined[name] = next(iter(parts)) if len(parts) == 1 else AllOf(tuple(parts))
    return joined


def _conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, AllOf) else (predicate,)


def _implies(a: Alternative, b: Alternative) -> bool:
    """True if a contains every conjunct of b, a sufficient condition for a to imply b."""
    return all(name in a and {*_conjuncts(part)} <= {*_conjuncts(a[name])} for name, part in b.items())


def _check(count: int) -> None:
    if count > MAX_ALTERNATIVES:
        raise ValueError(f"found more than {MAX_ALTERNATIVES} alternatives, expected no more: write several rules")


def _compared(sign: Sign, left: Scalar, right: Scalar) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, str) or isinstance(right, str):
        return sign in ("=", "!=") and (left == right) == (sign == "=")
    return _COMPARE[sign](left, right)


def _side(x: Value | float | str) -> str:
    if isinstance(x, Value):
        return x.text()
    if isinstance(x, str):
        return f'"{x}"'
    written = format(Decimal(repr(x)), "f")
    return written.rstrip("0").rstrip(".") if "." in written else written


def _bracketed(part: Predicate) -> str:
    plain = isinstance(part, Value | AtLeast)
    return part.text() if plain else f"({part.text()})"
