"""Which definitions and imports of a program nobody mentions: these are taken away.

By names alone, wherever they stand: a function stays when its name is a variable, an attribute, a keyword or a text anywhere
else in the program. So too much may stay, and never too little, as long as no name is put together while the program runs,
which `refusals` sees to. What Python itself calls (`__init__`) stays.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

from whenabouts_edge.flash.constants import CONSTANT_NAME
from whenabouts_edge.flash.nodes import parts, walk

Trees = Mapping[str, ast.Module]


def drop_unmentioned(trees: Trees, used: Counter[str]) -> None:
    """Take away what nobody mentions, used counted too, until everything left is mentioned somewhere."""
    program = _Program(trees, used)
    gone = program.drop()
    for tree in trees.values():
        for node in reversed(walk(tree)):  # the names of an import before the import
            for field in ("body", "orelse", "finalbody", "names"):
                among = getattr(node, field, None)
                if type(among) is list:
                    among[:] = [one for one in among if id(one) not in gone and getattr(one, "names", True)]


class _Unit:
    """What goes as a whole: a definition, an assignment, a name of an import; a module, which stays.

    names: that it mentions, attributes: those of them that it looks up, both without the units within it.
    """

    __slots__ = ("attributes", "gone", "module", "names", "node", "source", "within")

    def __init__(self, module: str, node: ast.AST, source: str) -> None:
        self.module, self.node, self.source = module, node, source
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.within: list[_Unit] = []
        self.gone = False

    def left(self) -> "Iterator[_Unit]":
        """Itself, and the units within it that have not gone before."""
        yield self
        for one in self.within:
            if not one.gone:
                yield from one.left()


class _Program:
    """The units of a program, and how often those that are left mention a name, look it up, and import it from a module.

    A unit that goes only lowers these numbers, so whichever goes first, the same are left in the end.
    """

    def __init__(self, trees: Trees, used: Counter[str]) -> None:
        self._everywhere, self._looked_up = Counter(used), Counter[str]()
        self._mentioned = {name: Counter[str]() for name in trees}
        self._imported = Counter[tuple[str, str]]()
        self._units: list[_Unit] = []
        for name, tree in trees.items():
            self._add(tree, _Unit(name, tree, ""))
        for unit in self._units:
            self._count(unit, 1)

    def drop(self) -> set[int]:
        """The ids of the nodes that go."""
        gone: set[int] = set()
        size = -1
        while size != (size := len(gone)):
            for unit in self._units:
                if not unit.gone and self._goes(unit):
                    gone.add(id(unit.node))
                    for one in [*unit.left()]:
                        one.gone = True
                        self._count(one, -1)
        return gone

    def _add(self, node: ast.AST, unit: _Unit, source: str = "") -> None:
        """Put a node into this unit, or into one of its own within it."""
        if isinstance(node, ast.expr):
            for one in walk(node):
                _note(one, unit)
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign) or source:
            unit.within.append(_Unit(unit.module, node, source))
            unit = unit.within[-1]
        if unit.node is node:
            self._units.append(unit)
        _note(node, unit)
        source = (node.module or ".") if isinstance(node, ast.ImportFrom) else ""
        for one in parts(node):
            self._add(one, unit, source)

    def _count(self, unit: _Unit, by: int) -> None:
        for name in unit.names:
            self._everywhere[name] += by
            self._mentioned[unit.module][name] += by
        for name in unit.attributes:
            self._looked_up[name] += by
        if isinstance(unit.node, ast.alias):
            self._imported[unit.source, unit.node.name] += by

    def _goes(self, unit: _Unit) -> bool:
        node = unit.node
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            return not node.name.startswith("__") and not self._is_mentioned(node.name, unit)
        if isinstance(node, ast.Assign):
            return _is_removable(node) and not any(self._everywhere[name] for name in _targets(node))
        return isinstance(node, ast.alias) and not self._is_used(node, unit.module)

    def _is_mentioned(self, name: str, unit: _Unit) -> bool:
        """Outside of itself: by another module, which is quickly seen, or by its own."""
        everywhere = self._everywhere[name]
        if everywhere > self._mentioned[unit.module][name]:
            return True
        return everywhere > sum(one.names.count(name) for one in unit.left())

    def _is_used(self, alias: ast.alias, module: str) -> bool:
        """What is imported: by its module, or by others that import it from there or look it up in some module."""
        name = alias.asname or alias.name
        itself = 0 if alias.asname else 1  # an import mentions its name
        asked = self._looked_up[name] or self._imported[module, name]
        return bool(asked) or self._mentioned[module][name] > itself


def _note(node: ast.AST, unit: _Unit) -> None:
    """Note the names that one node mentions, without those it is made of."""
    if isinstance(node, ast.Name):
        if type(node.ctx) is not ast.Store:
            unit.names.append(node.id)
    elif isinstance(node, ast.Attribute):
        unit.names.append(node.attr)
        unit.attributes.append(node.attr)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and node.value.isidentifier():
            unit.names.append(node.value)
    elif isinstance(node, ast.keyword) and node.arg:
        unit.names.append(node.arg)
    elif isinstance(node, ast.alias):
        unit.names += node.name.split(".")


def _targets(node: ast.Assign) -> list[str]:
    """The names that it gives a value."""
    return [one.id for one in _given(node) if isinstance(one, ast.Name)]


def _given(node: ast.Assign) -> list[ast.expr]:
    return [one for t in node.targets for one in (t.elts if isinstance(t, ast.Tuple) else [t])]


def _is_removable(node: ast.Assign) -> bool:
    """Whether it gives values to constants alone."""
    names = _targets(node)
    constants = all(CONSTANT_NAME.fullmatch(name) or name == "__slots__" for name in names)
    return constants and len(names) == len(_given(node))
