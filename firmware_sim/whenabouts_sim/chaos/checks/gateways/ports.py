"""The law of ports: an agent opens its ports when it begins, and tries again to open one that was lost, after pauses that
double.

What a reader sends before that is lost, so an agent that waits for too long would be excused without this law.
"""

from collections.abc import Iterator, Sequence

from whenabouts_sim.chaos.checks.well import Spans
from whenabouts_sim.chaos.parts.gateway_part import STORED_US
from whenabouts_sim.chaos.parts.serial_line import Happened

LEAST_US, MOST_US = 500_000, 30_000_000  # pauses between attempts
EVER_US = 1 << 62
LATE_US = 500_000  # until an agent notices, beside the length of a read


def shut_spans(history: Sequence[Happened]) -> Spans:
    """When a port was not open: from each moment at which it was unplugged until it was opened again."""
    spans: list[list[int]] = []
    for at_us, what in history:
        if what == "unplugged" and (not spans or spans[-1][1] != EVER_US):
            spans.append([at_us, EVER_US])
        elif what == "opened" and spans:
            spans[-1][1] = min(spans[-1][1], at_us)
    return spans


def broken_ports(name: str, history: Sequence[Happened], lives: Spans, poll_ms: int, end_us: int) -> Iterator[str]:
    """Ports that were not tried in time. history: of a reader's line. lives: when agents of its gateway began and ended.
    end_us: of the schedule.
    """
    late_us = LATE_US + 1000 * poll_ms
    for begin_us, ended_us in lives:
        due_us, losses, is_open = begin_us + late_us, 0, False
        last_us = min(ended_us - STORED_US, end_us)  # one that is asked to end opens no port any more
        events = [one for one in history if begin_us <= one.at_us <= last_us]
        for at_us, what in (*events, Happened(last_us, "")):
            if due_us < at_us and not is_open:
                yield f"{name}: nobody tried to open its port by {due_us}, after {losses} losses, until {what or 'the end'}"
                break
            if what == "unplugged" and not is_open:
                continue
            is_open = what == "opened"
            losses += not is_open
            due_us = at_us + late_us + min(MOST_US, LEAST_US << losses - 1) if losses else due_us
