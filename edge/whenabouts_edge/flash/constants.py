"""Constants in the place of their names: on a board a name takes memory, and a small number or a short text takes none.

A constant is a name in capitals that its module gives a value once, made of numbers, short texts and other constants. A name
that is also set as an attribute somewhere (`module.NAME = 3`, as tests do) stays one.
"""

import ast
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from whenabouts_edge.flash.nodes import walk

CONSTANT_NAME = re.compile(r"_?[A-Z][A-Z0-9_]*")
_SMALL = range(-(1 << 30), 1 << 30)  # what a board keeps in a pointer
_TEXT_MAX = 10  # a longer text that is no name is an object of its own wherever it stands
_ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name)

Trees = Mapping[str, ast.Module]
Constants = dict[str, int | str]


def put_constants_in_place(trees: Trees) -> None:
    """Change the modules so; the statements that define constants stay."""
    stored, imports = {n: _stored(tree) for n, tree in trees.items()}, {n: _imports(tree) for n, tree in trees.items()}
    own: dict[str, Constants] = {name: {} for name in trees}
    seen: dict[str, Constants] = {name: {} for name in trees}  # with those that it imports
    size = -1
    while size != (size := sum(map(len, seen.values()))):
        for name, tree in trees.items():
            own[name] |= _constants_of(tree, stored[name], seen[name])
            seen[name] |= own[name] | _imported(imports[name], own)
    changed = {
        node.attr
        for tree in trees.values()
        for node in walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    for name, tree in trees.items():
        _Inline({one: value for one, value in seen[name].items() if one not in changed}).visit(tree)


def _stored(tree: ast.Module) -> Counter[str]:
    """How often a module gives each name a value."""
    return Counter(node.id for node in walk(tree) if isinstance(node, ast.Name) and type(node.ctx) is ast.Store)


def _imports(tree: ast.Module) -> list[ast.ImportFrom]:
    return [node for node in walk(tree) if isinstance(node, ast.ImportFrom)]


def _constants_of(tree: ast.Module, stored: Counter[str], known: Constants) -> Constants:
    """The constants that a module defines by numbers, short texts, and known ones."""
    found: Constants = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        if not any(isinstance(one, ast.Name) and CONSTANT_NAME.fullmatch(one.id) for one in names):
            continue
        value = _value(node.value, {**known, **found})
        values = value if isinstance(target, ast.Tuple) and isinstance(value, tuple) else [value]
        for one, number in zip(names, values, strict=False):
            fits = number in _SMALL if type(number) is int else type(number) is str and len(number) <= _TEXT_MAX
            if fits and isinstance(one, ast.Name) and CONSTANT_NAME.fullmatch(one.id) and stored[one.id] == 1:
                found[one.id] = number
    return found


def _value(node: ast.expr, known: Constants) -> Any:
    """What an expression of known constants is; None for any other. A tuple for several."""
    if isinstance(node, ast.Tuple):
        return tuple(_value(one, known) for one in node.elts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        limits = [_value(one, known) for one in node.args]
        return tuple(range(*limits)) if all(type(one) is int for one in limits) else None
    if not all(
        isinstance(one, _ARITHMETIC) and (not isinstance(one, ast.Name) or one.id in known) for one in walk(node)
    ):
        return None
    return eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}}, dict(known))


def _imported(imports: list[ast.ImportFrom], own: Mapping[str, Constants]) -> Constants:
    return {
        alias.asname or alias.name: own[node.module or ""][alias.name]
        for node in imports
        for alias in node.names
        if alias.name in own.get(node.module or "", {})
    }


class _Inline(ast.NodeTransformer):
    """Puts the values of constants in the place of their names."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._constants or type(node.ctx) is not ast.Load:
            return node
        value = self._constants[node.id]
        if type(value) is int and value < 0:
            return ast.UnaryOp(ast.USub(), ast.Constant(-value))
        return ast.Constant(value)
