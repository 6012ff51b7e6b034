"""The smallest configurations of a gateway, and the command that reads them."""

import os
import subprocess
import sys

FINE = """\
site = "warehouse"
gateway = "dock-1"
[[reader]]
name = "dock"
kind = "m6e"
port = "/dev/ttyUSB0"
"""
GROUP_LINES = """\
[group]
name = "office"
members = ["dock-1", "door-1", "shop/till-1"]
[[state]]
name = "loaded"
stream = "dock/tags"
"""


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`whenabouts-edge` with these arguments, run to its end."""
    return subprocess.run(
        [sys.executable, "-m", "whenabouts_edge.cli", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
