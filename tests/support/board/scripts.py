"""Scripts that run on a board: on both real MicroPython VMs, and as modules here, for the answers that a board must give.

The integers of the VM on Node are a board's, of 32 bits; littlefs is only in the Unix port.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

from support.board.micropython import run_on_board
from support.board.node_board import run_on_node

VMS = {"unix": run_on_board, "node": run_on_node}  # each: (script, *args, heap=...) -> output


def as_module(script: Path) -> ModuleType:
    """The script, imported afresh."""
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
