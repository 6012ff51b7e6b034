"""A board's whole agent in simulated time: its messages are true, and the MicroPython VM sends the same, byte for byte."""

import json
from pathlib import Path

import pytest

from support.board.scripts import VMS, as_module
from support.search import SEED

SCRIPT = Path(__file__).parent / "board_agent.py"
SEEDS = range(1, 13)
ON_THE_VM = {"unix": range(1, 5), "node": range(1, 5 if SEED else 3)}  # of the seeds, those that also run there
LEARNED_US = 20_000  # above twice the bound of the simulated time server


@pytest.fixture(scope="module")
def lives():
    """Events that the broker saw in the life of each seed."""
    here = as_module(SCRIPT)
    kept = here.flash_log_module.MESSAGE_BYTES_MAX
    events = {}
    for seed in SEEDS:
        rows = events[seed] = []
        here.run(seed, lambda row, rows=rows: rows.append(json.loads(json.dumps(row))))
    here.flash_log_module.MESSAGE_BYTES_MAX = here.store_module.MESSAGE_BYTES_MAX = kept
    return events


@pytest.mark.parametrize("name", ON_THE_VM)
def test_the_vm_gives_the_same_events(lives, name):
    """Every reading, every heartbeat, every status of some lives."""
    lines = VMS[name](SCRIPT, *map(str, ON_THE_VM[name]), heap="272k").splitlines()
    assert [json.loads(line) for line in lines] == [row for seed in ON_THE_VM[name] for row in lives[seed]]


def readings(rows):
    """Identity -> the rest, of all readings that the broker saw."""
    return {(r[0], r[1]): r[2:] for row in rows if row[0] == "obs" for r in row[1]}


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_have_no_gap_and_one_content(lives, seed):
    """Each boot numbers from 0; readings that are sent again are unchanged; the last event reports that nothing waits."""
    seen = {}
    for row in lives[seed]:
        for boot, seq, *rest in row[1] if row[0] == "obs" else ():
            assert seen.setdefault((boot, seq), rest) == rest
    for boot in {boot for boot, _ in seen}:
        numbers = sorted(seq for b, seq in seen if b == boot)
        assert numbers == list(range(len(numbers)))
    _, _, boots, _, unsettled, kept, _, acks_refused, _ = lives[seed][-1]
    assert len({boot for boot, _ in seen}) <= boots
    assert (unsettled, kept, acks_refused) == (0, 0, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_reading_came_or_is_counted_in_a_gap(lives, seed):
    """On boards that never lost power the readings that came and those that gaps count are all readings."""
    _, made, boots, refused, *_ = lives[seed][-1]
    sent = readings(lives[seed]).values()
    tags = [key for kind, key, *_ in sent if kind == "tag"]
    reported = sum(value for kind, _, value, *_ in sent if kind == "gap")
    assert len(tags) == len(set(tags)) <= made
    if boots == 1:
        assert reported == refused == [row[4] for row in lives[seed] if row[0] == "heartbeat"][-1]
        assert len(tags) + reported == made


@pytest.mark.parametrize("seed", SEEDS)
def test_watermarks_hold(lives, seed):
    """
    heartbeat f --->      t_max >= f of all readings that the broker sees for the first time after it
    and the numbers that the heartbeat names were published before it. Stamps even begin later, but for what the clock
    learned since.
    """
    late, seen = [], set()
    frontier = None
    for row in lives[seed]:
        if row[0] == "obs":
            for boot, seq, *_, t_min, t_max in row[1]:
                new = (boot, seq) not in seen and frontier is not None
                if new and (t_max < frontier or t_min < frontier - LEARNED_US):
                    late.append((boot, seq, t_min, t_max, frontier))
                seen.add((boot, seq))
        elif row[0] == "heartbeat" and row[2] is not None:
            frontier = row[2]
            assert all((boot, n) in seen for boot, first, last in row[3] for n in range(first, last + 1))
    assert late == []


def test_the_lives_had_all_that_they_are_for(lives):
    """Watermarks, gaps, boots, stamps with and without a bound, messages sent again, in some of them."""
    rows = [row for life in lives.values() for row in life]
    ends = [row for row in rows if row[0] == "end"]
    assert sum(row[0] == "heartbeat" and row[2] is not None for row in rows) > 100
    assert any(row[2] > 1 for row in ends)
    assert any(row[2] == 1 for row in ends)
    assert any(row[3] for row in ends)
    assert any(row[6] for row in ends)
    kinds = {r[2] for row in rows if row[0] == "obs" for r in row[1]}
    assert kinds == {"tag", "gap"}
    widths = [r[6] - r[5] for row in rows if row[0] == "obs" for r in row[1]]
    assert min(widths) < 300_000
    assert max(widths) > 10**14  # given up: the buffer was full before the time was known
