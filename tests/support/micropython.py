"""Running a script on the real MicroPython VM, with the packages of this checkout on its path and a heap like a board's."""

import os
import subprocess
import sys
from pathlib import Path

from support.paths import REPOSITORY

TIMEOUT_S = 120


def tool(name: str) -> Path:
    """The named program beside this interpreter.

    Raises:
        FileNotFoundError: it is not installed there; a test that needs it must fail, not pass unseen.
    """
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise FileNotFoundError(f"{name}: found nothing beside {sys.executable}, expected it from the extra `dev`")
    return path


def run_on_board(script: "str | Path", *args: str, heap: str = "192k") -> str:
    """What the script printed on a MicroPython VM with a hard heap of `heap`.

    Raises:
        AssertionError: it ended with an error; the text holds its output.
        FileNotFoundError: no VM is installed.
    """
    path = os.pathsep.join(str(REPOSITORY / folder) for folder in ("protocol", "hardware", "edge"))
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
