"""A board that has only the modules flashed for one kind of reader decodes its frames: no module is missing, also later."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.board.micropython import tool
from support.files.reader_frames import published
from support.paths import REPOSITORY
from whenabouts_edge.flash.boards import board
from whenabouts_edge.flash.modules import ALL_KINDS, needed
from whenabouts_edge.flash.program import program

SCRIPT = Path(__file__).with_name("flash_readers.py")


def put(folder, names):
    """The compiled modules, where a board has them."""
    for place, code in program(names, []).items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(code)
    shutil.copy(SCRIPT, folder / "main.py")


def run(folder, kind):
    """Finished process of the script on the VM, with nothing of this checkout on its path."""
    frames = [frame.raw.hex() for frame in published() if frame.reader == kind]
    assert frames
    return subprocess.run(
        [str(tool("micropython")), "-X", "heapsize=256k", str(folder / "main.py"), kind, *frames],
        env={**os.environ, "MICROPYPATH": f"{folder}{os.pathsep}.frozen"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_the_frames_of_a_kind_need_no_other_modules(kind, tmp_path):
    """Every published frame of its readers gives the readings that it gives here, and no import fails."""
    put(tmp_path, needed(board("pico_w").modules, [kind], []))
    done = run(tmp_path, kind)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-1]) > 0


def test_a_missing_module_is_seen(tmp_path):
    """The check above can fail."""
    names = needed(board("pico_w").modules, ["line"], [])
    del names["whenabouts_hardware.readers.line_values"]
    put(tmp_path, names)
    assert "ImportError" in run(tmp_path, "line").stdout


FAILS = """
import sys
from whenabouts_edge.board import run
try:
    run.opened({"site": 5})
except ValueError as error:
    sys.print_exception(error)
"""


def test_a_traceback_shows_the_lines_and_names_of_the_sources(tmp_path):
    """From the main program to the line that raises: file, line and function of each call are those of this checkout."""
    put(tmp_path, needed(board("pico_w").modules, ["line"], []))
    (tmp_path / "main.py").write_text(FAILS)
    done = run(tmp_path, "line")
    calls = re.findall(r'File "(whenabouts_.*?)", line (\d+), in (\w+)', done.stdout)
    assert [(file, function) for file, _, function in calls] == [
        ("whenabouts_edge/board/run.py", "opened"),
        ("whenabouts_edge/board/run.py", "_checked"),
        ("whenabouts_edge/board/config.py", "checked"),
        ("whenabouts_edge/board/config.py", "_table"),
    ]
    lines = [(REPOSITORY / "edge" / file).read_text().splitlines()[int(line) - 1] for file, line, _ in calls]
    assert all(word in line for word, line in zip(["_checked(", "checked(", "_table(", "raise "], lines, strict=True))
