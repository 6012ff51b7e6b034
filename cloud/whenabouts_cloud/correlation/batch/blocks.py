"""Pairs of two inputs that come in blocks nearly in the order of time, such as files, in bounded memory.

Each block of A is joined with the range of B that it can match (`join`). B is read until all later rows are too late for
the block, and rows of B are dropped once all later rows of A are too late for them. With m' the doubled middle and the
band of `condition` at the longest useful length, a later row has m' >= 2 (the latest minimum so far - disorder), which
gives both limits. No row that can match has m' above 2 t_min + the longest useful length, so one corrupt stamp does not
keep rows in memory.

Limit: memory holds one block of A and the rows of B within its time, the band and the disorder. Blocks of some 100 000
rows are large enough to be fast.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from whenabouts_cloud.correlation.batch.api import CHUNK_PAIRS, Engine
from whenabouts_cloud.correlation.batch.join import Given, Join, Pairs
from whenabouts_cloud.pattern.condition import Condition

Block = tuple[Any, ...]  # (t_min, t_max) or (t_min, t_max, key), arrays of one length


def correlate_blocks(
    a_blocks: Iterable[Block],
    b_blocks: Iterable[Block],
    condition: Condition,
    *,
    disorder: int = 0,
    chunk_pairs: int = CHUNK_PAIRS,
    engine: Engine | None = None,
    counts: "Counter[str] | None" = None,
) -> Iterator[Pairs]:
    """Yield the pairs (i, j) of row numbers counted over all blocks, each pair once, in parts that the next step overwrites.

    Blocks are (t_min, t_max) or, on both sides, (t_min, t_max, key), as in `correlate`. No t_min may be more than
    `disorder` ticks below one in an earlier block of its side; within a block any order is allowed. Rows in the
    order of t_max have at most their greatest length as disorder.

    Raises:
        ValueError: as in `correlate`, or a block comes too early; the pairs of earlier blocks have then been yielded.
    """
    longest, band = condition.longest_us, condition.band(2 * condition.longest_us)
    a, b = _Reader("a", a_blocks, disorder), _Reader("b", b_blocks, disorder)
    held: Block | None = None  # rows of B from b_start on
    a_start = b_start = 0
    while (block := a.next()) is not None:
        latest = 2 * int(np.max(block[0])) + longest + condition.doubled_centre + band
        parts = [] if held is None else [held]
        while (b.coming is None or 2 * b.coming <= latest) and (read := b.next()) is not None:
            parts.append(read)
        if not parts:
            return
        held = parts[0] if len(parts) == 1 else tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        _check_keys(block, held)
        join = Join(Given(*block), Given(*held), condition, engine, (a_start, b_start))
        yield from join.chunks(chunk_pairs, counts)
        a_start += len(block[0])
        # The first row of B that later rows of A can match; at least the last row is kept.
        earliest = 2 * (a.coming or 0) + condition.doubled_centre - band - longest
        needed = np.asarray(held[0]) >= -(-earliest // 2)
        first = int(needed.argmax()) if needed.any() else len(needed) - 1
        held = tuple(column[first:] for column in held)
        b_start += first


class _Reader:
    """Blocks of one side, checked for their order; `coming` is a lower bound of all later minima."""

    def __init__(self, name: str, blocks: Iterable[Block], disorder: int) -> None:
        self._name, self._blocks, self._disorder = name, iter(blocks), disorder
        self._number = -1
        self.coming: int | None = None

    def next(self) -> Block | None:
        """The next block that is not empty."""
        for block in self._blocks:
            self._number += 1
            if not len(block[0]):
                continue
            earliest, latest = int(np.min(block[0])), int(np.max(block[0]))
            if self.coming is not None and earliest < self.coming:
                raise ValueError(
                    f"block {self._number} of {self._name}: found a minimum of {earliest}, expected {self.coming} or later "
                    f"with a disorder of {self._disorder}; raise the disorder or sort the input by t_min"
                )
            coming = latest - self._disorder
            self.coming = coming if self.coming is None else max(self.coming, coming)
            return block
        return None


def _check_keys(a: Block, b: Block) -> None:
    if len(a) != len(b):
        raise ValueError(
            f"blocks: found {len(a)} columns of a and {len(b)} of b, expected keys on both sides or on none"
        )
