"""The parts of a pattern of events: elements, groups, and the options of the whole.

    SEQ(a, b)        every event of a before every one of b        AND(a, b)   all of them, in any order
    OR(a, b)         one of them                                   A x         an event of type A, called x
    (A | B) x        an event of either type                       B{2,5} b    two to five events, one after the other
    B+ b             one to PLUS_REPEAT of them, B{2,} two to it    !C          no event of type C in this gap

A gap reaches from what stands before it to what stands behind it, of the sequences around it too. At the edge of the whole
pattern it reaches as far as the window could. In AND it is all that the AND could fill.
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

PLUS_REPEAT = 8  # what B+ stands for: unfolded, so that it has an end
MAX_REPEAT = 16  # of one element
MAX_PLACES = 64  # of a match, those of all alternatives and repetitions together
MAX_POSITIVES = 16  # events of one match
MAX_NEGATIONS = 16  # written in one pattern
MAX_ALTERNATIVES = 256  # ways to choose alternatives, numbers of repetitions and, where it matters, orders
MAX_NESTED = 8  # SEQ, AND and OR in each other


@dataclass(frozen=True)
class Event:
    """An element that an event plays, `least` to `most` events of it one after the other; name None: called as its type."""

    types: tuple[str, ...]
    name: str | None = None
    least: int = 1
    most: int = 1

    @property
    def label(self) -> str:
        """What it is called."""
        return self.name or "|".join(self.types)

    def text(self) -> str:
        """As it is written."""
        count = f"{{{self.least},{self.most}}}" if self.most > 1 else ""
        return _types(self.types) + count + (f" {self.name}" if self.name else "")


@dataclass(frozen=True)
class Negated:
    """An element that no event may play."""

    types: tuple[str, ...]
    name: str | None = None

    @property
    def label(self) -> str:
        """What it is called."""
        return self.name or "|".join(self.types)

    def text(self) -> str:
        """As it is written."""
        return f"!{_types(self.types)}" + (f" {self.name}" if self.name else "")


@dataclass(frozen=True)
class Seq:
    """Parts one after the other."""

    parts: "tuple[Part, ...]"

    def text(self) -> str:
        """As it is written."""
        return f"SEQ({', '.join(part.text() for part in self.parts)})"


@dataclass(frozen=True)
class And:
    """Parts in any order."""

    parts: "tuple[Part, ...]"

    def text(self) -> str:
        """As it is written."""
        return f"AND({', '.join(part.text() for part in self.parts)})"


@dataclass(frozen=True)
class Or:
    """One of the parts."""

    parts: "tuple[Part, ...]"

    def text(self) -> str:
        """As it is written."""
        return f"OR({', '.join(part.text() for part in self.parts)})"


Part = Union[Event, Negated, Seq, And, Or]  # noqa: UP007 - named in quotes above
Leaf = Event | Negated


@dataclass(frozen=True)
class PatternParts:
    """Events in an order within a window, microseconds; `where` are conditions that must all hold. See `Pattern`.

    `select`: every combination, or only one in which no event between two neighbours could have taken the later one's place
    (`next`), or none lies between them at all (`strict`). `emit` is when a match is told.
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

    @property
    def types(self) -> tuple[str, ...]:
        """Names of all types, negated ones too, in the order of the text."""
        return tuple(dict.fromkeys(name for leaf in leaves(self.root) for name in leaf.types))

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each place of a match, in the order of the text; repetitions are b[1], b[2] and so on.

        Elements without a name of their own are called as their type, and counted if several are: A#1, A#2.
        """
        events = [leaf for leaf in leaves(self.root) if isinstance(leaf, Event)]
        total = Counter(event.label for event in events)
        seen: Counter[str] = Counter()
        found = []
        for event in events:
            seen[event.label] += 1
            label = event.label if total[event.label] == 1 else f"{event.label}#{seen[event.label]}"
            found += [label] if event.most == 1 else [f"{label}[{i}]" for i in range(1, event.most + 1)]
        return tuple(found)

    def text(self) -> str:
        """The pattern in the language, in one way: equal texts are equal patterns."""
        mode = f"OVER {_percent(self.probability)}" if self.mode == "over" else self.mode.upper()
        parts = [
            self.root.text(),
            f"WITHIN {'< ' if self.strict_window else ''}{self.window_us} us",
            "PER key" if self.per_key else "ACROSS KEYS",
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
    """By what they are called, the numbers of the elements in the order of the text."""
    found: dict[str, list[int]] = {}
    for number, leaf in enumerate(leaves(root)):
        found.setdefault(leaf.label, []).append(number)
    return found


def _types(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"({' | '.join(names)})"


def _bracketed(expression: Expression) -> str:
    loose = isinstance(expression, Operation) and expression.op == "or"
    return f"({expression.text()})" if loose else expression.text()


def _percent(share: Fraction) -> str:
    """The exact decimal of a share; those that no decimal is are not written in the language."""
    digits = 0
    while (share * 10**digits).denominator != 1:
        digits += 1
        if digits > 18:
            raise ValueError(f"found the probability {share}, expected a decimal")
    whole, rest = divmod(int(share * 10**digits), 10**digits)
    return f"{whole}.{rest:0{digits}d}" if digits else str(whole)
