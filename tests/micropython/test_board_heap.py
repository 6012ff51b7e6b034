"""A board's whole program in a small heap, reduced and compiled as it is flashed.

On two machines. The simulated board has a board's integers of 31 bits and blocks of 16 bytes. Its table of names grows by
doubling, and holds those of its own modules too, which a board has in ROM: the 621st name would take a piece of 4.5 kB. The
other VM has pointers of 64 bits and blocks of 32 bytes; code and texts are as large on both.
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
BLOCK = 32
PIECE_BYTES_MAX = 4096  # a larger one may not be found when memory has been used for long
BATCH_MAX = 32  # may still wait at the end
MORE_MAX = 100  # gaps, and states of a group
RULES = {"rules": {}}
GROUP = {
    "group": {
        "name": "g", "members": ["bench/gw", "bench/b"],
        "states": [{"name": "here", "stream": "gate/tags", "leave_ms": 1000}],
    }
}  # fmt: skip


def run(tmp_path, what, heap, kind, more):
    """What the script prints with a hard heap."""
    path = os.pathsep.join([str(flashed_board((kind,), tuple(more), SCRIPT, "main")), ".frozen"])
    done = subprocess.run(
        [str(tool("micropython")), "-X", f"heapsize={heap}", "-m", "board_heap", what, kind, str(tmp_path / "flash"),
         json.dumps(more)],
        env={**os.environ, "MICROPYPATH": path}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def largest_block(heap_map, block=BLOCK):
    """Bytes of the largest piece in use in a map of the heap: a letter and the `=` behind it."""
    blocks = ""
    for line in heap_map.splitlines():
        if found := re.match(r"[0-9a-f]{5,8}: (.*)$", line):
            blocks += found[1].replace(" ", "")
        elif "lines all free" in line:
            blocks += "."
    return block * max(len(piece) for piece in re.findall(r"[^.=]=*", blocks))


@pytest.mark.parametrize(
    ("kind", "more", "rest", "full"),
    [
        pytest.param("rdm6300", {}, 78_700, 87_700, marks=pytest.mark.deep),  # on a simulated board below
        ("line", {}, 81_000, 106_500),
        ("rdm6300", RULES, 97_000, 106_000),
        ("rdm6300", GROUP, 111_200, 130_000),
    ],
    ids=["badges", "lines", "rules", "group"],
)
def test_what_a_board_holds(tmp_path, kind, more, rest, full):
    """At rest and with as many readings in memory as wait for the time at most; never in a piece that is too large.

    Started, full (without the time), dated (without a broker), connected.
    """
    told = run(tmp_path, "held", "4m", kind, more)
    held = json.loads(told.splitlines()[0])
    assert held["started"] < rest
    assert max(held.values()) == held["full, without the time"] < full
    assert held["connected"] < held["started"] + 16_000
    assert largest_block(told) <= PIECE_BYTES_MAX


@pytest.mark.parametrize(
    ("heap", "more"),
    [("104k", {}), ("128k", RULES), ("152k", GROUP)],
    ids=["badges", "rules", "group"],
)
def test_it_works_in_little_more_than_it_holds(tmp_path, heap, more):
    """A hard heap: every reading is stored or refused, and what is stored is published, with beats in between."""
    found = json.loads(run(tmp_path, "work", heap, "rdm6300", more))
    assert found["faults"] == 0
    assert found["refused"] > 0
    assert found["stored"] > 1000
    assert found["stored"] - BATCH_MAX <= found["connected"] <= found["stored"] + MORE_MAX
    assert found["published"]["obs"] > 30
    assert found["published"]["beat"] > 3
    assert (found["published"].get("state", 0) > 0) == ("group" in more)


def test_what_a_simulated_board_holds():
    """Badges, with blocks and integers of a board: at rest, full, and with time, broker and readings flowing."""
    folder = flashed_board(("rdm6300",), (), SCRIPT, "main")
    told = run_flashed(folder, "board_heap", ["", "held", "rdm6300", "/spool", "{}"], None)
    held = json.loads(told.splitlines()[0])
    assert held["started"] < 50_300
    assert held["connected"] < 52_600
    assert max(held.values()) == held["full, without the time"] < 54_800
    assert largest_block(told, 16) <= PIECE_BYTES_MAX


def test_a_simulated_board_works_in_a_hard_heap():
    """A hard heap, 4 kB of it for this script: every reading is stored or refused, what is stored is published."""
    folder = flashed_board(("rdm6300",), (), SCRIPT, "main")
    found = json.loads(run_flashed(folder, "board_heap", ["", "work", "rdm6300", "/spool", "{}"], 72))
    assert found["faults"] == 0
    assert found["refused"] > 0
    assert found["stored"] - BATCH_MAX <= found["connected"] <= found["stored"] + MORE_MAX
    assert found["published"]["obs"] > 30
