"""The forms of rules that schedules draw: each occurs, each is a rule, and all else of a seed stays as it was."""

import re
from dataclasses import replace
from functools import reduce
from random import Random

from whenabouts_cloud.rules.model import CepRule, CorrelateRule
from whenabouts_sim.chaos.parts.job_rules import MATCHES, PAIRS, TOGETHER, rule
from whenabouts_sim.chaos.parts.rule_form import LENGTH_MS, PLAIN, Form, RulePlan, StreamForm
from whenabouts_sim.chaos.schedule.forms import BETWEEN_MS, CHOICES, with_forms, with_returning_goods
from whenabouts_sim.chaos.schedule.match_forms import (
    CONDITIONS,
    COUNTED,
    LEFT,
    OPTIONS,
    OVER,
    PATTERNS,
    SHAPES,
    WITH_AND,
    with_conditions,
    with_options,
    with_shapes,
)
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.chaos.schedule.stream_forms import OFFSETS_MS, drawn_streams
from whenabouts_sim.world.world import Sighting

GATEWAYS = ("gw-1", "gw-2")
PLANS = (RulePlan(PAIRS, 300, 80, 200), RulePlan(MATCHES, 1000, 100, 200), RulePlan(TOGETHER, 0, 100, 200, GATEWAYS))


def drawn(count=300):
    return [one for seed in range(count) for one in with_forms(Random(seed), PLANS)]


def test_every_form_occurs_and_the_plain_ones_too():
    forms = [one.form for one in drawn()]
    assert {one.choice for one in forms} == {"", *CHOICES}
    assert {one.between_ms for one in forms} == {None, *BETWEEN_MS}
    assert {one.pattern for one in forms} == {PLAIN.pattern, *PATTERNS}
    assert {one.modality for one in forms} == {"DEFINITELY", "POSSIBLY"}
    assert {len(one.streams) for one in forms} == {0, 2, 3}
    assert {one.distance_ms for one in drawn() if one.name == MATCHES} == {1000, 300, 700, 1500}
    assert {2000, 1000} < {one.distance_ms for one in drawn() if one.name == PAIRS}
    assert all(one in drawn() for one in PLANS)


def test_every_form_is_a_rule():
    for plan in drawn(100):
        one = rule(plan.name, plan.distance_ms, plan.percent, plan.delay_ms, plan.gateways, plan.form)
        assert one.name == plan.name
        if isinstance(one, CorrelateRule) and plan.form.between_ms:
            assert (one.condition.lo_us, one.condition.hi_us) == tuple(1000 * ms for ms in plan.form.between_ms)
        if isinstance(one, CepRule):
            assert one.pattern.window_us == 1000 * plan.distance_ms


def test_every_option_of_matches_occurs_and_is_a_rule():
    found = [one for seed in range(300) for one in with_options(Random(seed), with_forms(Random(seed), PLANS))]
    plain = {re.sub(r", [A-Z]+\([ae].value\)", "", one.form.options) for one in found}
    assert plain == {"", "PATIENT", *OPTIONS, *OVER, *COUNTED}
    assert any(
        "COUNT, SUM(a.value), MIN(a.value), MAX(e.value), AVG(e.value) EVERY" in one.form.options for one in found
    )
    for plan in found[1::3]:
        one = rule(plan.name, plan.distance_ms, plan.percent, plan.delay_ms, form=plan.form)
        assert isinstance(one, CepRule)
        text, _, counted = plan.form.options.partition("COUNT")
        assert all(word in one.pattern.text() for word in text.split() if word.isalpha())
        assert bool(one.count) == bool(counted)


def test_every_shape_and_condition_occurs_and_is_a_rule():
    chance = Random("shapes")
    steps = (with_forms, with_options, with_shapes, with_conditions)
    found = [reduce(lambda rules, step: step(chance, rules), steps, PLANS)[1] for _ in range(600)]
    assert {one.form.pattern for one in found} == {PLAIN.pattern, *PATTERNS, *SHAPES, *WITH_AND, LEFT}
    assert {text for one in found for text in one.form.where} == set(CONDITIONS)
    for plan in found[::3]:
        one = rule(plan.name, plan.distance_ms, plan.percent, plan.delay_ms, form=plan.form)
        assert isinstance(one, CepRule)
        assert (len(one.pattern.where), one.pattern.strict_window, one.pattern.per_key) == (
            len(plan.form.where), plan.form.is_below, not plan.form.is_across
        )  # fmt: skip


def test_streams_are_drawn_with_each_offset_or_not_at_all():
    found = [drawn_streams(Random(seed), OFFSETS_MS, 200) for seed in range(20)]
    assert () in found
    assert {tuple(one.offset_ms for one in streams) for streams in found if streams} == {OFFSETS_MS}


def test_a_stream_is_declared_as_its_form_says():
    streams = (StreamForm(100, 300, -500), StreamForm(60_000))
    one = rule(PAIRS, 300, 80, 200, form=Form(streams))
    assert isinstance(one, CorrelateRule)
    assert [(x.delay_us, x.length_us, x.offset_us) for x in (one.a, one.b)] == [
        (100_000, (0, 300_000), -500_000), (60_000_000, (0, 1000 * LENGTH_MS), 0)
    ]  # fmt: skip


def test_goods_that_return_keep_their_times_and_badges_their_keys():
    goods = tuple(Sighting(1000 * n, "dock", n, f"{n:02}") for n in range(10))
    sightings = (*goods, Sighting(99_000, "badge1", 0, "BA"))
    found = [with_returning_goods(Random(seed), sightings, {"BA"}, PLANS) for seed in range(20)]
    assert sightings in found
    assert {len({one.key for one in some}) for some in found} == {11, 6, 4, 3}
    for some in found:
        assert [replace(one, key="") for one in some] == [replace(one, key="") for one in sightings]
        assert some[-1].key == "BA"


def test_schedules_have_forms_of_rules():
    schedules = [draw(seed) for seed in range(60)]
    assert any(one.form != PLAIN for some in schedules for one in some.rules)
    assert any(one.form == PLAIN for some in schedules for one in some.rules)
