"""Draws the windows of a rule at one moment: the lattice of their consistent global states, and those that satisfy the rule.

The moment is when a verdict's last state began, or else the end. The states are those that a checker then holds if it
processes them in `processing_order`, so the picture does not depend on their arrival.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from whenabouts_cloud.latwin.conjunction.detector import ConjunctionDetector
from whenabouts_cloud.latwin.model.frame import frame
from whenabouts_cloud.latwin.model.layout import CLOCK, FOREVER, HEAD, NEVER, Ring
from whenabouts_cloud.latwin.picture.hasse_svg import svg
from whenabouts_cloud.latwin.shard.processing_order import MissingStates, in_order
from whenabouts_cloud.latwin.shard.report import Report, reports_of, rows_of
from whenabouts_cloud.latwin.shard.view import View
from whenabouts_cloud.latwin.shard.watch import WatchPlan
from whenabouts_cloud.latwin.windows.walk import each
from whenabouts_cloud.rules.model import LatwinRule
from whenabouts_cloud.rules.state_predicate import Scalar, Value


class NothingToDrawError(ValueError):
    """There are no windows to draw; the text gives the reason."""


def picture(rule: LatwinRule, readings: pa.Table, verdict: dict[str, Any] | None) -> str:
    """The text of an SVG file, from landed readings (`report.COLUMNS`) and a verdict (row of `results.RESULT`) or None.

    Raises:
        NothingToDrawError: not every process of the rule has sent a state, or the rule is about one process.
    """
    if len(rule.streams) < 2:
        raise NothingToDrawError(f"rule {rule.name} is about one stream, expected two or more: there is no lattice")
    plan = WatchPlan(rule)
    (group, view_number), view = _view(plan, readings, verdict)
    if view.streams_without_reports:
        raise NothingToDrawError(f"group {group} has sent no state of {', '.join(view.streams_without_reports)}")
    waited = {(one["name"], one["state"]) for one in verdict["states"]} if verdict else set()
    held, window = _windows(rule, view.queues(), waited)

    def holds(states: tuple[int, ...]) -> bool:
        values: dict[Value, Scalar] = {}
        for slot, (number, own) in enumerate(zip(states, held, strict=True)):
            values |= plan.values(slot, own[number].values)
        return plan.holds(values)

    names = [f"{s.name} {name}" for s, name in zip(rule.streams, view.names, strict=True)]
    title = f"{rule.name}: {rule.predicate.text()}"
    when = "when the latest verdict came to hold" if verdict else "at the end"
    return svg(window, each(window, holds), title, names, [f"group {group}, view {view_number}, {when}"])


def _view(plan: WatchPlan, readings: pa.Table, verdict: dict[str, Any] | None) -> tuple[tuple[str, int], View]:
    """The view of the verdict, or the newest one."""
    views: dict[tuple[str, int], View] = {}
    for source, report in rows_of(plan.rule, reports_of(plan.rule, readings)[0]):
        place = source.group, source.view
        if verdict is None or place == (verdict["group"], verdict["view"]):
            views.setdefault(place, View(plan)).add(source, report)
    if not views:
        raise NothingToDrawError(f"the landing has no state of a group that rule {plan.rule.name} is about")
    return max(views.items(), key=lambda item: (item[1].newest_us, item[0]))


def _windows(rule: LatwinRule, queues: list[list[Report]], waited: set[tuple[str, int]]) -> tuple[Any, Any]:
    """The states held, by number, and their frame: after the last of the `waited` ones has entered, or at the end."""
    n = len(rule.streams)
    checker = ConjunctionDetector(n, list(rule.windows), "causal" if rule.causal else "hybrid")
    held: list[dict[int, Report]] = [{} for _ in range(n)]
    left = set(waited)
    for taken in in_order(queues, [0] * n, [stream.delay_us for stream in rule.streams], rule.causal):
        item = taken.item
        if isinstance(item, MissingStates):
            checker.renew(item.slot, item.last + 1)
            held[item.slot].clear()
            continue
        if item.is_heartbeat:
            continue
        lo, hi = (item.lo, item.hi) if item.timed else (NEVER, FOREVER)
        checker.push(item.slot, item.number, item.clock, False, lo, hi)
        held[item.slot][item.number] = item
        left.discard((rule.streams[item.slot].name, item.number))
        if waited and not left:
            break
    ring = checker.ring
    clocks = [[_clock(ring, slot, number) for number in _held(ring, slot)] for slot in range(n)]
    return held, frame([int(first) for first in ring.heads[:, HEAD.first]], clocks)


def _held(ring: Ring, slot: int) -> range:
    return range(int(ring.heads[slot, HEAD.first]), int(ring.heads[slot, HEAD.next]))


def _clock(ring: Ring, slot: int, number: int) -> Sequence[int]:
    clock: Sequence[int] = ring.window[slot, number % ring.heads[slot, HEAD.width], CLOCK:].tolist()
    return clock
