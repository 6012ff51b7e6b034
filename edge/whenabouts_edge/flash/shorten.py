"""Short names for what a board's program calls by names of its own: each takes some twenty bytes of its memory, once.

Numbers take the place of functions, classes and constants of modules, of parameters that nobody names in a call, and of
private attributes and methods. A traceback of a board therefore shows numbers for these. Left are:

    names that stand in a text, or that somebody else looks up
    public attributes and methods: objects of the firmware have such too, and the firmware may look them up in ours

Two attributes become the same one where no object can have both: in modules whose classes do not inherit from each other's.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

PARAMETERS_MAX = 16  # of a function and those around it; names of modules are numbered from here on
Trees = Mapping[str, ast.Module]


def shorten(trees: Trees, kept: Collection[str]) -> None:
    """Rename in place; kept: names that somebody else looks up."""
    named = {"self", *kept}.union(*map(_named, trees.values()))
    of_modules = _short_names_of_modules(trees, named)
    attributes = _short_attributes(trees, named)
    for tree in trees.values():
        _Parameters(named).visit(tree)
        methods = set(map(id, _methods(tree)))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                node.attr = attributes.get(node.attr, node.attr)
            elif isinstance(node, ast.Name):
                node.id = of_modules.get(node.id, node.id)
            elif id(node) in methods:
                node.name = attributes.get(node.name, node.name)  # type: ignore[attr-defined]  # a function has one
            elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.alias):
                node.name = of_modules.get(node.name, node.name)


def _short_names_of_modules(trees: Trees, named: Collection[str]) -> dict[str, str]:
    """A number for each function, class and variable of modules that is no parameter, variable or attribute anywhere."""
    found, elsewhere = set[str](), set(named)
    for tree in trees.values():
        top = set(map(id, tree.body))
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                found.add(statement.name)
            elif isinstance(statement, ast.Assign | ast.AnnAssign):
                found |= set(_stored(statement))
            else:
                elsewhere |= set(_stored(statement))
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                elsewhere.add(node.arg)
            elif isinstance(node, ast.Attribute):
                elsewhere.add(node.attr)
            elif isinstance(node, ast.alias) and node.asname:
                elsewhere |= {node.asname, node.name}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda) and id(node) not in top:
                elsewhere.add(getattr(node, "name", ""))
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                elsewhere |= set(chain.from_iterable(map(_stored, node.body)))
    short = sorted(name for name in found - elsewhere if not name.startswith("__"))
    return {name: f"_{PARAMETERS_MAX + n}" for n, name in enumerate(short)}


def _short_attributes(trees: Trees, left: Collection[str]) -> dict[str, str]:
    """Private methods, and attributes that are set on objects; the same number for those that no object has both of."""
    defined = set[str]()
    for tree in trees.values():
        defined |= {node.name for node in _methods(tree)} | set(_set_on_objects(tree))
    defined = {name for name in defined if name.startswith("_") and not name.startswith("__") and name not in left}
    defined -= set[str]().union(*map(_of_classes, trees.values()), *_asked_of_modules(trees))
    from_outside = set[str]().union(*map(_set_from_outside, trees.values()))
    within = {name: _attributes(tree) | from_outside for name, tree in trees.items()}
    groups = [_with_bases(name, trees, within) & defined for name in trees]
    places: dict[str, int] = {}
    for name in sorted(defined, key=lambda name: (-sum(name in group for group in groups), name)):
        taken = {places.get(other) for group in groups if name in group for other in group}
        places[name] = next(place for place in range(len(defined) + 1) if place not in taken)
    return {name: f"_{place}" for name, place in places.items()}


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


def _methods(tree: ast.Module) -> list[ast.FunctionDef]:
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return [one for node in classes for one in ast.walk(node) if isinstance(one, ast.FunctionDef) and one in node.body]


def _asked_of_modules(trees: Trees) -> Iterator[set[str]]:
    """The names of those modules of ours that another imports as a whole."""
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                whole = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                whole = [f"{node.module}.{one.name}" for one in node.names]
            else:
                continue
            for name in set(whole) & set(trees):
                body = trees[name].body
                functions = {one.name for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
                yield functions.union(*map(_stored, body), *map(_bound_by_import, body))


def _bound_by_import(statement: ast.stmt) -> set[str]:
    if not isinstance(statement, ast.Import | ast.ImportFrom):
        return set()
    return {one.asname or one.name for one in statement.names}


def _set_from_outside(tree: ast.Module) -> Iterator[str]:
    """Attributes that are set on another object than the one whose method it is: nobody knows which has them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) != "self":
            yield node.attr


def _of_classes(tree: ast.Module) -> set[str]:
    """What classes give their objects without a method."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    kept = [one for node in classes for one in node.body if not isinstance(one, ast.FunctionDef)]
    return set[str]().union(*map(_stored, kept))


def _set_on_objects(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _stored(tree: ast.AST) -> set[str]:
    """Names that get a value."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _attributes(tree: ast.Module) -> set[str]:
    """Attributes that a module uses, and its methods."""
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return used | {node.name for node in _methods(tree)}


def _named(tree: ast.Module) -> set[str]:
    """Names in calls, and texts."""
    keywords = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
    return keywords | {
        str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def _with_bases(name: str, trees: Trees, within: Mapping[str, set[str]]) -> set[str]:
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
