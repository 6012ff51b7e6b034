"""The wheel that pip makes of the repository: what is no Python must be in it too."""

import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
from packaging.requirements import Requirement

import set_up
from support.documents import blocks, pages
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


EXTRAS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
LOCKED = {path.stem.partition("-")[2] or "dev": path for path in REPOSITORY.glob("requirements*.lock")}


def needed(extra):
    """The requirements of an extra, with those of the extras in it."""
    for line in EXTRAS[extra]:
        requirement = Requirement(line)
        if requirement.name == "whenabouts":
            for inner in requirement.extras:
                yield from needed(inner)
        else:
            yield requirement


@pytest.mark.parametrize("extra", LOCKED)
def test_a_lock_file_has_what_its_extra_asks_for(extra):
    """Installed without resolving, it leaves nothing missing: every requirement is there, in a version that fits."""
    entries = set_up.split(LOCKED[extra].read_text())
    for requirement in needed(extra):
        versions = re.findall(r"==([^\s;]+)", entries[requirement.name])
        assert any(requirement.specifier.contains(version) for version in versions), requirement


def test_lock_files_agree_in_versions_and_hashes():
    """A package has one version and the same files in all of them."""

    def hashes(lock, name):
        return set(re.findall(r"==[^\s;]+|sha256:\w+", set_up.split(lock.read_text())[name]))

    for lock in LOCKED.values():
        for name in set_up.split(lock.read_text()):
            others = [other for other in LOCKED.values() if name in set_up.split(other.read_text())]
            assert all(hashes(other, name) == hashes(lock, name) for other in others), name


def test_a_gateway_needs_few_packages_that_any_machine_can_install():
    """Three, which are pure Python: a Pi of 32 or 64 bits takes the same files as a PC."""
    entries = set_up.split((REPOSITORY / "requirements-edge.lock").read_text())
    assert {name for name, entry in entries.items() if "sys_platform == 'win32'" not in entry} == {
        "click",
        "paho-mqtt",
        "pyserial",
    }
    assert all(entry.count("sha256:") <= 2 for entry in entries.values()), "a wheel for all machines, and the source"


def test_every_installation_in_the_documents_checks_hashes_and_exists():
    """Packages come from a lock file with hashes; only this project is installed without."""
    lines = [
        command
        for text in pages().values()
        for block in blocks(text)
        for command, _ in block.steps
        if "pip install" in command
    ]
    assert len(lines) >= 8
    for line in lines:
        locks = re.findall(r"-r (\S+)", line)
        assert (
            line.partition("#")[0].rstrip().endswith("--no-deps --no-build-isolation .") or "--require-hashes" in line
        )
        assert all((REPOSITORY / lock).is_file() for lock in locks), line
