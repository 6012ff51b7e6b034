"""Finds the modules of this project that a board needs: those that its main program imports, and their imports.

Found in the sources. Imports under `if TYPE_CHECKING` are ignored, a module needs its parent packages, imports within
functions count. The catalogue of readers names the modules of the board's kinds of readers. Branches for options that
are not configured (`if "group" in config:`) are ignored.
"""

import ast
import importlib.util
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

from whenabouts_hardware.readers.catalogue import MODULES

READERS_PACKAGE = "whenabouts_hardware.readers"
SHARED = ("whenabouts_protocol", "whenabouts_hardware", "whenabouts_edge")
ALL_KINDS = tuple(sorted(MODULES))
ALL_OPTIONS = (
    "group",
    "led",
    "rules",
    "wifi",
)  # of a board's configuration: those that code tests before it loads more


def needed(roots: Iterable[str], kinds: Collection[str], options: Collection[str] = ALL_OPTIONS) -> dict[str, Path]:
    """Every module that the roots load in an agent with readers of these kinds and these options, by dotted name,
    sorted; packages are their `__init__`.

    Raises:
        ModuleNotFoundError: a root, or a module imported by one, is not there.
    """
    options = frozenset(options)
    paths: dict[str, Path] = {}
    readers = [f"{READERS_PACKAGE}.{MODULES[kind]}" for kind in kinds]
    waiting = [name for root in [*roots, *readers] for name in _with_packages(root)]
    while waiting:
        name = waiting.pop()
        if name in paths:
            continue
        path = _source(name)
        if path is None:
            raise ModuleNotFoundError(f"{name}: found no such module, expected one next to {__name__}", name=name)
        paths[name] = path
        for imported in imports(path, options):
            waiting += [part for part in _with_packages(imported) if part not in paths]
    return {name: paths[name] for name in sorted(paths)}


def place(name: str, path: Path, suffix: str = ".mpy") -> str:
    """Path of a module below the folder of a board's packages: `whenabouts_edge/board/run.mpy`."""
    parts = name.replace(".", "/")
    return f"{parts}/__init__{suffix}" if path.name == "__init__.py" else f"{parts}{suffix}"


def _with_packages(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


@cache
def _source(name: str) -> Path | None:
    """The file of a module, found without importing it; None if there is none."""
    root, *rest = name.split(".")
    spec = importlib.util.find_spec(root)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent.joinpath(*rest)
    for candidate in (path / "__init__.py", path.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path, options: Collection[str]) -> Iterator[str]:
    """Modules of this project that the code in a file imports when run with only these options."""
    waiting: list[ast.AST] = [_tree(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and left_out(node.test, options):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in SHARED)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in SHARED:
            yield node.module
            for alias in node.names:
                yield from _home(node.module, alias.name)
        waiting += ast.iter_child_nodes(node)


def left_out(test: ast.expr, options: Collection[str]) -> bool:
    """True for the type checker's condition, and for one that tests an absent option."""
    if isinstance(test, ast.Name):
        return test.id == "TYPE_CHECKING"
    if isinstance(test, ast.BoolOp):
        operands = [left_out(one, options) for one in test.values]
        return any(operands) if isinstance(test.op, ast.And) else all(operands)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.In):
        return False
    if not isinstance(test.left, ast.Constant):
        return False
    return test.left.value in ALL_OPTIONS and test.left.value not in options


def _home(package: str, name: str) -> Iterator[str]:
    """The module that `from package import name` loads besides the package: the submodule of that name, or the name's
    home in a lazy package, which the package declares for the type checker.
    """
    if _source(f"{package}.{name}") is not None:
        yield f"{package}.{name}"
        return
    path = _source(package)
    for node in ast.walk(_tree(path)) if path is not None and path.name == "__init__.py" else ():
        if isinstance(node, ast.ImportFrom) and node.module and any((a.asname or a.name) == name for a in node.names):
            yield node.module
