"""Output of one call of an engine, equal for all methods."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Out:
    """Indices count all events ever fed, from 0. A row has a column per positive of the pattern, -1 where it has no event.

    `matches` (m, width) are sorted by emitted_at, then lexicographically. `emitted_at` (m,) is the event on whose arrival
    each was emitted, -1 if a frontier without an event or the end of the stream emitted it. `pattern` (m,) is the number of
    the pattern. `retractions` (r, width) are matches that were emitted before and no longer hold. `probability` (m,) is 1 in
    mode certain, the probability of the whole match in mode over, and nan in the other modes.

    `late` (l,) are events behind the frontier; they were not stored. `late_added` and `late_removed` are the matches that
    each would certainly have added to, or removed from, the matches of the events stored before it (always empty for
    methods that do not search for them). Effects that depend on events old enough to have been evicted are omitted. An
    event, positive or negated, may be evicted once t_max < frontier - longest stamp - widest window (2 x window for a
    leading negation).

    For each row of `retractions`, `late_added` and `late_removed`, `..._by` is the event that retracted it or was late, and
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
        """Returns an output with sorted rows; arrays that are not given are empty."""
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
