"""The shard of a running rule: what a streaming job keeps between two steps, the same for all engines.

A shard takes tables of readings, as its engine wants them, and the watermarks of gateways; it gives results. What it holds
is a value: `snapshot` gives it as bytes, and a shard of the same rule goes on from them. Shards know nothing of what drives
them.

Watermarks that one step is given count from the next one on, as `frontier` says.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from whenabouts_cloud.frontier.gateways import Watermark

LATE = pa.schema(
    [
        ("rule", pa.string()),
        ("reason", pa.string()),
        ("site", pa.string()),
        ("gateway", pa.string()),
        ("boot", pa.int64()),
        ("seq", pa.int64()),
        ("stream", pa.string()),
        ("key", pa.string()),
        ("t_min", pa.int64()),
        ("t_max", pa.int64()),
    ]
)


class StepOutput(NamedTuple):
    """The output of one step.

    `results` are rows of the engine's result. `counts` are JSON values: what was counted since the shard was made or
    restored, and how it stands. `late` (LATE) is the side output, the readings that results are without, and `effects` the
    results that they would have added or removed, where the engine knows.
    """

    results: pa.Table
    counts: dict[str, Any]
    late: pa.Table = LATE.empty_table()
    effects: pa.Table | None = None


class Shard(Protocol):
    """Part of one rule's readings, by key or by group."""

    def step(self, tables: Mapping[str, pa.Table], watermarks: Sequence[Iterable[Watermark]]) -> StepOutput:
        """Take readings in, then let the watermarks of the step before count.

        Args:
            tables: by the names that the engine gives them.
            watermarks: for each stream of the rule (`latwin`: one list) gateways and the times that they are complete up to.
        """
        ...

    def snapshot(self) -> bytes:
        """The whole state."""
        ...

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same rule.

        Raises:
            ValueError: another version wrote it.
        """
        ...


def late_rows(rule: str, rows: pa.Table) -> pa.Table:
    """Rows of LATE for rows that have its columns but the first, texts also as dictionaries."""
    named = rows.select(LATE.names[1:]).add_column(0, "rule", pa.repeat(pa.scalar(rule), rows.num_rows))
    return named.cast(LATE)
