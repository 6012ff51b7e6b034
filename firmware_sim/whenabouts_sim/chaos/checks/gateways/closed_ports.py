"""A port that is closed does not hold the watermark of its gateway back: nothing can come, and its agent says so."""

from collections.abc import Iterable, Iterator, Sequence

from whenabouts_sim.chaos.checks.well import Spans
from whenabouts_sim.chaos.network.overheard import Said
from whenabouts_sim.chaos.parts.gateway_part import GatewayPlan
from whenabouts_sim.chaos.schedule.fault import Fault
from whenabouts_sim.world.clocks import EPOCH_US

BEFORE_US = 1_500_000  # for so long its agent ran, and knew UTC
SOON_US = 2_000_000  # until a watermark has passed the moment at which a port was lost
# Of others readings before the loss wait, or heartbeats come long after they were said.
HARMLESS = (
    "unplugged",
    "kill",
    "kill_at_write",
    "power_cut",
    "power_cut_at_write",
    "end",
    "landing_rot",
    "broker_sends_twice",
)


def broken_closed_ports(
    plan: GatewayPlan, shut: Iterable[Spans], lives: Spans, said: Sequence[Said], faults: Iterable[Fault]
) -> Iterator[str]:
    """Watermarks that stand still. shut: of each line, when it was not open. lives: of the gateway's agents. said: its
    heartbeats. faults: of its machine, and of the broker. What waits for room, a group or UTC holds a watermark, too.
    """
    if plan.group or plan.spool_bytes or any(one.kind not in HARMLESS for one in faults):
        return
    known = [(EPOCH_US + begin, EPOCH_US + end) for begin, end, _ in plan.clock.known]
    for lost_us, open_us in (span for spans in shut for span in spans):
        for one in said:
            due_us, frontier_us = lost_us + SOON_US, one.beat.frontier_us
            if not due_us <= one.at_us < open_us or (frontier_us is not None and frontier_us > lost_us):
                continue
            if all(
                any(begin + BEFORE_US <= lost_us and one.at_us <= end for begin, end in some) for some in (lives, known)
            ):
                yield (
                    f"{plan.site}/{plan.name} said at {one.at_us} that {frontier_us} is its watermark, and a port was lost "
                    f"at {lost_us}"
                )
