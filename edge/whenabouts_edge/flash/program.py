"""The modules of one board as one program: what this board never uses is left out of the sources before they are compiled.

A board holds its whole program in memory, and each name and each function there costs some thirty bytes beside its code. So
a module is reduced, step by step, to what the program of this board needs:

    `_Branches`     docstrings and annotations go, and branches for the type checker, for other kinds of readers, and for
                    options that are not configured
    `refusals`      a program that puts names together while it runs is refused, as the next steps go by names alone
    `constants`     small numbers and short texts stand where they are used
    `error_texts`   texts of errors that no handler would see go
    `mentions`      functions, methods, classes and imports whose name is mentioned nowhere in the whole program go
    `shorten`       private attributes and parameters become numbers
    `join`          what is loaded at the start becomes one module
    `module_names`  functions, classes and variables of modules become numbers

The same sources give the same program, byte for byte. Its lines are not those of the sources, so none are kept.
"""

import ast
import re
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from whenabouts_edge.flash.constants import put_constants_in_place
from whenabouts_edge.flash.error_texts import drop_error_texts
from whenabouts_edge.flash.join import joined
from whenabouts_edge.flash.mentions import drop_unmentioned
from whenabouts_edge.flash.module_names import shorten_modules
from whenabouts_edge.flash.modules import left_out
from whenabouts_edge.flash.nodes import walk
from whenabouts_edge.flash.refusals import refuse
from whenabouts_edge.flash.shorten import shorten_attributes

_WITH_BODY = (
    ast.FunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try, ast.ExceptHandler,
)  # fmt: skip


def reduced(
    modules: Mapping[str, Path], root: str, kinds: Collection[str], options: Collection[str], used: str = ""
) -> dict[str, str]:
    """The sources of these modules, by name, for an agent with readers of these kinds and these options; what the root loads
    at its start is within the root.

    used: source text all of whose words count as mentioned too. About half a second.

    Raises:
        ProgramError: something is looked up by a name that does not stand in the program.
        JoinError: modules import each other.
    """
    branches = _Branches(kinds, options)
    trees = {name: branches.visit(ast.parse(path.read_text(encoding="utf-8"))) for name, path in modules.items()}
    for name, tree in trees.items():
        tree.body = [one for one in tree.body if not _is_on_demand(one) and not (name == root and _is_to_run_it(one))]
    refuse(trees)
    put_constants_in_place(trees)
    drop_error_texts(trees)
    words = Counter(re.findall(r"\w+", used))
    drop_unmentioned(trees, words)
    shorten_attributes(trees, words)
    trees = joined(trees, root)
    shorten_modules(trees, words)
    return {name: ast.unparse(_whole(tree)) + "\n" for name, tree in trees.items()}


class _Branches(ast.NodeTransformer):
    """Takes away what this board never runs. A branch that would load what is not there raises ImportError."""

    def __init__(self, kinds: Collection[str], options: Collection[str]) -> None:
        self._kinds, self._options = kinds, options

    def visit(self, node: ast.AST) -> Any:
        """Expressions stay as they are."""
        return node if isinstance(node, ast.expr) else super().visit(node)

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        if _is_for_checker(node.test):
            return node.orelse
        if isinstance(node.test, ast.UnaryOp) and _is_for_checker(node.test.operand):
            return node.body
        if not left_out(node.test, self._options):
            return node
        option = _option(node.test)
        if option is None or not any(isinstance(one, ast.ImportFrom) for part in node.body for one in walk(part)):
            return node.orelse
        node.body = ast.parse(f"raise ImportError({option!r})").body
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        target = node.targets[0]
        return None if isinstance(target, ast.Name) and target.id in ("TYPE_CHECKING", "__all__") else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return ast.copy_location(ast.Assign([node.target], node.value), node) if node.value else None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        return None if isinstance(node.value, ast.Constant) else node


def _is_for_checker(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _option(test: ast.expr) -> object:
    return test.left.value if isinstance(test, ast.Compare) and isinstance(test.left, ast.Constant) else None


def _is_on_demand(statement: ast.stmt) -> bool:
    """Whether it gives names of a module as they are asked for; boards import from where they are made."""
    return isinstance(statement, ast.FunctionDef) and statement.name == "__getattr__"


def _is_to_run_it(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"


def _whole(tree: ast.Module) -> ast.Module:
    """With `pass` where nothing is left."""
    for node in walk(tree):
        if isinstance(node, _WITH_BODY):
            node.body = node.body or [ast.Pass()]
    return tree
