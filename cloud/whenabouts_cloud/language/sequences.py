"""Converts parse trees to patterns of events; checks names, numbers and limits, each mistake with its place."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

from lark import Token

from whenabouts_cloud.language.event_conditions import Conditions
from whenabouts_cloud.language.timing import MAX_DURATION_US, Notes, confidence, duration
from whenabouts_cloud.pattern.compile import alternative_shapes, compile_pattern
from whenabouts_cloud.pattern.elements import (
    MAX_NESTED,
    MAX_PLACES,
    MAX_REPEAT,
    PLUS_REPEAT,
    And,
    Event,
    Leaf,
    Negated,
    Or,
    Part,
    PatternParts,
    Seq,
)
from whenabouts_cloud.pattern.plan import Mode

_GROUPS: dict[str, type[Seq] | type[And] | type[Or]] = {"seq": Seq, "both": And, "either": Or}
_WORDS = {"seq": "SEQ", "both": "AND", "either": "OR"}
# Options of a pattern, by kind; a pattern has at most one of each kind.
_PER, _MODE, _SELECT, _EMIT = "PER or ACROSS KEYS", "CERTAIN, POSSIBLE, OVER or CAUSAL", "NEXT or STRICT", "WHEN or ON"
_KINDS = {
    "per": _PER, "across": _PER, "certain": _MODE, "possible": _MODE, "over": _MODE, "causal": _MODE, "where": "WHERE",
    "next": _SELECT, "strict": _SELECT, "to_next": "SKIP", "past_last": "SKIP", "sure": _EMIT, "arrival": _EMIT,
}  # fmt: skip


def read_parts(
    tree: Any, notes: Notes, check_type: Callable[[Token], Any], unit_us: int | None, any_key: bool = False
) -> PatternParts | None:
    """Read the parts of a pattern from its tree, or return None with notes.

    `check_type` notes mistakes in the name of a type; `unit_us` is the unit of a window without one, None if a unit is
    required; with `any_key` PER may name anything, else only the key of readings.
    """
    before = len(notes.mistakes)
    group, span, *options = tree.children
    given: dict[str, Any] = {}
    for option in options:
        kind = _KINDS[option.data]
        if kind in given:
            notes.add(option, f"found a second {kind}, expected one")
        given.setdefault(kind, option)
    window_us = _window(span, notes, unit_us)
    elements = _Elements(notes, check_type)
    root = elements.group(group, 1)
    if "WHERE" in given:
        conditions = Conditions(notes, elements.leaves)
        where = tuple(conditions.read(given["WHERE"].children[0]))
    else:
        conditions, where = None, ()
    chosen = {kind: str(option.data) for kind, option in given.items()}
    mode = cast(Mode, chosen.get(_MODE, "certain"))
    probability = confidence(given[_MODE].children[0], notes) if mode == "over" else None
    key = _key(given.get(_PER), any_key, notes)
    emit, skip = chosen.get(_EMIT, "sure"), chosen.get("SKIP", "none")
    if emit == "arrival" and skip != "none":
        notes.add(given["SKIP"], "found SKIP with ON ARRIVAL, expected WHEN SURE: skipped matches are known only then")
    if len(notes.mistakes) > before or root is None or window_us is None:
        return None
    pattern = PatternParts(
        root,
        window_us,
        strict_window=len(span.children) == 2,
        mode=mode,
        probability=Fraction(1) if probability is None else probability,
        where=where,
        select=cast(Any, chosen.get(_SELECT, "any")),
        skip=cast(Any, skip),
        emit=cast(Any, emit),
        per_key=chosen.get(_PER) != "across",
        key=key,
    )
    return _compilable(pattern, group, conditions, notes)


def _compilable(pattern: PatternParts, group: Any, conditions: Conditions | None, notes: Notes) -> PatternParts | None:
    """Return the pattern if it keeps its limits, each condition applies somewhere, and it can be compiled."""
    try:
        alternatives = alternative_shapes(pattern)
        if conditions is None or conditions.check_together([shape for shape, _ in alternatives]):
            compile_pattern(pattern, pattern.types, 0)
            return pattern
    except ValueError as error:
        notes.add(group, str(error))
    return None


def _window(span: Any, notes: Notes, unit_us: int | None) -> int | None:
    strict, amount = len(span.children) == 2, span.children[-1]
    if len(amount.children) == 2:
        window_us = duration(amount, notes)
    else:
        window_us = _plain(amount.children[0], notes, unit_us)
    if window_us == 0 and strict:
        notes.add(amount, "found WITHIN < 0, expected more than 0: no window is shorter")
        return None
    return window_us


def _plain(number: Token, notes: Notes, unit_us: int | None) -> int | None:
    if unit_us is None:
        notes.add(number, f"found {number} without a unit, expected one as in {number} s")
        return None
    value = Fraction(str(number)) * unit_us
    if value.denominator != 1:
        notes.add(number, f"found {number} units of {unit_us} us, expected whole microseconds")
    elif value > MAX_DURATION_US:
        notes.add(number, f"found {number} units of {unit_us} us, expected at most ten years")
    else:
        return int(value)
    return None


def _key(option: Any, any_key: bool, notes: Notes) -> str:
    if option is None or option.data != "per":
        return "key"
    name = option.children[0]
    if name != "key" and not any_key:
        notes.add(name, f"found PER {name}, expected PER key, or ACROSS KEYS for events of any keys")
    return str(name)


class _Elements:
    """Reads groups and elements; `leaves` are the elements so far, each with the token of its name."""

    def __init__(self, notes: Notes, check_type: Callable[[Token], Any]) -> None:
        self._notes = notes
        self._check_type = check_type
        self._too_deep = False
        self._places = 0
        self.leaves: list[tuple[Leaf, Token]] = []

    def group(self, tree: Any, depth: int) -> Seq | And | Or | None:
        """Read a group, or return None if it is nested too deeply."""
        if depth > MAX_NESTED:
            if not self._too_deep:
                self._notes.add(tree, f"found groups nested more than {MAX_NESTED} deep, expected no more")
            self._too_deep = True
            return None
        word = _WORDS[tree.data]
        parts: list[Part] = []
        for child in tree.children:
            part = self._part(child, depth)
            if isinstance(part, Negated) and word == "OR":
                self._notes.add(child, f"found {part.text()} as an alternative, expected it inside SEQ or AND")
            if part is not None:
                parts.append(part)
        if parts and all(isinstance(part, Negated) for part in parts) and word != "OR":
            self._notes.add(tree, f"found {word} with nothing but negated elements, expected at least one that is not")
        return _GROUPS[tree.data](tuple(parts))

    def _part(self, tree: Any, depth: int) -> Part | None:
        if tree.data in _GROUPS:
            return self.group(tree, depth + 1)
        types, *rest = tree.children
        for n, name in enumerate(types.children):
            if name in types.children[:n]:
                self._notes.add(name, f"found the type {name} twice in one element, expected it once")
            self._check_type(name)
        repeat = rest.pop(0) if rest and not isinstance(rest[0], Token) else None
        alias = rest[0] if rest else None
        names = tuple(str(name) for name in types.children)
        name = None if alias is None or (alias,) == names else str(alias)
        if tree.data == "negated":
            if repeat is not None:
                self._notes.add(repeat, "found a repetition of a negated element, expected none: not one may be there")
            leaf: Leaf = Negated(names, name)
        else:
            leaf = Event(names, name, *self._repeat(repeat))
            self._count(leaf.most, tree)
        self._name(leaf, types.children[0] if alias is None else alias)
        return leaf

    def _count(self, places: int, tree: Any) -> None:
        before, self._places = self._places, self._places + places
        if before <= MAX_PLACES < self._places:
            self._notes.add(tree, f"found more than {MAX_PLACES} places for events, expected no more")

    def _repeat(self, tree: Any) -> tuple[int, int]:
        if tree is None:
            return 1, 1
        if tree.children[0].type == "PLUS":
            return 1, PLUS_REPEAT
        numbers = [x for x in tree.children if x.type == "NUMBER"]
        open_end = len(tree.children) == 2
        for number in numbers:
            if "." in number or not 1 <= int(number) <= MAX_REPEAT:
                self._notes.add(number, f"found {number} repetitions, expected a whole number from 1 to {MAX_REPEAT}")
                return 1, 1
        least = int(numbers[0])
        most = max(least, PLUS_REPEAT) if open_end else int(numbers[-1])
        if least > most:
            self._notes.add(tree, f"found {least} to {most} repetitions, expected the smaller number first")
            return 1, 1
        return least, most

    def _name(self, leaf: Leaf, token: Token) -> None:
        for other, _ in self.leaves:
            if other.label == leaf.label and (leaf.name or other.name):
                self._notes.add(token, f"found {leaf.label} as a name a second time, expected another one")
                break
        self.leaves.append((leaf, token))
