"""The correlation as a Spark job: tables "a" and "b" of readings (`pairs.READING`), sharded by key.

In a batch a reading of side a goes into the slab that contains its middle, a reading of side b into every slab whose a's can
pair with it. So each pair is formed in exactly one slab, that of its a. All pairs of an a are formed there, so unmatched a's
and the best pairs of an a are decided there too. A repeat equals its original, so both are in the same group, where the
repeat is dropped.

The middle is computed as floor(t_min / 2) + floor(t_max / 2), which cannot overflow and is at most 1 us off.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.correlation.pairs import READING, RESULT, correlate, reach_us, unmatchable, without_repeats
from whenabouts_cloud.correlation.stream.shard import CorrelationShard
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.frontier.times import INT64_MAX, INT64_MIN
from whenabouts_cloud.jobs.engines.engine import EngineJob, Ints, Mask, Routed, TimeSlab
from whenabouts_cloud.jobs.engines.sharding import shard_of_key
from whenabouts_cloud.landing.scan import encoded
from whenabouts_cloud.rules.coverage import covered, of_kinds, sides_of
from whenabouts_cloud.rules.model import CorrelateRule, Stream
from whenabouts_cloud.shard import StepOutput
from whenabouts_protocol.reading import NO_EVENT_KINDS

SIDES = ("a", "b")
ENCODED = encoded(READING.names)


class Correlation(EngineJob[CorrelateRule]):
    """Jobs of one rule CORRELATE."""

    columns = (*READING.names, "kind")
    group_rows = 200_000

    def results(self, rule: CorrelateRule) -> pa.Schema:
        return RESULT

    def tables(self, rule: CorrelateRule) -> Mapping[str, pa.Schema]:
        return dict.fromkeys(SIDES, ENCODED)

    def streams(self, rule: CorrelateRule) -> Sequence[Stream]:
        return rule.a, rule.b

    def shards(self, rule: CorrelateRule, shards: int) -> int:
        """One shard for all readings where keys are not compared, as then any two readings may pair."""
        return shards if rule.key_equal else 1

    def readings(self, rules: Sequence[CorrelateRule], landed: pa.Table) -> pa.Table:
        """Readings of both streams that can be in a result.

        Omitted are kinds that are no event; stamps longer than (hi - lo)/ct and, when keys are compared, readings without a
        key. Readings of a stay where unmatched ones are results.
        """
        [rule] = rules
        sides = covered(self.streams(rule), landed)
        useful = sides.any(axis=1) & ~unmatchable(rule, landed)
        if rule.kind != "inner":
            useful |= sides[:, 0]
        return landed.filter(pa.array(useful & ~of_kinds(landed, NO_EVENT_KINDS))).drop_columns("kind")

    def routed(self, rule: CorrelateRule, readings: pa.Table, shards: int) -> Iterable[Routed]:
        """A reading that belongs to both streams is in both tables; in that of b only if it can be in a pair."""
        sides = sides_of(rule, readings)
        sides[:, 1] &= ~unmatchable(rule, readings)
        shard = shard_of_key(readings["key"], shards) if rule.key_equal else np.zeros(readings.num_rows, np.int64)
        for number, name in enumerate(SIDES):
            mine = pa.array(sides[:, number])
            yield Routed(name, readings.select(READING.names).filter(mine), shard[sides[:, number]])

    def shard(self, rule: CorrelateRule) -> CorrelationShard:
        return CorrelationShard(rule)

    def whole(
        self,
        rule: CorrelateRule,
        tables: Mapping[str, pa.Table],
        watermarks: Sequence[Watermark],
        slab: TimeSlab | None,
    ) -> StepOutput:
        """Results of a shard or slab; a copy of a reading in a neighbouring slab is not counted again."""
        sides = [self._with_home(rule, name, tables[name], slab) for name in SIDES]
        once = [without_repeats(side) for side in sides]
        rows = correlate(rule, *once)
        read, distinct = (sum(pc.sum(side["home"]).as_py() or 0 for side in some) for some in (sides, once))
        unmatched = rows["probability"].null_count
        counts = {
            "readings": read,
            "repeats": read - distinct,
            "pairs": rows.num_rows - unmatched,
            "unmatched": unmatched,
        }
        return StepOutput(rows, counts)

    def reach(self, rule: CorrelateRule) -> Callable[[int], int]:
        return lambda _: reach_us(rule)[0]

    def times(self, rule: CorrelateRule, table: str, rows: pa.Table) -> Ints:
        return _middles(rows)

    def inside(self, rule: CorrelateRule, table: str, rows: pa.Table) -> Callable[[TimeSlab], Mask]:
        middle = _middles(rows)
        reach, shift = reach_us(rule) if table == "b" else (0, 0)
        # Moves the borders, as moving the middles could overflow.
        return lambda slab: _between(middle, _moved(slab.low, shift - reach), _moved(slab.high, shift + reach))

    def _with_home(self, rule: CorrelateRule, name: str, rows: pa.Table, slab: TimeSlab | None) -> pa.Table:
        """Add a column `home`: true if the reading is counted in this slab."""
        home = np.ones(rows.num_rows, bool)
        if slab is not None:
            shift = reach_us(rule)[1] if name == "b" else 0
            home = _between(_middles(rows), _moved(slab.low, shift), _moved(slab.high, shift))
        return rows.append_column("home", pa.array(home))


CORRELATION = Correlation()


def _middles(rows: pa.Table) -> Ints:
    middles: Ints = (rows["t_min"].to_numpy() >> 1) + (rows["t_max"].to_numpy() >> 1)
    return middles


def _moved(border: int, by: int) -> int:
    return border if border in (INT64_MIN, INT64_MAX) else min(max(border + by, INT64_MIN), INT64_MAX)


def _between(middle: Ints, low: int, high: int) -> Mask:
    # The last border is never reached: the sum of two halves is below INT64_MAX.
    inside: Mask = (middle >= low) & (middle < high)
    return inside
