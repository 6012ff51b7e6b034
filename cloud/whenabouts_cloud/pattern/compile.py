"""Compiles a pattern to a plan: shapes become alternatives, conditions go to the first place where they can be decided.

A condition on one element only belongs to its class. A condition that names a negated element belongs to that negation and
selects the forbidden events. Every other condition belongs to the alternatives that contain all elements that it names; it
does not apply to the others. On a repeated element a condition must hold for every repetition.

NEXT forbids between two neighbours any event that could replace the later one: another element whose turn it was, or one
more repetition where allowed, if it satisfies the conditions that name only it and earlier elements. STRICT forbids every
event there. The branches of an OR are separate patterns: neither forbids events of the other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from whenabouts_cloud.pattern.elements import MAX_ALTERNATIVES, Event, Leaf, Negated, PatternParts, labelled, leaves
from whenabouts_cloud.pattern.expressions import MAX_STEPS, Expression, Reference, both, program, references, stack_of
from whenabouts_cloud.pattern.plan import MAX_STACK, NEGATED, Alternative, EventClass, Negation, Plan, Program
from whenabouts_cloud.pattern.unfold import Positive, Shape, bits, orders, shapes

MAX_ALTERNATIVE_NEGATIONS = 64  # written ones and those that NEXT and STRICT add
MAX_CONDITIONS = 256  # of one alternative, repetitions counted

Instance = Mapping[Reference, Positive]  # the event that each mention of an element refers to


def compile_pattern(pattern: PatternParts, type_names: Sequence[str], longest: int) -> Plan:
    """Compile a pattern, for type codes that are indices of `type_names`; `longest` is the longest stamp, us.

    Raises:
        ValueError: a type is not among the names, or the pattern exceeds a limit or names unknown elements.
    """
    if len(set(type_names)) != len(type_names):
        raise ValueError(f"found type names {', '.join(type_names)}, expected each once")
    unknown = [name for name in pattern.types if name not in type_names]
    if unknown:
        raise ValueError(
            f"found the type{'s' * (len(unknown) > 1)} {', '.join(unknown)}, expected of {', '.join(type_names) or 'none'}"
        )
    if longest < 0:
        raise ValueError(f"found {longest} for the longest stamp, expected 0 or more")
    return _Compiler(pattern, type_names).plan(longest)


def alternative_shapes(pattern: PatternParts) -> list[tuple[Shape, tuple[int, ...] | None]]:
    """Shapes of the alternatives, under NEXT and STRICT each with an order of its positives.

    Raises:
        ValueError: a limit is exceeded; see `shapes`.
    """
    unordered = shapes(pattern)
    if pattern.select == "any":
        return [(shape, None) for shape in unordered]
    ordered: list[tuple[Shape, tuple[int, ...] | None]] = list(
        islice(((s, order) for s in unordered for order in orders(s)), MAX_ALTERNATIVES + 1)
    )
    if len(ordered) > MAX_ALTERNATIVES:
        raise ValueError(
            f"found more than {MAX_ALTERNATIVES} alternatives, expected no more: "
            f"with {pattern.select.upper()} each order of an AND is one"
        )
    if len(ordered) > len(unordered) and pattern.mode in ("possible", "over"):
        raise ValueError(
            f"found {pattern.select.upper()} with an AND in {pattern.mode.upper()}, expected CERTAIN or CAUSAL: the same "
            "events may come in several orders, and each order would be a match"
        )
    return ordered


@dataclass(frozen=True)
class _Conjunct:
    """A condition with the elements that it names, and the negated one among them, if any."""

    expression: Expression
    references: tuple[Reference, ...]
    leaves: frozenset[int]
    negated: int | None


class _Compiler:
    def __init__(self, pattern: PatternParts, type_names: Sequence[str]) -> None:
        self._pattern = pattern
        self._codes = {name: code for code, name in enumerate(type_names)}
        self._leaves: list[Leaf] = list(leaves(pattern.root))
        self._labels = labelled(pattern.root)
        self._classes: dict[EventClass, int] = {}
        self._columns: dict[str, int] = {}
        self._places = _places(self._leaves)
        conjuncts = [self._conjunct(expression) for expression in pattern.where]
        self._crossing = [c for c in conjuncts if not self._is_of_one(c)]
        self._class_of = [
            self._class(leaf.types, [c for c in conjuncts if self._is_of_one(c) and c.leaves == {n}])
            for n, leaf in enumerate(self._leaves)
        ]

    def plan(self, longest: int) -> Plan:
        alternatives = tuple(self._alternative(shape, order) for shape, order in alternative_shapes(self._pattern))
        return Plan(
            tuple(self._classes),
            alternatives,
            width=sum(leaf.most for leaf in self._leaves if isinstance(leaf, Event)),
            window=self._pattern.window_us,
            strict_window=self._pattern.strict_window,
            mode=self._pattern.mode,
            probability=self._pattern.probability,
            skip=self._pattern.skip,
            per_key=self._pattern.per_key,
            longest=longest,
            attributes=tuple(self._columns),
        )

    def _conjunct(self, expression: Expression) -> _Conjunct:
        named = tuple(dict.fromkeys(references(expression)))
        numbers = set()
        for reference in named:
            elements = self._labels.get(reference.name, [])
            if len(elements) != 1:
                raise ValueError(
                    f"found {reference.name} in a condition, which is {len(elements)} elements, expected one"
                )
            numbers.add(elements[0])
        negated = [n for n in numbers if isinstance(self._leaves[n], Negated)]
        if not numbers or len(negated) > 1:
            raise ValueError(f"found the condition {expression.text()}, expected one on elements, at most one negated")
        return _Conjunct(expression, named, frozenset(numbers), negated[0] if negated else None)

    def _is_of_one(self, conjunct: _Conjunct) -> bool:
        return len(conjunct.leaves) == 1 and all(reference.index is None for reference in conjunct.references)

    def _class(self, types: tuple[str, ...], conditions: list[_Conjunct]) -> int:
        steps = both([self._program(c.expression, lambda _: 0) for c in conditions])
        return self._intern(EventClass(frozenset(self._codes[name] for name in types), steps))

    def _intern(self, event_class: EventClass) -> int:
        return self._classes.setdefault(event_class, len(self._classes))

    def _program(self, expression: Expression, element: Callable[[Reference], int]) -> Program:
        steps = program(expression, element, lambda name: self._columns.setdefault(name, len(self._columns)))
        if len(steps) > MAX_STEPS:
            raise ValueError(f"found a condition of {len(steps)} steps, expected at most {MAX_STEPS}")
        if stack_of(steps) >= MAX_STACK:  # joining conditions takes one place
            raise ValueError(f"found a condition that keeps {stack_of(steps)} numbers, expected less than {MAX_STACK}")
        return steps

    def _alternative(self, shape: Shape, order: tuple[int, ...] | None) -> Alternative:
        chosen = tuple(range(len(shape.positives))) if order is None else order
        positives = tuple(shape.positives[i] for i in chosen)
        place = {positive: p for p, positive in enumerate(positives)}
        moved = {i: 1 << p for p, i in enumerate(chosen)}
        negations = [
            Negation(
                self._class_of[gap.leaf],
                sum(moved[i] for i in bits(gap.left)),
                sum(moved[i] for i in bits(gap.right)),
                self._forbidden_if(gap.leaf, place),
            )
            for gap in shape.gaps
        ]
        if order is not None:
            negations += self._selection(shape, order)
        negations = list(dict.fromkeys(negations))
        if len(negations) > MAX_ALTERNATIVE_NEGATIONS:
            raise ValueError(
                f"found {len(negations)} negations in one alternative, expected at most {MAX_ALTERNATIVE_NEGATIONS}; "
                f"{self._pattern.select.upper()} needs some for every two neighbours"
            )
        before = shape.before if order is None else tuple((1 << p) - 1 for p in range(len(positives)))
        return Alternative(
            tuple(self._class_of[positive.leaf] for positive in positives),
            tuple(self._places[positive.leaf] + positive.copy - 1 for positive in positives),
            before,
            tuple(negations),
            tuple(self._conditions(place)),
        )

    def _conditions(self, place: Mapping[Positive, int]) -> Iterator[Program]:
        count = 0
        for conjunct in self._crossing:
            if conjunct.negated is None:
                for instance in self._instances(conjunct, place):
                    count += 1
                    if count > MAX_CONDITIONS:
                        raise ValueError(
                            f"found more than {MAX_CONDITIONS} conditions, each repetition counted, expected no more"
                        )
                    yield self._program(conjunct.expression, lambda r, positive_of=instance: place[positive_of[r]])  # type: ignore[misc]

    def _forbidden_if(self, leaf: int, place: Mapping[Positive, int]) -> Program:
        """Conditions, besides its class, that make an event of a negated element forbidden."""
        programs = []
        for conjunct in self._crossing:
            if conjunct.negated == leaf:
                for positive_of in self._instances(conjunct, place):
                    at = {r: NEGATED if p.leaf == leaf else place[p] for r, p in positive_of.items()}
                    programs.append(self._program(conjunct.expression, at.__getitem__))
        return self._all(programs)

    def _all(self, programs: list[Program]) -> Program:
        joined = both(programs)
        if len(joined) > MAX_STEPS:
            raise ValueError(
                f"found {len(joined)} steps of conditions on one negation, repetitions counted, expected at most {MAX_STEPS}"
            )
        return joined

    def _instances(self, conjunct: _Conjunct, present: Mapping[Positive, int]) -> Iterator[Instance]:
        """Yield the ways in which a condition applies to events: none if an element that it names is missing."""
        copies: dict[int, int] = {}
        for positive in present:
            copies[positive.leaf] = max(copies.get(positive.leaf, 0), positive.copy)
        if conjunct.negated is not None:
            copies[conjunct.negated] = 1
        if not conjunct.leaves <= copies.keys():
            return
        leaf_of = {r: self._labels[r.name][0] for r in conjunct.references}
        each = sorted({leaf_of[r] for r in conjunct.references if r.index in (None, "prev")})
        for chosen in product(*(range(1, copies[leaf] + 1) for leaf in each)):
            now = dict(zip(each, chosen, strict=True))
            positive_of = {r: Positive(leaf, _copy(r, now.get(leaf, 0), copies[leaf])) for r, leaf in leaf_of.items()}
            if all(1 <= p.copy <= copies[p.leaf] for p in positive_of.values()):
                yield positive_of

    def _selection(self, shape: Shape, order: tuple[int, ...]) -> Iterator[Negation]:
        """Yield the negations that NEXT or STRICT adds between neighbours of a chain; see the module docstring."""
        for p in range(1, len(order)):
            left, right = 1 << p - 1, 1 << p
            if self._pattern.select == "strict":
                yield Negation(self._intern(EventClass(frozenset(self._codes.values()))), left, right)
                continue
            earlier = order[:p]
            for candidate in self._candidates(shape, earlier):
                taken = {shape.positives[i]: q for q, i in enumerate(earlier)}
                condition = self._could_be(candidate, taken, shape)
                yield Negation(self._class_of[candidate.leaf], left, right, condition)

    def _candidates(self, shape: Shape, earlier: tuple[int, ...]) -> Iterator[Positive]:
        """Yield the elements whose turn it is after the earlier ones."""
        taken = sum(1 << i for i in earlier)
        optional = {i: p.leaf for i, p in enumerate(shape.positives) if p.copy > self._least(p.leaf)}
        for i, positive in enumerate(shape.positives):
            spared = sum(1 << j for j, leaf in optional.items() if leaf != positive.leaf)
            if not taken >> i & 1 and shape.before[i] & ~taken & ~spared == 0:
                yield positive
        for i, positive in enumerate(shape.positives):
            once_more = Positive(positive.leaf, positive.copy + 1)
            event = self._leaves[positive.leaf]
            over = any(shape.before[j] >> i & 1 for j in earlier) or once_more in shape.positives
            if taken >> i & 1 and not over and isinstance(event, Event) and positive.copy < event.most:
                yield once_more

    def _least(self, leaf: int) -> int:
        event = self._leaves[leaf]
        return event.least if isinstance(event, Event) else 0

    def _could_be(self, candidate: Positive, taken: Mapping[Positive, int], shape: Shape) -> Program:
        """Conditions on an event to be the candidate, using only earlier events."""
        whole = {p.leaf: sum(other.leaf == p.leaf for other in shape.positives) for p in shape.positives}
        present = {**taken, candidate: NEGATED}
        programs = []
        for conjunct in self._crossing:
            if conjunct.negated is not None or candidate.leaf not in conjunct.leaves:
                continue
            for positive_of in self._instances(conjunct, present):
                # The last event of an incomplete repetition is not known yet.
                known = all(
                    r.index != "last" or (p.leaf != candidate.leaf and p.copy == whole[p.leaf])
                    for r, p in positive_of.items()
                )
                if candidate in positive_of.values() and known and all(p in present for p in positive_of.values()):
                    at = {r: present[p] for r, p in positive_of.items()}
                    programs.append(self._program(conjunct.expression, at.__getitem__))
        return self._all(programs)


def _copy(reference: Reference, now: int, total: int) -> int:
    if isinstance(reference.index, int):
        return reference.index
    return {None: now, "prev": now - 1, "last": total}[reference.index]


def _places(elements: list[Leaf]) -> list[int]:
    """First place in a match of each element."""
    places, next_place = [], 0
    for leaf in elements:
        places.append(next_place)
        next_place += leaf.most if isinstance(leaf, Event) else 0
    return places
