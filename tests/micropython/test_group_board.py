"""The group process of a gateway on a real MicroPython VM with a board's heap: the same states and clocks as here."""

import json
import random
from pathlib import Path

import pytest

from support.board.scripts import VMS, as_module
from support.group.network import LEAVE_US, Network
from support.search import seeds

SCRIPT = Path(__file__).parent / "board_group.py"
UPTIME_US = 10 * 365 * 86400 * 1_000_000  # far beyond small integers of a board


def of_network(seed):
    """Inputs of the gateways of one simulated network, one case each."""
    network = Network(random.Random(seed), 2 + seed % 4, steps=7)
    network.run()
    for gateway in network.gateways:
        yield {
            "gateway": gateway.name, "boot": gateway.boot, "clock_heartbeat_us": 0,
            "peers": [g.name for g in network.gateways if g is not gateway], "calls": gateway.calls,
            "conditions": [
                ["presence", [f"has_{key}", "tags", key, needed, LEAVE_US]]
                for key, needed in sorted(gateway.reads_needed.items())
            ],
        }  # fmt: skip


def of_chance(seed):
    """Thresholds on numbers, floats and other values; peers that come, go, lie and send noise; times of a long uptime."""
    chance = random.Random(seed)
    calls, now = [], UPTIME_US
    for n in range(60):
        now += chance.choice([0, 500, 40_000, 1_100_000])
        peer = chance.choice(["a", "c", "stranger"])
        what = chance.randint(0, 9)
        if what < 4:
            value = chance.choice([10, 19.5, 25, 30, 31.25, True, "x", None])
            early = now - chance.randint(0, 800)
            key = chance.choice(["E1", "E2"])
            calls.append(["observe", ["probe", key, value, {"level": chance.choice([1, 2.5, "no"])}, early, now]])
        elif what < 7:
            calls.append(["advance", [now - chance.randint(900, 2000), now]])
        elif what == 7:
            calls.append(["born", [peer, chance.choice([5, 6]), chance.choice(["office", "office", None]), now]])
        elif what == 8:
            calls.append(chance.choice([["stopped", [peer, chance.choice([5, 6]), now]], ["removed", [peer, now]]]))
        else:
            noise = bytes(chance.choice([0xA1, 0, 1, 0x80, 0xFF]) for _ in range(n % 7))
            calls.append(["receive", ["hall", peer, noise.hex(), now]])
    thresholds = [
        ["threshold", ["hot", "probe", "E1", None, 30, 20, chance.choice([0, 700, 5000])]],
        ["threshold", ["low", "probe", None, "level", 1, 2, 0]],
    ]
    return {
        "gateway": "b", "boot": 1 << 62, "peers": ["a", "c"], "clock_heartbeat_us": 50_000,
        "conditions": thresholds, "calls": calls,
    }  # fmt: skip


def test_what_a_gateway_is_given_makes_the_same_states_on_the_board(tmp_path, run_on_vm):
    """Simulated networks with all their messages, and runs with thresholds, leaves, reboots and noise: every result."""
    cases = [case for seed in seeds(12) for case in of_network(seed)] + [of_chance(seed) for seed in seeds(60)]
    lines = [json.dumps(line) for case in cases for line in (case, *case.pop("calls"), ["end", []])]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(lines) + "\n")
    expected = list(as_module(SCRIPT).replay(lines))
    results = [json.loads(line) for line in run_on_vm(SCRIPT, "replay", str(path)).splitlines()]
    assert results == json.loads(json.dumps(expected))
    totals = [result for result in expected if isinstance(result, list) and result and isinstance(result[0], int)]
    assert sum(total[0] for total in totals) > len(cases), "views must have changed"
    assert sum(total[1] for total in totals) > len(cases)
    assert sum(total[3] for total in totals) > len(cases) / 15


@pytest.mark.parametrize("name", ["unix", pytest.param("node", marks=pytest.mark.deep)])  # nine members are below
def test_a_large_group_fits_a_board(name):
    """64 members: memory is bounded, does not grow with the states, and some of the heap stays free."""
    short, long = (json.loads(VMS[name](SCRIPT, "keep", "64", states)) for states in ("3", "9"))
    assert short["merged"] > 100
    assert long["held"] < 80_000
    assert long["held"] < 2 * short["held"]
    assert long["free"] > 40_000


def test_a_group_of_nine_takes_a_tenth_of_a_boards_heap(run_on_vm):
    """The size for which the project is designed."""
    measured = json.loads(run_on_vm(SCRIPT, "keep", "9", "30"))
    assert measured["held"] < 20_000
    assert measured["free"] > 96_000
