"""What a program must not do, so that its names can be counted, dropped and numbered: each rule is a reason to refuse it.

    no import of `*`, no `eval` and its like     they may use any name
    `getattr` and its like by a name that stands in the program as a text, maybe in a list of texts
    `**` of a mapping called `options` alone     by agreement its keys stand in the program as texts, or are the firmware's
    no name that is a number already (`_12`)     it would become another's

Names that stand as texts are never dropped and never numbered. `delattr(sys.modules[...], name)` is of modules: these keep
their names.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from whenabouts_edge.flash.failure import FlashError
from whenabouts_edge.flash.nodes import Nodes, walk

_BY_NAME = ("getattr", "setattr", "hasattr", "delattr")
_BLIND = ("eval", "exec", "globals", "locals", "vars", "dir")
_BLIND_ATTRIBUTES = ("__dict__", "attrgetter", "methodcaller", "import_module")
_NUMBER = re.compile(r"_\d+")
_OPTIONS = "options"


class ProgramError(FlashError):
    """A program of which it cannot be told what it uses; the text says why."""


def refuse(trees: Mapping[str, ast.Module]) -> None:
    """Raise ProgramError for a program that breaks a rule."""
    nodes_of = {name: walk(tree) for name, tree in trees.items()}
    lists = {name: _lists_of_texts(nodes) for name, nodes in nodes_of.items()}
    for name, nodes in nodes_of.items():
        by_text = _by_text(nodes, lists[name] | _imported(nodes, lists))
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        for node in nodes:
            fault = _fault(node, by_text, called)
            if fault:
                raise ProgramError(f"{name}: found {fault}")


def _fault(node: ast.AST, by_text: set[int], called: set[int]) -> str:
    """What is wrong with one node, "" for nothing."""
    if isinstance(node, ast.Constant):
        return ""
    if any(_NUMBER.fullmatch(name) for name in _own_names(node)):
        return f"`{ast.unparse(node)[:40]}`, expected no name that is a number"
    if isinstance(node, ast.ImportFrom) and any(one.name == "*" for one in node.names):
        return f"`from {node.module} import *`, expected names"
    if isinstance(node, ast.ImportFrom) and any(one.name in _BLIND_ATTRIBUTES for one in node.names):
        return f"`{ast.unparse(node)}`, which may use any name"
    if isinstance(node, ast.Attribute) and node.attr in _BLIND_ATTRIBUTES:
        return f"`{ast.unparse(node)}`, which may use any name"
    if isinstance(node, ast.Name) and (node.id in _BLIND or (node.id in _BY_NAME and id(node) not in called)):
        return f"`{node.id}`, which may use any name"
    if isinstance(node, ast.Call) and _is_by_name(node) and (len(node.args) < 2 or id(node.args[1]) not in by_text):
        return f"`{ast.unparse(node)}`, expected a name that stands in the program"
    if isinstance(node, ast.keyword) and node.arg is None and ast.unparse(node.value) != _OPTIONS:
        return f"`**{ast.unparse(node.value)}`, expected a mapping called {_OPTIONS}"
    return ""


def _own_names(node: ast.AST) -> Iterator[str]:
    """The names of one node, without those it is made of."""
    for field in ("id", "attr", "arg", "name", "asname"):
        name = getattr(node, field, None)
        if isinstance(name, str):
            yield name


def _is_by_name(call: ast.Call) -> bool:
    """Whether it looks an attribute up by a text, and not one of a loaded module."""
    by_name = isinstance(call.func, ast.Name) and call.func.id in _BY_NAME
    return by_name and not (call.args and ast.unparse(call.args[0]).startswith("sys.modules["))


def _by_text(nodes: Nodes, lists: set[str]) -> set[int]:
    """The texts of a module, and the variables of comprehensions that go through one of these lists."""
    found = {id(node) for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for node in nodes:
        for loop in getattr(node, "generators", ()):
            source = loop.iter.attr if isinstance(loop.iter, ast.Attribute) else getattr(loop.iter, "id", "")
            if isinstance(loop.target, ast.Name) and source in lists:
                uses = (one for one in walk(node) if isinstance(one, ast.Name) and one.id == loop.target.id)
                found |= set(map(id, uses))
    return found


def _lists_of_texts(nodes: Nodes) -> set[str]:
    """Names that a module gives tuples of texts and nothing else."""
    stored = Counter(node.id for node in nodes if isinstance(node, ast.Name) and type(node.ctx) is ast.Store)
    stored += Counter(node.arg for node in nodes if isinstance(node, ast.arg))
    texts = Counter(
        one.id
        for node in nodes
        if isinstance(node, ast.Assign) and _is_of_texts(node.value)
        for one in node.targets
        if isinstance(one, ast.Name)
    )
    return {name for name in texts if texts[name] == stored[name]}


def _is_of_texts(value: ast.expr) -> bool:
    return isinstance(value, ast.Tuple) and all(
        isinstance(one, ast.Constant) and isinstance(one.value, str) for one in value.elts
    )


def _imported(nodes: Nodes, lists: Mapping[str, set[str]]) -> set[str]:
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {
        one.asname or one.name for node in imports for one in node.names if one.name in lists.get(node.module or "", ())
    }
