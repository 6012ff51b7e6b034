"""Rules about the states of groups as Spark jobs: tables "reports" (`report.REPORT`) and "invalid" (`report.INVALID`).

A shard holds some of the groups, chosen by a hash of their names: states are compared within a group only. Watermarks of all
gateways go to every shard, because only its readings show which groups a gateway is in. A batch needs them too: only a
watermark shows how long the last state of a gateway has lasted.

A shard's readings are held in memory whole, at about 1 kB each; take more shards for a long landing of many groups.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.jobs.engines.engine import EngineJob, Routed, TimeSlab
from whenabouts_cloud.latwin.shard.report import COLUMNS, INVALID, REPORT, reports_of
from whenabouts_cloud.latwin.shard.results import RESULT
from whenabouts_cloud.latwin.shard.shard import LatwinShard
from whenabouts_cloud.rules.coverage import covered, of_kinds
from whenabouts_cloud.rules.model import LatwinRule, Stream
from whenabouts_cloud.shard import StepOutput
from whenabouts_protocol.group_state import KIND


class Latwin(EngineJob[LatwinRule]):
    """Jobs of one rule about a group."""

    columns = COLUMNS
    waits = True

    def results(self, rule: LatwinRule) -> pa.Schema:
        return RESULT

    def tables(self, rule: LatwinRule) -> Mapping[str, pa.Schema]:
        return {"reports": REPORT, "invalid": INVALID}

    def streams(self, rule: LatwinRule) -> Sequence[Stream]:
        return rule.streams

    def heard(self, rule: LatwinRule, site: str, gateway: str, streams: Sequence[str]) -> list[int]:
        """All streams count as one."""
        return [0]

    def readings(self, rules: Sequence[LatwinRule], landed: pa.Table) -> pa.Table:
        """The state readings of the rule's streams."""
        streams = [stream for rule in rules for stream in rule.streams]
        return landed.filter(pa.array(covered(streams, landed).any(axis=1) & of_kinds(landed, [KIND])))

    def routed(self, rule: LatwinRule, readings: pa.Table, shards: int) -> Iterable[Routed]:
        reports, invalid = reports_of(rule, readings)
        groups = reports["group"].to_pylist()
        shard_of = {name: zlib.crc32(name.encode()) % shards for name in set(groups)}
        yield Routed("reports", reports, np.array([shard_of[name] for name in groups], np.int64))
        if invalid:
            yield Routed("invalid", pa.table([[invalid]], schema=INVALID), np.zeros(1, np.int64))

    def shard(self, rule: LatwinRule) -> LatwinShard:
        return LatwinShard(rule)

    def whole(
        self, rule: LatwinRule, tables: Mapping[str, pa.Table], watermarks: Sequence[Watermark], slab: TimeSlab | None
    ) -> StepOutput:
        return LatwinShard(rule).step(tables, [watermarks], everything=True)


LATWIN = Latwin()
