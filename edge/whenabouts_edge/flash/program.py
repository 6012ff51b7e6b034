"""The modules of one board as one program: what this board never uses is left out of the sources before they are compiled.

A board holds its whole program in memory, and each name and each function there costs some thirty bytes beside its code. So
a module is reduced to what the program of this board needs:

    branches for the type checker, for other kinds of readers, and for options that are not configured
    constants: small numbers and short texts stand where they are used
    functions, methods, classes and imports whose name is mentioned nowhere in the whole program

What is mentioned is decided by names alone, wherever they stand: too much may be kept, and never too little. A program that
puts names together while it runs is refused. Lines are renumbered, so the compiler is told to keep no numbers of lines.
"""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from whenabouts_edge.flash.join import joined
from whenabouts_edge.flash.modules import left_out
from whenabouts_edge.flash.shorten import shorten

_CONSTANT_NAME = re.compile(r"_?[A-Z][A-Z0-9_]*")
_SMALL = range(-(1 << 30), 1 << 30)  # what a board keeps in a pointer
_TEXT_MAX = 10  # a longer text that is no name is an object of its own wherever it stands
_ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant, ast.Name, ast.expr_context)

_BY_NAME = ("getattr", "setattr", "hasattr")
_BLIND = ("__import__", "eval", "exec", "globals", "locals", "vars")
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)
_WITH_BODY = (
    ast.FunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try, ast.ExceptHandler,
)  # fmt: skip

Trees = dict[str, ast.Module]
Constants = dict[str, int | str]


def reduced(
    modules: Mapping[str, Path], root: str, kinds: Collection[str], options: Collection[str], used: str = ""
) -> dict[str, str]:
    """The sources of these modules, by name, for an agent with readers of these kinds and these options; what the root loads
    at its start is within the root.

    used: source text all of whose words count as mentioned too. About a second.

    Raises:
        ProgramError: something is looked up by a name that does not stand in the program, or by `import *`.
    """
    branches = _Branches(kinds, options)
    trees = {name: branches.visit(ast.parse(path.read_text(encoding="utf-8"))) for name, path in modules.items()}
    for name, tree in trees.items():
        tree.body = [one for one in tree.body if not _is_on_demand(one)]
        _refuse_dynamic(name, tree)
    trees[root].body = [one for one in trees[root].body if not _is_for_running_it(one)]
    _put_constants_in_place(trees)
    words = Counter(re.findall(r"\w+", used))
    while _drop_unmentioned(trees, words):
        pass
    shorten(trees, words)
    trees = joined(trees, root)
    return {name: ast.unparse(_whole(tree)) + "\n" for name, tree in trees.items()}


class _Branches(ast.NodeTransformer):
    """Takes the branches away that this board never runs. One that would load what is not there raises ImportError."""

    def __init__(self, kinds: Collection[str], options: Collection[str]) -> None:
        self._kinds, self._options = kinds, options

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        if _is_for_checker(node.test):
            return node.orelse
        if isinstance(node.test, ast.UnaryOp) and _is_for_checker(node.test.operand):
            return node.body
        if left_out(node.test, self._kinds, self._options):
            if any(isinstance(one, ast.ImportFrom) for part in node.body for one in ast.walk(part)) and _option(
                node.test
            ):
                node.body = [*ast.parse(f"raise ImportError({_option(node.test)!r})").body]
                return node
            return node.orelse
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        target = node.targets[0]
        return None if isinstance(target, ast.Name) and target.id in ("TYPE_CHECKING", "__all__") else node


