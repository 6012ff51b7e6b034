"""The rules of a text: their mistakes as `check` tells them, their explanations and pictures as `explain` does."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from whenabouts_cloud.language.errors import Mistake
from whenabouts_cloud.rules import CepRule, CorrelateRule, LatwinRule, Rule, RuleError, parse_rules
from whenabouts_cloud.rules.explain_events import explain_events
from whenabouts_cloud.rules.explain_pairs import explain
from whenabouts_cloud.rules.explain_states import explain_states
from whenabouts_cloud.rules.explain_text import lines
from whenabouts_cloud.rules.pictures import picture
from whenabouts_cloud.rules.placement import GatewayStream, PlanError, place

KINDS = {CorrelateRule: "pairs", CepRule: "events", LatwinRule: "states"}
MAX_MISTAKES = 1000  # shown; a person mends the first ones first
MAX_DRAWN = 4 << 20  # letters of all pictures; the rules behind have none
_SAID = re.compile(r"found (?P<found>.*?), expected (?P<expected>.*)", re.DOTALL)


def answer(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of a text, and if known [stream, gateway, site] of each stream: {ok, mistakes, rules}."""
    try:
        rules = parse_rules(values["text"]).rules
    except RuleError as error:
        return {"ok": False, "mistakes": [_mistake(m) for m in error.mistakes[:MAX_MISTAKES]], "rules": []}
    streams = [GatewayStream(*row) for row in values.get("streams", ())]
    room, shown = MAX_DRAWN, []
    for rule in rules:
        svg = picture(rule) if room > 0 else None
        room -= len(svg or "")
        about = {"name": rule.name, "kind": KINDS[type(rule)], "text": rule.text()}
        shown.append({**about, "explanation": explanation(rule, streams), "svg": svg})
    return {"ok": True, "mistakes": [], "rules": shown}


def explanation(rule: Rule, streams: Sequence[GatewayStream]) -> list[str]:
    """The explanation of a rule, a line for each point."""
    try:
        [placement] = place([rule], streams)
        reason = placement.reason
    except PlanError as error:
        return [f"rule {rule.name}", *(f"  cannot run   {text}" for text in error.mistakes)]
    if isinstance(rule, LatwinRule):
        return lines(explain_states(rule, reason))
    if isinstance(rule, CepRule):
        return lines(explain_events(rule, reason))
    return lines(explain(placement, {}))


def _mistake(one: Mistake) -> dict[str, Any]:
    said = _SAID.fullmatch(one.text)
    parts = {"found": None, "expected": None} if said is None else said.groupdict()
    return {"line": one.line, "column": one.column, **parts, "text": one.text}
