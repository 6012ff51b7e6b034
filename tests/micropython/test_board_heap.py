"""A board's whole program in memory, compiled as it is flashed: its size, and that it works in a small heap.

On two machines. The simulated board has a board's integers of 31 bits and blocks of 16 bytes; its table of names grows by
doubling, and holds those of its own modules too, which a board has in ROM. It collects memory only between two steps, so
the garbage of one step must fit beside what is held. The other VM collects whenever it needs to, as a board does, but has
pointers of 64 bits and blocks of 32 bytes: what it holds takes half as much again.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from support.board.files import flashed_board
from support.board.micropython import tool
from support.board.node_board import run_flashed

SCRIPT = Path(__file__).parent / "board_heap.py"
LIVE_BYTES_MAX = 128 * 1024  # of the 192 kB that a Pico W has left: the rest is for garbage, and what lies between
PIECE_BYTES_MAX = 16 * 1024  # a larger one may not be found when memory has been used for long
BLOCK_BYTES = 16
BATCH_MAX = 32  # may still wait at the end
MORE_MAX = 100  # gaps, and states of a group
RULES = {"rules": {}}
GROUP = {
    "group": {
        "name": "g", "members": ["bench/gw", "bench/b"],
        "states": [{"name": "here", "stream": "gate/tags", "leave_ms": 1000}],
    }
}  # fmt: skip


def largest_block(heap_map):
    """Bytes of the largest piece in use in a map of the heap: a letter and the `=` behind it."""
    blocks = ""
    for line in heap_map.splitlines():
        if match := re.match(r"[0-9a-f]{5,8}: (.*)$", line):
            blocks += match[1].replace(" ", "")
        elif "lines all free" in line:
            blocks += "."
    return BLOCK_BYTES * max(len(piece) for piece in re.findall(r"[^.=]=*", blocks))


@pytest.mark.parametrize(
    ("kind", "more"),
    [("rdm6300", {}), ("line", {}), ("rdm6300", RULES), ("rdm6300", GROUP)],
    ids=["badges", "lines", "rules", "group"],
)
def test_what_a_board_holds(kind, more):
    """Measured on the simulated board, in kB of 1000 bytes; the largest piece is the table of names. In a group it doubles
    between start and connection.

             started   full, without the time   connected   largest piece
    badges        77                       81          79             4.5
    lines         79                       96          90             4.5
    rules         98                      102         100             4.5
    group        102                      124         121             9.0
    """
    folder = flashed_board((kind,), tuple(more), SCRIPT)
    reported = run_flashed(folder, "board_heap", ["", "held", kind, "/spool", json.dumps(more)], None)
    held = json.loads(reported.splitlines()[0])
    assert max(held.values()) == held["full, without the time"] < LIVE_BYTES_MAX
    assert held["connected"] < held["started"] + 20_000
    assert largest_block(reported) <= PIECE_BYTES_MAX


def check_worked(results, more):
    """Every reading was stored or refused, and all stored ones are published, with heartbeats in between."""
    assert results["faults"] == 0
    assert results["refused"] > 0
    assert results["stored"] > 1000
    assert results["stored"] - BATCH_MAX <= results["connected"] <= results["stored"] + MORE_MAX
    assert results["published"]["obs"] > 30
    assert results["published"]["heartbeat"] > 3
    assert (results["published"].get("state", 0) > 0) == ("group" in more)


@pytest.mark.parametrize(
    ("heap", "more"),
    [("140k", {}), ("168k", RULES), ("192k", GROUP)],
    ids=["badges", "rules", "group"],
)
def test_it_works_in_little_more_than_it_holds(tmp_path, heap, more):
    """A hard heap where memory is collected whenever it is needed."""
    folder = flashed_board(("rdm6300",), tuple(more), SCRIPT)
    words = ["-m", "board_heap", "work", "rdm6300", str(tmp_path / "flash"), json.dumps(more)]
    done = subprocess.run(
        [str(tool("micropython")), "-X", f"heapsize={heap}", *words],
        env={**os.environ, "MICROPYPATH": f"{folder}{os.pathsep}.frozen"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    check_worked(json.loads(done.stdout), more)


@pytest.mark.parametrize(("heap_kb", "more"), [(136, {}), (160, RULES)], ids=["badges", "rules"])
def test_a_simulated_board_works_in_less_than_a_pico_w_has(heap_kb, more):
    """A hard heap where memory is collected only between two steps, with room for the garbage of one."""
    folder = flashed_board(("rdm6300",), tuple(more), SCRIPT)
    reported = run_flashed(folder, "board_heap", ["", "work", "rdm6300", "/spool", json.dumps(more)], heap_kb)
    check_worked(json.loads(reported), more)
