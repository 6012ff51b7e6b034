"""Converts parse trees to conditions: checks numbers, truth values and texts, and resolves names of elements."""

import difflib
import math
from collections.abc import Sequence
from typing import Any, Literal, cast

from lark import Token

from whenabouts_cloud.epc.rule_words import WORDS, mistake_in
from whenabouts_cloud.language.timing import Notes, UnreadableError, duration
from whenabouts_cloud.pattern.elements import Event, Leaf, Negated
from whenabouts_cloud.pattern.expressions import (
    MAX_DEPTH,
    NAMED,
    Attribute,
    Constant,
    Expression,
    Operation,
    Reference,
    Related,
    TextIs,
    conjuncts,
    references,
)
from whenabouts_cloud.pattern.plan import Op
from whenabouts_cloud.pattern.unfold import Shape

_JOINS: dict[str, Op] = {"any_holds": "or", "all_hold": "and"}
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


class Conditions:
    """Reads the conditions of one pattern; its elements are given, each with the token of its name."""

    def __init__(self, notes: Notes, leaves: Sequence[tuple[Leaf, Token]]) -> None:
        self._notes = notes
        self._leaves = [leaf for leaf, _ in leaves]
        self._labels: dict[str, list[int]] = {}
        for number, leaf in enumerate(self._leaves):
            self._labels.setdefault(leaf.label, []).append(number)
        self._read: list[tuple[Expression, Any]] = []

    def read(self, tree: Any) -> list[Expression]:
        """Read the conditions that a WHERE joins by AND; mistakes are noted, and their conditions left out."""
        for one in self._split(tree):
            before = len(self._notes.mistakes)
            try:
                truth = self._truth(one, 1)
            except UnreadableError:
                continue
            if len(self._notes.mistakes) == before and self._names_elements(truth, one):
                self._read += [(expression, one) for expression in conjuncts(truth)]
        return [expression for expression, _ in self._read]

    def check_together(self, shapes: Sequence[Shape]) -> bool:
        """Note each condition whose elements are never in one alternative; return True if there is none."""
        present = [{p.leaf for p in shape.positives} | {gap.leaf for gap in shape.gaps} for shape in shapes]
        fine = True
        for expression, tree in self._read:
            named = {r.name: self._labels[r.name][0] for r in references(expression)}
            if not any(set(named.values()) <= leaves for leaves in present):
                fine = False
                self._notes.add(tree, f"found a condition on {' and '.join(named)}, which are never in one match")
        return fine

    def _split(self, tree: Any) -> list[Any]:
        return list(tree.children) if not isinstance(tree, Token) and tree.data == "all_hold" else [tree]

    def _names_elements(self, expression: Expression, tree: Any) -> bool:
        for one in conjuncts(expression):
            named = {r.name for r in references(one)}
            negated = sorted(n for n in named if isinstance(self._leaves[self._labels[n][0]], Negated))
            if not named:
                self._notes.add(tree, "found a condition that names no element, expected one as in a.value > 3")
                return False
            if len(negated) > 1:
                self._notes.add(
                    tree,
                    f"found {' and '.join(negated)} in one condition, both negated; expected one condition for each",
                )
                return False
        return True

    def _truth(self, tree: Any, depth: int) -> Expression:
        expression: Expression | str = self._any(tree, depth)
        if isinstance(expression, Attribute):
            return Operation("!=", (expression, Constant(0.0)))
        if not isinstance(expression, str) and _is_truth(expression):
            return expression
        raise self._notes.unreadable(tree, f"found {_describe(expression)}, expected a condition as in a.value > 3")

    def _number(self, tree: Any, depth: int) -> Expression:
        expression: Expression | str = self._any(tree, depth)
        if isinstance(expression, str) or _is_truth(expression) or _is_word(expression):
            raise self._notes.unreadable(tree, f"found {_describe(expression)}, expected a number or an attribute")
        return expression

    def _any(self, tree: Any, depth: int) -> Expression | str:
        """Read the expression of a tree; for a text return the text."""
        if depth > MAX_DEPTH:
            raise self._notes.unreadable(
                tree, f"found an expression nested more than {MAX_DEPTH} deep, expected no more"
            )
        match tree.data:
            case "any_holds" | "all_hold":
                operands = tuple(self._truth(child, depth + 1) for child in tree.children)
                return Operation(_JOINS[tree.data], operands)
            case "denied":
                return Operation("not", (self._truth(tree.children[0], depth + 1),))
            case "compared":
                return self._compared(tree, depth)
            case "related":
                a, relation, b = tree.children
                return Related(str(relation.data), self._reference(a), self._reference(b))
            case "calculated":
                left, sign, right = tree.children
                return Operation(cast(Op, str(sign)), (self._number(left, depth + 1), self._number(right, depth + 1)))
            case "negative":
                return Operation("negate", (self._number(tree.children[0], depth + 1),))
            case "attribute":
                return self._attribute(tree)
            case "number":
                return self._constant(tree)
            case _:
                return str(tree.children[0])[1:-1]

    def _compared(self, tree: Any, depth: int) -> Expression:
        left, sign, right = tree.children
        operands = [self._any(side, depth + 1) for side in (left, right)]
        numbers = [x for x in operands if not isinstance(x, str)]
        if len(numbers) == 2:
            for side, of in zip(numbers, (left, right), strict=True):
                if _is_truth(side):
                    raise self._notes.unreadable(of, f"found {_describe(side)}, expected a number or an attribute")
            self._check_words(tree, numbers, str(sign))
            return Operation(cast(Op, str(sign)), tuple(numbers))
        text = next(x for x in operands if isinstance(x, str))
        attribute = operands[1] if isinstance(operands[0], str) else operands[0]
        if not isinstance(attribute, Attribute):
            raise self._notes.unreadable(
                tree, f'found "{text}" compared with {_describe(attribute)}, expected an attribute'
            )
        if sign not in ("=", "!="):
            raise self._notes.unreadable(sign, f'found {sign} "{text}", expected = or !=: text has no order here')
        mistake = mistake_in(attribute.column, text) if _is_word(attribute) else None
        if mistake is not None:
            raise self._notes.unreadable(tree, mistake)
        return TextIs(attribute, text, str(sign) == "=")

    def _check_words(self, tree: Any, sides: list[Expression], sign: str) -> None:
        """Words of names are texts: they are compared with an attribute, by = and !=."""
        words = [side for side in sides if _is_word(side)]
        if words and sign not in ("=", "!="):
            raise self._notes.unreadable(
                tree, f"found {words[0].text()} {sign}, expected = or !=: text has no order here"
            )
        if words and not all(isinstance(side, Attribute) for side in sides):
            number = next(side for side in sides if not isinstance(side, Attribute))
            raise self._notes.unreadable(
                tree, f"found {words[0].text()} compared with {_describe(number)}, expected a text in quotes"
            )

    def _attribute(self, tree: Any) -> Attribute:
        reference, first, *second = tree.children
        of = self._reference(reference)
        if not second:
            if first == "attrs":
                raise self._notes.unreadable(first, "found attrs, expected an attribute as in attrs.rssi")
            return Attribute(of, str(first))
        if first != "attrs":
            raise self._notes.unreadable(first, f"found {first}.{second[0]}, expected {first} or attrs.{second[0]}")
        name = str(second[0])
        return Attribute(of, f"attrs.{name}" if name in NAMED else name)

    def _constant(self, tree: Any) -> Constant:
        number = tree.children[0]
        if len(tree.children) == 2:
            us = duration(tree, self._notes)
            if us is None:
                raise UnreadableError
            return Constant(float(us))
        if not math.isfinite(float(number)):
            raise self._notes.unreadable(number, f"found a number of {len(number)} digits, expected one below 1e308")
        return Constant(float(number))

    def _reference(self, tree: Any) -> Reference:
        name, *index = tree.children
        numbers = self._labels.get(str(name), [])
        if len(numbers) != 1:
            raise self._notes.unreadable(name, self._unknown(str(name), len(numbers)))
        if not index:
            return Reference(str(name))
        leaf = self._leaves[numbers[0]]
        if not isinstance(leaf, Event) or leaf.most == 1:
            raise self._notes.unreadable(index[0], f"found {name}[{index[0]}], expected {name}: it is not repeated")
        if index[0].type == "NUMBER":
            number = str(index[0])
            if "." in number or not 1 <= int(number) <= leaf.most:
                raise self._notes.unreadable(
                    index[0], f"found {name}[{number}], expected a whole number from 1 to {leaf.most}"
                )
            return Reference(str(name), int(number))
        return Reference(str(name), cast(Literal["last", "prev"], index[0].lower()))

    def _unknown(self, name: str, times: int) -> str:
        if times:
            return f"found {name}, which is {times} elements; expected a different name for each, as in {name} x"
        near = difflib.get_close_matches(name, self._labels, n=1)
        hint = f"; did you mean {near[0]}?" if near else f", which are {', '.join(self._labels)}"
        return f"found {name}, expected one of the elements{hint}"


def _is_word(x: Any) -> bool:
    return isinstance(x, Attribute) and x.column in WORDS


def _is_truth(x: Any) -> bool:
    return isinstance(x, TextIs | Related) or (
        isinstance(x, Operation) and (x.op in _COMPARISONS or x.op in ("and", "or", "not"))
    )


def _describe(x: Any) -> str:
    if isinstance(x, str):
        return f'the text "{x}"'
    kind = "condition" if _is_truth(x) else "text" if _is_word(x) else "number"
    return f"the {kind} {x.text()}"
