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


def drop_unmentioned(trees: Trees, used: Counter[str]) -> None:
    """Take away what nobody mentions, used counted too, until everything left is mentioned somewhere."""
    modules = {name: _Module(tree) for name, tree in trees.items()}
    everywhere = sum((module.mentioned for module in modules.values()), used)
    changed = True
    while changed:
        imported: dict[str, set[str]] = {}
        for module in modules.values():
            for source, names in module.imported.items():
                imported.setdefault(source, set()).update(names)
        looked_up = set().union(*(module.looked_up for module in modules.values()))
        drops = {name: _Drop(everywhere, modules[name], looked_up | imported.get(name, set())) for name in trees}
        for name, drop in drops.items():
            drop.visit(trees[name])
        changed = False
        for name, drop in drops.items():
            if drop.dropped:
                changed = True
                everywhere = everywhere - modules[name].mentioned
                modules[name] = _Module(trees[name])
                everywhere = everywhere + modules[name].mentioned


class _Module:
    """What a module mentions, imports (by the module it comes from) and looks up, until something is taken out of it."""

    def __init__(self, tree: ast.Module) -> None:
        nodes = list(ast.walk(tree))
        self.mentioned = Counter(chain.from_iterable(map(_names, nodes)))
        self.looked_up = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        self.imported: dict[str, set[str]] = {}
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                self.imported.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
        self._by_itself: dict[ast.AST, int] = {}

    def by_itself(self, node: ast.FunctionDef | ast.ClassDef) -> int:
        """How often a definition mentions its own name."""
        if node not in self._by_itself:
            self._by_itself[node] = _mentioned(node)[node.name]
        return self._by_itself[node]


class _Drop(ast.NodeTransformer):
    """Takes definitions and imports out of one module. asked: what others import from it, or look up in some module."""

    def __init__(self, everywhere: Counter[str], module: _Module, asked: set[str]) -> None:
        self._everywhere, self._module, self._asked = everywhere, module, asked
        self.dropped = False

    def visit(self, node: ast.AST) -> Any:
        """Only statements are taken away, and expressions hold none."""
        return node if isinstance(node, ast.expr) else super().visit(node)

    def _kept(self, node: ast.stmt, keep: bool) -> Any:
        self.dropped = self.dropped or not keep
        return self.generic_visit(node) if keep else None

    def _definition(self, node: ast.FunctionDef | ast.ClassDef) -> Any:
        return self._kept(node, node.name.startswith("__") or self._is_mentioned(node))

    def _is_mentioned(self, node: ast.FunctionDef | ast.ClassDef) -> bool:
        """Outside of itself: by another module, which is quickly seen, or by its own."""
        everywhere = self._everywhere[node.name]
        return everywhere > self._module.mentioned[node.name] or everywhere > self._module.by_itself(node)

    visit_FunctionDef = visit_ClassDef = _definition

    def visit_Assign(self, node: ast.Assign) -> Any:
        targets = [*chain.from_iterable(t.elts if isinstance(t, ast.Tuple) else [t] for t in node.targets)]
        names = [one.id for one in targets if isinstance(one, ast.Name)]
        removable = len(names) == len(targets) and all(CONSTANT_NAME.fullmatch(n) or n == "__slots__" for n in names)
        return self._kept(node, not removable or any(self._everywhere[n] for n in names))

    def _is_used(self, alias: ast.alias) -> bool:
        name = alias.asname or alias.name
        itself = 0 if alias.asname else 1  # an import mentions its name
        return name in self._asked or self._module.mentioned[name] > itself

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        kept = [one for one in node.names if self._is_used(one)]
        self.dropped = self.dropped or len(kept) < len(node.names)
        node.names = kept
        return node if kept else None
