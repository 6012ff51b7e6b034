"""Faults put into the product's code, one at a time: the simulator finds each of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.child import environment
from support.search import SEED

FAULTS = sorted((Path(__file__).parent / "faults").glob("*.patch"))
QUICK = ("acknowledged-one-too-high", "repeats-forgotten", "frontier-without-numbers")  # the others are for deep runs
ROOT = Path(__file__).parents[2]
PLANTED = ROOT / "tests" / "support" / "planted.py"
SCHEDULES = 2000


@pytest.mark.parametrize("patch", [one for one in FAULTS if SEED or one.stem[3:] in QUICK], ids=lambda one: one.stem)
def test_a_planted_fault_is_found(patch):
    arguments = [str(patch), "chaos", "--seed", "1", "--schedules", str(SCHEDULES), "--json"]
    done = subprocess.run(
        [sys.executable, str(PLANTED), *arguments], env=environment(), capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 1, f"survived {SCHEDULES} schedules: {done.stdout}{done.stderr}"
    said = json.loads(done.stdout.splitlines()[0])
    assert said["broken"], done.stdout


def test_there_is_a_patch_for_each_fault_that_applies_and_says_what_it_is():
    assert len(FAULTS) >= 15
    for patch in FAULTS:
        assert patch.read_text().splitlines()[0].endswith(".")
        done = subprocess.run(["git", "apply", "--check", str(patch)], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, f"{patch.name}: {done.stderr}"
