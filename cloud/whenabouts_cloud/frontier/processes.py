"""The frontier of a group: the time before which all readings of its processes have landed.

Each process is one gateway. With f its watermark, and DELAY and OFFSET of its stream

    F(process) = max( f, the latest watermark of all processes - DELAY )
    F          = min over the processes of F(process) + OFFSET

so a gateway that falls silent holds the group back by at most DELAY. A gateway without a watermark counts as if it were
minus infinity. These are functions of the watermarks in effect, one or None for each process; whoever calls them keeps
the greatest F so far, as a frontier never falls. Cost: linear in the processes.
"""

from collections.abc import Sequence

from whenabouts_cloud.frontier.times import FURTHEST_US, NEVER_US


def process_frontiers(watermarks_us: Sequence[int | None], delays_us: Sequence[int]) -> list[int | None]:
    """Return F of each process, in the times of its gateway; None for all while no gateway has a watermark."""
    latest = max((us for us in watermarks_us if us is not None), default=None)
    if latest is None:
        return [None] * len(watermarks_us)
    pairs = zip(watermarks_us, delays_us, strict=True)
    return [latest - delay_us if us is None else max(latest - delay_us, us) for us, delay_us in pairs]


def group_frontier(watermarks_us: Sequence[int | None], delays_us: Sequence[int], offsets_us: Sequence[int]) -> int:
    """Return F, shifted by OFFSET, from NEVER_US to FURTHEST_US; NEVER_US while no gateway has a watermark."""
    pairs = zip(process_frontiers(watermarks_us, delays_us), offsets_us, strict=True)
    ends = [NEVER_US if us is None else us + offset_us for us, offset_us in pairs]
    return max(min(*ends, FURTHEST_US), NEVER_US)


def silent_processes(watermarks_us: Sequence[int | None], offsets_us: Sequence[int], frontier_us: int) -> list[bool]:
    """Return for each process whether it is no longer waited for: its watermark lies below F.

    A gateway without a watermark is starting, not silent.
    """
    pairs = zip(watermarks_us, offsets_us, strict=True)
    return [us is not None and us + offset_us < frontier_us for us, offset_us in pairs]
