"""Short names for what a board's program calls by names of its own: each takes some twenty bytes of its memory, once.

Numbers take the place of parameters that nobody names in a call, and of private attributes and methods; `module_names` does
the same for functions and classes. A traceback of a board therefore shows numbers for these. Left are:

    names that stand in a text, or that somebody else looks up
    public attributes and methods: objects of the firmware have such too, and the firmware may look them up in ours

Two attributes become the same one where no object can have both: in modules whose classes do not inherit from each other's.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from itertools import count
from typing import Any

from whenabouts_edge.flash.nodes import Nodes, parts, walk
from whenabouts_edge.flash.refusals import ProgramError

PARAMETERS_MAX = 16  # of a function and those around it; names of modules are numbered from here on
Trees = Mapping[str, ast.Module]


def shorten_attributes(trees: Trees, kept: Collection[str]) -> None:
    """Number parameters and private attributes in place; kept: names that somebody else looks up."""
    nodes_of = {name: walk(tree) for name, tree in trees.items()}
    named = {"self", *kept}.union(*map(texts, nodes_of.values()))
    places = _short_attributes(nodes_of, named)
    for name, tree in trees.items():
        _Parameters(named | set(bound_otherwise(nodes_of[name]))).visit(tree)
        methods = set(map(id, _methods(nodes_of[name])))
        for node in nodes_of[name]:
            if isinstance(node, ast.Attribute):
                node.attr = places.get(node.attr, node.attr)
            elif id(node) in methods:
                node.name = places.get(node.name, node.name)  # type: ignore[attr-defined]  # a function has one


def numbered(names: Collection[str], groups: Collection[Collection[str]], first: int) -> dict[str, str]:
    """A number for each name, from the first on, another one than those of all in one of its groups."""
    places: dict[str, int] = {}
    for name in sorted(names, key=lambda name: (-sum(name in group for group in groups), name)):
        taken = {places.get(other) for group in groups if name in group for other in group}
        places[name] = next(place for place in count(first) if place not in taken)
    return {name: f"_{place}" for name, place in places.items()}


def bound_otherwise(nodes: Nodes) -> Iterator[str]:
    """Names that something else than an assignment or a parameter binds, and those that a class may hide."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
            if isinstance(node, ast.ClassDef):
                yield from within_class(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((one.asname or one.name).split(".")[0] for one in node.names)
        else:
            yield from bound_by_text(node)


def within_class(node: ast.ClassDef) -> Iterator[str]:
    """Names that are looked up while the class is made, where its methods hide others."""
    for statement in node.body:
        outside: list[ast.AST | None] = [statement]
        if isinstance(statement, ast.FunctionDef):
            outside = [*statement.decorator_list, *statement.args.defaults, *statement.args.kw_defaults]
        yield from (one.id for part in outside if part for one in walk(part) if isinstance(one, ast.Name))


def bound_by_text(node: ast.AST) -> Iterator[str]:
    """Names that a node binds, or says the scope of, by a text."""
    if isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    elif isinstance(node, ast.arguments):
        yield from (one.arg for one in (*node.kwonlyargs, node.vararg, node.kwarg) if one)


def _short_attributes(nodes_of: Mapping[str, Nodes], left: Collection[str]) -> dict[str, str]:
    """Private methods, and attributes that are set on objects; the same number for those that no object has both of."""
    defined = set[str]()
    for nodes in nodes_of.values():
        defined |= {node.name for node in _methods(nodes)} | {node.attr for node in _set_attributes(nodes)}
    defined = {name for name in defined if name.startswith("_") and not name.startswith("__") and name not in left}
    defined -= set[str]().union(*map(_of_classes, nodes_of.values()), *_asked_of_modules(nodes_of))
    from_outside = set[str]().union(*map(_set_from_outside, nodes_of.values()))
    within = {name: _attributes(nodes) | from_outside for name, nodes in nodes_of.items()}
    bases = {name: set(_modules_of_bases(nodes, nodes_of)) for name, nodes in nodes_of.items()}
    groups = [_with_bases(name, bases, within) & defined for name in nodes_of]
    return numbered(defined, groups, 0)


class _Parameters(ast.NodeTransformer):
    """Numbers the parameters of each function, on from those of the function around it. named: left as they are."""

    def __init__(self, named: Collection[str]) -> None:
        self._named = named
        self._short: dict[str, str] = {}
        self._count = 0

    def _function(self, node: ast.FunctionDef | ast.Lambda) -> Any:
        outside, count = self._short, self._count
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.args.defaults = [self.visit(one) for one in node.args.defaults]
        node.args.kw_defaults = [one and self.visit(one) for one in node.args.kw_defaults]
        self._short = dict(outside)
        for arg in [*node.args.posonlyargs, *node.args.args]:
            if arg.arg not in self._named:
                self._short[arg.arg] = f"_{self._count}"
                arg.arg = self._short[arg.arg]
                self._count += 1
        if self._count > PARAMETERS_MAX:
            raise ProgramError(
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


def _classes(nodes: Nodes) -> list[ast.ClassDef]:
    return [node for node in nodes if isinstance(node, ast.ClassDef)]


def _methods(nodes: Nodes) -> list[ast.FunctionDef]:
    return [one for node in _classes(nodes) for one in node.body if isinstance(one, ast.FunctionDef)]


def _asked_of_modules(nodes_of: Mapping[str, Nodes]) -> Iterator[set[str]]:
    """The names of those modules of ours that another imports as a whole."""
    for nodes in nodes_of.values():
        for node in nodes:
            if isinstance(node, ast.Import):
                whole = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                whole = [f"{node.module}.{one.name}" for one in node.names]
            else:
                continue
            for name in nodes_of.keys() & whole:
                body = parts(nodes_of[name][0])
                functions = {one.name for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
                yield functions.union(*map(stored, body), *map(_bound_by_import, body))


def _bound_by_import(statement: ast.AST) -> set[str]:
    if not isinstance(statement, ast.Import | ast.ImportFrom):
        return set()
    return {one.asname or one.name for one in statement.names}


def _set_attributes(nodes: Nodes) -> list[ast.Attribute]:
    return [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]


def _set_from_outside(nodes: Nodes) -> set[str]:
    """Attributes that are set on another object than the one whose method it is: nobody knows which has them."""
    return {node.attr for node in _set_attributes(nodes) if getattr(node.value, "id", "") != "self"}


def _of_classes(nodes: Nodes) -> set[str]:
    """What classes give their objects without a method."""
    kept = [one for node in _classes(nodes) for one in node.body if not isinstance(one, ast.FunctionDef)]
    return set[str]().union(*map(stored, kept))


def stored(tree: ast.AST) -> set[str]:
    """Names that get a value."""
    return {node.id for node in walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _attributes(nodes: Nodes) -> set[str]:
    """Attributes that a module uses, and its methods."""
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return used | {node.name for node in _methods(nodes)}


def texts(nodes: Nodes) -> set[str]:
    """Names in calls, and texts."""
    keywords = {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg}
    return keywords | {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _modules_of_bases(nodes: Nodes, modules: Collection[str]) -> Iterator[str]:
    """Those of these modules that bases of its classes are imported from."""
    bases = {base.id for node in _classes(nodes) for base in node.bases if isinstance(base, ast.Name)}
    for node in (one for one in nodes if isinstance(one, ast.ImportFrom)):
        if node.module and node.module in modules and bases & {alias.name for alias in node.names}:
            yield node.module


def _with_bases(name: str, bases: Mapping[str, set[str]], within: Mapping[str, set[str]]) -> set[str]:
    """The attributes of a module, and of those that its classes' bases come from."""
    found, waiting = set[str](), [name]
    while waiting:
        module = waiting.pop()
        found |= within[module]
        waiting += bases[module]
    return found
