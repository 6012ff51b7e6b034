"""The audit: licences against a table, weaknesses by pip-audit, and nothing called checked that was not."""

import json
import subprocess
import sys
import tomllib
from email.message import Message

import pytest

import audit
from audit import Weaknesses, licence_faults, licence_of, weaknesses
from support.paths import REPOSITORY

TABLE = tomllib.loads(audit.TABLE.read_text())
LOCK = "click==8.5.1 \\\n    --hash=sha256:00\nrich==15.0.0 \\\n    --hash=sha256:01\n"


def test_every_package_has_a_licence_that_is_allowed():
    """Those installed here and those locked for other machines."""
    done = subprocess.run(
        [sys.executable, "tools/audit.py", "licences"], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert ", 0 faults" in done.stdout


@pytest.mark.parametrize("reasons", [TABLE["allowed"].values(), [row["reason"] for row in TABLE["packages"].values()]])
def test_every_entry_has_a_reason(reasons):
    """A licence is allowed for a reason, and a package that was judged by hand has its licence beside it."""
    assert all(reasons)
    assert all(row["licence"] for row in TABLE["packages"].values())


def test_unknown_and_refused_licences_and_stale_entries_are_faults():
    """No licence, one that is not in the table, a package nobody can look into, an entry for nothing."""
    declared = {"a": "MIT", "b": "", "c": "AGPL-3.0", "d": "", "whenabouts": "", "x": "odd"}
    table = {"allowed": {"MIT": "fine"}, "packages": {"d": {}, "gone": {}, "x": {}}}
    faults = licence_faults(declared, {"a", "b", "c", "d", "e", "x"}, table)
    assert [line.partition(":")[0] for line in faults] == ["b", "c", "e", "gone"]
    assert "found licence 'AGPL-3.0', expected" in faults[1]
    assert "not installed" in faults[2]


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ([("License-Expression", "MIT"), ("License", "other")], "MIT"),
        ([("Classifier", "License :: OSI Approved :: MIT License"), ("Classifier", "Topic :: X")], "MIT License"),
        ([("License", "Apache-2.0")], "Apache-2.0"),
        ([("License", "whole text\nof a licence")], ""),
        ([], ""),
    ],
)
def test_a_licence_is_what_the_metadata_declares(fields, licence):
    """The expression first, then classifiers, then one line of text."""
    about = Message()
    for name, value in fields:
        about[name] = value
    assert licence_of(about) == licence


def pip_audit(folder, code, output):
    """A program that answers as pip-audit does."""
    program = folder / "pip-audit"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nprint({output!r})\nprint('no route', file=sys.stderr)\nsys.exit({code})\n"
    )
    program.chmod(0o755)
    return str(program)


def asked(tmp_path, code, answer):
    """The answer about one lock file, and the exit code of the report."""
    lock = tmp_path / "some.lock"
    lock.write_text(LOCK)
    seen = weaknesses([lock], pip_audit(tmp_path, code, answer))
    return seen, audit.report(seen)


def test_a_known_weakness_is_reported_and_fails(tmp_path, capsys):
    """With the version that mends it."""
    weak = {"name": "click", "version": "8.5.1", "vulns": [{"id": "CVE-1", "fix_versions": ["9"]}]}
    fine = {"name": "rich", "version": "15.0.0", "vulns": []}
    seen, code = asked(tmp_path, 1, json.dumps({"dependencies": [weak, fine]}))
    assert seen == Weaknesses(["click 8.5.1: CVE-1, mended in 9"], 2, {})
    assert code == 1
    assert "weakness: click 8.5.1: CVE-1, mended in 9" in capsys.readouterr().out


def test_what_the_index_does_not_know_was_not_checked(tmp_path, capsys):
    """pip-audit ends with 0 and `no known vulnerabilities` although it skipped every package; here it is said, and fails."""
    skipped = [{"name": name, "skip_reason": "not found on PyPI"} for name in ("click", "rich")]
    seen, code = asked(tmp_path, 0, json.dumps({"dependencies": skipped}))
    assert (seen.checked, code) == (0, 3)
    said = capsys.readouterr().out
    assert "NOT CHECKED" in said
    assert "click in some.lock: not found on PyPI" in said


def test_without_a_network_nothing_was_checked(tmp_path, capsys):
    """A traceback instead of an answer; no program at all."""
    seen, code = asked(tmp_path, 1, "")
    assert (seen.checked, seen.not_checked, code) == (0, {"some.lock": "no route"}, 3)
    seen = weaknesses([tmp_path / "some.lock"], str(tmp_path / "absent"))
    assert "some.lock" in seen.not_checked
    assert audit.report(seen) == 3
    assert audit.report(Weaknesses([], 2, {})) == 0


def test_every_lock_file_is_audited():
    """Those of separate environments too, the audit's own among them."""
    names = {str(path.relative_to(REPOSITORY)) for path in audit.all_lock_files()}
    assert {"requirements.lock", "requirements-edge.lock", "tools/audit-requirements.txt"} <= names
    assert all(path.is_file() for path in audit.all_lock_files())


@pytest.mark.deep
def test_the_sbom_lists_every_locked_package_with_its_hashes(tmp_path):
    """In CycloneDX that the library's validation accepts; the same list again gives the same bytes."""
    made = []
    for run in ("one", "two"):
        subprocess.run(
            ["make", "sbom", "SHIPPED=edge", f"DIST={tmp_path / run}"], cwd=REPOSITORY, check=True, capture_output=True
        )
        made.append({path.name: path.read_text() for path in (tmp_path / run).iterdir()})
    assert made[0] == made[1]
    listed = json.loads(made[0]["sbom-edge.cdx.json"])
    assert (listed["bomFormat"], listed["metadata"]["component"]["name"]) == ("CycloneDX", "whenabouts")
    assert {part["name"] for part in listed["components"]} == audit.locked([REPOSITORY / "requirements-edge.lock"])
    for part in listed["components"]:
        assert part["version"]
        assert part["externalReferences"][0]["hashes"]
