"""Short names for what a board's program calls by names of its own: each takes some twenty bytes of its memory, once.

Private functions and attributes that the program itself sets, and parameters that nobody names in a call. A traceback of a
board therefore shows numbers for these. Two names become the same one where no object can have both: in modules whose
classes do not inherit from each other's.
"""

import ast
from collections.abc import Collection, Mapping
from typing import Any

PARAMETERS_MAX = 16  # of a function and those around it; functions of modules are numbered from here on


def shorten(trees: Mapping[str, ast.Module], kept: Collection[str]) -> None:
    """Rename in place; kept: names that somebody else looks up."""
    within = {name: _looked_up(tree) for name, tree in trees.items()}
    functions = set[str]().union(*map(_functions, trees.values()))
    named = set(kept).union({"self"}, *map(_named, trees.values()))
    private = functions.union(*map(_written, trees.values())) - named
    private -= set[str]().union(*map(_variables, trees.values()))
    groups = [_with_bases(name, trees, within) & private for name in trees]
    places: dict[str, int] = {}
    for name in sorted(private, key=lambda name: (-sum(name in group for group in groups), name)):
        taken = {places.get(other) for group in groups if name in group for other in group}
        first = PARAMETERS_MAX if name in functions else 0
        places[name] = next(place for place in range(first, first + len(private) + 1) if place not in taken)
    short = {name: f"_{place}" for name, place in places.items()}
    for tree in trees.values():
        _Parameters(named).visit(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                node.attr = short.get(node.attr, node.attr)
            elif isinstance(node, ast.Name):
                node.id = short.get(node.id, node.id)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.alias):
                node.name = short.get(node.name, node.name)


class _Parameters(ast.NodeTransformer):
    """Numbers the parameters of each function, on from those of the function around it. named: left as they are."""

    def __init__(self, named: Collection[str]) -> None:
        self._named = named
        self._short: dict[str, str] = {}
        self._count = 0

    def _function(self, node: ast.FunctionDef | ast.Lambda) -> Any:
        outside, count = self._short, self._count
        node.args.defaults = [self.visit(one) for one in node.args.defaults]
        node.args.kw_defaults = [one and self.visit(one) for one in node.args.kw_defaults]
        self._short = dict(outside)
        for arg in [*node.args.posonlyargs, *node.args.args]:
            if arg.arg not in self._named:
                self._short[arg.arg] = f"_{self._count}"
                arg.arg = self._short[arg.arg]
                self._count += 1
        if self._count > PARAMETERS_MAX:
            raise ValueError(
                f"parameters: found {self._count} in functions within each other, expected {PARAMETERS_MAX}"
            )
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            node.body = [self.visit(one) for one in node.body]
        self._short, self._count = outside, count
        return node

    visit_FunctionDef = visit_Lambda = _function

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._short.get(node.id, node.id)
        return node


def _looked_up(tree: ast.Module) -> set[str]:
    """Names and attributes that a module uses or defines."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.alias):
            found.add(node.name)
    return found


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and len(name) > 1


def _functions(tree: ast.Module) -> set[str]:
    """Private functions, methods and classes."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return {node.name for node in nodes if _is_private(node.name)}


def _written(tree: ast.Module) -> set[str]:
    """Private attributes that are set on objects."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return {node.attr for node in nodes if _is_private(node.attr)}


def _variables(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _named(tree: ast.Module) -> set[str]:
    """Names in calls, and texts."""
    keywords = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
    return keywords | {
        str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def _with_bases(name: str, trees: Mapping[str, ast.Module], within: Mapping[str, set[str]]) -> set[str]:
    """The attributes of a module, and of those that its classes' bases come from."""
    found, waiting = set[str](), [name]
    while waiting:
        module = waiting.pop()
        found |= within[module]
        bases = {base.id for node in ast.walk(trees[module]) if isinstance(node, ast.ClassDef) for base in node.bases
                 if isinstance(base, ast.Name)}  # fmt: skip
        waiting += [
            node.module or ""
            for node in ast.walk(trees[module])
            if isinstance(node, ast.ImportFrom)
            and node.module in trees
            and bases & {alias.name for alias in node.names}
        ]
    return found
