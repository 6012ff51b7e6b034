"""The stamper on a real MicroPython VM with a board's heap: the same stamps as here, and it compiles for boards."""

import json
import random
from pathlib import Path

from support.board.scripts import as_module
from support.edge.wire import arrivals, reads
from support.search import seeds

SCRIPT = Path(__file__).parent / "edge_stamp_replay.py"
BASE_US = 10 * 365 * 86400 * 1_000_000  # ten years of uptime: far beyond small integers of a board


def _case(seed: int) -> dict:
    """Reads of a line with keep-alives and records, every stamp asked for, and some wrong questions."""
    chance = random.Random(seed)
    baud, adapter_us = chance.choice([0, 9600, 115200]), chance.choice([0, 1000, 16_000])
    lines, at_us = [], 0
    for _ in range(chance.randint(2, 12)):
        at_us += chance.choice([0, 5000, 300_000, 1_000_000])
        lines.append((at_us, chance.choice([7, 14, 47])))
    calls: list = []
    frames, at = [], 0
    for _, length in lines:
        frames.append((at, at + length))
        at += length
    fed = 0
    for read in reads(arrivals(lines, baud, adapter_us, chance), chance, 700_000):
        calls.append(["arrived", [read.length, read.after_us + BASE_US, read.before_us + BASE_US]])
        fed += read.length
        while frames and frames[0][1] <= fed:
            frame = frames.pop(0)
            if frame[1] - frame[0] == 7:
                calls.append(["cycle_started", list(frame)])
            calls += [["window", list(frame)], ["narrowed", [chance.choice([0, 500, 973, 2**32 - 1])]]]
        calls += [["forget", [frames[0][0] if frames else fed]], ["pending_since", []]]
    calls.append(["window", [fed, fed + 3]])
    return {"args": [baud, chance.choice([0, 30_000, 1_000_000]), adapter_us, 1_000_000], "calls": calls}


def test_replayed_reads_give_the_same_stamps_on_the_board(tmp_path, run_on_vm):
    """Runs with cycles, stalls, merged chunks and refused times: every result is the same on the VM."""
    cases = [_case(seed) for seed in seeds(100)]
    many = [["arrived", [1, BASE_US + i, BASE_US + 2 * i]] for i in range(200)]
    cases.append({"args": [9600, 1000, 1000, 0], "calls": [*many, ["window", [0, 14]], ["window", [150, 164]]]})
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    stamped = [json.loads(line) for line in run_on_vm(SCRIPT, str(path)).splitlines()]
    here = as_module(SCRIPT)
    expected = [here.replay(case) for case in cases]
    assert stamped == expected
    assert any(results[-1] for results in expected)
    assert any("have not arrived" in str(r) or "bytes arrived" in str(r) for results in expected for r in results)
