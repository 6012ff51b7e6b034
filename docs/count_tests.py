"""Counts test modules and test functions by folder, as a table in Markdown; docs/testing.md shows it with its date."""

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
HOLDS = {
    "unit": "one module, no process, no broker",
    "property": "laws, and engines against slow references",
    "reference": "the slow references, and tests of them",
    "micropython": "code of boards on two real MicroPython machines",
    "simulation": "parts of the simulator in real time",
    "spark": "jobs on one real Spark session",
    "e2e": "real processes and a real broker, killed for real",
    "captures": "recordings of third parties; skipped where they are absent",
    "tidy": "the repository's own rules and documents",
}


def functions(path: Path) -> int:
    """Test functions of a module, those in classes too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return sum(isinstance(n, ast.FunctionDef) and n.name.startswith("test") for n in ast.walk(tree))


def table() -> str:
    """A row for each folder, and the sum."""
    lines = ["| folder | what it holds | modules | test functions |", "|---|---|---|---|"]
    modules_all = functions_all = 0
    for folder, holds in HOLDS.items():
        counts = [functions(path) for path in sorted((TESTS / folder).rglob("test_*.py"))]
        modules_all, functions_all = modules_all + len(counts), functions_all + sum(counts)
        lines.append(f"| `tests/{folder}` | {holds} | {len(counts)} | {sum(counts)} |")
    return "\n".join([*lines, f"| all | | {modules_all} | {functions_all} |"])


if __name__ == "__main__":
    print(table())
