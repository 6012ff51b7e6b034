"""Rows that must wait until they are final: unmatched readings of a ("left", "anti"), and their k best pairs ("top_k").

**When such a row is emitted**: once, as soon as rule 1 of `online` holds for the reading of a, so that no future reading
can change the answer, and at the latest when the reading is forgotten. A reading of b that is late, below its own
frontier, goes to the side output and changes no emitted row: it joins no reading that was emitted as unmatched and none
whose k best pairs were emitted. A late reading of a whose matches may already be forgotten (readings of b with y.t_max >=
x.t_min + lo, if that reaches below b's horizon or to readings dropped at the limit) is not emitted as unmatched, because
this is not certain. Unmatchable readings (too long, no key) are emitted on arrival.

Each kept reading of a has a mark with its state. With top_k the k best of its pairs are held back here until they are
emitted.

Cost: with top_k all pairs held back go through `nearest` at every call that finds more pairs.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.correlation.nearest import nearest
from whenabouts_cloud.correlation.pairs import (
    NO_RESULT,
    READING,
    pair_rows,
    shift_us,
    unmatchable,
    unmatched_rows,
)
from whenabouts_cloud.frontier.times import INT64_MAX, INT64_MIN
from whenabouts_cloud.landing.schema import IDENTITY
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.rules.coverage import codes, encode
from whenabouts_cloud.rules.model import CorrelateRule

# Marks of kept readings of a; readings of b stay OPEN.
OPEN, MATCHED, UNSURE, CLOSED = range(4)  # in no pair yet; in one; maybe with a forgotten b; nothing more to emit
KEPT = READING.append(pa.field("mark", pa.int8()))


class Emission:
    """Marks and best pairs for one rule. `best` is state: the best pairs so far of the readings of a that are still open."""

    def __init__(self, rule: CorrelateRule, condition: Condition) -> None:
        self.unmatched = rule.kind != "inner"  # readings in no pair are emitted
        self.best = NO_RESULT
        self._rule = rule
        self._condition = condition
        self._marks = self.unmatched or rule.top_k is not None

    def first_mark(self, new: pa.Table, b_complete_us: int | None) -> npt.NDArray[np.int8]:
        """Marks of arriving readings of a: UNSURE if matches may already be forgotten, CLOSED if there can be none.

        Readings of b with t_max below `b_complete_us` may be forgotten.
        """
        mark = np.zeros(new.num_rows, np.int8)
        if self.unmatched:
            if b_complete_us is not None:
                least = max(min(b_complete_us - self._condition.lo_us, INT64_MAX), INT64_MIN)
                mark[times(new, "t_min") < least] = UNSURE
            mark[unmatchable(self._rule, new)] = CLOSED
        return mark

    def at_arrival(self, new: pa.Table) -> list[pa.Table]:
        """Return result rows for arriving readings of a that can match nothing; they are emitted at once."""
        return [unmatched_rows(self._rule, new.filter(pc.equal(new["mark"], CLOSED)))] if self.unmatched else []

    def note_pairs(
        self,
        kept: pa.Table,
        a_from: int,
        a: pa.Table,
        b: pa.Table,
        i: npt.NDArray[np.int64],
        j: npt.NDArray[np.int64],
        probability: npt.NDArray[np.float64],
    ) -> tuple[pa.Table, pa.Table]:
        """Note pairs (i, j), where `a` is `kept` from `a_from` on; return kept with new marks, and rows to emit at once."""
        if not self._marks:
            return kept, pair_rows(self._rule, a, b, i, j, probability)
        mark = kept["mark"].to_numpy().copy()
        emitted = mark[a_from + i] != CLOSED
        i, j, probability = i[emitted], j[emitted], probability[emitted]
        mark[a_from + i] = MATCHED
        kept = _with_mark(kept, mark)
        if self._rule.kind == "anti":
            return kept, NO_RESULT
        rows = pair_rows(self._rule, a, b, i, j, probability)
        if self._rule.top_k is None:
            return kept, rows
        self.best = pa.concat_tables([self.best, rows])
        best = nearest(self.best, _group(self.best), self._rule.top_k, self._condition, shift_us(self._rule))
        self.best = self.best.filter(pa.array(best)).combine_chunks()
        return kept, NO_RESULT

    def settle(self, kept: pa.Table, bound: int) -> tuple[pa.Table, pa.Table]:
        """Close kept readings of a with t_max below the bound; return kept with new marks, and the rows now final."""
        if not self._marks:
            return kept, NO_RESULT
        mark = kept["mark"].to_numpy().copy()
        open_ends = mark == OPEN if self._rule.top_k is None else mark != CLOSED
        due = (times(kept, "t_max") < min(max(bound, INT64_MIN), INT64_MAX)) & open_ends
        if not due.any():
            return kept, NO_RESULT
        emitted = []
        if self.unmatched:
            unpaired = due & (mark == OPEN)
            emitted.append(unmatched_rows(self._rule, kept.filter(pa.array(unpaired))))
            mark[unpaired] = CLOSED
        if self._rule.top_k is not None:
            mark[due] = CLOSED
            emitted.append(self.take_best(kept.filter(pa.array(due))))
        return _with_mark(kept, mark), pa.concat_tables(emitted)

    def take_best(self, a: pa.Table) -> pa.Table:
        """Remove and return the best pairs held back for these readings; none without top_k."""
        if self._rule.top_k is None:
            return NO_RESULT
        names = [f"a_{name}" for name in IDENTITY]
        held = self.best.select(names)
        group = _group(pa.concat_tables([a.select(IDENTITY).rename_columns(names).cast(held.schema), held]))
        due = np.isin(group[a.num_rows :], group[: a.num_rows])
        best = self.best.filter(pa.array(due))
        self.best = self.best.filter(pa.array(~due)).combine_chunks()
        return best


def times(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """A column of times as an array."""
    column: npt.NDArray[np.int64] = table[name].to_numpy()
    return column


def _with_mark(kept: pa.Table, mark: npt.NDArray[np.int8]) -> pa.Table:
    return kept.set_column(KEPT.names.index("mark"), KEPT.field("mark"), pa.array(mark))


def _group(rows: pa.Table) -> npt.NDArray[np.int64]:
    """A number for each distinct reading of a."""
    if rows.num_rows == 0:
        return np.empty(0, np.int64)
    columns = [codes(encode(rows[f"a_{name}"])) for name in ("site", "gateway")]
    columns += [rows[f"a_{name}"].to_numpy() for name in ("boot", "seq")]
    _, group = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    numbers: npt.NDArray[np.int64] = group.reshape(-1).astype(np.int64)
    return numbers
