"""What one call of an engine tells: the same for every method."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Out:
    """Indices count all events ever fed, from 0; a row has a place per positive of the pattern, -1 where there is none.

    `matches` (m, width) by emitted_at, then lexicographic; `emitted_at` (m,) is the event on whose arrival each was told,
    -1 when time alone or the end told it; `pattern` (m,) which of several. `retractions` (r, width) were told before and
    hold no more. `probability` (m,) of matches is 1 in mode certain, that of the whole match in mode over, and nan in the
    others.

    `late` are events that broke the promise and were not taken in; `late_added` and `late_removed` are the matches that
    each is sure to have added to, or removed from, those of the events taken in before it (no rows from methods that do
    not look). What rests on events that may be dropped is not among them: t_max before the frontier less the longest stamp
    and the widest window (less two, where a negation leads), as positives or as what a negation forbids.

    For each row of retractions and of what is late, `..._by` is the event that took it back or was late, and
    `..._pattern` the pattern.
    """

    matches: Rows
    retractions: Rows
    late: Rows
    emitted_at: Rows
    pattern: Rows
    late_added: Rows
    late_removed: Rows
    probability: Floats
    retracted_by: Rows = field(default_factory=lambda: _NONE)
    retracted_pattern: Rows = field(default_factory=lambda: _NONE)
    late_added_by: Rows = field(default_factory=lambda: _NONE)
    late_added_pattern: Rows = field(default_factory=lambda: _NONE)
    late_removed_by: Rows = field(default_factory=lambda: _NONE)
    late_removed_pattern: Rows = field(default_factory=lambda: _NONE)

    @classmethod
    def of(cls, matches: Any, emitted_at: Any, late: Any, retractions: Any = None) -> "Out":
        """Sorts the rows; everything that is not given is empty."""
        matches, emitted_at = np.asarray(matches, np.int64), np.asarray(emitted_at, np.int64)
        order = np.lexsort((*matches.T[::-1], emitted_at))
        none = np.empty((0, matches.shape[1]), np.int64)
        retracted = none if retractions is None else np.asarray(retractions, np.int64)
        return cls(
            matches[order],
            retracted[np.lexsort(retracted.T[::-1])],
            np.asarray(late, np.int64),
            emitted_at[order],
            np.zeros(len(matches), np.int64),
            none,
            none,
            np.ones(len(matches)),
        )
