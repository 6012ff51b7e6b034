"""Programs that tests start as processes of their own, with the packages that the test itself imports."""

import os
import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 60


def environment() -> dict[str, str]:
    """The environment of this process, with its path of packages."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def ran(program: str, file: Path) -> subprocess.CompletedProcess[str]:
    """A Python program at its end; sys.argv[1] of it is the file."""
    return subprocess.run(
        [sys.executable, "-c", program, str(file)], env=environment(), capture_output=True, text=True,
        timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
