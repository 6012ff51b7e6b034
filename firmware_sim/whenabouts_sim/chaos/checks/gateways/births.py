"""The law of births: what the broker retains of a gateway names the streams that it has."""

from collections.abc import Iterator, Mapping

from whenabouts_protocol import WireError, decode_birth
from whenabouts_protocol.topics import topic
from whenabouts_sim.chaos.checks.gateways.rules_in_force import in_force, names_in_the_end
from whenabouts_sim.chaos.network.broker_model import Message
from whenabouts_sim.chaos.network.next_version import next_topic, understood
from whenabouts_sim.chaos.network.overheard import Overheard
from whenabouts_sim.chaos.parts.gateway_part import Gateway, GatewayPlan, badge_of, presence_stream
from whenabouts_sim.chaos.parts.job_rules import state_stream

CONNECTED_US = 3_000_000  # from the start of an agent until it has connected, and has its rules from the broker


def broken_births(
    gateways: Mapping[str, Gateway], retained: Mapping[str, Message], heard: Overheard, end_us: int
) -> Iterator[str]:
    """Gateways that have run for some time and of which the broker retains no birth, or one that names other streams.

    end_us: now, us since 1970 UTC.
    """
    for name, one in gateways.items():
        begin_us, until_us = one.lives[-1]
        if not begin_us + CONNECTED_US <= end_us < until_us:
            continue
        place = topic(one.plan.site, one.plan.name, "birth")
        message = retained.get(next_topic(place) if one.is_next else place)
        expected = streams_of(one.plan) | names_in_the_end(in_force(one.plan, one.lives, heard.rules), end_us)
        try:
            found = (
                {str(stream[0]) for stream in decode_birth(understood(message).payload).streams} if message else None
            )
        except WireError as error:
            yield f"the birth of {name} cannot be read: {error}"
            continue
        if found != expected:
            yield f"the birth of {name} names {sorted(found or ())}, expected {sorted(expected)}"


def streams_of(plan: GatewayPlan) -> set[str]:
    """The streams that a gateway has whatever its rules are."""
    streams = {stream for _, stream in plan.readers}
    if plan.group:
        streams |= {presence_stream(badge_of(plan.name)), state_stream(plan.name)}
    return streams
