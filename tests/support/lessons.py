"""Runs the commands of lessons in docs/examples as a reader would type them: in one shell, from the checkout on."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from support.paths import REPOSITORY

EXAMPLES = REPOSITORY / "docs" / "examples"
COMMAND = """#!{python}
from whenabouts_cloud.cli import main

main()
"""
DONE = "-- this step is done:"


def text(name: str) -> str:
    """A lesson by its name."""
    return (EXAMPLES / f"{name}.md").read_text(encoding="utf-8")


def section(lesson: str, head: str) -> str:
    """What stands below a heading of the second level, up to the next one."""
    [found] = re.findall(rf"^## {re.escape(head)}\n(.*?)(?=^## |\Z)", lesson, re.M | re.S)
    return found


def rules(lesson: str) -> list[str]:
    """The rules that a lesson shows."""
    return re.findall(r"```wa\n(.*?)```", lesson, re.S)


def steps(lesson: str) -> Iterator[tuple[str, str]]:
    """(command, what the lesson shows below it) in order."""
    for block in re.findall(r"```console\n(.*?)```", lesson, re.S):
        for part in block.split("$ ")[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def repeat(folder: Path, lesson: str, **places: Path) -> int:
    """Type every line of a lesson, or of several that follow each other; each must succeed and print what is shown.

    `places` are variables that the lesson lets be folders of the reader. Returns how many lines there were.
    """
    typed = list(steps(lesson))
    script = "".join(f"{command}\nstep=$?; echo '{DONE}' $step; test $step = 0 || exit 1\n" for command, _ in typed)
    ran = subprocess.run(
        ["bash", "-c", script],
        cwd=REPOSITORY,
        env=_environment(folder) | {name: str(place) for name, place in places.items()},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = re.split(rf"{DONE} (\d+)\n", ran.stdout)
    for (command, shown), printed, status in zip(typed, told[::2], told[1::2], strict=False):
        assert printed == shown, f"{command}\nfound:\n{printed}expected:\n{shown}{ran.stderr}"
        assert status == "0", f"{command}\n{ran.stderr}"
    assert ran.returncode == 0, ran.stderr
    return len(typed)


def _environment(folder: Path) -> dict[str, str]:
    """With the command on the path; temporary folders lie in `folder`."""
    program = folder / "bin" / "whenabouts-cloud"
    program.parent.mkdir()
    program.write_text(COMMAND.format(python=sys.executable))
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    modules = os.pathsep.join(p for p in sys.path if p)
    return dict(os.environ, PATH=path, PYTHONPATH=modules, LC_ALL="C", TMPDIR=str(folder))


def table(lesson: str) -> dict[str, tuple[int, ...]]:
    """Rows of four numbers by their first cell."""
    lines = re.findall(r"^\| ([^|]+?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", lesson, re.M)
    return {question: tuple(map(int, numbers)) for question, *numbers in lines}
