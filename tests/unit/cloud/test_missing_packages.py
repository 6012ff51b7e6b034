"""Commands whose extra is not installed, and commands that lack a module of their own (`whenabouts_cloud.cli`)."""

import subprocess
import sys

import pytest

COMMANDS = [("whenabouts_cloud.cli", "cloud"), ("whenabouts_sim.cli", "sim")]


def imported_without(absent: str, command: str) -> str:
    """What importing a command prints to stderr where a module is absent."""
    code = f"import sys; sys.modules[{absent!r}] = None; import {command}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize(("command", "extra"), COMMANDS)
def test_a_missing_package_of_others_names_the_extra(command, extra):
    """One line, because only the extra is missing."""
    text = imported_without("pyarrow", command)
    assert text.startswith(f"whenabouts-{extra}: package pyarrow")
    assert text.endswith(f" is missing; install the extra: pip install 'whenabouts[{extra}]'\n")


@pytest.mark.parametrize(("command", "extra"), COMMANDS)
def test_a_missing_module_of_ours_is_a_traceback(command, extra):
    """No extra would bring it."""
    text = imported_without("whenabouts_protocol", command)
    assert "Traceback" in text
    assert "install the extra" not in text
