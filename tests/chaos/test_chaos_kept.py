"""The law of state: a job that keeps what can matter no more breaks it, one that keeps less does not."""

from dataclasses import replace

import pytest

from chaos.test_chaos_checks import SEEN
from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.checks.rules.kept import Kept, broken_kept, kept_of
from whenabouts_sim.chaos.parts.job_rules import MATCHES, PAIRS, rule
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.chaos.parts.rule_form import LENGTH_MS

RULES = {PAIRS: rule(PAIRS, 200, 80, 400), MATCHES: rule(MATCHES, 2000, 80, 400)}
LONGEST_MS = 500  # of a stamp in a pair: 400 ms are 80 % of it
REACH_US = {PAIRS: (2 * 200 + 2 * LONGEST_MS) * 1000, MATCHES: (2000 + LENGTH_MS) * 1000}
STREAMS = {PAIRS: ("dock", "door"), MATCHES: ("shelf", "till", "exit")}
ENDS = [{"": 1}, {"": 2}]


def told(name, rows, begin_us, batch=1, without=0):
    """What the law says of a state with so many rows, whose frontier leaves what ends at begin_us or later."""
    streams = STREAMS[name]
    readings = [SEEN._replace(stream=f"{streams[n % 2]}/tags", t_max=n, file=FileId(0, 1 + n // 5)) for n in range(10)]
    frontiers = dict.fromkeys(streams[without:], begin_us + REACH_US[name])
    kept = [Kept(batch, 0, rows, frontiers)]
    return list(broken_kept(RULES[name], kept, Landed(readings, [], []), ENDS))


@pytest.mark.parametrize("name", [PAIRS, MATCHES])
def test_a_state_holds_what_ends_late_enough_and_no_more(name):
    """Of ten readings, which end at 0 to 9; half of them are in the first file."""
    assert told(name, rows=7, begin_us=3) == []
    [text] = told(name, rows=8, begin_us=3)
    assert "keeps 8 readings after micro-batch 1, and 7 of the readings" in text
    assert told(name, rows=5, begin_us=0, batch=0) == []
    assert len(told(name, rows=6, begin_us=0, batch=0)) == 1


@pytest.mark.parametrize("name", [PAIRS, MATCHES])
def test_without_a_frontier_all_readings_may_be_kept(name):
    """That of a stream is not known."""
    assert told(name, rows=10, begin_us=9, without=1) == []
    assert len(told(name, rows=11, begin_us=9, without=1)) == 1


def test_readings_of_other_streams_do_not_count():
    other = replace(Landed([SEEN._replace(stream="till/tags", t_max=9)], [], []))
    assert len(list(broken_kept(RULES[PAIRS], [Kept(0, 0, 1, {})], other, ENDS))) == 1


def test_counts_of_a_shard_are_read():
    """As a job reports them; names beside these are for others."""
    said = {"shard": 3, "rule": PAIRS, "rows_kept": 5, "streams_us": {"dock": 7}, "silent": []}
    assert kept_of(4, said) == Kept(4, 3, 5, {"dock": 7})
