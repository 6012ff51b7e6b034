"""A forge and git's hooks check what `make lint` and the build server check."""

import re

import yaml

from support.paths import REPOSITORY


def test_the_workflow_runs_what_the_build_server_runs():
    """One command, on every push and for every change that is offered."""
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "checks.yml").read_text())
    runs = [step["run"] for step in workflow["jobs"]["checks"]["steps"] if "run" in step]
    assert runs[-1] == ".ci/run"
    assert {"push", "pull_request"} <= workflow[True].keys()  # YAML takes "on" for a truth


def test_hooks_check_what_make_lint_checks():
    """The commands are equal, also those that `make lint` hands to other targets."""
    [lint] = re.findall(r"^lint:.*\n((?:\t.*\n)+)", (REPOSITORY / "Makefile").read_text(), re.M)
    checks = set()
    for line in lint.replace("$(BIN)", ".venv/bin").splitlines():
        made = re.search(r"\$\(MAKE\) --no-print-directory (.*)", line)
        checks |= {f"make {target}" for target in made[1].split()} if made else {line.strip()}
    hooks = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert {hook["entry"] for hook in hooks} == checks
