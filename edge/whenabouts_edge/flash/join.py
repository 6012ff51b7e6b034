"""The modules that a program loads at its start, as one module: each takes some 300 bytes of a board's memory for itself.

Their statements stand behind each other, what is imported before what imports it, and their imports from each other go away.
That means the same as long as no name means two things. A module in which one would stays a module of its own, like those
that are imported later or as a whole (`from package import module`), and takes what it imports from the joined one.
`refusals` has refused imports of `*` before.
"""

import ast
import builtins
from collections.abc import Iterator, Mapping

from whenabouts_edge.flash.failure import FlashError
from whenabouts_edge.flash.nodes import walk

Trees = dict[str, ast.Module]
_BUILTIN = frozenset(dir(builtins))
READERS = "whenabouts_hardware.readers."  # loaded by name; what they import stays loaded with the root
_OWN_MEANING = ("__name__", "__file__", "globals")  # what would be another's in another module


class JoinError(FlashError):
    """A program that cannot be joined; the text says why."""


def joined(trees: Mapping[str, ast.Module], root: str) -> Trees:
    """The program with the root and what it loads as one module by the root's name. The trees are changed.

    Raises:
        JoinError: a module imports itself by way of others, or the root cannot be joined.
    """
    order = _loaded_in_order(trees, root)
    inside = _together(trees, order, root)
    for node in (node for tree in trees.values() for node in walk(tree)):
        if isinstance(node, ast.ImportFrom) and node.module in inside:
            node.module = root
    body: list[ast.stmt] = []
    imports: set[str] = set()
    for name in (one for one in order if one in inside):
        for statement in _WithoutImports(root).visit(trees[name]).body:
            line = ast.unparse(statement) if isinstance(statement, ast.Import | ast.ImportFrom) else ""
            if line not in imports:
                body.append(statement)
                imports |= {line} - {""}
    return {**{name: tree for name, tree in trees.items() if name not in inside}, root: ast.Module(body, [])}


def _loaded_in_order(trees: Mapping[str, ast.Module], root: str) -> list[str]:
    """The root and what is loaded with it, each behind what it imports."""
    order: list[str] = []
    begun: set[str] = set()

    def load(name: str) -> None:
        if name in order or name not in trees:
            return
        if name in begun:
            raise JoinError(f"{name}: found an import of itself by way of others, expected none")
        begun.add(name)
        for statement in trees[name].body:
            if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                load_imports(statement)
        order.append(name)

    def load_imports(where: ast.AST) -> None:
        for node in walk(where):
            if isinstance(node, ast.ImportFrom):
                load(node.module or "")

    for name in trees:
        if name.startswith(READERS):
            load_imports(trees[name])
    load(root)
    return order


def _together(trees: Mapping[str, ast.Module], order: list[str], root: str) -> set[str]:
    """The modules that may be one: no package, none that is imported as a whole, no name that means two things."""
    whole = set(_imported_whole(trees)) - {root}
    packages = {name.rpartition(".")[0] for name in trees}
    inside: set[str] = set()
    meanings: dict[str, str] = {}
    for name in [root, *(one for one in order if one != root)]:
        own = dict(_meanings(trees[name], name, trees))
        hides = any(meanings.get(one, meaning) != meaning or one in _BUILTIN for one, meaning in own.items())
        if name in whole or name in packages or hides or _depends_on_its_module(trees[name]):
            if name == root:
                raise JoinError(f"{root}: found a package, or a name that means something else, expected neither")
            continue
        inside.add(name)
        meanings |= own
    return inside


def _meanings(tree: ast.Module, name: str, trees: Mapping[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """The names of a module, and what each is: where it is made, or what is imported from outside."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name, name
            continue
        for node in walk(statement):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield node.name, name
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, name
            elif isinstance(node, ast.Import):
                yield from ((one.asname or one.name.split(".")[0], ast.unparse(one)) for one in node.names)
            elif isinstance(node, ast.ImportFrom):
                source = node.module or ""
                for one in node.names:
                    plain = source in trees and one.asname in (None, one.name)
                    yield one.asname or one.name, source if plain else f"{source}: {ast.unparse(one)}"


def _depends_on_its_module(tree: ast.Module) -> bool:
    """Whether it asks for its own name or names, or changes a name that others may have imported as it was."""
    nodes = walk(tree)
    asks = any(isinstance(node, ast.Name) and node.id in _OWN_MEANING for node in nodes)
    return asks or any(isinstance(node, ast.Global) for node in nodes)


def _imported_whole(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    for tree in trees.values():
        for node in walk(tree):
            if isinstance(node, ast.Import):
                yield from (one.name for one in node.names if one.name in trees)
            elif isinstance(node, ast.ImportFrom):
                for one in node.names:
                    yield f"{node.module}.{one.name}"
                    if one.asname not in (None, one.name):
                        yield node.module or ""  # by another name: there is no other in the joined one


class _WithoutImports(ast.NodeTransformer):
    """Takes the imports from one module away, wherever they stand."""

    def __init__(self, module: str) -> None:
        self._module = module

    def visit_ImportFrom(self, node: ast.ImportFrom) -> "ast.ImportFrom | None":
        return None if node.module == self._module else node
