"""A board that has only what is flashed for one kind of reader decodes its frames: no module is missing, also late."""

import os
import subprocess
from pathlib import Path

import pytest

from support.board.files import ROOT
from support.board.micropython import tool
from support.files.reader_frames import published
from whenabouts_edge.flash.boards import board
from whenabouts_edge.flash.compiler import compiled
from whenabouts_edge.flash.modules import ALL_KINDS, needed, place
from whenabouts_edge.flash.program import reduced

SCRIPT = Path(__file__).with_name("flash_readers.py")


def put(folder, names, kind):
    """The compiled modules, where a board has them."""
    for name, source in reduced({**names, SCRIPT.stem: SCRIPT}, ROOT, [kind], []).items():
        if name == SCRIPT.stem:
            (folder / "main.py").write_text(source)
            continue
        target = folder / place(name, names[name])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(compiled(source, name))


def run(folder, kind):
    """What the script prints or ends with on the VM, with nothing of this checkout on its path."""
    frames = [frame.raw.hex() for frame in published() if frame.reader == kind]
    assert frames
    return subprocess.run(
        [str(tool("micropython")), "-X", "heapsize=256k", str(folder / "main.py"), kind, *frames],
        env={**os.environ, "MICROPYPATH": f"{folder}{os.pathsep}.frozen"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_the_frames_of_a_kind_need_no_other_modules(kind, tmp_path):
    """Every published frame of its readers becomes what it becomes here, without an import that fails."""
    put(tmp_path, needed(board("pico_w").modules, [kind], []), kind)
    done = run(tmp_path, kind)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-1]) > 0


def test_a_missing_module_is_seen(tmp_path):
    """The check above can fail."""
    names = needed(board("pico_w").modules, ["line"], [])
    del names["whenabouts_hardware.readers.line_values"]
    put(tmp_path, names, "line")
    assert "ImportError" in run(tmp_path, "line").stdout
