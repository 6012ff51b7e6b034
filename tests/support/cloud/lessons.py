"""Runs the commands of pages as a reader would type them: in one shell that begins in the checkout.

The shell finds a `whenabouts-cloud` that sends its arguments to this process: here the command runs, with the existing Spark
session if there is one. A Python and a Spark for each command would cost more than the command. An ingest, which runs beside
the shell, is a separate process.
"""

import contextlib
import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from support import documents
from support.paths import REPOSITORY
from whenabouts_cloud.cli import main

EXAMPLES = REPOSITORY / "docs" / "examples"
COMMAND = """#!{python} -IS
import json, os, socket, sys
if sys.argv[1:2] == ["ingest"]:
    os.execv({program!r}, [{program!r}, *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as here:
    here.connect({address!r})
    here.sendall(json.dumps([os.getcwd(), sys.argv[1:]]).encode())
    here.shutdown(socket.SHUT_WR)
    code, printed, told = json.load(here.makefile())
sys.stderr.write(told)
sys.stdout.write(printed)
sys.exit(code)
"""
DONE = "-- this step is done:"


def text(name: str) -> str:
    """A lesson by its name."""
    return (EXAMPLES / f"{name}.md").read_text(encoding="utf-8")


def section(lesson: str, head: str) -> str:
    """The text below a heading of the second level, up to the next one."""
    [body] = re.findall(rf"^## {re.escape(head)}\n(.*?)(?=^## |\Z)", lesson, re.M | re.S)
    return body


def rules(lesson: str) -> list[str]:
    """The rules that a lesson shows."""
    return re.findall(r"```wa\n(.*?)```", lesson, re.S)


def steps(lesson: str) -> Iterator[tuple[str, str]]:
    """(command, output that the lesson shows) in order, without blocks that are marked as not run."""
    for block in documents.blocks(lesson):
        if block.reason is None:
            yield from block.steps


def repeat(folder: Path, lesson: str, **places: object) -> int:
    """Type every line of a lesson, or of several that follow each other; each must succeed and print what is shown.

    `places` are variables that the lesson lets the reader choose. Returns the number of lines. Commands that a lesson leaves
    running in the background end with it.
    """
    typed = list(steps(lesson))
    script = "trap 'kill $(jobs -p) 2>/dev/null' EXIT\n" + "".join(
        f"{command}\nstep=$?; echo '{DONE}' $step; test $step = 0 || exit 1\n" for command, _ in typed
    )
    with socket.socket(socket.AF_UNIX) as commands:
        commands.bind(str(folder / "commands"))
        commands.listen()
        code, printed, complaint = _serve(
            script, _environment(folder) | {n: str(at) for n, at in places.items()}, commands
        )
    emitted = re.split(rf"{DONE} (\d+)\n", printed)
    for (command, shown), output, status in zip(typed, emitted[::2], emitted[1::2], strict=False):
        assert documents.fits(shown, output), f"{command}\nfound:\n{output}expected:\n{shown}{complaint}"
        assert status == "0", f"{command}\n{complaint}"
    assert code == 0, complaint
    return len(typed)


def _serve(script: str, environment: dict[str, str], commands: socket.socket) -> tuple[int, str, str]:
    """Exit code and output of a shell, whose commands are run here as they come in."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        shell = subprocess.Popen(["bash", "-c", script], cwd=REPOSITORY, env=environment, stdout=out, stderr=err)
        ended = os.pidfd_open(shell.pid)
        while ended not in (ready := select.select([commands, ended], [], [])[0]):
            assert ready
            _run(commands.accept()[0])
        os.close(ended)
        code = shell.wait()
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read().decode())
    return code, *printed


def _run(asked: socket.socket) -> None:
    """One command in the folder of the shell."""
    with asked, asked.makefile("r") as words:
        folder, given = json.load(words)
        with contextlib.chdir(folder):
            done = CliRunner().invoke(main, given)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        asked.sendall(json.dumps([done.exit_code, done.stdout, done.stderr]).encode())


def _environment(folder: Path) -> dict[str, str]:
    """The environment with the command on the path, and with temporary folders in `folder`."""
    program = folder / "bin" / "whenabouts-cloud"
    program.parent.mkdir()
    real = Path(sys.executable).parent
    program.write_text(
        COMMAND.format(python=sys.executable, address=str(folder / "commands"), program=str(real / "whenabouts-cloud"))
    )
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), str(real), os.environ["PATH"], "/usr/sbin"])
    return dict(os.environ, PATH=path, LC_ALL="C", TMPDIR=str(folder))


def table(lesson: str) -> dict[str, tuple[int, ...]]:
    """Rows of four numbers by their first cell."""
    lines = re.findall(r"^\| ([^|]+?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", lesson, re.M)
    return {question: tuple(map(int, numbers)) for question, *numbers in lines}
