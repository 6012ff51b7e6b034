"""The streaming join and compiled rules on a real MicroPython VM with a board's heap: the same answers as here."""

import json
import random
from pathlib import Path

import pytest

from support.board.scripts import as_module
from support.files.vectors import rows
from support.search import seeds
from whenabouts_protocol.messages.compiled_rule import CompiledRule, RuleSide, encode_rules

SCRIPT = Path(__file__).parent / "board_streaming_join.py"
BASE_US = 1_790_000_000_000_000


def case(seed):
    """One correlation with ties, points, keys, lateness, small limits, and stamps of today or near zero."""
    chance = random.Random(seed)
    base = chance.choice([0, BASE_US, -BASE_US])
    lo = chance.randint(-30, 30)
    pi = chance.choice([0, 10, 60])
    p, q = chance.choice([(1, 10), (1, 2), (4, 5), (1, 1)])
    by_key, limit = chance.random() < 0.5, chance.choice([5, 30, 1000])
    calls, now = [], base
    for n in range(chance.randint(0, 40)):
        now += chance.randint(0, 12)
        t_max = now - chance.randint(0, 30)
        key = chance.choice(["x", "y", None]) if by_key else None
        calls.append(
            ["push", chance.randint(0, 1), n, t_max - chance.choice([0, pi, chance.randint(0, 80)]), t_max, key]
        )
        if chance.random() < 0.4:
            calls.append(["advance", now - 20, now - chance.randint(0, 30)])
    return {"args": [lo, lo + chance.randint(0, 70), p, q, [0, pi], [0, pi], by_key, limit], "calls": calls}


def test_arrivals_give_the_same_pairs_on_the_board(tmp_path, run_on_vm):
    """Every result and every counter is the same on the VM."""
    here = as_module(SCRIPT)
    cases = [case(seed) for seed in seeds(200)]
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(c) + "\n" for c in cases))
    expected = [here.replay(c) for c in cases]
    assert [json.loads(line) for line in run_on_vm(SCRIPT, "replay", str(path)).splitlines()] == expected
    counters = [sum(column) for column in zip(*(results[-1] for results in expected), strict=True)]
    assert all(counters), "every counter must have moved in some run"


def agent_run(seed):
    """Rules over a few streams, one of them on both sides, and readings of them all."""
    chance = random.Random(seed)
    sides = [RuleSide(["dock"], 0, 40), RuleSide(["shelf/1", "shelf/2"], 0, 40)]
    rules = [
        CompiledRule(f"$rule/{n}", lo, lo + chance.randint(0, 50), 1, chance.randint(1, 4), keyed, 1000, *pair)
        for n, (lo, keyed, pair) in enumerate(
            [(-20, True, sides), (0, False, sides[::-1]), (-10, False, [sides[0], sides[0]])]
        )
    ]
    readings = []
    for n in range(24):
        t_min = BASE_US + 7 * n + chance.randint(-20, 20)
        key = chance.choice(["E1", "E2", None])
        state = chance.choice(["bounded", "free-running", "unbounded"])
        stream = chance.choice(["dock", "shelf/1", "shelf/2", "door"])
        readings.append([stream, t_min, t_min + chance.choice([0, 3, 40, 60]), key, state, [n, 60 - n][: n % 3]])
    return {"rules": encode_rules("hall", "g", rules).hex(), "limit": chance.choice([8, 1000]), "readings": readings}


def test_the_rules_of_a_gateway_derive_the_same_on_the_board(tmp_path, run_on_vm):
    """Keys, several rules, a stream on both sides, clocks and identities: every field is the same on the VM."""
    runs = [agent_run(seed) for seed in seeds(80)]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(run) + "\n" for run in runs))
    here = as_module(SCRIPT)
    expected = [result for run in runs for result in here.derive(run)]
    assert [json.loads(line) for line in run_on_vm(SCRIPT, "agent", str(path)).splitlines()] == expected
    assert len(expected) > 9 * len(runs)


@pytest.mark.parametrize("name", ["rules.json", "refused_rules.json"])
def test_golden_rules_are_the_same_on_the_board(tmp_path, name, run_on_vm):
    """Bytes, rules and the reasons for refusals are those of the vectors."""
    entries = rows(name)
    path = tmp_path / name
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in entries) + "\n", encoding="utf-8")
    assert run_on_vm(SCRIPT, "rules", str(path)).splitlines() == ["true"] * len(entries)


def test_a_busy_rule_fits_a_board(run_on_vm):
    """22 matches a tuple with a heap of 192 kB: the memory of the operator is bounded and most of the heap stays free."""
    measured = json.loads(run_on_vm(SCRIPT, "speed", "12", "1000000", "4000"))
    assert 15 < measured["matches"] < 30
    assert measured["kept"] < 120
    assert measured["held"] < 40_000
    assert measured["free"] > 64_000
