"""Predicts a rule about the states of a group: its gateways, its engine, what it keeps and waits for.

Pure; times in microseconds.
"""

from dataclasses import dataclass
from typing import Literal

from whenabouts_cloud.rules.model import LatwinRule
from whenabouts_cloud.rules.states import box_of

ENGINES = {
    "runs": "runs of true states of each gateway, independent of the windows: never wrong",
    "conjunction": "detector of conjunctions, without the lattice of global states",
    "lattice": "lattice of the global states in the windows",
}


@dataclass(frozen=True)
class ProcessExplained:
    """A gateway of the group by its STREAM: window in states, how late its readings may land, and how long a stamp may be.

    `length_us` None: not declared, the longest stamp so far is used.
    """

    stream: str
    pattern: str
    site: str | None
    gateway: str | None
    window: int
    delay_us: int
    length_us: int | None


@dataclass(frozen=True)
class StatesExplained:
    """All predictions about a rule before it runs; `box` is the limit on the global states in the windows."""

    name: str
    text: str
    where: str
    reason: str
    group: str
    engine: Literal["runs", "conjunction", "lattice"]
    processes: tuple[ProcessExplained, ...]
    alternatives: tuple[str, ...]
    box: int
    emit: str
    causal: bool


def explain_states(rule: LatwinRule, reason: str = "a gateway runs CORRELATE rules only") -> StatesExplained:
    """Explain a rule that runs in the cloud for this reason."""
    processes = tuple(
        ProcessExplained(
            s.name, s.pattern, s.site, s.gateway, w, s.delay_us, None if s.length_us is None else s.length_us[1]
        )
        for s, w in zip(rule.streams, rule.windows, strict=True)
    )
    parts = rule.alternatives or []
    written = tuple(
        " AND ".join(f"({x.text()})" if len(part) > 1 else x.text() for x in part.values()) for part in parts
    )
    return StatesExplained(
        rule.name,
        rule.text(),
        "cloud",
        reason,
        rule.group,
        rule.engine,
        processes,
        written,
        box_of(rule.windows),
        rule.emit,
        rule.causal,
    )


def lines(e: StatesExplained) -> list[str]:
    """The explanation as lines for people."""
    points = [
        f"rule {e.name}",
        f"  runs         in the {e.where}: {e.reason}",
        f"  condition    {e.text.splitlines()[-2].strip()}",
        f"  groups       {e.group}, each separately",
        f"  decided by   {ENGINES[e.engine]}",
        f"  order        by vector clocks{' only' if e.causal else ', and by stamps that do not overlap'}",
    ]
    if e.engine == "runs":
        points += [f"  alternative  {part}" for part in e.alternatives]
    else:
        points.append(f"  windows      at most {e.box} global states")
    for p in e.processes:
        at_site = "" if p.site is None else f" at site {p.site}"
        where = f'"{p.pattern}"' + (at_site if p.gateway is None else f" at gateway {p.site}/{p.gateway}")
        length = "as long as any so far" if p.length_us is None else f"up to {p.length_us} us long"
        points.append(f"  gateway      {p.stream}: the one with {where}, {p.window} states; lands {p.delay_us} us late")
        points.append(f"    stamps     {length}: an open state has lasted until the gateway's watermark less that")
    emitted = "as soon as it is found" if e.emit == "eager" else "when no gateway can still send an earlier state"
    return [*points, f"  emitted      {emitted}"]
