"""Each column that users read of a result is that of the definition, no two results have one id, and what is told as late is
told with the reading's own columns.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from whenabouts_cloud.landing.schema import IDENTITY, STAMPED
from whenabouts_cloud.rules.model import CepRule, CorrelateRule, LatwinRule, Rule
from whenabouts_protocol.group_state import PROCESS, VIEW
from whenabouts_sim.chaos.checks.distance import in_order_probability, probability
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.checks.lateness import moved
from whenabouts_sim.chaos.checks.results import RETRACTED, Row, Told
from whenabouts_sim.chaos.checks.rules.gaps import positives, streams_of
from whenabouts_sim.chaos.checks.rules.matches import parts_of
from whenabouts_sim.chaos.parts.job_rules import GROUP

SIDE = (*IDENTITY, "stream", "t_min", "t_max")
ROUNDED = 1e-9  # that a probability may differ from the exact fraction
ID, REASON = "result_id", "reason"


def broken_rows(rule: Rule, told: Told, landed: Landed, may_repeat: bool = False) -> Iterator[str]:
    """Columns that differ from the definition, and ids that several results have. may_repeat: a file of readings was
    damaged. If a micro-batch had been published with it and is repeated without it, results may come again later.
    """
    of = {one.identity: one for one in landed.readings}
    for row in told.rows:
        if row.readings:  # a count is of none
            yield from _differences(rule, row, of, {ID})
    for row in told.retracted:
        yield from _differences(rule, row, of, {ID}, is_retracted=True)
    for row in told.aside:
        yield from _differences(rule, row, of, {REASON})
    for result, count in Counter(row.columns[ID] for row in told.rows).items():
        if count > 1 and not may_repeat:
            yield f"{rule.name}: {count} results have the id {result}"
    ids = {row.readings: row.columns[ID] for row in told.rows}
    for row in told.retracted:
        if row.columns[ID] != ids.get(row.readings, row.columns[ID]):
            yield f"{rule.name}: {row.readings} was retracted with the id of another result"


def _differences(
    rule: Rule, row: Row, of: Mapping[Any, LandedReading], others: set[str], is_retracted: bool = False
) -> Iterator[str]:
    """Columns of a row that are not as its readings say. others: those that these do not decide."""
    if not of.keys() >= set(row.readings):
        yield f"{rule.name}: {row.readings} was told, and did not land"
        return
    readings = [of[one] for one in row.readings]
    wanted = _late(rule, readings[0]) if REASON in others else _result(rule, readings)
    if is_retracted:
        wanted |= {"status": RETRACTED, "probability": None}
    for name in sorted((wanted.keys() | row.columns.keys()) - others):
        found, expected = row.columns.get(name), wanted.get(name)
        if not _same(found, expected):
            yield f"{rule.name}: {row.readings} was told with {name} {found}, expected {expected}"


def _same(found: Any, expected: Any) -> bool:
    if isinstance(found, float) and isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=0, abs_tol=ROUNDED)
    return bool(found == expected)


def _result(rule: Rule, readings: Sequence[LandedReading]) -> dict[str, Any]:
    if isinstance(rule, CorrelateRule):
        return _pair(rule, *readings)
    if isinstance(rule, CepRule):
        return _match(rule, readings)
    return _verdict(rule, readings)


def _pair(rule: CorrelateRule, a: LandedReading, b: LandedReading | None = None) -> dict[str, Any]:
    """Of a reading without a pair, what tells of the other one is null."""
    sides = {f"{side}_{name}": getattr(one, name, None) for side, one in (("a", a), ("b", b)) for name in SIDE}
    share = None if b is None else float(probability(rule, a, b))
    return {"rule": rule.name, "key": a.key, **sides, "probability": share}


def _match(rule: CepRule, readings: Sequence[LandedReading]) -> dict[str, Any]:
    places = zip(_places(rule, readings), readings, strict=True)
    return {
        "rule": rule.name,
        "key": readings[0].key if rule.pattern.per_key else None,
        "status": "match",
        "t_min": min(one.t_min for one in readings),
        "t_max": max(one.t_max for one in readings),
        "probability": _probability(rule, readings),
        "events": [{"name": place} | {name: getattr(one, name) for name in SIDE} for place, one in places],
    }


def _probability(rule: CepRule, readings: Sequence[LandedReading]) -> float | None:
    """Null where only possible matches or proven ones are asked for."""
    if rule.pattern.mode == "over":
        a, b = (moved(rule, one) for one in readings)
        return float(in_order_probability(a, b, rule.pattern.window_us))
    return 1.0 if rule.pattern.mode == "certain" else None


def _places(rule: CepRule, readings: Sequence[LandedReading]) -> Iterator[str]:
    """The name of each event in its match: that of the element of its stream, with a number if that is repeated."""
    parts = parts_of(rule, readings)
    elements = {name: one for stage in positives(parts) for one in stage for name in streams_of(one)}
    seen = Counter[str]()
    for reading in readings:
        element = elements[reading.stream]
        seen[reading.stream] += 1
        yield element.label if element.most == 1 else f"{element.label}[{seen[reading.stream]}]"


def _verdict(rule: LatwinRule, readings: Sequence[LandedReading]) -> dict[str, Any]:
    return {
        "rule": rule.name,
        "group": GROUP,
        "view": _attrs(readings[0])[VIEW],
        "verdict": rule.modality,
        "status": "emitted",
        "t_min": max(one.t_min for one in readings),
        "t_max": max(one.t_max for one in readings),
        "states": [_state(stream.name, one) for stream, one in zip(rule.streams, readings, strict=True)],
    }


def _state(name: str, one: LandedReading) -> dict[str, Any]:
    columns = {column: getattr(one, column) for column in (*IDENTITY, "t_min", "t_max")}
    return columns | {"name": name, "state": (one.vclock or ())[_attrs(one)[PROCESS]]}


def _late(rule: Rule, one: LandedReading) -> dict[str, Any]:
    return {"rule": rule.name} | {name: getattr(one, name) for name in STAMPED}


def _attrs(one: LandedReading) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(one.attrs or "{}")
    return found
