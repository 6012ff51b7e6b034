"""What a failed schedule tells: the laws that do not hold, a time line, and the command that repeats it."""

from collections.abc import Iterator

from whenabouts_sim.chaos.schedule.schedule import Schedule, draw
from whenabouts_sim.chaos.schedule_run import Outcome

MOST_SHOWN = 12


def command(schedule: Schedule) -> str:
    """The command that repeats a schedule."""
    whole = draw(schedule.seed)
    text = f"whenabouts-sim chaos --seed {schedule.seed}"
    if schedule.numbers != whole.numbers:
        text += f" --faults {','.join(map(str, schedule.numbers)) or 'none'}"
    if len(schedule.sightings) != len(whole.sightings):
        text += f" --readings {len(schedule.sightings)}"
    return text


def lines(outcome: Outcome) -> Iterator[str]:
    """A report for people."""
    schedule = outcome.schedule
    yield f"seed {schedule.seed}: {len(outcome.broken)} times a law does not hold"
    for one in outcome.broken[:MOST_SHOWN]:
        yield f"  {one.law}: {one.text}"
    yield "world:"
    for plan in schedule.gateways:
        readers = ", ".join(name for name, _ in plan.readers)
        yield f"  {plan.site}/{plan.name} with {readers}; {plan.clock.text()}"
    for rule in schedule.rules:
        yield f"  rule {rule.name}: {rule.distance_ms} ms, {rule.percent} %, DELAY {rule.delay_ms} ms"
    yield f"  {len(schedule.sightings)} readings in {schedule.active_us / 1e6:g} s"
    yield "time line, in seconds:"
    for at_us, who, text in outcome.events:
        yield f"  {at_us / 1e6:9.3f}  {who:<12} {text}"
    yield f"repeat it: {command(schedule)}"
