"""Shard of a correlation (`shard.Shard`): input tables "a" and "b" of readings (`pairs.READING`)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from whenabouts_cloud.blobs import joined, parted
from whenabouts_cloud.correlation.stream.online import MAX_ROWS, OnlineCorrelation
from whenabouts_cloud.frontier.gateways import Watermark, gateways_of
from whenabouts_cloud.frontier.rule import frontiers_by_name
from whenabouts_cloud.frontier.stream import StreamFrontier
from whenabouts_cloud.rules.model import CorrelateRule
from whenabouts_cloud.shard import StepOutput, late_rows


class CorrelationShard:
    """Readings, frontiers and horizons of one rule and key shard; side 0 is a, side 1 is b."""

    def __init__(self, rule: CorrelateRule, max_rows: int = MAX_ROWS) -> None:
        self.online = OnlineCorrelation(rule, max_rows)
        self.frontiers = (StreamFrontier(rule.a.delay_us), StreamFrontier(rule.b.delay_us))

    def step(self, tables: Mapping[str, pa.Table], watermarks: Sequence[Iterable[Watermark]]) -> StepOutput:
        """Join these readings, then emit and forget by the watermarks of the step before."""
        readings = tables["a"], tables["b"]
        rows, late = self.online.feed(*readings)
        for frontier, arrived, latest in zip(self.frontiers, readings, watermarks, strict=True):
            frontier.seen(gateways_of(arrived))
            frontier.take_effect()
            for watermark in latest:
                frontier.note_watermark(watermark.gateway, watermark.us)
        settled = self.online.advance(*(frontier.value for frontier in self.frontiers))
        late = late_rows(self.online.rule.name, late)
        return StepOutput(pa.concat_tables([rows, settled]), self.state(), late)

    def state(self) -> dict[str, Any]:
        """Counters since the shard was made or restored, and its state, as JSON values."""
        return {
            **self.online.counts,
            "rows_kept": self.online.rows_kept,
            "streams_us": frontiers_by_name(
                (self.online.rule.a, self.online.rule.b), [frontier.value for frontier in self.frontiers]
            ),
            "silent": sorted({name for frontier in self.frontiers for name in frontier.silent}),
        }

    def snapshot(self) -> bytes:
        """Return the whole state: readings and best pairs as Arrow IPC, frontiers as JSON."""
        frontiers = json.dumps([frontier.snapshot() for frontier in self.frontiers]).encode()
        return joined([*self.online.snapshot(), frontiers])

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot of the same rule.

        Raises:
            ValueError: it was written by another version.
        """
        readings, best, frontiers = parted(snapshot)
        self.online.restore((readings, best))
        for frontier, state in zip(self.frontiers, json.loads(frontiers), strict=True):
            frontier.restore(state)
