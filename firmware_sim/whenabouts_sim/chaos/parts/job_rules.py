"""The rules of the simulated jobs, and the engine of each; the rule that gateways run themselves."""

import functools
from collections.abc import Sequence
from typing import Any

from whenabouts_cloud.jobs.engines.cep import CEP
from whenabouts_cloud.jobs.engines.correlate import CORRELATION
from whenabouts_cloud.jobs.engines.engine import EngineJob
from whenabouts_cloud.jobs.engines.latwin import LATWIN
from whenabouts_cloud.rules.model import CepRule, CorrelateRule, Rule
from whenabouts_cloud.rules.parse import parse_rules
from whenabouts_cloud.rules.placement import GatewayStream, compile_rules, place
from whenabouts_protocol.messages.compiled_rule import encode_rules
from whenabouts_sim.chaos.parts.rule_form import PLAIN, Form, Near

PAIRS, MATCHES, TOGETHER = "handover", "unpaid", "staffed"
GROUP, STATE = "staff", "present"
SIDES, PLACES = ("dock", "door"), ("shelf", "till", "exit")  # streams of pairs, of matches


def state_stream(gateway: str) -> str:
    """The stream of a gateway's states."""
    return f"{gateway}/state"


@functools.lru_cache(maxsize=64)
def rule(
    name: str, distance_ms: int, percent: int, delay_ms: int, gateways: tuple[str, ...] = (), form: Form = PLAIN
) -> Rule:
    """The rule of this name: pairs at most distance_ms apart with a probability, goods that left unpaid, or badges that
    were present at all these gateways at once. form: how else it is written.
    """
    states = {f"g{number}": gateway for number, gateway in enumerate(gateways)}
    text = {
        PAIRS: lambda: (
            "".join(form.declared(SIDES, delay_ms)) + f"RULE {PAIRS} CORRELATE dock AS a, door AS b\n"
            f"  WHERE {form.predicate(distance_ms)} OVER {percent} % AND a.key = b.key {form.choice}\n"
        ),
        MATCHES: lambda: "".join(form.declared(PLACES, delay_ms)) + f"RULE {MATCHES} {form.match(distance_ms)}\n",
        TOGETHER: lambda: (
            "".join(
                f'STREAM {one} FROM "{state_stream(gateway)}" DELAY {delay_ms} ms\n' for one, gateway in states.items()
            )
            + f"RULE {TOGETHER}\n  {form.modality} {' AND '.join(f'{one}.{STATE}' for one in states)}\n"
            + f"  WINDOW 4 IN GROUP {GROUP} {form.options}\n"
        ),
    }[name]()
    return parse_rules(text).rules[0]


@functools.lru_cache(maxsize=64)
def near_rule(near: Near) -> CorrelateRule:
    """The rule of a gateway: goods that came from a dock to a door of its own."""
    length = f"DELAY 1 s LENGTH 0 us .. {near.length_ms} ms"
    text = (
        f'STREAM dock FROM "dock/tags" {length}\nSTREAM door FROM "door/tags" {length}\n'
        f"RULE {near.name} CORRELATE dock AS a, door AS b\n"
        f"  WHERE @b - @a IN [{near.least_ms} ms, {near.most_ms} ms] OVER {near.percent} % AND a.key = b.key\n"
    )
    return parse_rules(text).correlate_rules[0]


def rules_message(site: str, gateway: str, nears: Sequence[Near]) -> bytes:
    """These rules, as a gateway reads them from a file, or gets them from the broker."""
    streams = [GatewayStream(f"{one}/tags", gateway, site, 0) for one in ("dock", "door")]
    placements = place([near_rule(near) for near in nears], streams)
    return encode_rules(site, gateway, compile_rules(placements, site, gateway))


def engine_of(one: Rule) -> EngineJob[Any]:
    """The engine that runs a rule."""
    if isinstance(one, CorrelateRule):
        return CORRELATION
    return CEP if isinstance(one, CepRule) else LATWIN
