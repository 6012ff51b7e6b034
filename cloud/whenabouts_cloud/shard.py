"""The shard of a running rule: the state that a streaming job keeps between two steps; one interface for all engines.

A shard takes tables of readings, in the form of its engine, and the watermarks of gateways; it returns results. Its
state is a value: `snapshot` returns it as bytes, and a shard of the same rule continues from them. Shards do not depend
on their driver.

Watermarks passed to one step take effect in the next one, see `frontier`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.landing import schema as landing

LATE = pa.schema([("rule", pa.string()), ("reason", pa.string()), *landing.of(*landing.STAMPED)])


class StepOutput(NamedTuple):
    """The output of one step.

    `results` are rows of the engine's result. `counts` are JSON values: counters since the shard was made or restored,
    and its current state. `late` (LATE) is the side output: the readings missing from the results. `effects` are the
    results that those readings would have added or removed, where the engine knows.
    """

    results: pa.Table
    counts: dict[str, Any]
    late: pa.Table = LATE.empty_table()
    effects: pa.Table | None = None


def together(first: StepOutput, second: StepOutput) -> StepOutput:
    """The output of two steps that follow each other."""
    effects = [one.effects for one in (first, second) if one.effects is not None]
    return StepOutput(
        pa.concat_tables([first.results, second.results]),
        second.counts,
        pa.concat_tables([first.late, second.late]),
        pa.concat_tables(effects) if effects else None,
    )


class Shard(Protocol):
    """Part of one rule's readings, by key or by group."""

    def step(self, tables: Mapping[str, pa.Table], watermarks: Sequence[Iterable[Watermark]]) -> StepOutput:
        """Take readings in, then let the watermarks of the previous step take effect.

        Args:
            tables: by the names that the engine gives them.
            watermarks: for each stream of the rule (`latwin`: one list) gateways and the times up to which they are
                complete.
        """
        ...

    def snapshot(self) -> bytes:
        """Return the whole state."""
        ...

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot of the same rule.

        Raises:
            ValueError: another version wrote it.
        """
        ...


def late_rows(rule: str, rows: pa.Table) -> pa.Table:
    """Rows of LATE from rows with all its columns but the first; texts may be dictionary-encoded."""
    named = rows.select(LATE.names[1:]).add_column(0, "rule", pa.repeat(pa.scalar(rule), rows.num_rows))
    return named.cast(LATE)
