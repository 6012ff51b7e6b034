"""The law of rules that gateways run: their pairs are judged by the definition, on what landed of the same start."""

import json
from dataclasses import replace

from whenabouts_sim.chaos.checks.gateways.derived import broken_derived
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.parts.gateway_part import GatewayPlan
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.chaos.parts.rule_form import Near
from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan
from whenabouts_sim.world.clocks import EPOCH_US

NEAR = Near(-1000, 1000, 50)
KNOWN = ClockPlan(known=((-(1 << 62), 1 << 62, 1),))
PLAN = GatewayPlan("hall", "gw-1", (("dock", "dock/tags"), ("door", "door/tags")), KNOWN, near=NEAR)
ALWAYS = [[0, 1 << 62]]
S = 1_000_000


def row(seq, stream, t_min, t_max, key="K", boot=7, **more):
    return LandedReading(
        FileId(0, 1), "hall", "gw-1", boot, seq, stream, "tag", key, t_min, t_max, None, None, None
    )._replace(**more)


A, B = row(0, "dock/tags", 5 * S, 5 * S + 100), row(1, "door/tags", 6 * S - 50, 6 * S + 50)
ATTRS = {"a_boot": 7, "a_seq": 0, "b_boot": 7, "b_seq": 1}
PAIR = row(2, NEAR.stream, 6 * S - 50, 6 * S + 50, kind="measure", value="875000", attrs=json.dumps(ATTRS))


def broken(*readings, lives=ALWAYS, rotten=(), near=NEAR, clock=KNOWN, ran=None, clock_s=0.0):
    ran = ({near: ALWAYS} if near else {}) if ran is None else ran
    plan = replace(PLAN, near=near, clock=clock)
    return list(
        broken_derived([plan], Landed(list(readings), []), {"dock": lives}, rotten, {"hall/gw-1": ran}, clock_s)
    )


def test_the_pairs_of_the_definition_break_no_law():
    """Within a second with a probability of seven eighths; other keys and other starts make no pair."""
    assert broken(A, B, PAIR) == []
    assert broken(A, row(1, "door/tags", 6 * S, 6 * S, key="other")) == []
    assert broken(A, row(1, "door/tags", 6 * S, 6 * S, boot=8)) == []
    assert broken(A, B, near=None) == []


def test_a_pair_that_is_wrong_missing_or_told_twice_is_told():
    """With another probability, of readings that are none, and with a gap that counts what the spool refused."""
    assert "expected one of [(875000" in broken(A, B, PAIR._replace(value="874999"))[0]
    assert "expected one of [None]" in broken(A, B._replace(t_min=9 * S, t_max=9 * S), PAIR)[0]
    assert "was told 2 times" in broken(A, B, PAIR, PAIR._replace(seq=3))[0]
    assert "was not told" in broken(A, B)[0]
    assert broken(A, B, PAIR._replace(kind="gap", value="1", attrs=None)) == []


def test_the_clock_of_a_pair_knows_what_both_sources_know():
    """Or what one of them does, if only that is of the newest view."""
    a, b = A._replace(vclock=[3, 1]), B._replace(vclock=[2, 4])
    assert broken(a, b, PAIR._replace(vclock=[3, 4])) == []
    assert broken(a, b, PAIR._replace(vclock=[2, 4])) == []
    assert "expected one of" in broken(a, b, PAIR._replace(vclock=[4, 4]))[0]
    assert broken(A, b, PAIR._replace(vclock=[2, 4])) == []
    assert "clock [2, 5]" in broken(A, b, PAIR._replace(vclock=[2, 5]))[0]


def test_nothing_is_asked_of_an_agent_that_could_not_tell():
    """It was killed soon after, or after it knew UTC; its spool was damaged; a stamp is longer than the rule declares."""
    late = ClockPlan(known=((6 * S - EPOCH_US, 1 << 62, 1),))
    assert broken(A, B, clock=late, lives=[[0, 9 * S]]) == []
    assert broken(A, B, clock=late, lives=[[0, 10 * S]]) != []
    assert broken(A, B, clock=late, lives=[[0, 10 * S]], clock_s=3) == []
    assert broken(A, B, clock=late, lives=[[0, 12 * S]], clock_s=3) != []
    assert broken(A, B, clock=ClockPlan()) == []
    assert broken(A, B, lives=[[0, 7 * S]]) == []
    assert broken(A, B, rotten={("hall", "gw-1")}) == []
    assert broken(A._replace(t_min=3 * S), B, near=Near(-1000, 1000, 10)) == []


def test_a_rule_that_was_sent_is_asked_for_its_pairs_while_it_ran():
    """Both readings must be of one span: what runs again has forgotten the readings of before."""
    assert "was not told in $rule/near" in broken(A, B, ran={NEAR: [[4 * S, 9 * S]]})[0]
    assert broken(A, B, PAIR, ran={NEAR: [[4 * S, 9 * S]]}) == []
    assert broken(A, B, ran={NEAR: [[0, 5 * S + 500_000], [5 * S + 500_000, 1 << 62]]}) == []
    assert broken(A, B, ran={}) == []


def test_a_pair_is_of_some_rule_of_its_name_that_ran():
    other = Near(-1000, 1000, 50, "close")
    assert "expected one of []" in broken(A, B, PAIR, ran={other: [[0, 1]]})[0]
    assert broken(A, B, PAIR, ran={NEAR: [[0, 1]], Near(0, 1, 50): ALWAYS}) == []
    told = PAIR._replace(stream=other.stream, seq=3)
    assert broken(A, B, PAIR, told, ran={NEAR: ALWAYS, other: ALWAYS}) == []
    assert "in $rule/close" in broken(A, B, PAIR, ran={NEAR: ALWAYS, other: ALWAYS})[0]
