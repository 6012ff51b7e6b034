"""The laws of gateways: ports, clocks, what they know of each other, their own rules, visits."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from whenabouts_sim.chaos.checks.clocks.clock_states import broken_clock_states
from whenabouts_sim.chaos.checks.clocks.heard_states import broken_knowledge
from whenabouts_sim.chaos.checks.clocks.told_states import broken_reports
from whenabouts_sim.chaos.checks.clocks.vector_clocks import broken_clocks
from whenabouts_sim.chaos.checks.gateways.closed_ports import broken_closed_ports
from whenabouts_sim.chaos.checks.gateways.derived import broken_derived
from whenabouts_sim.chaos.checks.gateways.further_states import broken_further_states
from whenabouts_sim.chaos.checks.gateways.lasting import broken_lasting
from whenabouts_sim.chaos.checks.gateways.ports import broken_ports, shut_spans
from whenabouts_sim.chaos.checks.gateways.rules_in_force import in_force
from whenabouts_sim.chaos.checks.gateways.states import broken_states, latest_begins
from whenabouts_sim.chaos.checks.gateways.visits import broken_visits
from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.checks.laws import Broken
from whenabouts_sim.chaos.checks.well import Spans, well_spans
from whenabouts_sim.chaos.network import lying_member
from whenabouts_sim.chaos.network.overheard import Overheard
from whenabouts_sim.chaos.parts.gateway_part import Gateway
from whenabouts_sim.chaos.schedule.schedule import Schedule
from whenabouts_sim.world.world import Sighting

Gateways = Mapping[str, Gateway]
"""By site/name."""


def lives_of(gateways: Gateways, schedule: Schedule) -> dict[str, Spans]:
    """For each reader the spans in which its agent surely could store its readings."""
    lives = {}
    for name, one in gateways.items():
        faults = [fault for fault in schedule.faults if fault.target == name]
        has_small_batches = schedule.most_in_batch > 0 or (schedule.most_waiting > 0 and one.plan.spool_bytes > 0)
        spans = well_spans(one.lives, faults, one.plan.clock, one.plan.disk_s, has_small_batches)
        lives.update({reader: spans for reader, _ in one.plan.readers})
    return lives


def reported_by(gateways: Gateways, sightings: Sequence[Sighting]) -> list[Sighting]:
    """The sightings that readers could tell, by undamaged bytes on an open line."""
    lines = [line for one in gateways.values() for line in one.lines.items()]
    lost = {(name, one.number) for name, line in lines for one in line.lost}
    return [one for one in sightings if (one.reader, one.number) not in lost]


def broken_gateways(
    gateways: Gateways,
    schedule: Schedule,
    landed: Landed,
    heard: Overheard,
    rotten: Collection[tuple[str, ...]],
    end_us: int,
) -> Iterator[Broken]:
    """What does not hold. rotten: gateways that may have forgotten what they sent. end_us: of the schedule, UTC."""
    lives, reported = lives_of(gateways, schedule), reported_by(gateways, schedule.sightings)
    kinds = (
        ("slow_threads", "slow_disk", "disk_full") if schedule.most_waiting else ("slow_threads",)
    )  # with little room threads wait
    slow = {fault.target for fault in schedule.faults if fault.kind in kinds}
    slow |= {name for name, one in gateways.items() if schedule.most_waiting and one.plan.disk_s}
    for name, gateway in gateways.items():
        yield from (Broken("utc", f"{name}: {text}") for text in gateway.wrong_times)
        said = [
            one
            for one in heard.heartbeats
            if (one.beat.site, one.beat.gateway) == (gateway.plan.site, gateway.plan.name)
        ]
        shut_lines = [shut_spans(line.history) for line in gateway.lines.values()]
        faults = [fault for fault in schedule.faults if fault.target in (name, "") or schedule.most_unlanded]
        # With few readings a message, or room for few that wait, a slow disk takes them more slowly than they come.
        is_slow = bool((schedule.most_in_batch or schedule.most_waiting) and gateway.plan.disk_s)
        stalled = () if is_slow else broken_closed_ports(gateway.plan, shut_lines, gateway.lives, said, faults)
        yield from (Broken("watermarks", text) for text in stalled)
        for reader, line in () if name in slow else gateway.lines.items():
            spans, poll_ms = gateway.lives, gateway.plan.poll_ms
            yield from (Broken("ports", text) for text in broken_ports(reader, line.history, spans, poll_ms, end_us))
    lines = [line for one in gateways.values() for line in one.lines.items()]
    shut = {reader: shut_spans(line.history) for reader, line in lines}
    damaged = {(reader, one.number) for reader, line in lines for one in line.damaged}
    seen = [one for one in schedule.sightings if (one.reader, one.number) not in damaged]
    hurt = [one for one in schedule.sightings if (one.reader, one.number) in damaged]
    missed = {(reader, one.number) for reader, line in lines for one in line.lost - line.damaged}
    hidden = [one for one in schedule.sightings if (one.reader, one.number) in missed]
    plans, grouped = schedule.gateways, [(one.site, one.name) for one in schedule.gateways if one.group]
    ran = {name: in_force(one.plan, one.lives, heard.rules) for name, one in gateways.items()}
    whole = [one for one in grouped if one not in rotten]
    # A state that begins with the change of another value may begin before or after that of the badge.
    many = {(one.site, one.name) for one in plans if one.further}
    begins = dict(latest_begins([one for one in grouped if one not in many], reported, landed))
    gives_up = schedule.undated_us or schedule.most_undated
    patient = {(one.plan.site, one.plan.name) for one in gateways.values() if not gives_up and not one.machine.runs}
    held_up = bool(schedule.most_waiting)
    liars = frozenset({lying_member.NAME} if schedule.lying_member else ())
    for law, texts in (
        # Who is lied to may know too much of others, if not by far.
        ("clocks", () if liars else broken_clocks(landed, rotten, schedule.sightings, begins, many)),
        ("knowledge", broken_knowledge(landed, heard.states, schedule.sightings, liars, rotten, begins)),
        ("knowledge", broken_reports(schedule, landed, lives, heard.links, end_us)),
        (
            "clock states",
            broken_clock_states(plans, schedule.sightings, landed, lives, held_up, patient, schedule.clock_s),
        ),
        ("derived", broken_derived(plans, landed, lives, rotten, ran, schedule.clock_s)),
        ("states", broken_states(grouped, reported, landed, rotten)),
        ("states", broken_further_states(plans, reported, landed, rotten, schedule.seed)),
        ("states", broken_lasting(whole, reported, hidden, landed, heard.heartbeats)),
        ("visits", broken_visits(grouped, seen, reported, landed, lives, rotten, shut, hurt)),
    ):
        yield from (Broken(law, text) for text in texts)
