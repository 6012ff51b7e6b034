"""The wheel that pip makes of the repository: what is no Python must be in it too."""

import subprocess
import sys
import zipfile

import pytest

from support.paths import REPOSITORY
from support.sources import FOLDERS, tracked_files


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The names in a wheel built without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation",
         "--disable-pip-version-check", "--wheel-dir", str(folder), str(REPOSITORY)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [made] = folder.glob("whenabouts-*.whl")
    with zipfile.ZipFile(made) as content:
        return set(content.namelist())


def tracked():
    """Every file of our packages, as a wheel names it."""
    for file in tracked_files():
        path = file.relative_to(REPOSITORY)
        if len(path.parts) > 1 and FOLDERS.get(path.parts[1]) == path.parts[0]:
            yield path.relative_to(path.parts[0]).as_posix()


def test_every_file_of_the_packages_is_in_it(wheel):
    """Simulated boards, their pinned packages, descriptions of boards, grammar and schema among them."""
    files = set(tracked())
    assert {name.rsplit(".", 1)[-1] for name in files} >= {
        "py",
        "mjs",
        "json",
        "toml",
        "txt",
        "cddl",
        "lark",
        "properties",
    }
    assert files - wheel == set()


def test_nothing_else_is_in_it(wheel):
    """The packages and the description of the wheel: no tests, no folders with general names."""
    [described] = {name.split("/")[0] for name in wheel if name.endswith("/METADATA")}
    assert {name.split("/")[0] for name in wheel} == {*FOLDERS, described}


def test_it_brings_the_commands_and_the_licence(wheel):
    """Entry points, and the licence's text."""
    described = {name.split("/", 1)[1] for name in wheel if ".dist-info/" in name}
    assert {"entry_points.txt", "licenses/LICENSE", "METADATA"} <= described
