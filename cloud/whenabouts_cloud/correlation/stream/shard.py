"""One shard of a running correlation: readings and promises in, results out; the unit that streaming drivers keep as state.

`frontier` says when a promise counts.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from whenabouts_cloud.correlation.stream.online import MAX_ROWS, OnlineCorrelation, Step
from whenabouts_cloud.frontier.gateways import Promise, gateways_of
from whenabouts_cloud.frontier.stream import StreamFrontier
from whenabouts_cloud.rules.model import CorrelateRule


class CorrelationShard:
    """The readings, frontiers and horizons of one rule and key shard; sides are 0 for a and 1 for b."""

    def __init__(self, rule: CorrelateRule, max_rows: int = MAX_ROWS) -> None:
        self.online = OnlineCorrelation(rule, max_rows)
        self.frontiers = (StreamFrontier(rule.a.delay_us), StreamFrontier(rule.b.delay_us))

    def step(self, readings: Sequence[pa.Table], promises: Sequence[Iterable[Promise]]) -> Step:
        """What these readings complete; then the promises of the step before count: what they make sure is told, what they
        allow is forgotten."""
        told, late = self.online.feed(*readings)
        for frontier, arrived, promised in zip(self.frontiers, readings, promises, strict=True):
            frontier.seen(gateways_of(arrived))
            frontier.take_effect()
            for gateway, frontier_us in promised:
                frontier.promise(gateway, frontier_us)
        settled = self.online.advance(*(frontier.value for frontier in self.frontiers))
        return Step(pa.concat_tables([told, settled]), late)

    def counts(self) -> dict[str, Any]:
        """What was counted since the shard was made or restored, and how it stands, as JSON values."""
        return {
            **self.online.counts,
            "rows_kept": self.online.rows_kept,
            "frontier_us": [frontier.value for frontier in self.frontiers],
            "silent": sorted({name for frontier in self.frontiers for name in frontier.silent}),
        }

    def snapshot(self) -> tuple[bytes, bytes, str]:
        """The whole state: readings and best pairs as Arrow IPC, frontiers as JSON."""
        return *self.online.snapshot(), json.dumps([frontier.snapshot() for frontier in self.frontiers])

    def restore(self, snapshot: tuple[bytes, bytes, str]) -> None:
        """Go on from a snapshot of the same rule.

        Raises:
            ValueError: it was written by another version.
        """
        self.online.restore(snapshot[:2])
        for frontier, state in zip(self.frontiers, json.loads(snapshot[2]), strict=True):
            frontier.restore(state)
