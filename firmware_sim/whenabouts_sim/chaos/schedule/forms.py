"""Other forms of the rules of a schedule, and goods that come again, which some of these forms need.

They are drawn from chances of their own, so that everything else of a seed stays as it is.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from whenabouts_sim.chaos.parts.job_rules import MATCHES, PAIRS, PLACES, SIDES, TOGETHER
from whenabouts_sim.chaos.parts.rule_form import UNPAID, Form, Owner, RulePlan, StreamForm
from whenabouts_sim.world.world import Sighting

PART_STREAMS = 0.5  # of rules: streams with a DELAY, LENGTH and OFFSET of their own
PART_BETWEEN, PART_CHOSEN = 0.3, 0.5  # of rules of pairs: limits on both sides, other results than all pairs
PART_SHORT, PART_PATTERN = 0.3, 0.5  # of rules of matches: a window of some ms, another pattern
PART_AT_ONCE = 0.3  # of rules of matches: emitted on arrival
PART_OPTIONS = 0.4  # of rules of matches: with other choices of events, or in another order than a certain one
PART_OWNED = 0.15  # of streams: with an owner
PART_IMPATIENT = 0.5  # of rules of other pairs than all: with a DELAY that many readings miss
PART_POSSIBLY = 0.3  # of rules of a group
PART_RETURNING = 0.4  # of schedules: with goods that pass several times
BETWEEN_MS = ((0, 2000), (-300, 1000), (200, 1500), (-1000, -100))
OFFSETS_MS = (0, 0, 0, 0, -500, 200, 800, -3000, 3000)  # the long ones are longer than a step of the job
CHOICES = ("KEEP ALL a", "ONLY UNMATCHED a", "NEAREST", "TOP 2", "NEAREST KEEP ALL a")
UNPAID_AT_END = "SEQ(shelf a, exit e, !till c)"
PATTERNS = (
    "SEQ(shelf a, till c, exit e)",
    UNPAID_AT_END,
    "SEQ(!till c, shelf a, exit e)",
    "SEQ(shelf{1,2} a, !till c, exit e)",
    "SEQ(shelf a, till{1,3} c, exit e)",
    "SEQ(shelf a, exit{2,3} e)",
)


OPTIONS = (
    "NEXT", "STRICT", "SKIP TO NEXT", "SKIP PAST LAST", "NEXT SKIP PAST LAST", "POSSIBLE", "POSSIBLE NEXT",
    "POSSIBLE SKIP PAST LAST", "CAUSAL", "CAUSAL NEXT", "CAUSAL SKIP TO NEXT",
)  # fmt: skip
CAUSAL = OPTIONS[-3:]
OVER = ("OVER 10 %", "OVER 50 %", "OVER 80 %", "OVER 50 % SKIP TO NEXT")  # of two events alone: see `matches`
LEFT = "SEQ(shelf a, exit e)"
COUNTED = ("COUNT EVERY 300 ms", "COUNT EVERY 1 s", "NEXT COUNT EVERY 1 s")  # not with a gap at the end
SHAPES = ("SEQ((shelf | till) a, exit e)", "SEQ(shelf a, !(till | exit) c, exit e)", "SEQ(shelf a, OR(till c, exit e))")
WITH_AND = ("AND(shelf a, exit e)", "SEQ(AND(shelf a, till c), exit e)")  # without options alone
CONDITIONS = (
    "a.t_max - a.t_min < 100 ms", "e.t_min - a.t_max < 400 ms", "a.gateway = e.gateway", 'e.site != "hall"',
    "c.gateway = a.gateway", "c.t_max - c.t_min > 20 ms", "c.t_min - a.t_min < 200 ms",
)  # fmt: skip
PART_SHAPED, PART_WHERE, PART_BELOW, PART_ACROSS = 0.2, 0.3, 0.15, 0.15  # of rules of matches
PART_CAUSAL = 0.3  # of groups: with a rule of matches in the order of their clocks


def with_forms(chance: Random, rules: Iterable[RulePlan]) -> tuple[RulePlan, ...]:
    """The rules, of which some are written in another form."""
    drawn = {PAIRS: _of_pairs, MATCHES: _of_matches, TOGETHER: _of_a_group}
    return tuple(drawn[one.name](chance, one) for one in rules)


def with_owners(
    chance: Random, rules: Iterable[RulePlan], owners: Mapping[str, Sequence[Owner]]
) -> tuple[RulePlan, ...]:
    """The rules, of which some take one site's or gateway's readings alone. owners: the gateways that have each stream."""
    return tuple(_owned(chance, one, owners) for one in rules)


def with_impatience(chance: Random, rules: Iterable[RulePlan]) -> tuple[RulePlan, ...]:
    """The rules, of which some of outer and best pairs wait for nobody: partners come late for what was decided."""
    return tuple(_impatient(chance, one) for one in rules)


def with_causal_order(chance: Random, rules: tuple[RulePlan, ...]) -> tuple[RulePlan, ...]:
    """The rules of a group, in some schedules with one of matches more."""
    if chance.random() >= PART_CAUSAL:
        return rules
    plan = _of_matches(chance, RulePlan(MATCHES, chance.choice((1000, 60_000)), 100, rules[0].delay_ms))
    return (*rules, _with(plan, chance, chance.choice(CAUSAL)))


def with_options(chance: Random, rules: Iterable[RulePlan]) -> tuple[RulePlan, ...]:
    """The rules, of which some of matches choose their events in another way."""
    return tuple(_optional(chance, one) for one in rules)


def _optional(chance: Random, plan: RulePlan) -> RulePlan:
    if plan.name != MATCHES or chance.random() >= PART_OPTIONS:
        return plan
    return _with(plan, chance, chance.choice(OPTIONS + OVER + COUNTED))


def _with(plan: RulePlan, chance: Random, options: str) -> RulePlan:
    """The plan with options. What SKIP leaves is known only at the end, which a gap there puts off."""
    if options in OVER:
        at_once = plan.form.at_once and "SKIP" not in options
        return replace(plan, form=plan.form._replace(options=options, at_once=at_once, pattern=LEFT))
    if options in COUNTED:
        pattern = UNPAID if plan.form.pattern == UNPAID_AT_END else plan.form.pattern
        return replace(plan, form=plan.form._replace(options=options, at_once=False, pattern=pattern))
    if "SKIP" not in options:
        return replace(plan, form=plan.form._replace(options=options))
    pattern = chance.choice((plan.form.pattern, UNPAID_AT_END))
    return replace(plan, form=plan.form._replace(options=options, at_once=False, pattern=pattern))


def with_shapes(chance: Random, rules: Iterable[RulePlan]) -> tuple[RulePlan, ...]:
    """The rules, of which some of matches have another pattern, or are of all keys."""
    return tuple(_shaped(chance, one) for one in rules)


def with_conditions(chance: Random, rules: Iterable[RulePlan]) -> tuple[RulePlan, ...]:
    """The rules, of which some of matches have conditions, or a window that no match may fill."""
    return tuple(_conditional(chance, one) for one in rules)


def _shaped(chance: Random, plan: RulePlan) -> RulePlan:
    """AND is drawn without options, and all keys in a short window and in one order: their definitions try all choices."""
    options = plan.form.options
    if plan.name != MATCHES or options in OVER + COUNTED:
        return plan
    form, window_ms = plan.form, plan.distance_ms
    if chance.random() < PART_SHAPED and "SKIP" not in options:
        form = form._replace(pattern=chance.choice(SHAPES if options else SHAPES + WITH_AND))
    if chance.random() < PART_ACROSS and options in ("", "SKIP TO NEXT", "SKIP PAST LAST"):
        form, window_ms = form._replace(is_across=True), chance.choice((50, 100, 200))
    return replace(plan, distance_ms=window_ms, form=form)


def _conditional(chance: Random, plan: RulePlan) -> RulePlan:
    """NEXT asks which events could replace another, under conditions that not all events of a match are in yet."""
    form = plan.form
    if plan.name != MATCHES:
        return plan
    if (
        chance.random() < PART_WHERE
        and "NEXT" not in form.options.replace("TO NEXT", "")
        and form.options not in COUNTED
    ):
        possible = [one for one in CONDITIONS if "c." not in one or " c" in form.pattern]
        form = form._replace(where=tuple(chance.sample(possible, chance.choice((1, 1, 2)))))
    if chance.random() < PART_BELOW and form.options not in OVER:
        form = form._replace(is_below=True)
    return replace(plan, form=form)


def _impatient(chance: Random, plan: RulePlan) -> RulePlan:
    if not plan.form.choice or chance.random() >= PART_IMPATIENT:
        return plan
    streams = plan.form.streams or (StreamForm(plan.delay_ms),) * len(SIDES)
    quick = tuple(one._replace(delay_ms=chance.choice((0, 50))) for one in streams)
    return replace(plan, form=plan.form._replace(streams=quick))


def _owned(chance: Random, plan: RulePlan, owners: Mapping[str, Sequence[Owner]]) -> RulePlan:
    names = {PAIRS: SIDES, MATCHES: PLACES, TOGETHER: ()}[plan.name]
    drawn = [_owner(chance, owners.get(name, ())) for name in names]
    if not any(drawn):
        return plan
    streams = plan.form.streams or (StreamForm(plan.delay_ms),) * len(names)
    owned = tuple(one._replace(owner=owner) for one, owner in zip(streams, drawn, strict=True))
    return replace(plan, form=plan.form._replace(streams=owned))


def _owner(chance: Random, owners: Sequence[Owner]) -> Owner | None:
    if not owners or chance.random() >= PART_OWNED:
        return None
    owner = chance.choice(owners)
    return owner if chance.random() < 0.5 else owner._replace(gateway="")


def with_returning_goods(
    chance: Random, sightings: tuple[Sighting, ...], badges: Collection[str], rules: Iterable[RulePlan] = ()
) -> tuple[Sighting, ...]:
    """The sightings, in some schedules with fewer goods that pass more than once, and always if a rule chooses among
    the events of one good. Badges are no goods.
    """
    if chance.random() >= PART_RETURNING and not any(one.form.options for one in rules):
        return sightings
    goods = list(dict.fromkeys(one.key for one in sightings if one.key not in badges))
    kinds = max(1, len(goods) // chance.choice((2, 3, 5)))
    same = {key: goods[number % kinds] for number, key in enumerate(goods)}
    return tuple(replace(one, key=same.get(one.key, one.key)) for one in sightings)


def _of_pairs(chance: Random, plan: RulePlan) -> RulePlan:
    offset_ms = chance.choice(OFFSETS_MS)
    streams = _streams(chance, (offset_ms, offset_ms + chance.choice((0, 0, -200, 500))), plan.delay_ms)
    between_ms = chance.choice(BETWEEN_MS) if chance.random() < PART_BETWEEN else None
    choice = chance.choice(CHOICES) if chance.random() < PART_CHOSEN else ""
    distance_ms = chance.choice((1000, 2000, 2000)) if choice else plan.distance_ms  # wider than a step of the job
    return replace(plan, distance_ms=distance_ms, form=Form(streams, between_ms, choice))


def _of_matches(chance: Random, plan: RulePlan) -> RulePlan:
    streams = _streams(chance, [chance.choice(OFFSETS_MS) for _ in PLACES], plan.delay_ms)
    window_ms = chance.choice((100, 200, 300)) if chance.random() < PART_SHORT else plan.distance_ms
    pattern = chance.choice(PATTERNS) if chance.random() < PART_PATTERN else UNPAID
    at_once = chance.random() < PART_AT_ONCE
    return replace(plan, distance_ms=window_ms, form=Form(streams, pattern=pattern, at_once=at_once))


def _of_a_group(chance: Random, plan: RulePlan) -> RulePlan:
    return replace(plan, form=Form(modality="POSSIBLY")) if chance.random() < PART_POSSIBLY else plan


def _streams(chance: Random, offsets_ms: Sequence[int], delay_ms: int) -> tuple[StreamForm, ...]:
    """Of each stream; none, if all are as the rule says. Stamps are often longer than the shorter LENGTHs."""
    if chance.random() >= PART_STREAMS:
        return ()
    return tuple(
        StreamForm(
            chance.choice((delay_ms, delay_ms, 200, 1000, 60_000)), chance.choice((100, 300, 600, 1500)), offset_ms
        )
        for offset_ms in offsets_ms
    )
