"""Texts of errors that nobody would see go: on a board they take more memory than the code that finds the errors.

An error class of ours keeps its texts when a handler gives the error a name, as it may show it then. A board has no place to
show others but the traceback of an error that nobody catches, which names the function that raised it.
"""

import ast
from collections.abc import Iterator, Mapping

from whenabouts_edge.flash.nodes import walk


def drop_error_texts(trees: Mapping[str, ast.Module]) -> None:
    """Make errors without arguments of those that nobody asks for any. The trees are changed."""
    nodes = [node for tree in trees.values() for node in walk(tree)]
    plain = {node.name for node in nodes if isinstance(node, ast.ClassDef) and _is_plain_error(node)}
    named = {name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name for name in _caught(node)}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in plain - named:
            node.args = []


def _is_plain_error(node: ast.ClassDef) -> bool:
    """Whether it is an error that takes a text and no more: its class adds nothing."""
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return bases == ["ValueError"] and all(isinstance(one, ast.Pass | ast.Expr) for one in node.body)


def _caught(node: ast.ExceptHandler) -> Iterator[str]:
    for one in walk(node.type) if node.type is not None else ():
        if isinstance(one, ast.Name):
            yield one.id
