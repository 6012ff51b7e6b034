"""Programs that tests start as separate processes, with the packages that the test itself imports."""

import os
import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 60


def environment() -> dict[str, str]:
    """The environment of this process, with its path of packages."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def ran(program: str, file: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python program to its end; its sys.argv[1] is the file."""
    return subprocess.run(
        [sys.executable, "-c", program, str(file)], env=environment(), capture_output=True, text=True,
        timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