def _is_for_checker(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


# What is refused.


class ProgramError(ValueError):
    """A program of which it cannot be told what it uses; the text says why."""


def _is_on_demand(statement: ast.stmt) -> bool:
    """Whether it gives names of a module as they are asked for; boards import from where they are made."""
    return isinstance(statement, ast.FunctionDef) and statement.name == "__getattr__"


def _refuse_dynamic(module: str, tree: ast.Module) -> None:
    listed = {id(name) for node in ast.walk(tree) if isinstance(node, _COMPREHENSIONS) for name in _from_lists(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(one.name == "*" for one in node.names):
            raise ProgramError(f"{module}: found `from {node.module} import *`, expected names")
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id in _BLIND:
            raise ProgramError(f"{module}: found a call of {node.func.id}, which may use any name")
        if node.func.id in _BY_NAME and not (isinstance(node.args[1], ast.Constant) or id(node.args[1]) in listed):
            raise ProgramError(f"{module}: found {ast.unparse(node)}, expected a name that stands in the program")


def _from_lists(node: "ast.ListComp | ast.GeneratorExp") -> Iterator[ast.AST]:
    """The uses of a comprehension's variables that go through a constant list of texts."""
    for loop in node.generators:
        source = loop.iter.attr if isinstance(loop.iter, ast.Attribute) else getattr(loop.iter, "id", "")
        if isinstance(loop.target, ast.Name) and (_CONSTANT_NAME.fullmatch(source) or source == "__slots__"):
            yield from (one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == loop.target.id)


def _is_for_running_it(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"


def _option(test: ast.expr) -> object:
    return test.left.value if isinstance(test, ast.Compare) and isinstance(test.left, ast.Constant) else None


# Constants.


def _put_constants_in_place(trees: Trees) -> None:
    own: dict[str, Constants] = {name: {} for name in trees}
    seen: dict[str, Constants] = {name: {} for name in trees}  # with those that it imports
    size = -1
    while size != (size := sum(map(len, seen.values()))):
        for name, tree in trees.items():
            own[name] |= _constants_of(tree, seen[name])
            seen[name] |= own[name] | _imported(tree, own)
    changed = {
        node.attr
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    for name, tree in trees.items():
        _Inline({one: value for one, value in seen[name].items() if one not in changed}).visit(tree)


def _constants_of(tree: ast.Module, known: Constants) -> Constants:
    """The constants that a module defines by numbers, short texts, and known ones."""
    stored = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and type(node.ctx) is ast.Store)
    found: Constants = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        value = _value(node.value, {**known, **found})
        values = value if isinstance(target, ast.Tuple) and isinstance(value, tuple) else [value]
        for one, number in zip(names, values, strict=False):
            fits = number in _SMALL if type(number) is int else type(number) is str and len(number) <= _TEXT_MAX
            if fits and isinstance(one, ast.Name) and _CONSTANT_NAME.fullmatch(one.id) and stored[one.id] == 1:
                found[one.id] = number
    return found


def _value(node: ast.expr, known: Constants) -> Any:
    """What an expression of known constants is; None for any other. A tuple for several."""
    if isinstance(node, ast.Tuple):
        return tuple(_value(one, known) for one in node.elts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        limits = [_value(one, known) for one in node.args]
        return tuple(range(*limits)) if all(type(one) is int for one in limits) else None
    parts = list(ast.walk(node))
    if not all(
        isinstance(part, _ARITHMETIC) and (not isinstance(part, ast.Name) or part.id in known) for part in parts
    ):
        return None
    return eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}}, dict(known))


def _imported(tree: ast.Module, own: Mapping[str, Constants]) -> Constants:
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in own]
    return {
        alias.asname or alias.name: own[node.module or ""][alias.name]
        for node in imports
        for alias in node.names
        if alias.name in own[node.module or ""]
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


# What is mentioned.


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
    return Counter(chain.from_iterable(_names(one) for one in _run(node)))


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it but annotations, which a board does not keep."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        for field, value in ast.iter_fields(one):
            if field not in ("annotation", "returns"):
                below = value if isinstance(value, list) else [value]
                waiting += [part for part in below if isinstance(part, ast.AST)]


def _drop_unmentioned(trees: Trees, used: Counter[str]) -> bool:
    """Whether anything was dropped: then something else may be mentioned nowhere by now."""
    of_each = {name: _mentioned(tree) for name, tree in trees.items()}
    everywhere = sum(of_each.values(), used)
    imported: dict[str, set[str]] = {}
    looked_up: set[str] = set()
    for node in chain.from_iterable(map(_run, trees.values())):
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
        removable = len(names) == len(targets) and all(_CONSTANT_NAME.fullmatch(n) or n == "__slots__" for n in names)
        return self._kept(node, not removable or any(self._everywhere[n] for n in names))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        return self._kept(
            node, not (_CONSTANT_NAME.fullmatch(name) or name == "__slots__") or self._everywhere[name] > 0
        )

    def _is_used(self, alias: ast.alias) -> bool:
        name = alias.asname or alias.name
        return name in self._asked or self._here[name] > (
            0 if alias.asname else 1
        )  # the import itself mentions its name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        kept = [one for one in node.names if self._is_used(one)]
        self.dropped = self.dropped or len(kept) < len(node.names)
        node.names = kept
        return node if kept else None


def _whole(tree: ast.Module) -> ast.Module:
    """With `pass` where nothing is left."""
    for node in ast.walk(tree):
        if isinstance(node, _WITH_BODY):
            node.body = node.body or [ast.Pass()]
    return ast.fix_missing_locations(tree)
