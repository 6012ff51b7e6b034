"""Compiled functions (`whenabouts_cloud.jit`): the code that is kept belongs to every source that went into it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from whenabouts_cloud import arrays, jit

INNER = "from whenabouts_cloud.jit import compiled\n\n@compiled\ndef inner(x):\n    return x + {}\n"
OUTER = (
    "from whenabouts_cloud.jit import compiled\nfrom whenabouts_cloud.low.inner import inner\n\n"
    "@compiled\ndef outer(x):\n    return 10 * inner(x)\n\n"
    "if __name__ == '__main__':\n    print(outer(1), sum(outer.stats.cache_hits.values()))\n"
)


@pytest.fixture
def package(tmp_path):
    """A package of two folders with a compiled function in each, the outer calling the inner."""
    home = tmp_path / "whenabouts_cloud"
    for folder in ("low", "high"):
        (home / folder).mkdir(parents=True)
        (home / folder / "__init__.py").touch()
    (home / "__init__.py").touch()
    for module in (jit, arrays):
        shutil.copy(module.__file__, home)
    (home / "low" / "inner.py").write_text(INNER.format(1))
    (home / "high" / "outer.py").write_text(OUTER)
    return home


def run(home: Path, **environment: str) -> str:
    """The output of the outer module: the result, and how often kept code was used.

    Without Python's own kept code: it would take a file for unchanged that was rewritten in one second with as many bytes.
    """
    done = subprocess.run(
        [sys.executable, "-B", "-m", "whenabouts_cloud.high.outer"], cwd=home.parent, capture_output=True, text=True,
        check=True, env={**os.environ, "PYTHONPATH": str(home.parent), **environment},
    )  # fmt: skip
    return done.stdout.strip()


def test_kept_code_is_taken_until_a_file_changes_that_it_came_from(package):
    """Also when that file lies in another folder, which numba does not look at."""
    assert run(package) == "20 0"
    assert run(package) == "20 1"
    (package / "low" / "inner.py").write_text(INNER.format(2))
    assert run(package) == "30 0"
    assert run(package) == "30 1"


def test_of_earlier_states_only_a_few_are_kept(package):
    """The folder does not grow with every change."""
    for n in range(jit.KEPT + 3):
        folder = package / "high" / "__pycache__" / f"numba-high-outer-{n}"
        folder.mkdir(parents=True)
        os.utime(folder, (n, n))
    run(package)
    kept = sorted(one.name for one in (package / "high" / "__pycache__").glob("numba-high-outer-*"))
    assert len(kept) == jit.KEPT
    assert f"numba-high-outer-{jit.KEPT + 2}" in kept


def test_a_folder_given_by_the_user_is_used(package, tmp_path):
    """NUMBA_CACHE_DIR names the folder of kept code, as for every other program that uses numba."""
    run(package, NUMBA_CACHE_DIR=str(tmp_path / "given"))
    assert list((tmp_path / "given").glob("numba-high-outer-*/*/*.nbi"))
