"""Which rules of their own gateways ran, and when: those of the file, and what reached them over the broker."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from whenabouts_protocol import parse_topic
from whenabouts_sim.chaos.checks.well import Spans
from whenabouts_sim.chaos.network.overheard import Arrived
from whenabouts_sim.chaos.parts.gateway_part import GatewayPlan
from whenabouts_sim.chaos.parts.job_rules import rules_message
from whenabouts_sim.chaos.parts.rule_form import Near

Change = tuple[int, tuple[Near, ...]]
"""When rules reached a gateway, us since 1970 UTC, and which."""


def in_force(plan: GatewayPlan, lives: Spans, heard: Iterable[Arrived]) -> dict[Near, list[list[int]]]:
    """The spans in which the agents of a gateway ran each rule. lives: of its agents. heard: rules that reached somebody."""
    changes = list(_changes(plan, heard))
    found: dict[Near, list[list[int]]] = {}
    for begin_us, end_us in lives:
        running: dict[Near, list[int]] = {}
        for at_us, nears in [(begin_us, _of_file(plan)), *(one for one in changes if begin_us <= one[0] < end_us)]:
            for ended in running.keys() - set(nears):
                running.pop(ended)[1] = at_us
            for near in nears:
                if near not in running:
                    running[near] = [at_us, end_us]
                    found.setdefault(near, []).append(running[near])
    return found


def _of_file(plan: GatewayPlan) -> tuple[Near, ...]:
    return () if plan.near is None else (plan.near,)


def _changes(plan: GatewayPlan, heard: Iterable[Arrived]) -> Iterator[Change]:
    of: dict[bytes, Sequence[Near]] = {
        rules_message(plan.site, plan.name, one.nears): one.nears for one in plan.sent if one.nears is not None
    }
    of[b""] = _of_file(plan)
    name = f"{plan.site}/{plan.name}"
    for one in heard:
        if one.client == name and parse_topic(one.message.topic) == (plan.site, plan.name, "rules"):
            yield one.at_us, tuple(of[one.message.payload])


def names_in_the_end(spans: Mapping[Near, Spans], end_us: int) -> set[str]:
    """The streams of the rules that run at the end."""
    return {near.stream for near, some in spans.items() if any(since <= end_us < until for since, until in some)}
