"""The files of a board as they are flashed: every module that it may load, compiled by mpy-cross."""

import atexit
import functools
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whenabouts_edge.flash.compiler import compiled
from whenabouts_edge.flash.modules import ALL_KINDS, ALL_OPTIONS, imports, needed, place
from whenabouts_edge.flash.plan import MAIN
from whenabouts_edge.flash.program import reduced

ROOT = "whenabouts_edge.board.run"


@functools.cache
def flashed_board(
    kinds: tuple[str, ...], options: tuple[str, ...], script: "Path | None" = None, used: str = ""
) -> Path:
    """A folder with the program of a board as it is flashed, made once in a run of the tests.

    script: runs there as a part of the program, and what it imports is there too. used: what others look up in the script.
    """
    folder = Path(tempfile.mkdtemp(prefix="whenabouts-flashed-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    modules = needed([ROOT], kinds, options)
    if script is not None:
        modules = {**needed([ROOT, *imports(script, options)], kinds, options), script.stem: script}
    for name, source in reduced(modules, ROOT, kinds, options, used).items():
        if script is not None and name == script.stem:
            (folder / script.name).write_text(source)
            continue
        target = folder / place(name, modules[name])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(compiled(source, name))
    return folder


def board_for(config: "Mapping[str, Any]", script: "Path | None" = None) -> Path:
    """The same for a configuration, all kinds of readers when it has none."""
    kinds = {reader["kind"] for reader in config.get("readers", [])}
    return flashed_board(tuple(sorted(kinds)) or ALL_KINDS, tuple(sorted(set(config) & set(ALL_OPTIONS))), script, MAIN)
