"""What a rule has published, read anew from its files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from whenabouts_cloud.rules.model import CepRule, CorrelateRule, Rule
from whenabouts_sim.chaos.checks.landed import Id, LandedReading

RETRACTED = "retracted"  # the status of a result that does not hold any more
TOO_LONG = "beyond length"  # the reason of an event that began too long before the frontier


class Row(NamedTuple):
    """A published row: the readings that it is of, its columns, and the number of its micro-batch."""

    readings: tuple[Id, ...]
    columns: Mapping[str, Any]
    batch: int = 0


class Told(NamedTuple):
    """What a rule has published: results as identities of readings, and the readings that it calls late or too long.

    rows, aside: the same in full: results, and readings that came late or were too long. retracted: rows of results that do
    not hold any more; `results` and `rows` have these results, too, as they were told before.
    """

    results: list[tuple[Id, ...]]
    late: set[Id]
    too_long: frozenset[Id] | set[Id] = frozenset()
    rows: Sequence[Row] = ()
    aside: Sequence[Row] = ()
    retracted: Sequence[Row] = ()

    def among(self, readings: Iterable[LandedReading]) -> "Told":
        """The results of these readings only."""
        known = {one.identity for one in readings}
        return self._replace(
            results=[one for one in self.results if known.issuperset(one)],
            rows=[one for one in self.rows if known.issuperset(one.readings)],
            aside=[one for one in self.aside if known.issuperset(one.readings)],
            retracted=[one for one in self.retracted if known.issuperset(one.readings)],
        )


def read_told(folder: Path, rule: Rule) -> Told:
    """Read the output of a rule."""
    made = _pair if isinstance(rule, CorrelateRule) else _match if isinstance(rule, CepRule) else _verdict
    published = [Row(made(row), row, batch) for batch, row in _rows(folder, "batch=*/*.parquet")]
    rows = [one for one in published if one.columns.get("status") != RETRACTED]
    retracted = [one for one in published if one.columns.get("status") == RETRACTED]
    aside = [Row((_identity(row),), row, batch) for batch, row in _rows(folder, "_late/batch=*/*.parquet")]
    too_long = {row.readings[0] for row in aside if row.columns["reason"] == TOO_LONG}
    late = {row.readings[0] for row in aside if row.columns["reason"] != TOO_LONG}
    return Told([row.readings for row in rows], late, too_long, rows, aside, retracted)


def _rows(folder: Path, pattern: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of all files, each with the number of its micro-batch."""
    for path in sorted(folder.glob(pattern)):
        batch = int(path.parent.name.partition("=")[2])
        yield from ((batch, row) for row in pq.ParquetFile(path).read().to_pylist())


def _identity(row: Mapping[str, Any], prefix: str = "") -> Id:
    return row[f"{prefix}site"], row[f"{prefix}gateway"], row[f"{prefix}boot"], row[f"{prefix}seq"]


def _pair(row: dict[str, Any]) -> tuple[Id, ...]:
    """Both readings, or the first alone where it is told as unmatched."""
    a = _identity(row, "a_")
    return (a,) if row["b_seq"] is None else (a, _identity(row, "b_"))


def _match(row: dict[str, Any]) -> tuple[Id, ...]:
    """The readings of a match; a count has none."""
    if "events" not in row:
        return ()
    return tuple(_identity(one) for one in row["events"])


def _verdict(row: dict[str, Any]) -> tuple[Id, ...]:
    return tuple(_identity(one) for one in row["states"])
