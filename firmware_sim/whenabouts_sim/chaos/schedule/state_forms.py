"""Further values of the local states of a group's gateways."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from whenabouts_sim.chaos.parts.gateway_part import GatewayPlan
from whenabouts_sim.chaos.parts.state_form import StateForm, Stays, Warm

PART_STATES = 0.7  # of groups: with gateways whose state has further values
# Where it is on, and off; sensors measure 18 to 24.
THRESHOLDS = ((20.0, 19.0), (22.5, 19.5), (19.5, 22.5), (22.0, 20.0))
HOLDS_MS = (0, 50, 400, 1200)


def with_further_states(chance: Random, gateways: tuple[GatewayPlan, ...]) -> tuple[GatewayPlan, ...]:
    """The gateways, in some groups with further values in their states."""
    if not gateways[0].group or chance.random() >= PART_STATES:
        return gateways
    return tuple(replace(one, further=tuple(_further(chance, one))) for one in gateways)


def _further(chance: Random, gateway: GatewayPlan) -> Iterator[StateForm]:
    if chance.random() < 0.7:
        yield Stays(chance.choice((1, 2, 5, 8)), chance.choice((300, 700, 1500)))
    streams = sorted({stream for reader, stream in gateway.readers if gateway.is_sensor(reader)})
    if streams:
        yield Warm(chance.choice(streams), *chance.choice(THRESHOLDS), chance.choice(HOLDS_MS))
