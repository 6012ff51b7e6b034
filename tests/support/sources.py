"""The sources of the five packages as the housekeeping tests see them: modules, their imports, their syntax trees."""

import ast
import subprocess
from functools import cache
from pathlib import Path

from support.paths import REPOSITORY

FOLDERS = {
    "whenabouts_protocol": "protocol",
    "whenabouts_hardware": "hardware",
    "whenabouts_edge": "edge",
    "whenabouts_cloud": "cloud",
    "whenabouts": "library",
    "whenabouts_sim": "firmware_sim",
}


def modules() -> dict[str, Path]:
    """Every module of the packages by its dotted name."""
    paths = {}
    for package, folder in FOLDERS.items():
        for path in sorted((REPOSITORY / folder / package).rglob("*.py")):
            parts = path.relative_to(REPOSITORY / folder).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(node: ast.AST) -> set[str]:
    """Dotted names that the code imports, anywhere in it; `from a import b` gives a and a.b."""
    names = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            names.update(alias.name for alias in inner.names)
        elif isinstance(inner, ast.ImportFrom) and inner.module and not inner.level:
            names.add(inner.module)
            names.update(f"{inner.module}.{alias.name}" for alias in inner.names)
    return names


def run_time_imports(path: Path) -> set[str]:
    """Imports of a file, without those under `if TYPE_CHECKING`."""

    class Dropped(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | None:
            if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                return None
            return self.generic_visit(node)

    return imports(Dropped().visit(ast.parse(path.read_text(encoding="utf-8"))))


def tracked_files() -> list[Path]:
    """Every file under version control that is text."""
    names = subprocess.run(
        ["git", "-C", str(REPOSITORY), "ls-files", "-z"], capture_output=True, text=True, check=True
    ).stdout.split("\0")
    files = [REPOSITORY / name for name in names if name]
    return [f for f in files if f.is_file() and b"\0" not in f.read_bytes()[:4096]]
