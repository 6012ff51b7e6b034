"""The law of clock states: a reading says of its clock what the plan of that clock allows, and has the unit of its kind.

A sample of UTC is a second old at most, and a reading is dated soon after it was made, so near a change of the clock either
state is right. Far from one, and from the begin and end of its agent, only one is: "bounded" while UTC is known, and
"free-running" when it was known before. What was made before UTC was known waits, and may get any state, but is "unbounded"
only when it was given up.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.checks.well import Spans
from whenabouts_sim.chaos.parts.gateway_part import UNIT, GatewayPlan
from whenabouts_sim.chaos.schedule.schedule import stream_of
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import SECOND_US, Sighting

STATES = frozenset({"bounded", "free-running", "unbounded"})
OLD_US = 1_200_000  # of a sample: the time between two, and some more
LATER_US = 150_000  # until a reading is dated, beside the pause between two looks at a port
WAITS = 2  # threads and disks that a sample or a reading waits for
UNITS = {"gap": "{readings}", "measure": "[ppm]"}  # a measure is a pair of a gateway's own rule


def broken_clock_states(
    gateways: Sequence[GatewayPlan],
    sightings: Sequence[Sighting],
    landed: Landed,
    lives: Mapping[str, Spans],
    are_held_up: bool = False,
    patient: Collection[tuple[str, str]] = (),
    clock_s: float = 0.0,
) -> Iterator[str]:
    """Readings with a state that their clock did not have, or with another unit. lives: by reader, when its agent surely
    could store. are_held_up: few readings may wait to be stored, so those that wait for UTC hold up later ones. patient:
    gateways whose readings wait as long as a schedule lasts, on a machine that is never started again. clock_s: from
    one sample to the next, 0 for the usual time.
    """
    plans = {(one.site, one.name): one for one in gateways}
    seen = defaultdict[tuple[str, str | None], list[Sighting]](list)
    for sighting in sightings:
        seen[stream_of(sighting.reader), sighting.key].append(sighting)
    for one in landed.readings:
        unit = UNIT if one.kind == "measure" and one.is_seen else UNITS.get(one.kind)
        if one.unit != unit:
            yield f"{one.kind} {one.identity} has the unit {one.unit}, expected {unit}"
        plan = plans.get((one.site, one.gateway))
        allowed = STATES
        if plan is not None and one.is_seen:
            allowed = _allowed(plan, one, seen[one.stream, one.key], lives, are_held_up, clock_s)
        if (one.site, one.gateway) in patient:
            allowed -= {"unbounded"}
        if one.clock_state not in allowed:
            yield f"{one.stream} {one.key} says that its clock was {one.clock_state}, expected {_shown(allowed)}"


def _allowed(
    plan: GatewayPlan,
    one: LandedReading,
    sightings: Sequence[Sighting],
    lives: Mapping[str, Spans],
    are_held_up: bool,
    clock_s: float,
) -> frozenset[str]:
    """The states at the sightings that the reading may be of."""
    readers = {name for name, _ in plan.readers}
    own = [x for x in sightings if x.reader in readers and one.t_min <= EPOCH_US + x.true_us <= one.t_max]
    return (
        frozenset().union(*(_states(plan, x.true_us, lives[x.reader], are_held_up, clock_s) for x in own))
        if own
        else STATES
    )


def _states(plan: GatewayPlan, at_us: int, lives: Spans, are_held_up: bool, clock_s: float) -> frozenset[str]:
    """The states that a reading of this moment of the schedule may have."""
    waits_us = int(WAITS * (plan.threads_s + plan.disk_s) * SECOND_US)
    old_us = max(OLD_US, int(clock_s * SECOND_US) + OLD_US // 6) + waits_us
    later_us = LATER_US + 1000 * plan.poll_ms + waits_us
    begun_us = [begin - EPOCH_US for begin, end in lives if begin <= EPOCH_US + at_us <= end - later_us]
    if not begun_us or at_us - begun_us[0] < old_us:
        return STATES
    known = [(begin, end) for begin, end, _ in plan.clock.known]
    if are_held_up and not any(begin <= begun_us[0] and at_us < end for begin, end in known):
        return STATES
    if any(begin <= at_us - old_us and at_us + later_us < end for begin, end in known):
        return frozenset({"bounded"})
    is_unknown = all(end <= at_us - old_us or at_us + later_us < begin for begin, end in known)
    before = [(max(begin, begun_us[0]), end) for begin, end in known if end <= at_us]
    # An agent takes its first sample when it begins, and then one a second.
    was_known = any(end - begin > (later_us if begin == begun_us[0] else old_us) for begin, end in before)
    return frozenset({"free-running"}) if is_unknown and was_known else STATES


def _shown(states: frozenset[str]) -> str:
    return " or ".join(sorted(states))
