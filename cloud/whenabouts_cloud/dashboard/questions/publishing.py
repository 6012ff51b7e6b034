"""Sends rules to the gateways that can run them, or shows where they would go, as `publish` does."""

from collections.abc import Mapping
from typing import Any

from whenabouts_cloud.broker.connection import BrokerError, Credentials
from whenabouts_cloud.broker.rules_client import RulesClient
from whenabouts_cloud.rules import CorrelateRule, parse_rules
from whenabouts_cloud.rules.placement import Placement, announced, compile_rules, place
from whenabouts_protocol.messages.compiled_rule import encode_rules


def answer(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of a text, the broker (host, port, credentials), and whether to send: {rules, gateways, refused, sent}.

    Raises:
        ValueError: the text has mistakes, a rule cannot run where AT EDGE puts it, or does not fit a message.
        OSError: the broker cannot be used.
    """
    rules = [rule for rule in parse_rules(values["text"]).rules if isinstance(rule, CorrelateRule)]
    host, port = values["broker"]
    try:
        with RulesClient(host, port, Credentials(**values["credentials"])) as client:
            births = client.births()
            placements = place(rules, announced(births.known.values()))
            messages = {x: encode_rules(*x, compile_rules(placements, *x)) for x in sorted(births.known)}
            if values["send"]:
                client.publish(messages)
    except BrokerError as error:
        raise OSError(str(error)) from None
    return {
        "rules": [_placed(one) for one in placements],
        "gateways": ["/".join(name) for name in messages],
        "refused": births.refused,
        "sent": bool(values["send"]),
    }


def _placed(one: Placement) -> dict[str, Any]:
    gateway = one.a[0].place if one.where == "edge" else None
    return {"rule": one.rule.name, "where": one.where, "gateway": gateway, "reason": one.reason}
