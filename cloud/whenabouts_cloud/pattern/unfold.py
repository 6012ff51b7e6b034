"""Unfolds a pattern to shapes: each fixes the choices of every OR and the numbers of repetitions.

A shape lists its positives in the order of the text, which agrees with time, and for each the positives before it. Under
NEXT and STRICT neighbours matter, so each possible order of an AND becomes a separate chain.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count, product

from whenabouts_cloud.pattern.elements import (
    MAX_ALTERNATIVES,
    MAX_NEGATIONS,
    MAX_POSITIVES,
    And,
    Event,
    Negated,
    Or,
    Part,
    PatternParts,
    Seq,
    leaves,
)


@dataclass(frozen=True)
class Positive:
    """Repetition `copy`, from 1, of element `leaf`, its number in the order of the text."""

    leaf: int
    copy: int


@dataclass(frozen=True)
class Between:
    """No event of element `leaf` between the latest of `left` and the earliest of `right`, both bits of positives."""

    leaf: int
    left: int
    right: int


@dataclass(frozen=True)
class Shape:
    """Positives with their order and gaps; `before[i]`: bits of the positives that come before positive i."""

    positives: tuple[Positive, ...]
    before: tuple[int, ...]
    gaps: tuple[Between, ...]


def shapes(pattern: PatternParts) -> list[Shape]:
    """All shapes of a pattern, before orders are chosen.

    Raises:
        ValueError: too many alternatives, positives or negations, or a group without a positive.
    """
    total = _ways(pattern.root)
    if total > MAX_ALTERNATIVES:
        raise ValueError(
            f"found {total} alternatives (choices of OR and repetition), expected at most {MAX_ALTERNATIVES}"
        )
    negated = sum(isinstance(leaf, Negated) for leaf in leaves(pattern.root))
    if negated > MAX_NEGATIONS:
        raise ValueError(f"found {negated} negated elements, expected at most {MAX_NEGATIONS}")
    unfolded = [_shape(fixed) for fixed in _unfold(pattern.root, count())]
    longest = max(len(shape.positives) for shape in unfolded)
    if longest > MAX_POSITIVES:
        raise ValueError(
            f"found matches of up to {longest} events, expected at most {MAX_POSITIVES}; a repetition counts as many times "
            "as it may occur"
        )
    return unfolded


def orders(shape: Shape) -> Iterator[tuple[int, ...]]:
    """Yield every order of the positives that the shape allows, as indices; lexicographic."""

    def extend(chosen: tuple[int, ...], taken: int) -> Iterator[tuple[int, ...]]:
        if len(chosen) == len(shape.positives):
            yield chosen
        for i, before in enumerate(shape.before):
            if not taken >> i & 1 and before & ~taken == 0:
                yield from extend((*chosen, i), taken | 1 << i)

    return extend((), 0)


def covers(shape: Shape, i: int) -> int:
    """Direct predecessors of positive i, as bits."""
    mask = shape.before[i]
    for j in bits(shape.before[i]):
        mask &= ~shape.before[j]
    return mask


def bits(mask: int) -> Iterator[int]:
    """Yield the indices of the set bits, ascending."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


@dataclass(frozen=True)
class _Group:
    """A part without choices: a group of parts, one after the other or in any order."""

    in_order: bool
    parts: "tuple[_Group | Positive | _SkippedPart, ...]"


@dataclass(frozen=True)
class _SkippedPart:
    leaf: int


_Choice = _Group | Positive | _SkippedPart


def _ways(part: Part) -> int:
    if isinstance(part, Event):
        return part.most - part.least + 1
    if isinstance(part, Negated):
        return 1
    ways = [_ways(inner) for inner in part.parts]
    return sum(ways) if isinstance(part, Or) else math.prod(ways)


def _unfold(part: Part, numbers: Iterator[int]) -> list[_Choice]:
    """All choices of a part; takes one of the numbers for each element, in the order of the text."""
    match part:
        case Event(_, _, least, most):
            leaf = next(numbers)
            copies = [tuple(Positive(leaf, i + 1) for i in range(n)) for n in range(least, most + 1)]
            return [c[0] if len(c) == 1 else _Group(True, c) for c in copies]
        case Negated():
            return [_SkippedPart(next(numbers))]
        case Or(parts):
            return list(chain.from_iterable([_unfold(inner, numbers) for inner in parts]))
        case Seq(parts) | And(parts):
            choices = [_unfold(inner, numbers) for inner in parts]
            return [_Group(isinstance(part, Seq), chosen) for chosen in product(*choices)]


@dataclass
class _Layout:
    """Lays out the positives of a choice; for every group keeps all, the first and the last positives, as bits."""

    positives: list[Positive] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    gaps: list[Between] = field(default_factory=list)

    def lay(self, part: _Choice) -> "_PlacedPart":
        if isinstance(part, _SkippedPart):
            return _PlacedPart(part, (), 0, 0, 0)
        if isinstance(part, Positive):
            bit = 1 << len(self.positives)
            self.positives.append(part)
            self.before.append(0)
            return _PlacedPart(part, (), bit, bit, bit)
        laid = tuple(self.lay(inner) for inner in part.parts)
        present = [x for x in laid if x.all]
        if not present:
            raise ValueError("found a group in which every element is negated, expected at least one that is not")
        if not part.in_order:
            return _PlacedPart(
                part, laid, *(sum(getattr(x, name) for x in present) for name in ("all", "first", "last"))
            )
        earlier = 0
        for inner in present:
            for i in bits(inner.all):
                self.before[i] |= earlier
            earlier |= inner.all
        return _PlacedPart(part, laid, earlier, present[0].first, present[-1].last)

    def find_gaps(self, group: "_PlacedPart", left: int, right: int) -> None:
        """Find the gaps in a group between the positives `left` and `right`, as bits; 0: none on that side."""
        assert isinstance(group.part, _Group)
        for n, inner in enumerate(group.parts):
            here = left, right
            if group.part.in_order:
                here = (
                    next((x.last for x in reversed(group.parts[:n]) if x.all), left),
                    next((x.first for x in group.parts[n + 1 :] if x.all), right),
                )
            if isinstance(inner.part, _SkippedPart):
                self.gaps.append(Between(inner.part.leaf, *here))
            elif isinstance(inner.part, _Group):
                self.find_gaps(inner, *here)


@dataclass(frozen=True)
class _PlacedPart:
    part: _Choice
    parts: "tuple[_PlacedPart, ...]"
    all: int
    first: int
    last: int


def _shape(fixed: _Choice) -> Shape:
    layout = _Layout()
    whole = fixed if isinstance(fixed, _Group) else _Group(True, (fixed,))
    layout.find_gaps(layout.lay(whole), 0, 0)
    return Shape(tuple(layout.positives), tuple(layout.before), tuple(layout.gaps))
