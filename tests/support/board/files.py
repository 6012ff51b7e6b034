"""The files of a board as they are flashed: every module that it may load, compiled by mpy-cross."""

import atexit
import functools
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whenabouts_edge.flash.modules import ALL_KINDS, ALL_OPTIONS, imports, needed
from whenabouts_edge.flash.program import program

ROOT = "whenabouts_edge.board.run"


@functools.cache
def flashed_board(kinds: tuple[str, ...], options: tuple[str, ...], script: "Path | None" = None) -> Path:
    """A folder with the program of a board as it is flashed, made once per run of the tests.

    script: it is copied there, with the modules that it imports.
    """
    folder = Path(tempfile.mkdtemp(prefix="whenabouts-flashed-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    modules = needed([ROOT, *(imports(script, options) if script else ())], kinds, options)
    for place, code in program(modules, options).items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(code)
    if script is not None:
        shutil.copy(script, folder)
    return folder


def board_for(config: "Mapping[str, Any]", script: "Path | None" = None) -> Path:
    """The folder of `flashed_board` for a configuration, with all kinds of readers if it has none."""
    kinds = {reader["kind"] for reader in config.get("readers", [])}
    return flashed_board(tuple(sorted(kinds)) or ALL_KINDS, tuple(sorted(set(config) & set(ALL_OPTIONS))), script)
