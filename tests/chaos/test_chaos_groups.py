"""Groups of gateways in schedules, their laws, and a state that began while UTC was not known."""

import json

import pytest

from whenabouts_sim.chaos.checks.landed import Landed, LandedReading, read_landing
from whenabouts_sim.chaos.checks.results import Told
from whenabouts_sim.chaos.checks.together import LONG_US, broken_verdicts, presences
from whenabouts_sim.chaos.parts.gateway_part import LEAVE_MS, GatewayPlan, badge_key, badge_of
from whenabouts_sim.chaos.parts.job_rules import TOGETHER, rule
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.chaos.parts.rule_form import RulePlan
from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan
from whenabouts_sim.chaos.schedule.schedule import SPACING_US, Schedule, draw, stream_of
from whenabouts_sim.chaos.schedule_run import run
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import SECOND_US, Sighting

GATEWAYS = ("gw-1", "gw-2")
RULE = rule(TOGETHER, 0, 100, LONG_US // 1000, GATEWAYS)
LATER_US = EPOCH_US + 100 * SECOND_US
KNOWN = ((-10 * SECOND_US, 1 << 60, 1000),)


def badge(gateway, *moments_us):
    """Reads of a gateway's badge."""
    return [Sighting(at_us, badge_of(gateway), n, badge_key(gateway)) for n, at_us in enumerate(moments_us)]


def read(gateway, seq, begin_us, end_us):
    """A read of its badge that has landed."""
    stamp = EPOCH_US + begin_us, EPOCH_US + end_us
    stream, key = f"{badge_of(gateway)}/tags", badge_key(gateway)
    return LandedReading(FileId(0, 1), "hall", gateway, 1, seq, stream, "tag", key, *stamp, None, None, None)


def state(gateway, number, begin_us, end_us, present, view=1):
    """A state reading that has landed."""
    attrs = json.dumps({"$group": "staff", "$process": 0, "$view": view, "present": present})
    stamp = EPOCH_US + begin_us, EPOCH_US + end_us
    return LandedReading(
        FileId(0, 1), "hall", gateway, 1, number, f"{gateway}/state", "state", None, *stamp, None, attrs, (number,)
    )


def test_a_pause_between_reads_counts_only_if_their_stamps_leave_none_open():
    """
    reads        0.1     0.6
    stamps    [0.1]      [0.6]       further apart than a badge needs to have left: it was away
              [0.1 0.35] [0.6]       perhaps not
                         none        it did not land, and may have been stamped anyhow
    """
    leave_us = LEAVE_MS * 1000
    sightings = badge("gw-1", 100_000, 600_000)
    narrow = [read("gw-1", 0, 100_000, 100_001), read("gw-1", 1, 600_000, 600_001)]
    away = [(EPOCH_US + at_us, EPOCH_US + at_us + leave_us) for at_us in (100_000, 600_000)]
    whole = [(EPOCH_US + 100_000, EPOCH_US + 600_000 + leave_us)]
    assert presences(["gw-1"], sightings, Landed(narrow, [])) == {"gw-1": away}
    wide = [read("gw-1", 0, 100_000, 350_000), narrow[1]]
    assert presences(["gw-1"], sightings, Landed(wide, [])) == {"gw-1": whole}
    assert presences(["gw-1"], sightings, Landed(narrow[:1], [])) == {"gw-1": whole}


def test_a_verdict_needs_a_moment_of_the_last_begin_at_which_all_were_there():
    """The other badge comes a moment too late, or has left a moment too early, or has left and come again."""
    states = [state("gw-1", 0, 0, 10, True), state("gw-2", 0, 500, 900, True)]
    told = Told([tuple(one.identity for one in states)], set())
    landed = Landed(states, [])

    def broken(a, b, *again):
        spans = {"gw-1": [a, *again], "gw-2": [b]}
        truth = {name: [(EPOCH_US + begin, EPOCH_US + end) for begin, end in of] for name, of in spans.items()}
        return list(broken_verdicts(RULE, GATEWAYS, told, landed, truth, LATER_US))

    assert broken((5, 500), (500, 5000)) == []
    assert "were not there at once" in broken((5, 499), (500, 5000))[0]
    assert "were not there at once" in broken((5, 5000), (901, 5000))[0]
    assert "were not there at once" in broken((5, 100), (500, 5000), (400, 5000))[0]


def test_a_verdict_that_is_certain_by_stamps_must_be_told():
    """Unless the views differ, an end is missing, or states may have come late or were lost."""
    begins = [state("gw-1", 0, 0, 10, True), state("gw-2", 0, 20, 30, True)]
    ends = [state("gw-1", 1, 50, 60, False), state("gw-2", 1, 50, 60, False)]
    verdict = tuple(one.identity for one in begins)

    def broken(states, complete_us=LATER_US, of=RULE, told=()):
        return list(broken_verdicts(of, GATEWAYS, Told(list(told), set()), Landed(states, []), {}, complete_us))

    assert "was not told" in broken([*begins, *ends])[0]
    assert broken([*begins, ends[0]]) == []
    assert broken([*begins, *ends], EPOCH_US + 60) == []
    assert broken([begins[0], ends[0], *(replace_view(one, 2) for one in (begins[1], ends[1]))]) == []
    assert broken([*begins, ends[0], ends[1]._replace(vclock=(2,))]) == []
    assert broken([*begins, *ends], of=rule(TOGETHER, 0, 100, 200, GATEWAYS)) == []
    truth = {"gw-1": [(EPOCH_US, LATER_US)], "gw-2": [(EPOCH_US, LATER_US)]}
    assert (
        list(broken_verdicts(RULE, GATEWAYS, Told([verdict], set()), Landed([*begins, *ends], []), truth, LATER_US))
        == []
    )


@pytest.mark.parametrize(
    ("second", "end", "clock", "holds"),
    [
        ((20, 50), (50, 70), (2, 0), True),
        ((20, 51), (50, 70), (2, 0), False),
        ((20, 51), (50, 70), (2, 1), True),
        ((20, 51), (50, 70), (3, 0), True),
    ],
    ids=["by stamps", "by nothing", "by the clock of the end", "the end has not landed"],
)
def test_a_verdict_is_of_states_of_which_none_ended_before_another_began(second, end, clock, holds):
    """Stamps or the clock of the end prove it, wherever the badges truly lay."""
    a = state("gw-1", 1, 0, 10, True)._replace(vclock=(1, 0))
    b = replace_process(state("gw-2", 1, *second, True), 1)._replace(vclock=(0, 1))
    a_end = state("gw-1", 2, *end, False)._replace(vclock=clock)
    told, truth = Told([(a.identity, b.identity)], set()), {one: [(EPOCH_US, LATER_US)] for one in GATEWAYS}
    found = list(broken_verdicts(RULE, GATEWAYS, told, Landed([a, b, a_end], []), truth, LATER_US))
    assert (found == []) == holds
    assert holds or "may have begun after" in found[0]


def replace_process(one, process):
    """The same state of another place in the group."""
    return one._replace(attrs=json.dumps({**json.loads(one.attrs), "$process": process}))


def replace_view(one, view):
    """The same state in another view."""
    return one._replace(attrs=json.dumps({**json.loads(one.attrs), "$view": view}))


def schedule(*clocks):
    """Two gateways whose badges lie there from the first second to the fourth, then together again."""
    members = tuple(f"hall/{name}" for name in GATEWAYS)
    plans = [
        GatewayPlan("hall", name, ((badge_of(name), stream_of(badge_of(name))),), clock, group=members)
        for name, clock in zip(GATEWAYS, clocks, strict=True)
    ]
    moments = [*range(SECOND_US, 4 * SECOND_US, SPACING_US), *range(6 * SECOND_US, 7 * SECOND_US, SPACING_US)]
    sightings = tuple(sorted(one for name in GATEWAYS for one in badge(name, *moments)))
    together = RulePlan(TOGETHER, 0, 100, LONG_US // 1000, GATEWAYS)
    return Schedule(1, tuple(plans), sightings, (), (), 8 * SECOND_US, (together,))


@pytest.mark.parametrize("known_s", [-10, 2, 5], ids=["from the begin", "during a state", "after it"])
def test_a_group_is_told_together_also_if_a_gateway_learns_utc_only_later(known_s, tmp_path):
    """A state that began before had a stamp around 1970, and DEFINITELY reported what never happened; it waits."""
    late = ClockPlan(known=((known_s * SECOND_US, 1 << 60, 1000),))
    outcome = run(schedule(ClockPlan(known=KNOWN), late), tmp_path)
    assert outcome.broken == []
    assert outcome.told >= 2
    states = [one for one in read_landing(tmp_path / "cloud" / "landing").readings if one.kind == "state"]
    assert max(one.t_max - one.t_min for one in states) < SECOND_US
    assert min(one.t_min for one in states) > EPOCH_US


def test_some_schedules_have_groups_and_some_a_liar():
    """A group has at least two gateways, each with its badge."""
    drawn = [draw(seed) for seed in range(60)]
    grouped = [one for one in drawn if one.gateways[0].group]
    assert 5 < len(grouped) < 30
    assert all(len(one.gateways) > 1 and TOGETHER in {rule.name for rule in one.rules} for one in grouped)
    assert 5 < sum(bool(one.liar) for one in drawn) < 30


def test_a_run_goes_on_over_states_in_which_another_value_changed():
    """The badge is still there in the second state of gw-1, which ends late enough."""
    a = state("gw-1", 1, 0, 10, True)._replace(vclock=(1, 0))
    b = replace_process(state("gw-2", 1, 20, 60, True), 1)._replace(vclock=(0, 1))
    between = state("gw-1", 2, 30, 40, True)._replace(vclock=(2, 0))
    end = state("gw-1", 3, 70, 90, False)._replace(vclock=(3, 0))
    told, truth = Told([(a.identity, b.identity)], set()), {one: [(EPOCH_US, LATER_US)] for one in GATEWAYS}

    def judged(*states):
        return list(broken_verdicts(RULE, GATEWAYS, told, Landed([a, b, *states], []), truth, LATER_US))

    assert judged(between, end) == []
    [text] = judged(between, end._replace(t_min=EPOCH_US + 50))
    assert "may have begun after" in text
