"""Which of our modules a board needs: those that its main program imports, and what these import.

Found in the sources, as a board would at run time: what stands under `if TYPE_CHECKING` is not imported, importing a module
imports the packages it is in. An import within a function is followed too, except in the package that has all decoders: of
those a board needs the ones of its readers, and they are named as roots.
"""

import ast
import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path

from whenabouts_hardware import DECODERS, decoder
from whenabouts_hardware.readers import READERS

SHARED = ("whenabouts_protocol", "whenabouts_hardware", "whenabouts_edge")
CHOICES = ("whenabouts_hardware",)  # modules whose functions import what was asked for by name


def needed(roots: Iterable[str]) -> dict[str, Path]:
    """Every module that importing the roots loads, by dotted name, sorted; packages are their `__init__`.

    Raises:
        ModuleNotFoundError: a root, or a module imported by one, is not there.
    """
    found: dict[str, Path] = {}
    waiting = [name for root in roots for name in _with_packages(root)]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        path = _source(name)
        if path is None:
            raise ModuleNotFoundError(f"{name}: found no such module, expected one beside {__name__}", name=name)
        found[name] = path
        for imported in _imports(path, functions=name not in CHOICES):
            waiting += [part for part in _with_packages(imported) if part not in found]
    return {name: found[name] for name in sorted(found)}


def decoders(kinds: Iterable[str]) -> list[str]:
    """The modules of the decoders that readers of these kinds need, sorted."""
    names = {READERS[kind].decoder for kind in kinds}
    return sorted({type(decoder(name)).__module__ for name in names})


def all_decoders() -> list[str]:
    """The modules of all decoders, sorted."""
    return sorted({type(decoder(name)).__module__ for name in DECODERS})


def place(name: str, path: Path, suffix: str = ".mpy") -> str:
    """Where a module lies below the folder of a board's packages: `whenabouts_edge/board/run.mpy`."""
    parts = name.replace(".", "/")
    return f"{parts}/__init__{suffix}" if path.name == "__init__.py" else f"{parts}{suffix}"


def _with_packages(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


def _source(name: str) -> Path | None:
    """The file of a module, without importing it."""
    root, *rest = name.split(".")
    spec = importlib.util.find_spec(root)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent.joinpath(*rest)
    for candidate in (path / "__init__.py", path.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None


def _imports(path: Path, functions: bool) -> Iterator[str]:
    """Modules of ours that the code in a file imports when it runs."""
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"), str(path))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            waiting += node.orelse
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not functions:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in SHARED)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in SHARED:
            yield node.module
            # `from package import module` loads the module too.
            for alias in node.names:
                if _source(f"{node.module}.{alias.name}") is not None:
                    yield f"{node.module}.{alias.name}"
        waiting += ast.iter_child_nodes(node)
