"""A clone with nothing beside it is all that the tests need: no file outside of it is opened when they are collected."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.opened import MARK
from support.paths import REPOSITORY

# No test runs: assertions need not explain themselves, nor searches know the constants of our modules.
COLLECT = ("--collect-only", "-q", "-p", "no:cacheprovider", "--assert=plain", "-p", "no:hypothesispytest")
NOT_INHERITED = ("WHENABOUTS_SHARED", "WHENABOUTS_CAPTURES", "PYTEST_ADDOPTS")


def git(folder: Path, *arguments: str) -> str:
    """Output of git in a checkout."""
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=120, check=True
    ).stdout


def clone(folder: Path) -> None:
    """This checkout as it would be cloned if all its changes were committed."""
    for name in git(REPOSITORY, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")


def collect(folder: Path, scratch: Path) -> tuple[int, list[str]]:
    """Number of tests that pytest finds there, and the files that it opened outside."""
    scratch.mkdir()
    environment = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    plugin = os.pathsep.join(str(checkout / "tests") for checkout in (folder, REPOSITORY))
    environment |= {"TMPDIR": str(scratch), "HOME": str(scratch), "PYTHONPATH": plugin}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # the clone is used once
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "support.opened", *COLLECT],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    [count] = re.findall(r"^(\d+)(?:/\d+)? tests? collected", done.stdout, re.M)
    return int(count), [line.removeprefix(MARK) for line in done.stdout.splitlines() if line.startswith(MARK)]


@pytest.mark.timeout(1000)  # it imports every test module: several seconds of one core
def test_a_clone_with_an_empty_parent_collects_every_test_and_opens_nothing_outside(tmp_path):
    """No test module reads a file beside this checkout."""
    folder = tmp_path / "parent" / "whenabouts"
    clone(folder)
    count, outside = collect(folder, tmp_path / "scratch")
    assert list(folder.parent.iterdir()) == [folder]
    assert outside == []
    assert count > 4000


def test_a_file_beside_a_checkout_that_is_read_at_import_is_found(tmp_path):
    """The check above can fail."""
    (tmp_path / "outside").write_text("x")
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "test_planted.py").write_text("open('../outside').close()\n\n\ndef test_x():\n    pass\n")
    assert collect(tmp_path / "checkout", tmp_path / "scratch") == (1, [str(tmp_path.resolve() / "outside")])
