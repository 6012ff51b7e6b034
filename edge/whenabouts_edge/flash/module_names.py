"""Numbers for the functions, classes and variables of a board's modules, each of which takes some twenty bytes for its name.

Two names become the same number where no module mentions both. Left are names that mean something else too anywhere in the
program (a parameter, an attribute, a module, a variable of a class), that stand in a text, or that somebody else looks up.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from itertools import chain

from whenabouts_edge.flash.nodes import Nodes, parts, walk
from whenabouts_edge.flash.shorten import PARAMETERS_MAX, bound_by_text, numbered, stored, texts, within_class

Trees = Mapping[str, ast.Module]


def shorten_modules(trees: Trees, kept: Collection[str]) -> None:
    """Number them in place; kept: names that somebody else looks up."""
    nodes_of = {name: walk(tree) for name, tree in trees.items()}
    left = set(kept).union(*map(texts, nodes_of.values()), *(_otherwise(nodes, trees) for nodes in nodes_of.values()))
    made = set[str]().union(*map(_made_by_module, trees.values()))
    made = {name for name in made if name not in left and not name.startswith("__")}
    places = numbered(made, [_mentioned(nodes) & made for nodes in nodes_of.values()], PARAMETERS_MAX)
    for node in chain.from_iterable(nodes_of.values()):
        if isinstance(node, ast.Name):
            node.id = places.get(node.id, node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.alias):
            node.name = places.get(node.name, node.name)


def _made_by_module(tree: ast.Module) -> set[str]:
    functions = {one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
    return functions.union(*(stored(one) for one in tree.body if isinstance(one, ast.Assign)))


def _mentioned(nodes: Nodes) -> set[str]:
    """All names that stand in a module, whatever they are there."""
    found = {node.id for node in nodes if isinstance(node, ast.Name)}
    return found | {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.alias)}


def _otherwise(nodes: Nodes, modules: Collection[str]) -> Iterator[str]:
    """Names that mean something else somewhere too, or that are bound by a text."""
    top = set(map(id, parts(nodes[0])))
    for node in nodes:
        yield from bound_by_text(node)
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Import):
            yield from ((one.asname or one.name).split(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _imported_otherwise(node, modules)
        elif isinstance(node, ast.FunctionDef) and id(node) not in top:
            yield node.name
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ClassDef):
            yield from within_class(node)
            if id(node) not in top:
                yield node.name
    for statement in parts(nodes[0]):
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.Assign):
            yield from stored(statement)


def _imported_otherwise(node: ast.ImportFrom, modules: Collection[str]) -> Iterator[str]:
    """Names that come from elsewhere than these modules, are modules themselves, or get another name."""
    for one in node.names:
        if one.asname or node.module not in modules or f"{node.module}.{one.name}" in modules:
            yield from (one.name, one.asname or one.name)
