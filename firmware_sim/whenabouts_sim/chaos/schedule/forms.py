"""Other forms of the rules of a schedule, and goods that come again, which some of these forms need.

They are drawn from chances of their own, so that everything else of a seed stays as it is.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from random import Random

from whenabouts_sim.chaos.parts.job_rules import MATCHES, PAIRS, SIDES, TOGETHER
from whenabouts_sim.chaos.parts.rule_form import Form, RulePlan, StreamForm
from whenabouts_sim.chaos.schedule.match_forms import of_matches
from whenabouts_sim.chaos.schedule.stream_forms import OFFSETS_MS, drawn_streams
from whenabouts_sim.world.world import Sighting

PART_BETWEEN, PART_CHOSEN = 0.3, 0.5  # of rules of pairs: limits on both sides, other results than all pairs
PART_IMPATIENT = 0.5  # of rules of other pairs than all: with a DELAY that many readings miss
PART_POSSIBLY = 0.3  # of rules of a group
PART_PATIENT = 0.3  # of the others: emitted when nothing that matters can still land
PART_RETURNING = {PAIRS: 0.4, MATCHES: 0.8, TOGETHER: 0.0}  # of schedules with such a rule: with goods that come again
BETWEEN_MS = ((0, 2000), (-300, 1000), (200, 1500), (-1000, -100))
CHOICES = ("KEEP ALL a", "ONLY UNMATCHED a", "NEAREST", "TOP 2", "NEAREST KEEP ALL a")


def with_forms(chance: Random, rules: Iterable[RulePlan]) -> tuple[RulePlan, ...]:
    """The rules, of which some are written in another form."""
    drawn = {PAIRS: _of_pairs, MATCHES: of_matches, TOGETHER: _of_a_group}
    return tuple(drawn[one.name](chance, one) for one in rules)


def with_impatience(chance: Random, rules: Iterable[RulePlan]) -> tuple[RulePlan, ...]:
    """The rules, of which some of outer and best pairs wait for nobody: partners come late for what was decided."""
    return tuple(_impatient(chance, one) for one in rules)


def _impatient(chance: Random, plan: RulePlan) -> RulePlan:
    if not plan.form.choice or chance.random() >= PART_IMPATIENT:
        return plan
    streams = plan.form.streams or (StreamForm(plan.delay_ms),) * len(SIDES)
    quick = tuple(one._replace(delay_ms=chance.choice((0, 50))) for one in streams)
    return replace(plan, form=plan.form._replace(streams=quick))


def with_returning_goods(
    chance: Random, sightings: tuple[Sighting, ...], badges: Collection[str], rules: Sequence[RulePlan]
) -> tuple[Sighting, ...]:
    """The sightings, in some schedules with fewer goods that pass more than once, and always if a rule chooses among
    the events of one good. Badges are no goods.
    """
    chooses = any(one.form.options or one.form.where for one in rules)
    if chance.random() >= max((PART_RETURNING[one.name] for one in rules), default=0.0) and not chooses:
        return sightings
    goods = list(dict.fromkeys(one.key for one in sightings if one.key not in badges))
    kinds = max(1, len(goods) // chance.choice((2, 3, 5)))
    same = {key: goods[number % kinds] for number, key in enumerate(goods)}
    return tuple(replace(one, key=same.get(one.key, one.key)) for one in sightings)


def _of_pairs(chance: Random, plan: RulePlan) -> RulePlan:
    offset_ms = chance.choice(OFFSETS_MS)
    streams = drawn_streams(chance, (offset_ms, offset_ms + chance.choice((0, 0, -200, 500))), plan.delay_ms)
    between_ms = chance.choice(BETWEEN_MS) if chance.random() < PART_BETWEEN else None
    choice = chance.choice(CHOICES) if chance.random() < PART_CHOSEN else ""
    distance_ms = chance.choice((1000, 2000, 2000)) if choice else plan.distance_ms  # wider than a step of the job
    return replace(plan, distance_ms=distance_ms, form=Form(streams, between_ms, choice))


def _of_a_group(chance: Random, plan: RulePlan) -> RulePlan:
    if chance.random() < PART_POSSIBLY:
        return replace(plan, form=Form(modality="POSSIBLY"))
    return replace(plan, form=Form(options="PATIENT")) if chance.random() < PART_PATIENT else plan
