"""The firmware of a board as files in the flash of a simulated board, and scripts run there as on the other VMs."""

import json
import os
import select
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from support.board.files import board_for, flashed_board
from whenabouts_edge.flash.modules import ALL_KINDS, ALL_OPTIONS
from whenabouts_edge.flash.plan import MAIN
from whenabouts_sim.boards.node_board import NodeBoard

ENDED = "-- the script has ended --"
TIMEOUT_S = 120


def install(flash: Path, config: Mapping[str, object], main: str = "") -> None:
    """Put the firmware, its configuration and main.py into the flash of a board, as flashing does."""
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "main.py"
        script.write_text(main or MAIN)
        shutil.copytree(board_for(config, script), flash, dirs_exist_ok=True)
    (flash / "board.json").write_text(json.dumps(config))


class Console:
    """Output of a simulated board, read from its terminal; nothing else may have the terminal open."""

    def __init__(self, board: NodeBoard) -> None:
        self._board = board
        self._file = os.open(board.port, os.O_RDWR | os.O_NOCTTY)
        self.text = ""

    def wait(self, what: str, found: Callable[[str], bool], timeout_s: float = TIMEOUT_S) -> str:
        """All output so far, as soon as `found` is true of it."""
        until = time.monotonic() + timeout_s
        while not found(self.text):
            left = until - time.monotonic()
            if left <= 0:
                raise AssertionError(f"{what}: not within {timeout_s} s\n{self.text}\n{self._board.complaint}")
            if select.select([self._file], [], [], min(left, 0.1))[0]:
                self.text += os.read(self._file, 65536).decode(errors="replace")
            elif (not self._board.pid or self._board.wait(0)) and self._board.has_said_all:
                if select.select([self._file], [], [], 0)[0]:
                    continue
                raise AssertionError(f"{what}: the board ended\n{self.text}\n{self._board.complaint}")
        return self.text

    def type(self, text: str) -> None:
        """Type the text."""
        os.write(self._file, text.encode())

    def close(self) -> None:
        """Close the terminal, so that others can open it."""
        os.close(self._file)


def run_flashed(folder: Path, module: str, argv: list[str], heap_kb: int | None) -> str:
    """Output of the steps of `main(argv)` of a module on a simulated board with these files and this much memory.

    Raises:
        AssertionError: it ended with an error; the text holds its output.
    """
    with tempfile.TemporaryDirectory() as name:
        flash = Path(name)
        shutil.copytree(folder, flash, dirs_exist_ok=True)
        (flash / "main.py").write_text(
            f"import {module}\ndef life():\n    yield from {module}.main({argv!r})\n    print({ENDED!r})\nprogram = life()\n"
        )
        with NodeBoard(flash, heap_kb=heap_kb, patience_s=TIMEOUT_S) as board:
            console = Console(board)
            text = console.wait("the script's end", lambda text: "MicroPython v" in text).replace("\r\n", "\n")
            console.close()
    printed, ended, _ = text.partition(ENDED)
    assert ended, text
    return printed


def run_on_node(script: "str | Path", *args: str, heap: str = "", alone: bool = False) -> str:
    """Output of the script as the main program of a simulated board; files among its arguments are on the board's flash.

    The heap has no limit. Memory is collected between the steps of the iterator `program` that the script may leave.

    Raises:
        AssertionError: it ended with an error; the text holds its output.
    """
    with tempfile.TemporaryDirectory() as name:
        flash = Path(name)
        given = []
        for arg in args:
            if Path(arg).is_file():
                (flash / Path(arg).name).write_bytes(Path(arg).read_bytes())
            given.append("/" + Path(arg).name if Path(arg).is_file() else arg)
        main = (
            f"import sys\nsys.argv[:] = {['script.py', *given]!r}\n"
            f"exec(compile(open({Path(script).name!r}).read(), 'script.py', 'exec'))\n"
            f"def life(steps):\n    yield from steps\n    print({ENDED!r})\n"
            "program = life(globals().get('program', ()))\n"
        )
        if alone:  # without the program of a board
            shutil.copy(script, flash)
        else:
            shutil.copytree(flashed_board(ALL_KINDS, ALL_OPTIONS, Path(script)), flash, dirs_exist_ok=True)
        (flash / "main.py").write_text(main)
        with NodeBoard(flash, heap_kb=None, patience_s=TIMEOUT_S) as board:
            console = Console(board)
            text = console.wait("the script's end", lambda text: "MicroPython v" in text).replace("\r\n", "\n")
            console.close()
    printed, ended, _ = text.partition(ENDED + "\n")
    if not ended:
        raise AssertionError(f"{Path(script).name} on MicroPython: ended with an error\n{text}")
    return printed
