"""Streaming join of readings that arrive in any order: every pair comes out once, when its second reading arrives.

`feed` joins new readings with all kept readings, `advance` forgets readings as the frontiers F_A and F_B allow,
`snapshot` and `restore` save and load the state. The rule for forgetting a reading x of A under lo <= Y - X <= hi (B is
the mirror image, with -lo for hi):

1. No future reading needs x. A future y of B has y.t_max >= F_B and is at most longest_B long, so
   y.t_min >= F_B - longest_B. Where y.t_min > x.t_max + hi the condition certainly fails. So x can go if
   x.t_max + hi + longest_B < F_B. Here longest_B is the smaller of the stream's LENGTH and (hi - lo)/ct, above which
   nothing matches (`condition`).
2. A late x can still join every kept reading. A kept y that x can match has y.t_max <= x.t_max + hi + longest_B and is
   kept while y.t_max - lo + longest_A >= F_A, so no such y is left once
   x.t_max + hi - lo + longest_A + longest_B < F_A.

x is forgotten when both hold, that is when
x.t_max < horizon_A = min(F_B - hi - longest_B, F_A - (hi - lo) - longest_A - longest_B).
**The same horizon refuses arrivals**: a reading that would be forgotten at once is not joined. Since horizons never move
back, a forgotten reading is never admitted again, however late its repeat arrives, and the identities of the kept
readings are enough to drop repeats: each pair comes out once by construction. A reading that respects its watermark
(t_max >= F_A) is never refused, as horizon_A < F_A.

A reading longer than its stream's LENGTH is joined with the kept readings and counted as `beyond_length`: readings that
rule 1 forgot because of the declared length may be missing from its pairs. Late readings (t_max < F) are counted as
`late`, refused ones also as `expired`.

`outer_join` emits unmatched readings of a and best pairs. All stamps are without offsets: offsets of streams have moved
the condition instead (`pairs`).

Limit: at most `max_rows` readings a side are kept. Beyond, the readings furthest from their stream's frontier F are
dropped, which loses their pairs with future readings:

- First those beyond F + DELAY + AHEAD_US, the furthest first: no stamp that is true lies there, because F is at most
  DELAY behind the latest watermark. A reading from the future thus displaces no other. They are counted as `ahead`.
- Then those furthest from F on either side, counted as `overflow`. The horizon is raised past the dropped ones that
  ended before F, but **never above F**: no stamp, only watermarks decide from when on readings are refused.

An unknown F counts as minus infinity. A repeat of a reading that was dropped at or beyond F is joined again. Unmatchable
readings are kept only to recognise their repeats and are dropped right after those from the future; a repeat of a dropped
one would be emitted again. When a reading is dropped early, its best pairs so far are emitted, and it is never emitted as
unmatched. A reading of a that may have lost a partner is not emitted as unmatched either, except where the partner was
`ahead`.

Cost, measured on one core: every call with new readings scans the kept ones, 0.24 us a row; snapshot and
restore take 0.1 us a row each, and a packed row 16 bytes.
"""

import json
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts_cloud.blobs import of_bytes, to_bytes
from whenabouts_cloud.correlation.pairs import (
    NO_RESULT,
    READING,
    RESULT,
    condition_of,
    first_of_each,
    matches,
    unmatchable,
)
from whenabouts_cloud.correlation.stream.outer_join import KEPT, Emission, times
from whenabouts_cloud.frontier.times import AHEAD_US, INT64_MAX, INT64_MIN
from whenabouts_cloud.landing.schema import IDENTITY
from whenabouts_cloud.rules.model import CorrelateRule, Stream

MAX_ROWS = 500_000  # readings kept a side and shard, 38 MB at 75 bytes a row: at 100 readings a second, 80 minutes
SNAPSHOT_VERSION = 2
METADATA_KEY = b"whenabouts"
PACKED = ("site", "gateway", "stream", "key")  # text columns with few distinct values

LATE = READING.append(pa.field("reason", pa.string()))  # "late a": joined kept readings; "expired a": joined none


class Pushed(NamedTuple):
    """Output of one `feed`: rows of `pairs.RESULT`, and late readings for the side output (LATE)."""

    rows: pa.Table
    late: pa.Table


