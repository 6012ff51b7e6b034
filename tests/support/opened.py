"""A plugin of pytest that reports the files outside of the checkout that the process opened: `-p support.opened`.

Inside are the working directory, the temporary folder, the interpreter with its packages, and the system's own folders.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

MARK = "opened outside: "
SYSTEM = ("/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr")
INSIDE = tuple(
    os.path.realpath(folder) for folder in (Path.cwd(), tempfile.gettempdir(), sys.prefix, sys.base_prefix, *SYSTEM)
)
_outside: set[str] = set()


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or isinstance(arguments[0], int):
        return
    path = os.path.realpath(os.fsdecode(arguments[0]))
    if not any(path == folder or path.startswith(folder + os.sep) for folder in INSIDE):
        _outside.add(path)


sys.addaudithook(_hear)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write one line per file."""
    for path in sorted(_outside):
        terminalreporter.write_line(f"{MARK}{path}")
