"""Audits the locked packages: `python tools/audit.py licences` or `all`; run by `make audit`.

Licences are looked up in the metadata of the installed packages and compared with tools/licences.toml. Known weaknesses
come from pip-audit, which asks the package index about each locked version. Where it gets no answer the versions are
named as not checked.

Exit codes: 0 all is well, 1 something was found, 3 nothing was found, but not all could be checked.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageMetadata, distributions
from pathlib import Path

from set_up import split

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tools" / "licences.toml"
PIP_AUDIT = ROOT / ".venv-audit" / "bin" / "pip-audit"
PROJECT = "whenabouts"
FOUND, NOT_CHECKED = 1, 3
TIMEOUT_S = 600


@dataclass(frozen=True)
class Weaknesses:
    """Answer about locked versions: lines about known weaknesses, versions that were checked, and why others were not."""

    found: list[str]
    checked: int
    not_checked: dict[str, str]


def normal(name: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licence_of(about: PackageMetadata) -> str:
    """What a package declares, as short as it declares it: an SPDX expression, else classifiers, else a line of text."""
    if about["License-Expression"]:
        return str(about["License-Expression"])
    classifiers = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line[:7] == "License"]
    text = (about["License"] or "").strip()
    return " | ".join(classifiers) or ("" if "\n" in text else text)


def installed(environments: Iterable[Path] = ()) -> dict[str, str]:
    """The licence of each package in this environment and in others, by name."""
    places = [*sys.path, *(str(place) for each in environments for place in each.glob("lib/python*/site-packages"))]
    abouts = (one.metadata for one in distributions(path=places))
    return {normal(about["Name"]): licence_of(about) for about in abouts}


def locked(files: Iterable[Path]) -> set[str]:
    """The names of all packages in lock files."""
    return {normal(name) for file in files for name in split(file.read_text(encoding="utf-8"))}


def licence_faults(declared: Mapping[str, str], names: set[str], table: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A line for each package whose licence is unknown or not allowed, and for each entry that nothing needs any more.

    declared: licences of installed packages. names: of locked ones, installed or not. table: `allowed` licences with the
    reason, and `packages` that are judged by hand, each with licence and reason.
    """
    allowed, by_hand = table["allowed"], table["packages"]
    faults = []
    for name in sorted((names | set(declared)) - {PROJECT}):
        licence = declared.get(name)
        if name in by_hand or (licence and licence in allowed):
            continue
        found = "a package that is not installed" if licence is None else f"licence {licence!r}"
        faults.append(f"{name}: found {found}, expected one that tools/licences.toml allows, or the package in it")
    faults += [f"{name}: found in tools/licences.toml, but locked nowhere" for name in sorted(set(by_hand) - names)]
    return faults


def lock_files() -> list[Path]:
    """The lock files of the project's own environments."""
    return sorted(ROOT.glob("requirements*.lock"))


def all_lock_files() -> list[Path]:
    """Also those of environments for tools, tests and measurements."""
    aside = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.in"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [*lock_files(), *(ROOT / Path(name).with_suffix(".txt") for name in aside.stdout.split())]


def weaknesses(files: Iterable[Path], command: str = str(PIP_AUDIT)) -> Weaknesses:
    """Ask pip-audit about every version in these lock files; a version without an answer is not checked."""
    found: set[str] = set()
    checked: set[str] = set()
    missing: dict[str, str] = {}
    for file in files:
        asked = [
            command,
            "--require-hashes",
            "--disable-pip",
            "-r",
            str(file),
            "-f",
            "json",
            "--progress-spinner",
            "off",
        ]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
            rows = json.loads(done.stdout)["dependencies"]
        except (OSError, subprocess.TimeoutExpired) as error:
            missing[file.name] = str(error)
            continue
        except (ValueError, KeyError):
            missing[file.name] = (done.stderr.strip().splitlines() or ["no answer"])[-1]
            continue
        for row in rows:
            if "skip_reason" in row:
                missing[f"{row['name']} in {file.name}"] = row["skip_reason"]
                continue
            checked.add(f"{row['name']} {row['version']}")
            found |= {
                f"{row['name']} {row['version']}: {weak['id']}, mended in {', '.join(weak['fix_versions']) or 'no version'}"
                for weak in row["vulns"]
            }
    return Weaknesses(sorted(found), len(checked), missing)


def report(seen: Weaknesses) -> int:
    """Print what was found, and what could not be checked; return the exit code."""
    for line in seen.found:
        print(f"weakness: {line}")
    print(f"weaknesses: {seen.checked} versions checked, {len(seen.found)} weaknesses found")
    if seen.not_checked:
        print(f"weaknesses: NOT CHECKED, the package index gave no answer for {len(seen.not_checked)}:")
        for name, why in seen.not_checked.items():
            print(f"  {name}: {why}")
    return FOUND if seen.found else NOT_CHECKED if seen.not_checked else 0


def main(what: str) -> int:
    """Check licences, with `all` weaknesses too; return the exit code."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    declared = installed(ROOT.glob(".venv-*") if what == "all" else ())
    names = locked(lock_files())
    faults = licence_faults(declared, names, table)
    for line in faults:
        print(f"licence: {line}")
    print(f"licences: {len(names | set(declared))} packages, {len(faults)} faults")
    code = report(weaknesses(all_lock_files())) if what == "all" else 0
    return FOUND if faults else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
