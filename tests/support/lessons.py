"""Runs the commands of a lesson in docs/examples as a reader would type them."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

COMMAND = """#!{python}
from whenabouts_cloud.cli import main

main()
"""


def steps(lesson: str) -> Iterator[tuple[str, str]]:
    """(command, what the lesson shows below it) in order."""
    for block in re.findall(r"```console\n(.*?)```", lesson, re.S):
        for part in block.split("$ ")[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def shell(folder: Path, lesson: str, data: Path) -> Callable[[str], "subprocess.CompletedProcess[str]"]:
    """Runs a line in a fresh folder where the lesson's files are and the command is on the path."""
    program = folder / "bin" / "whenabouts-cloud"
    program.parent.mkdir()
    program.write_text(COMMAND.format(python=sys.executable))
    program.chmod(0o755)
    work = folder / "work"
    work.mkdir()
    for text in re.findall(r"```wa\n(.*?)```", lesson, re.S):
        (work / re.match(r"# (\S+)", text)[1]).write_text(text)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    modules = os.pathsep.join(p for p in sys.path if p)
    environment = dict(os.environ, DATA=str(data), PATH=path, PYTHONPATH=modules, LC_ALL="C")

    def run(line: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-c", line], cwd=work, env=environment, capture_output=True, text=True, check=False
        )

    return run


def repeat(folder: Path, lesson: str, data: Path) -> int:
    """Run every line of the lesson in order; each must succeed and print what is shown. How many there were."""
    run = shell(folder, lesson, data)
    ran = 0
    for command, shown in steps(lesson):
        done = run(command)
        assert done.stdout == shown, f"{command}\n{done.stderr}"
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        ran += 1
    return ran


def table(lesson: str) -> dict[str, tuple[int, ...]]:
    """Rows of four numbers by their first cell."""
    lines = re.findall(r"^\| ([^|]+?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", lesson, re.M)
    return {question: tuple(map(int, numbers)) for question, *numbers in lines}
