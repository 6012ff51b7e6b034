"""The law of POSSIBLY: states that cannot have been at once are no verdict, and certain ones are not missing."""

import json

from chaos.test_chaos_groups import GATEWAYS, LATER_US, state
from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.checks.results import Told
from whenabouts_sim.chaos.checks.rules.possibly import broken_possibilities
from whenabouts_sim.chaos.checks.together import LONG_US
from whenabouts_sim.chaos.parts.job_rules import TOGETHER, rule
from whenabouts_sim.chaos.parts.rule_form import Form

POSSIBLY = Form(modality="POSSIBLY")


def group_state(gateway, number, begin_us, end_us, present=True, knows=0):
    """A state of one of two gateways that knows so many states of the other."""
    one, process = state(gateway, number, begin_us, end_us, present), GATEWAYS.index(gateway)
    attrs = json.loads(one.attrs) | {"$process": process}
    clock = (number, knows) if process == 0 else (knows, number)
    return one._replace(attrs=json.dumps(attrs), vclock=clock)


def broken(states, *verdicts, delay_us=LONG_US):
    one = rule(TOGETHER, 0, 100, delay_us // 1000, GATEWAYS, POSSIBLY)
    told = Told([tuple(x.identity for x in some) for some in verdicts], set())
    return list(broken_possibilities(one, GATEWAYS, told, Landed(list(states), []), LATER_US))


A, B = group_state("gw-1", 0, 0, 10), group_state("gw-2", 0, 500, 900)
A_ENDS = group_state("gw-1", 1, 400, 450, present=False)


def test_states_that_may_have_been_at_once_are_a_verdict():
    assert broken([A, B], (A, B)) == []
    touching = A_ENDS._replace(t_max=B.t_min)
    assert broken([A, B, touching], (A, B)) == []


def test_a_state_that_ended_before_another_began_is_in_no_verdict():
    """By stamps, which a short DELAY may leave unknown, or by the clock of the other."""
    assert "had ended when" in broken([A, B, A_ENDS], (A, B))[0]
    assert broken([A, B, A_ENDS], (A, B), delay_us=1_000_000) == []
    knowing = group_state("gw-2", 0, 500, 900, knows=1)
    assert "had ended when" in broken([A, knowing], (A, knowing), delay_us=1_000_000)[0]


def test_a_verdict_has_one_state_of_each_gateway_and_all_badges():
    assert "no state in which the badge was there" in broken([A_ENDS, B], (A_ENDS, B))[0]
    assert "not of one state of each gateway" in broken([A, A_ENDS], (A, A_ENDS))[0]
    other = B._replace(attrs=B.attrs.replace('"$view": 1', '"$view": 2'))
    assert "in one view" in broken([A, other], (A, other))[0]


def test_what_was_certainly_at_once_is_told_by_then():
    """By an earlier verdict too, as one stands for a whole period, but by none that began later."""
    ends = [group_state(name, 1, 2000 + n, 2010 + n, present=False) for n, name in enumerate(GATEWAYS)]
    states = [A, B, *ends]
    assert broken(states, (A, B)) == []
    assert "nothing was told by then" in broken(states)[0]
    later = [group_state(name, 2, 5000, 5001) for name in GATEWAYS]
    assert "nothing was told by then" in broken([*states, *later], tuple(later))[0]
    assert broken(states, delay_us=1_000_000) == []
