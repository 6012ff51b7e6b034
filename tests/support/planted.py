"""Run as a program: `whenabouts-sim` with a fault in its code. Arguments: a patch, then those of `whenabouts-sim`.

The files that the patch names are copied and patched; their modules are loaded from the copies, all others as ever. Machine
code that contains such a file is compiled anew, which takes half a minute: its cache knows the original only.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
JIT = "from whenabouts_cloud.jit import"


class Patched:
    """Finds modules of patched files."""

    def __init__(self, patch: Path, folder: Path) -> None:
        self._places: dict[str, tuple[Path, Path]] = {}  # copy and original by module
        names = [line.split()[1][2:] for line in patch.read_text().splitlines() if line.startswith("+++ b/")]
        for name in names:
            copy = folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text((ROOT / name).read_text())
            module = ".".join(Path(name).with_suffix("").parts[1:]).removesuffix(".__init__")
            self._places[module] = copy, ROOT / name
        subprocess.run(["git", "apply", str(patch.resolve())], cwd=folder, check=True)

    def use_own_machine_code(self, folder: Path) -> None:
        """If a patched file is part of compiled functions, use another cache for them."""
        from whenabouts_cloud import jit

        compiled = (one for one in Path(jit.__file__).parent.rglob("*.py") if JIT in one.read_text())
        parts = set[Path]().union(*map(jit._sources, compiled))
        if any(original in parts for _, original in self._places.values()):
            jit._numba.config.CACHE_DIR = str(folder)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._places:
            return None
        copy, original = self._places[name]
        inner = [str(original.parent)] if original.name == "__init__.py" else None
        return spec_from_file_location(name, copy, submodule_search_locations=inner)


def main() -> None:
    patch = Path(sys.argv[1])
    if "PLANTED" not in os.environ:  # the command starts itself again with fixed hashes; so do it here, once
        os.execve(
            sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PLANTED": "1", "PYTHONHASHSEED": "0"}
        )
    with tempfile.TemporaryDirectory() as folder:
        patched = Patched(patch, Path(folder))
        sys.meta_path.insert(0, patched)  # type: ignore[arg-type]
        patched.use_own_machine_code(Path(folder))
        from whenabouts_sim.cli import main as simulate

        sys.argv = ["whenabouts-sim", *sys.argv[2:]]
        simulate()


if __name__ == "__main__":
    main()
