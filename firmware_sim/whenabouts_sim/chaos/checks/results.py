"""Results are equal to the definition on what landed in time; what was late is told as late; nothing is told twice."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from whenabouts_cloud.rules.model import CepRule, CorrelateRule, Rule
from whenabouts_sim.chaos.checks.landed import Id, Landed, LandedReading
from whenabouts_sim.judge.truth import within_probability

TOO_LONG = "beyond length"  # the reason of an event that began too long before the frontier


class Row(NamedTuple):
    """A published row: the readings that it is of, and its columns."""

    readings: tuple[Id, ...]
    columns: Mapping[str, Any]


class Told(NamedTuple):
    """What a rule has published: results as identities of readings, and the readings that it calls late or too long.

    rows, aside: the same in full: results, and readings that came late or were too long.
    """

    results: list[tuple[Id, ...]]
    late: set[Id]
    too_long: frozenset[Id] | set[Id] = frozenset()
    rows: Sequence[Row] = ()
    aside: Sequence[Row] = ()

    def among(self, readings: Iterable[LandedReading]) -> "Told":
        """The results of these readings only."""
        known = {one.identity for one in readings}
        return self._replace(
            results=[one for one in self.results if known.issuperset(one)],
            rows=[one for one in self.rows if known.issuperset(one.readings)],
            aside=[one for one in self.aside if known.issuperset(one.readings)],
        )


def read_told(folder: Path, rule: Rule) -> Told:
    """Read the output of a rule."""
    made = _pair if isinstance(rule, CorrelateRule) else _match if isinstance(rule, CepRule) else _verdict
    rows = [Row(made(row), row) for row in _rows(folder, "batch=*/*.parquet")]
    aside = [Row((_identity(row),), row) for row in _rows(folder, "_late/batch=*/*.parquet")]
    too_long = {row.readings[0] for row in aside if row.columns["reason"] == TOO_LONG}
    late = {row.readings[0] for row in aside if row.columns["reason"] != TOO_LONG}
    return Told([row.readings for row in rows], late, too_long, rows, aside)


def _rows(folder: Path, pattern: str) -> list[dict[str, Any]]:
    return [row for path in sorted(folder.glob(pattern)) for row in pq.ParquetFile(path).read().to_pylist()]


def _identity(row: Mapping[str, Any], prefix: str = "") -> Id:
    return row[f"{prefix}site"], row[f"{prefix}gateway"], row[f"{prefix}boot"], row[f"{prefix}seq"]


def _pair(row: dict[str, Any]) -> tuple[Id, ...]:
    return _identity(row, "a_"), _identity(row, "b_")


def _match(row: dict[str, Any]) -> tuple[Id, ...]:
    return tuple(_identity(one) for one in row["events"])


def _verdict(row: dict[str, Any]) -> tuple[Id, ...]:
    return tuple(_identity(one) for one in row["states"])


def broken_results(rule: Rule, told: Told, landed: Landed, complete_us: int) -> Iterator[str]:
    """Every law of results that does not hold, in words. complete_us: before it, everything has landed and was told."""
    for result, count in Counter(told.results).items():
        if count > 1:
            yield f"{rule.name}: {result} was told {count} times"
    if not isinstance(rule, CepRule | CorrelateRule):
        return
    readings = [one for one in landed.readings if one.kind == "tag"]
    of = {one.identity: one for one in readings}
    in_time = [one for one in readings if one.identity not in told.late | told.too_long]
    certain, possible = (_defined(rule, in_time), _defined(rule, readings))
    mine = set(told.results)
    for result in mine - (possible if isinstance(rule, CorrelateRule) else certain):
        yield f"{rule.name}: {_shown(result, of)} was told, and is no result"
    # An event between two others may be as long as the longest, and so come that much later.
    decided_us = complete_us - (rule.longest_us if isinstance(rule, CepRule) else 0)
    for result in certain - mine:
        if all(of[one].t_max < decided_us for one in result):
            yield f"{rule.name}: {_shown(result, of)} is a result, and was not told"


def _defined(rule: Rule, readings: list[LandedReading]) -> set[tuple[Id, ...]]:
    """The results of a rule on these readings, by its definition."""
    by_key: dict[str | None, dict[str, list[LandedReading]]] = {}
    for one in readings:
        by_key.setdefault(one.key, {}).setdefault(one.stream, []).append(one)
    found = set[tuple[Id, ...]]()
    for streams in by_key.values():
        if isinstance(rule, CorrelateRule):
            found |= _pairs(rule, streams)
        elif isinstance(rule, CepRule):
            found |= _matches(rule, streams)
    return found


def _pairs(rule: CorrelateRule, streams: dict[str, list[LandedReading]]) -> set[tuple[Id, ...]]:
    d_us, part = rule.condition.hi_us, Fraction(rule.condition.ct).limit_denominator(1000)
    return {
        (a.identity, b.identity)
        for a in streams.get("dock/tags", ())
        for b in streams.get("door/tags", ())
        if within_probability(a.t_min, a.t_max, b.t_min, b.t_max, d_us) >= part
    }


def _matches(rule: CepRule, streams: dict[str, list[LandedReading]]) -> set[tuple[Id, ...]]:
    """Order, window and absence hold for every choice of times in the stamps."""
    tills = streams.get("till/tags", ())
    return {
        (a.identity, e.identity)
        for a in streams.get("shelf/tags", ())
        for e in streams.get("exit/tags", ())
        if a.t_max < e.t_min
        and e.t_max - a.t_min <= rule.pattern.window_us
        and all(c.t_max <= a.t_min or c.t_min >= e.t_max for c in tills)
    }


def _shown(result: tuple[Id, ...], of: dict[Id, LandedReading]) -> str:
    return " with ".join(f"{one.stream} {one.key} [{one.t_min}, {one.t_max}]" for one in (of[x] for x in result))