class OnlineCorrelation:
    """State of one rule (or of one of its key shards); tables are those of `pairs.READING`."""

    def __init__(self, rule: CorrelateRule, max_rows: int = MAX_ROWS) -> None:
        self.rule = rule
        self.max_rows = max_rows
        self.counts: Counter[str] = Counter()
        self._condition = condition_of(rule)
        self._kept = [KEPT.empty_table(), KEPT.empty_table()]
        self._emission = Emission(rule, self._condition)
        self._frontier: list[int | None] = [None, None]
        self._horizon: list[int | None] = [None, None]
        # Readings of b that end earlier may be missing although they are not below its horizon.
        self._b_complete_us: int | None = None

    @property
    def rows_kept(self) -> int:
        """Readings in the state, both sides together."""
        return int(self._kept[0].num_rows + self._kept[1].num_rows)

    def feed(self, a: pa.Table, b: pa.Table) -> Pushed:
        """Join these readings with the kept ones and each other; return the rows to emit at once, and the late readings."""
        before = [t.num_rows for t in self._kept]
        arrived = [self._admitted(0, a), self._admitted(1, b)]
        emitted = self._emission.at_arrival(arrived[0][0])
        for side, (new, _) in enumerate(arrived):
            self._kept[side] = pa.concat_tables([self._kept[side], new])
        emitted += self._join(before[0], self._kept[0].num_rows, 0, self._kept[1].num_rows)
        emitted += self._join(0, before[0], before[1], self._kept[1].num_rows)
        emitted += self._bound()
        rows = pa.concat_tables([NO_RESULT, *emitted])
        self._count_emitted(rows)
        return Pushed(rows, pa.concat_tables([late for _, late in arrived]))

    def advance(self, a_frontier_us: int | None, b_frontier_us: int | None) -> pa.Table:
        """Return the rows that are now final, and forget readings by the frontiers (None: unknown), which never fall."""
        for side, frontier in enumerate((a_frontier_us, b_frontier_us)):
            before = self._frontier[side]
            if frontier is not None:
                self._frontier[side] = frontier if before is None else max(before, frontier)
        a_frontier, b_frontier = self._frontier
        lo, hi = self._condition.lo_us, self._condition.hi_us
        longest_a, longest_b = self._longest(self.rule.a), self._longest(self.rule.b)
        rows = NO_RESULT
        if b_frontier is not None:
            self._kept[0], rows = self._emission.settle(self._kept[0], b_frontier - hi - longest_b)
        if a_frontier is not None and b_frontier is not None:
            grace = (hi - lo) + longest_a + longest_b
            self._raise_horizon(0, min(b_frontier - hi - longest_b, a_frontier - grace))
            self._raise_horizon(1, min(a_frontier + lo - longest_a, b_frontier - grace))
            for side in (0, 1):
                self._forget(side)
        self._count_emitted(rows)
        return rows

    def snapshot(self) -> tuple[bytes, bytes]:
        """Return the state as two Arrow IPC streams: kept readings (frontiers and horizons as metadata), and best pairs."""
        head = {
            "version": SNAPSHOT_VERSION,
            "frontier": self._frontier,
            "horizon": self._horizon,
            "b_complete": self._b_complete_us,
        }
        sides = [t.append_column("side", pa.array(np.full(t.num_rows, n, np.int8))) for n, t in enumerate(self._kept)]
        rows = pa.concat_tables(sides).combine_chunks()
        return _packed(rows.replace_schema_metadata({METADATA_KEY: json.dumps(head).encode()})), _packed(
            self._emission.best
        )

    def restore(self, snapshot: tuple[bytes, bytes]) -> None:
        """Continue from a snapshot of the same rule.

        A horizon above its stream's frontier, as earlier programs wrote them, is lowered to it and counted as `healed`.

        Raises:
            ValueError: it was written by another version.
        """
        rows = of_bytes(snapshot[0])
        head: dict[str, Any] = json.loads(rows.schema.metadata[METADATA_KEY])
        if head["version"] != SNAPSHOT_VERSION:
            raise ValueError(
                f"correlation state: found version {head['version']}, expected {SNAPSHOT_VERSION}; "
                "start again with an empty output folder"
            )
        self._frontier, self._horizon = head["frontier"], head["horizon"]
        side = rows["side"].to_numpy()
        rows = rows.select(KEPT.names).cast(KEPT)
        self._kept = [rows.filter(pa.array(side == n)) for n in (0, 1)]
        self._emission.best = of_bytes(snapshot[1]).cast(RESULT)
        self._b_complete_us = head.get("b_complete")
        for n in (0, 1):
            self._heal(n)

    def _admitted(self, side: int, arrived: pa.Table) -> Pushed:
        """Arrivals that are joined, with their mark (no repeats, none below the horizon), and the late arrivals."""
        arrived = arrived.select(READING.names).cast(READING)
        self.counts["readings"] += arrived.num_rows
        kept = self._kept[side]
        t_max = times(arrived, "t_max")
        fresh = self._above_horizon(side, t_max)
        first = first_of_each(pa.concat_tables([kept.select(IDENTITY), arrived.select(IDENTITY)])) - kept.num_rows
        once = np.zeros(arrived.num_rows, bool)
        once[first[first >= 0]] = True
        frontier = self._frontier[side]
        late = once & (~fresh if frontier is None else (t_max < frontier) | ~fresh)
        self.counts["repeats"] += int((~once).sum())
        self.counts["expired"] += int((once & ~fresh).sum())
        self.counts["late"] += 0 if frontier is None else int((once & (t_max < frontier)).sum())
        name = "ab"[side]
        reason = np.where(fresh, f"late {name}", f"expired {name}")[late]
        new = arrived.filter(pa.array(once & fresh))
        self.counts["beyond_length"] += self._too_long(side, new)
        mark = self._emission.first_mark(new, self._b_complete()) if side == 0 else np.zeros(new.num_rows, np.int8)
        new = new.append_column(KEPT.field("mark"), pa.array(mark))
        return Pushed(
            new, arrived.filter(pa.array(late)).append_column(LATE.field("reason"), pa.array(reason, pa.string()))
        )

    def _join(self, a_from: int, a_to: int, b_from: int, b_to: int) -> list[pa.Table]:
        """Match two ranges of the kept readings; return the rows to emit at once."""
        if a_from == a_to or b_from == b_to:
            return []
        a, b = self._kept[0].slice(a_from, a_to - a_from), self._kept[1].slice(b_from, b_to - b_from)
        i, j, probability = matches(self.rule, a, b)
        self._kept[0], rows = self._emission.note_pairs(self._kept[0], a_from, a, b, i, j, probability)
        return [rows]

    def _above_horizon(self, side: int, t_max: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        horizon = self._horizon[side]
        return np.ones(len(t_max), bool) if horizon is None else t_max >= horizon

    def _too_long(self, side: int, table: pa.Table) -> int:
        declared = (self.rule.a, self.rule.b)[side].length_us
        if declared is None:
            return 0
        length = times(table, "t_max").view(np.uint64) - times(table, "t_min").view(np.uint64)
        return int((length > declared[1]).sum())

    def _longest(self, stream: Stream) -> int:
        useful = self.rule.condition.longest_us
        return useful if stream.length_us is None else min(useful, stream.length_us[1])

    def _raise_horizon(self, side: int, horizon: int) -> None:
        horizon = min(max(horizon, INT64_MIN), INT64_MAX)
        before = self._horizon[side]
        self._horizon[side] = horizon if before is None else max(before, horizon)

    def _heal(self, side: int) -> None:
        """Lower a horizon to its frontier. Readings between the two may have been lost."""
        horizon, frontier = self._horizon[side], self._frontier[side]
        if horizon is None or (frontier is not None and horizon <= frontier):
            return
        self._horizon[side] = frontier
        self.counts["healed"] += 1
        if side == 1 and frontier is not None:
            self._incomplete_before(min(horizon, self._present_end(side)))

    def _present_end(self, side: int) -> int:
        """End of the times that true stamps can have by the frontier; INT64_MIN while that is unknown."""
        frontier = self._frontier[side]
        delay_us = (self.rule.a, self.rule.b)[side].delay_us
        return INT64_MIN if frontier is None else min(frontier + delay_us + AHEAD_US, INT64_MAX)

    def _b_complete(self) -> int | None:
        """From this t_max on, all readings of b are kept, except those that were dropped as ahead; None: all."""
        known = [us for us in (self._horizon[1], self._b_complete_us) if us is not None]
        return max(known, default=None)

    def _incomplete_before(self, us: int) -> None:
        self._b_complete_us = us if self._b_complete_us is None else max(self._b_complete_us, us)

    def _count_emitted(self, rows: pa.Table) -> None:
        unmatched = rows["probability"].null_count
        self.counts["pairs"] += rows.num_rows - unmatched
        self.counts["unmatched"] += unmatched

    def _forget(self, side: int) -> None:
        t_max = times(self._kept[side], "t_max")
        keep = self._above_horizon(side, t_max)
        if not keep.all():
            self._kept[side] = self._kept[side].filter(pa.array(keep)).combine_chunks()

    def _bound(self) -> list[pa.Table]:
        """Keep at most max_rows a side; return the best pairs of the dropped readings."""
        emitted = []
        for side in (0, 1):
            emitted.append(self._drop_furthest(side, only_ahead=True))
            before = self._kept[side].num_rows
            self._drop_unmatchable(side)
            self.counts["overflow"] += before - self._kept[side].num_rows
            emitted.append(self._drop_furthest(side, only_ahead=False))
        return emitted

    def _drop_furthest(self, side: int, only_ahead: bool) -> pa.Table:
        """Drop surplus readings furthest from the frontier, those from the future first or only; return their best pairs."""
        surplus = self._kept[side].num_rows - self.max_rows
        if surplus <= 0 or (only_ahead and self._frontier[side] is None):
            return NO_RESULT
        t_max, frontier = times(self._kept[side], "t_max"), self._frontier[side]
        zero = np.int64(INT64_MIN if frontier is None else frontier)
        apart = np.where(t_max < zero, zero - t_max, t_max - zero).view(np.uint64)  # wraps around to the right number
        ahead = t_max > self._present_end(side)
        first = min(surplus, int(ahead.sum()))
        rest = 0 if only_ahead else surplus - first
        lost = _largest(t_max, ahead, first) | _largest(apart, ~ahead, rest)
        past, present = lost & (t_max < zero), lost & ~ahead & (t_max >= zero)
        if past.any():
            self._raise_horizon(side, int(t_max[past].max()) + 1)
            lost |= ~self._above_horizon(side, t_max)
        if side == 1 and present.any():
            self._incomplete_before(int(t_max[present].max()) + 1)
        self.counts["ahead"] += int((lost & ahead).sum())
        self.counts["overflow"] += int((lost & ~ahead).sum())
        dropped = self._kept[side].filter(pa.array(lost))
        self._kept[side] = self._kept[side].filter(pa.array(~lost)).combine_chunks()
        return self._emission.take_best(dropped) if side == 0 else NO_RESULT

    def _drop_unmatchable(self, side: int) -> None:
        surplus = self._kept[side].num_rows - self.max_rows
        if side == 0 and surplus > 0 and self._emission.unmatched:
            none = np.flatnonzero(unmatchable(self.rule, self._kept[0]))[:surplus]
            keep = np.ones(self._kept[0].num_rows, bool)
            keep[none] = False
            self._kept[0] = self._kept[0].filter(pa.array(keep)).combine_chunks()


def _largest(values: npt.NDArray[Any], among: npt.NDArray[np.bool_], count: int) -> npt.NDArray[np.bool_]:
    """Mask of the `count` largest values among those marked."""
    mask, places = np.zeros(len(values), bool), np.flatnonzero(among)
    if count:
        mask[places[np.argpartition(values[places], -count)[-count:]]] = True
    return mask


def _packed(rows: pa.Table) -> bytes:
    for name in PACKED:
        at = rows.schema.get_field_index(name)
        if at >= 0:
            rows = rows.set_column(at, name, rows[name].dictionary_encode())
    return to_bytes(rows)
