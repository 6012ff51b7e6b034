"""What a rule has published, read anew from its files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from whenabouts_cloud.rules.model import CepRule, CorrelateRule, Rule
from whenabouts_sim.chaos.checks.landed import Id, LandedReading

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
    """Both readings, or the first alone where it is told as unmatched."""
    a = _identity(row, "a_")
    return (a,) if row["b_seq"] is None else (a, _identity(row, "b_"))


def _match(row: dict[str, Any]) -> tuple[Id, ...]:
    return tuple(_identity(one) for one in row["events"])


def _verdict(row: dict[str, Any]) -> tuple[Id, ...]:
    return tuple(_identity(one) for one in row["states"])
