"""Which definitions and imports of a program nobody mentions: these are taken away.

By names alone, wherever they stand: a function stays when its name is a variable, an attribute, a keyword or a text anywhere
else in the program. So too much may stay, and never too little, as long as no name is put together while the program runs,
which `refusals` sees to. What Python itself calls (`__init__`) stays.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from whenabouts_edge.flash.constants import CONSTANT_NAME

Trees = Mapping[str, ast.Module]


def _names(node: ast.AST) -> Iterator[str]:
    """The names that one node mentions, without those it is made of."""
    if isinstance(node, ast.Name) and type(node.ctx) is not ast.Store:
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg
    elif isinstance(node, ast.alias):
        yield from node.name.split(".")
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        yield node.value


def _mentioned(node: ast.AST) -> Counter[str]:
    return Counter(chain.from_iterable(_names(one) for one in ast.walk(node)))


def drop_unmentioned(trees: Trees, used: Counter[str]) -> bool:
    """Take away what nobody mentions, used counted too. Whether anything was: then more may be mentioned nowhere by now."""
    of_each = {name: _mentioned(tree) for name, tree in trees.items()}
    everywhere = sum(of_each.values(), used)
    imported: dict[str, set[str]] = {}
    looked_up: set[str] = set()
    for node in chain.from_iterable(map(ast.walk, trees.values())):
        if isinstance(node, ast.ImportFrom):
            imported.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            looked_up.add(node.attr)
    dropped = False
    for name, tree in trees.items():
        drop = _Drop(everywhere, of_each[name], looked_up | imported.get(name, set()))
        drop.visit(tree)
        dropped = dropped or drop.dropped
    return dropped


class _Drop(ast.NodeTransformer):
    """Takes definitions and imports out of one module. asked: what others import from it, or look up in some module."""

    def __init__(self, everywhere: Counter[str], here: Counter[str], asked: set[str]) -> None:
        self._everywhere, self._here, self._asked = everywhere, here, asked
        self.dropped = False

    def _kept(self, node: ast.stmt, keep: bool) -> Any:
        self.dropped = self.dropped or not keep
        return self.generic_visit(node) if keep else None

    def _definition(self, node: ast.FunctionDef | ast.ClassDef) -> Any:
        special = node.name.startswith("__")
        return self._kept(node, special or self._everywhere[node.name] > _mentioned(node)[node.name])

    visit_FunctionDef = visit_ClassDef = _definition

    def visit_Assign(self, node: ast.Assign) -> Any:
        targets = [*chain.from_iterable(t.elts if isinstance(t, ast.Tuple) else [t] for t in node.targets)]
        names = [one.id for one in targets if isinstance(one, ast.Name)]
        removable = len(names) == len(targets) and all(CONSTANT_NAME.fullmatch(n) or n == "__slots__" for n in names)
        return self._kept(node, not removable or any(self._everywhere[n] for n in names))

    def _is_used(self, alias: ast.alias) -> bool:
        name = alias.asname or alias.name
        itself = 0 if alias.asname else 1  # an import mentions its name
        return name in self._asked or self._here[name] > itself

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        kept = [one for one in node.names if self._is_used(one)]
        self.dropped = self.dropped or len(kept) < len(node.names)
        node.names = kept
        return node if kept else None
