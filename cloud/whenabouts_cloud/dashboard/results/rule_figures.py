"""Figures of a rule: results, results a minute, histograms of probability and delay, late readings by reason."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

MINUTE_US = 60_000_000
MAX_MINUTES = 20_000  # that are counted one by one; the oldest go first
SHOWN_MINUTES = 1440
PROBABILITY_EDGES = [n / 20 for n in range(21)]
DELAY_EDGES_US = [0, *(int(100_000 * 2 ** (n / 2)) for n in range(28))]
MAX_REASONS = 50


class RuleFigures:
    """Figures of one rule; delays are those from the end of a result's interval to its publication."""

    def __init__(self) -> None:
        self.results = 0
        self.minutes: Counter[int] = Counter()
        self.probability = np.zeros(len(PROBABILITY_EDGES) - 1, np.int64)
        self.delay = np.zeros(len(DELAY_EDGES_US), np.int64)  # the last: longer
        self.late: Counter[str] = Counter()

    def add(self, rows: pa.Table) -> None:
        """Count results (`result_rows.ROWS`) of this rule."""
        self.results += rows.num_rows
        t_max = rows["t_max"].drop_null().to_numpy()
        minutes, counts = np.unique(t_max // MINUTE_US, return_counts=True)
        self.minutes.update(dict(zip(minutes.tolist(), counts.tolist(), strict=True)))
        for minute in sorted(self.minutes)[: max(0, len(self.minutes) - MAX_MINUTES)]:
            del self.minutes[minute]
        known = rows["probability"].drop_null().to_numpy()
        self.probability += np.histogram(np.clip(known, 0, 1), PROBABILITY_EDGES)[0]
        told = rows.select(["published_us", "t_max"]).drop_null()
        delay = np.maximum(0, told["published_us"].to_numpy() - told["t_max"].to_numpy())
        self.delay += np.bincount(np.searchsorted(DELAY_EDGES_US, delay, "right") - 1, minlength=len(self.delay))

    def add_late(self, reason: str, count: int) -> None:
        """Count readings of the side output."""
        self.late[reason if reason in self.late or len(self.late) < MAX_REASONS else "other"] += count

    def value(self) -> dict[str, Any]:
        """As JSON: the last SHOWN_MINUTES, the histograms with their edges."""
        last = max(self.minutes, default=0)
        first = max(min(self.minutes, default=0), last - SHOWN_MINUTES + 1)
        counts = [self.minutes.get(minute, 0) for minute in range(first, last + 1)] if self.minutes else []
        return {
            "results": self.results,
            "late": dict(self.late),
            "per_minute": {"first_us": first * MINUTE_US if counts else None, "counts": counts},
            "probability": {"edges": PROBABILITY_EDGES, "counts": self.probability.tolist()},
            "delay": {"edges_us": DELAY_EDGES_US, "counts": self.delay.tolist()},
        }
