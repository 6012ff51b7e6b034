"""Forms of the rules of matches of a schedule: patterns, which events of them count, in which order, and conditions."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from whenabouts_sim.chaos.parts.job_rules import MATCHES, PLACES
from whenabouts_sim.chaos.parts.rule_form import UNPAID, Form, RulePlan
from whenabouts_sim.chaos.schedule.stream_forms import OFFSETS_MS, drawn_streams

PART_SHORT, PART_PATTERN = 0.3, 0.5  # of rules of matches: a shorter window, another pattern
PART_AT_ONCE = 0.3  # of rules of matches: emitted on arrival
PART_OPTIONS = 0.4  # of rules of matches: with other choices of events, or in another order than a certain one
PART_OVER, PART_COUNTED = 0.2, 0.3  # of those: that are probable enough, or counted
PART_SUMMED = 0.5  # of rules of matches of what sensors measure: with counts
PART_AGGREGATED = 0.7  # of counts: with sums of what was measured
PART_REPEATED = 0.5  # of rules with NEXT: with an event that repeats
UNPAID_AT_END = "SEQ(shelf a, exit e, !till c)"
PATTERNS = (
    "SEQ(shelf a, till c, exit e)",
    UNPAID_AT_END,
    "SEQ(!till c, shelf a, exit e)",
    "SEQ(shelf{1,2} a, !till c, exit e)",
    "SEQ(shelf a, till{1,3} c, exit e)",
    "SEQ(shelf a, exit{2,3} e)",
)
REPEATED = PATTERNS[-3:]
OPTIONS = (
    "NEXT", "STRICT", "SKIP TO NEXT", "SKIP PAST LAST", "NEXT SKIP PAST LAST", "POSSIBLE", "POSSIBLE NEXT",
    "POSSIBLE SKIP PAST LAST", "CAUSAL", "CAUSAL NEXT", "CAUSAL SKIP TO NEXT",
)  # fmt: skip
CAUSAL = OPTIONS[-3:]
OVER = ("OVER 10 %", "OVER 50 %", "OVER 80 %", "OVER 50 % SKIP TO NEXT")  # of two events alone: see `matches`
LEFT = "SEQ(shelf a, exit e)"
AGGREGATES = {"a": ("SUM(a.value)", "MIN(a.value)"), "e": ("MAX(e.value)", "AVG(e.value)")}  # of sensors alone
COUNTED = ("COUNT EVERY 300 ms", "COUNT EVERY 1 s", "NEXT COUNT EVERY 1 s")  # not with a gap at the end
SHAPES = ("SEQ((shelf | till) a, exit e)", "SEQ(shelf a, !(till | exit) c, exit e)", "SEQ(shelf a, OR(till c, exit e))")
WITH_AND = ("AND(shelf a, exit e)", "SEQ(AND(shelf a, till c), exit e)")
AND_OPTIONS = ("", "CAUSAL")  # of AND these have a definition here
CONDITIONS = (
    "a.t_max - a.t_min < 400 ms", "e.t_min - a.t_max < 600 ms", "a.gateway = e.gateway", 'e.site != "hall"',
    "c.gateway = a.gateway", "c.t_max - c.t_min > 20 ms", "c.t_min - a.t_min < 700 ms",
)  # fmt: skip
PART_SHAPED, PART_WHERE, PART_BELOW, PART_ACROSS = 0.25, 0.5, 0.15, 0.2  # of rules of matches
WAITS_MS = 700  # the longest window of what waits for its end
PART_CAUSAL = 0.3  # of groups: with a rule of matches in the order of their clocks


def of_matches(chance: Random, plan: RulePlan) -> RulePlan:
    """The rule, mostly with another pattern, window or streams."""
    streams = drawn_streams(chance, [chance.choice(OFFSETS_MS) for _ in PLACES], plan.delay_ms)
    window_ms = chance.choice((300, 700, 1500)) if chance.random() < PART_SHORT else plan.distance_ms
    pattern = chance.choice(PATTERNS) if chance.random() < PART_PATTERN else UNPAID
    at_once = chance.random() < PART_AT_ONCE
    return replace(plan, distance_ms=window_ms, form=Form(streams, pattern=pattern, at_once=at_once))


def with_causal_order(chance: Random, rules: tuple[RulePlan, ...]) -> tuple[RulePlan, ...]:
    """The rules of a group, in some schedules with one of matches more."""
    if chance.random() >= PART_CAUSAL:
        return rules
    plan = of_matches(chance, RulePlan(MATCHES, chance.choice((1000, 60_000)), 100, rules[0].delay_ms))
    return (*rules, _with(plan, chance, chance.choice(CAUSAL)))


def with_options(chance: Random, rules: Iterable[RulePlan], is_measured: bool = False) -> tuple[RulePlan, ...]:
    """The rules, of which some of matches choose their events in another way. is_measured: events have values to sum."""
    return tuple(_optional(chance, one, is_measured) for one in rules)


def _optional(chance: Random, plan: RulePlan, is_measured: bool) -> RulePlan:
    if plan.name == MATCHES and is_measured and chance.random() < PART_SUMMED:
        return _with(plan, chance, chance.choice(COUNTED))
    if plan.name != MATCHES or chance.random() >= PART_OPTIONS:
        return plan
    kind = chance.random()
    forms = OVER if kind < PART_OVER else COUNTED if kind < PART_OVER + PART_COUNTED else OPTIONS
    return _with(plan, chance, chance.choice(forms))


def _with(plan: RulePlan, chance: Random, options: str) -> RulePlan:
    """The plan with options. What SKIP leaves is known only at the end, which a gap there puts off."""
    if options in OVER:
        at_once = plan.form.at_once and "SKIP" not in options
        return replace(plan, form=plan.form._replace(options=options, at_once=at_once, pattern=LEFT))
    if options in COUNTED:
        pattern = UNPAID if plan.form.pattern == UNPAID_AT_END else plan.form.pattern
        possible = [
            x for name, some in AGGREGATES.items() if f"}} {name}" not in pattern for x in some
        ]  # of single events
        aggregates = "".join(f", {x}" for x in possible) if chance.random() < PART_AGGREGATED else ""
        options = options.replace("COUNT", f"COUNT{aggregates}")
        return replace(plan, form=plan.form._replace(options=options, at_once=False, pattern=pattern))
    if "SKIP" not in options:
        is_next, pattern = "NEXT" in options, plan.form.pattern
        pattern = chance.choice(REPEATED) if is_next and chance.random() < PART_REPEATED else pattern
        return replace(plan, form=plan.form._replace(options=options, pattern=pattern))
    pattern = chance.choice((plan.form.pattern, UNPAID_AT_END))
    return replace(plan, form=plan.form._replace(options=options, at_once=False, pattern=pattern))


def with_shapes(chance: Random, rules: Iterable[RulePlan]) -> tuple[RulePlan, ...]:
    """The rules, of which some of matches have another pattern, or are of all keys."""
    return tuple(_shaped(chance, one) for one in rules)


def with_conditions(chance: Random, rules: Iterable[RulePlan]) -> tuple[RulePlan, ...]:
    """The rules, of which some of matches have conditions, or a window that no match may fill."""
    return tuple(_conditional(chance, one) for one in rules)


def _shaped(chance: Random, plan: RulePlan) -> RulePlan:
    """AND is drawn with few options, and all keys in a short window and in one order: their definitions try all choices."""
    options = plan.form.options
    if plan.name != MATCHES or options in OVER or "COUNT" in options:
        return plan
    form, window_ms = plan.form, plan.distance_ms
    if chance.random() < PART_SHAPED and "SKIP" not in options:
        form = form._replace(pattern=chance.choice(SHAPES + WITH_AND if options in AND_OPTIONS else SHAPES))
    if chance.random() < PART_ACROSS and options in ("", "SKIP TO NEXT", "SKIP PAST LAST"):
        form, window_ms = form._replace(is_across=True), chance.choice((600, 1000))
    if "SKIP" in options or form.pattern == UNPAID_AT_END:
        window_ms = min(window_ms, WAITS_MS)
    return replace(plan, distance_ms=window_ms, form=form)


def _conditional(chance: Random, plan: RulePlan) -> RulePlan:
    """NEXT asks which events could replace another, under conditions that not all events of a match are in yet."""
    form = plan.form
    if plan.name != MATCHES:
        return plan
    if (
        chance.random() < PART_WHERE
        and "NEXT" not in form.options.replace("TO NEXT", "")
        and "COUNT" not in form.options
    ):
        possible = [one for one in CONDITIONS if "c." not in one or " c" in form.pattern]
        form = form._replace(where=tuple(chance.sample(possible, chance.choice((1, 1, 2)))))
    if chance.random() < PART_BELOW and form.options not in OVER:
        form = form._replace(is_below=True)
    return replace(plan, form=form)
