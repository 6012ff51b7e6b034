"""The parts of a pattern of events: elements, groups, and the options of the whole.

    SEQ(a, b)        every event of a before every one of b        AND(a, b)   all of them, in any order
    OR(a, b)         one of them                                   A x         an event of type A, named x
    (A | B) x        an event of either type                       B{2,5} b    two to five events, one after the other
    B+ b             one to PLUS_REPEAT of them, B{2,} two to it    !C          no event of type C in this gap

A gap reaches from the element before it to the element behind it, also in enclosing sequences. At the edge of the whole
pattern it reaches as far as the window could. In AND it covers the whole span that the AND could fill.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Union

from whenabouts_cloud.pattern.expressions import Expression, Operation
from whenabouts_cloud.pattern.plan import Mode, Skip

Select = Literal["any", "next", "strict"]
Emit = Literal["sure", "arrival"]

PLUS_REPEAT = 8  # repetitions of B+, which needs a limit because it is unfolded
MAX_REPEAT = 16  # of one element
MAX_PLACES = 64  # of a match, those of all alternatives and repetitions together
MAX_POSITIVES = 16  # events of one match
MAX_NEGATIONS = 16  # written in one pattern
MAX_ALTERNATIVES = 256  # ways to choose alternatives, numbers of repetitions and, where it matters, orders
MAX_NESTED = 8  # depth of nested SEQ, AND and OR


@dataclass(frozen=True)
class Event:
    """An element for `least` to `most` events, one after the other; name None: named like its types."""

    types: tuple[str, ...]
    name: str | None = None
    least: int = 1
    most: int = 1

    @property
    def label(self) -> str:
        """Its name, or its types if it has none."""
        return self.name or "|".join(self.types)

    def text(self) -> str:
        """The element in the rule language."""
        count = f"{{{self.least},{self.most}}}" if self.most > 1 else ""
        return _types(self.types) + count + (f" {self.name}" if self.name else "")


@dataclass(frozen=True)
class Negated:
    """An element that no event may match."""

    types: tuple[str, ...]
    name: str | None = None

    @property
    def label(self) -> str:
        """Its name, or its types if it has none."""
        return self.name or "|".join(self.types)

    def text(self) -> str:
        """The element in the rule language."""
        return f"!{_types(self.types)}" + (f" {self.name}" if self.name else "")


@dataclass(frozen=True)
class Seq:
    """Group of parts, one after the other."""

    parts: "tuple[Part, ...]"

    def text(self) -> str:
        """The element in the rule language."""
        return f"SEQ({', '.join(part.text() for part in self.parts)})"


@dataclass(frozen=True)
class And:
    """Group of parts in any order."""

    parts: "tuple[Part, ...]"

    def text(self) -> str:
        """The element in the rule language."""
        return f"AND({', '.join(part.text() for part in self.parts)})"


@dataclass(frozen=True)
class Or:
    """Group of which one part matches."""

    parts: "tuple[Part, ...]"

    def text(self) -> str:
        """The element in the rule language."""
        return f"OR({', '.join(part.text() for part in self.parts)})"


Part = Union[Event, Negated, Seq, And, Or]  # noqa: UP007 - named in quotes above
Leaf = Event | Negated


@dataclass(frozen=True)
class PatternParts:
    """Events in an order within a window, microseconds; `where` are conditions that must all hold. See `Pattern`.

    `select`: every combination, or only those in which no event between two neighbours could replace the later one (`next`),
    or in which no event lies between them at all (`strict`). `emit`: when a match is emitted. `key`: what events of a match
    share, with `per_key`; in rules always the key of readings.
    """

    root: Seq | And | Or
    window_us: int
    strict_window: bool = False
    mode: Mode = "certain"
    probability: Fraction = Fraction(1)
    where: tuple[Expression, ...] = ()
    select: Select = "any"
    skip: Skip = "none"
    emit: Emit = "sure"
    per_key: bool = True
    key: str = "key"

    @property
    def types(self) -> tuple[str, ...]:
        """Names of all types, negated ones too, in the order of the text."""
        return tuple(dict.fromkeys(name for leaf in leaves(self.root) for name in leaf.types))

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each place of a match, in the order of the text; repetitions are b[1], b[2] and so on.

        Elements without a name are named like their types, with numbers if several are: A#1, A#2.
        """
        events = [leaf for leaf in leaves(self.root) if isinstance(leaf, Event)]
        total = Counter(event.label for event in events)
        seen: Counter[str] = Counter()
        places = []
        for event in events:
            seen[event.label] += 1
            label = event.label if total[event.label] == 1 else f"{event.label}#{seen[event.label]}"
            places += [label] if event.most == 1 else [f"{label}[{i}]" for i in range(1, event.most + 1)]
        return tuple(places)

    def text(self) -> str:
        """The pattern in canonical text: equal texts are equal patterns."""
        mode = f"OVER {_percent(self.probability)}" if self.mode == "over" else self.mode.upper()
        parts = [
            self.root.text(),
            f"WITHIN {'< ' if self.strict_window else ''}{self.window_us} us",
            f"PER {self.key}" if self.per_key else "ACROSS KEYS",
            "" if self.mode == "certain" else mode,
            f"WHERE {' AND '.join(_bracketed(x) for x in self.where)}" if self.where else "",
            "" if self.select == "any" else self.select.upper(),
            "" if self.skip == "none" else f"SKIP {self.skip.upper().replace('_', ' ')}",
            "" if self.emit == "sure" else "ON ARRIVAL",
        ]
        return " ".join(part for part in parts if part)


def leaves(part: Part) -> Iterator[Leaf]:
    """The elements of a pattern in the order of the text."""
    if isinstance(part, Event | Negated):
        yield part
    else:
        for inner in part.parts:
            yield from leaves(inner)


def labelled(root: Part) -> dict[str, list[int]]:
    """Numbers of the elements, in the order of the text, by label."""
    numbers: dict[str, list[int]] = {}
    for number, leaf in enumerate(leaves(root)):
        numbers.setdefault(leaf.label, []).append(number)
    return numbers


def _types(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"({' | '.join(names)})"


def _bracketed(expression: Expression) -> str:
    loose = isinstance(expression, Operation) and expression.op == "or"
    return f"({expression.text()})" if loose else expression.text()


def _percent(share: Fraction) -> str:
    """Exact decimal of a share; other fractions cannot be written in the language."""
    digits = 0
    while (share * 10**digits).denominator != 1:
        digits += 1
        if digits > 18:
            raise ValueError(f"found the probability {share}, expected a decimal")
    whole, rest = divmod(int(share * 10**digits), 10**digits)
    return f"{whole}.{rest:0{digits}d}" if digits else str(whole)
