"""Plan of flashing a board, from its target and actual content: a list of steps; pure.

The main program is removed first and written last, so a board never starts a mixture of two versions, whenever it is
interrupted. Existing files with the same hash are not copied again, so an interrupted copy continues. Folders of our
packages hold nothing else: MicroPython would load a leftover module, or a source next to the compiled one, first.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from whenabouts_edge.flash import FlashError
from whenabouts_edge.flash.boards import BoardFacts
from whenabouts_edge.flash.modules import SHARED
from whenabouts_edge.flash.provision import KEY_PATH, SEGMENT_BYTES

LIB = "/lib"
CONFIG_PATH, MAIN_PATH = "/board.json", "/main.py"
HOLD_PATH = "/hold"  # makes the main program start once without the agent, whose watchdog cannot be stopped
MAIN = f"""# Written by `whenabouts-edge flash`.
import os
import sys

try:
    os.remove("{HOLD_PATH}")  # flashing asks once for a start without the agent and its watchdog
    held = True
except OSError:
    held = False
if not held:
    from whenabouts_edge.board.run import steps

    program = steps("{CONFIG_PATH}")
    if sys.platform != "webassembly":  # a simulated board asks for the steps itself
        for _ in program:
            pass
"""
MPY_VERSION = 6  # of mpy-cross's format; a board's firmware reads one version
OVERHEAD_BLOCKS = 4  # of a file system of this size: superblocks, and one to write before another is freed
FOLDER_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class File:
    """One file of a board. secret: its content is never shown."""

    path: str
    data: bytes
    secret: bool = False

    @property
    def sha256(self) -> str:
        """Hash of its content, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Seen:
    """The facts that a board reported. free_bytes: None if its file system does not report it. files: path -> (size,
    sha256) of the files that flashing manages.
    """

    platform: str
    machine: str
    firmware: str
    mpy_version: int
    free_bytes: int | None
    files: Mapping[str, tuple[int, str]]
    folders: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Step:
    """verb: keep, remove, folder or copy."""

    verb: str
    path: str
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class FlashPlan:
    """steps in order; `detach`: remove the main program and restart before them, so that nothing runs meanwhile."""

    detach: bool
    steps: tuple[Step, ...]

    def of(self, verb: str) -> list[Step]:
        """The steps of this verb."""
        return [step for step in self.steps if step.verb == verb]

    @property
    def is_empty(self) -> bool:
        """True if the board is up to date."""
        return all(step.verb == "keep" for step in self.steps)


def contents(modules: Mapping[str, bytes], config: bytes, others: Mapping[str, bytes]) -> list[File]:
    """The files of a board in the order to write them. modules: compiled, by path below the folder of packages; others:
    files that the configuration names, by path.
    """
    files = [File(f"{LIB}/{place}", modules[place]) for place in sorted(modules)]
    files += [File(path, others[path], secret=path == KEY_PATH) for path in sorted(others)]
    return [*files, File(CONFIG_PATH, config, secret=True), File(MAIN_PATH, MAIN.encode())]


def plan(files: Iterable[File], seen: Seen) -> FlashPlan:
    """The remaining steps for a board. If anything changes, the main program is written again, because it was removed."""
    files = list(files)
    wanted = {file.path for file in files}
    steps = [Step("remove", path) for path in sorted(seen.files) if path not in wanted and is_ours(path)]
    left = [file for file in files if not _is_there(file, seen)]
    steps += [Step("folder", path) for path in _folders(left) if path not in seen.folders]
    changes = bool(steps or left)
    for file in files:
        again = changes and file.path == MAIN_PATH
        steps.append(Step("copy" if again or not _is_there(file, seen) else "keep", file.path, len(file.data)))
    return FlashPlan(changes and MAIN_PATH in seen.files, tuple(steps))


def differing(files: Iterable[File], seen: Seen) -> list[str]:
    """Differences between the content of a board and its target: one line each, found and expected."""
    faults = []
    for file in files:
        entry = seen.files.get(file.path)
        if entry is None:
            faults.append(f"{file.path}: found nothing, expected {len(file.data)} bytes")
        elif entry[1] != file.sha256:
            size = f"{entry[0]} bytes with hash {entry[1][:12]}"
            faults.append(f"{file.path}: found {size}, expected {len(file.data)} with {file.sha256[:12]}")
    return faults


def refuse(board: BoardFacts, port: str, seen: Seen) -> None:
    """Raises FlashError when the board is of another kind, or its firmware reads another format."""
    if seen.platform != board.platform or not seen.machine.endswith(board.machine):
        raise FlashError(
            f"{port}: found {seen.machine or seen.platform} ({seen.platform}), expected {board.title}; "
            f"name the kind that is there with --board, or another port"
        )
    if seen.mpy_version != MPY_VERSION:
        raise FlashError(
            f"{port}: found firmware {seen.firmware}, which reads compiled files of version {seen.mpy_version}, expected "
            f"{MPY_VERSION}; put MicroPython 1.23 or newer on the board"
        )


def refuse_full(board: BoardFacts, files: Iterable[File], what: FlashPlan, seen: Seen) -> None:
    """Raises FlashError if the files do not fit next to the space for waiting readings."""
    files = list(files)
    blocks = sum(_blocks(len(file.data), board) for file in files) + FOLDER_BLOCKS * len(_folders(files))
    flash_log = _blocks(flash_log_bytes(board), board)
    total = (blocks + flash_log + OVERHEAD_BLOCKS) * board.block_bytes
    if total > board.flash_bytes:
        raise FlashError(
            f"flash of {board.name}: found {board.flash_bytes} bytes, expected {total} for files and waiting readings; "
            "use a board with more"
        )
    freed = sum(_blocks(seen.files[step.path][0], board) for step in what.steps if step.path in seen.files
                and step.verb != "keep")  # fmt: skip
    if seen.free_bytes is None:
        return
    needed = sum(_blocks(step.bytes, board) for step in what.of("copy")) + FOLDER_BLOCKS * len(what.of("folder"))
    missing = (needed - freed) * board.block_bytes - seen.free_bytes
    if missing > 0:
        raise FlashError(
            f"flash of the board: found {seen.free_bytes} bytes free, expected {seen.free_bytes + missing}; remove files of "
            "others: `python -m mpremote fs ls` shows them"
        )


def flash_log_bytes(board: BoardFacts) -> int:
    """Space for waiting readings in a board's flash."""
    return board.flash_log_segments * SEGMENT_BYTES


def is_ours(path: str) -> bool:
    """True if a path is in a folder of our packages: where they are flashed, or where MicroPython would find them
    first.
    """
    below = path.removeprefix(LIB)
    return below.startswith(tuple(f"/{package}/" for package in SHARED))


def _is_there(file: File, seen: Seen) -> bool:
    entry = seen.files.get(file.path)
    return entry is not None and entry[1] == file.sha256


def _folders(files: Iterable[File]) -> list[str]:
    """Folders that hold these files, outer ones first."""
    folders = set()
    for file in files:
        parts = file.path.strip("/").split("/")[:-1]
        folders |= {"/" + "/".join(parts[: n + 1]) for n in range(len(parts))}
    return sorted(folders)


def _blocks(size: int, board: BoardFacts) -> int:
    return -(-size // board.block_bytes)
