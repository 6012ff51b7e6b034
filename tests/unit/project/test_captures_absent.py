"""Where captures of third parties are looked for, and what becomes of the tests on them where there are none."""

import os
import re
import subprocess
import sys

import pytest

from support.files import captures
from support.paths import REPOSITORY

TESTS = "tests/captures/test_m6e_frames.py"
OURS = ("WHENABOUTS_SHARED", "WHENABOUTS_CAPTURES")


def environment(**ours: str) -> dict[str, str]:
    """This environment, with only these of our variables."""
    return {name: value for name, value in os.environ.items() if name not in OURS} | ours


def run(*options: str, **ours: str) -> subprocess.CompletedProcess[str]:
    """Runs a separate pytest on tests that read captures."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *options, TESTS]
    return subprocess.run(
        command, cwd=REPOSITORY, env=environment(**ours), capture_output=True, text=True, timeout=120, check=False
    )


def test_they_lie_beside_the_checkout_or_where_the_variable_points(monkeypatch, tmp_path):
    """A place is given whether it exists or not; the message of an absent one names the places searched and a remedy."""
    monkeypatch.delenv("WHENABOUTS_SHARED", raising=False)
    assert captures.folder("a", "b.txt") == REPOSITORY.parent / "shared" / "data" / "a" / "b.txt"
    monkeypatch.setenv("WHENABOUTS_SHARED", str(tmp_path))
    assert captures.folder("a") == tmp_path / "data" / "a"
    assert not captures.present()
    assert f"found no folder {tmp_path / 'data'}" in captures.absent()
    assert "name it with WHENABOUTS_SHARED" in captures.absent()
    (tmp_path / "data").mkdir()
    assert captures.present()


def test_without_them_every_test_is_skipped_with_their_number_and_the_reason(tmp_path):
    """One line for all of them; every test that has the marker is in the number, none is run."""
    collected = run("--collect-only", "-m", "captures", WHENABOUTS_SHARED=str(tmp_path))
    count = sum(line.startswith(TESTS) for line in collected.stdout.splitlines())
    done = run(WHENABOUTS_SHARED=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert count > 50
    lines = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert len(lines) == 1
    assert lines[0].startswith(f"SKIPPED [{count}] tests/captures/conftest.py:")
    assert f"found no folder {tmp_path / 'data'}" in lines[0]
    assert re.fullmatch(rf"{count} skipped in .*", done.stdout.splitlines()[-1])


def test_without_them_it_is_a_failure_where_they_are_required(tmp_path):
    """As on a build server that has them: every test is an error with the reason."""
    done = run("-x", WHENABOUTS_SHARED=str(tmp_path), WHENABOUTS_CAPTURES="required")
    assert done.returncode == 1
    assert "WHENABOUTS_CAPTURES=required makes that a failure" in done.stdout
    assert "skipped" not in done.stdout


@pytest.mark.parametrize(
    ("place", "named", "expected"),
    [("shared/data", None, "required"), ("there/data", "there", "required"), (None, None, ""), (None, "there", "")],
)
def test_the_build_server_requires_them_only_where_they_are(tmp_path, place, named, expected):
    """`.ci/run` with and without the folder, beside the checkout and named; its `make` prints its arguments."""
    script, make = tmp_path / "checkout" / ".ci" / "run", tmp_path / "programs" / "make"
    for path, text in (
        (script, (REPOSITORY / ".ci" / "run").read_text()),
        (make, '#!/bin/sh\necho "$1:$WHENABOUTS_CAPTURES"\n'),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    if place:
        (tmp_path / place).mkdir(parents=True)
    ours = {"WHENABOUTS_SHARED": str(tmp_path / named)} if named else {}
    given = environment(**ours) | {"PATH": f"{make.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([str(script)], env=given, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [f"lint:{expected}", f"test:{expected}"]
