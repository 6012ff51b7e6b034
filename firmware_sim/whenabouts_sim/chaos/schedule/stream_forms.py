"""What a rule of a schedule declares of its streams: DELAY, LENGTH, OFFSET, and whose readings it takes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from whenabouts_sim.chaos.parts.job_rules import MATCHES, PAIRS, PLACES, SIDES, TOGETHER
from whenabouts_sim.chaos.parts.rule_form import Owner, RulePlan, StreamForm

PART_STREAMS = 0.5  # of rules: streams with a DELAY, LENGTH and OFFSET of their own
PART_OWNED = 0.15  # of streams: with an owner
OFFSETS_MS = (0, 0, 0, 0, 0, -500, 200, 800, 3000)  # the last one is longer than a step of the job


def drawn_streams(chance: Random, offsets_ms: Sequence[int], delay_ms: int) -> tuple[StreamForm, ...]:
    """Of each stream; none, if all are as the rule says. Stamps are often longer than the shorter LENGTHs."""
    if chance.random() >= PART_STREAMS:
        return ()
    return tuple(
        StreamForm(
            chance.choice((delay_ms, delay_ms, 200, 1000, 60_000)), chance.choice((100, 300, 600, 1500)), offset_ms
        )
        for offset_ms in offsets_ms
    )


def with_owners(
    chance: Random, rules: Iterable[RulePlan], owners: Mapping[str, Sequence[Owner]]
) -> tuple[RulePlan, ...]:
    """The rules, of which some take one site's or gateway's readings alone. owners: the gateways that have each stream."""
    return tuple(_owned(chance, one, owners) for one in rules)


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
