"""Writes how far a query is beside its results (`delivery.query_progress`).

The file says nothing that results depend on: a job takes from it only the list of earlier batches, and goes on if it cannot
be written. The query's own thread only notes; the thread that runs the job writes, so a slow disk delays no batch.
"""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from whenabouts_cloud.delivery.query_progress import MOST_RECENT, PROGRESS, BatchDone, progress_in, recent_in
from whenabouts_cloud.jobs.metrics import GONE, Tally
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol.logs import Log

EVERY_S = 1.0  # at most so often in a folder
REMOTE_EVERY_S = 10.0  # in an object store, where each is a PUT
MOST_RULES = 1000

log = Log(__name__)


class ProgressFile:
    """The file of one query. `note` belongs to the query's thread, the rest to the thread that runs the job."""

    def __init__(
        self,
        out: Store,
        monotonic_s: Callable[[], float] = time.monotonic,
        clock_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._out, self._monotonic_s, self._clock_us = out, monotonic_s, clock_us
        self._every_s = EVERY_S if out.local is not None else REMOTE_EVERY_S
        self._started_us = clock_us()
        self._recent: tuple[BatchDone, ...] = ()  # replaced as a whole, by the query's thread
        self._written: tuple[float, Tally | None] = (-REMOTE_EVERY_S, None)
        self._failed = False

    def begin(self) -> None:
        """Continue the list of batches that an earlier start has left."""
        self._recent = recent_in(progress_in(self._out))

    def note(self, number: int, seconds: float, counts: Mapping[str, int], unit: str) -> None:
        """Take in a batch that has ended, by the sums of its counts; `unit` is the name of the count of results."""
        done = BatchDone(number, self._clock_us(), round(seconds, 3), counts["readings"], counts[unit], counts["late"])
        if done.readings or done.results or done.late:
            others = tuple(one for one in self._recent if one.number != number)
            self._recent = (*others, done)[-MOST_RECENT:]

    def write(self, tally: Tally, last: bool = False) -> None:
        """Write the file if a batch has ended since it was written, and not too often unless it is the `last` time."""
        written_s, written = self._written
        now_s = self._monotonic_s()
        if not tally.batches or tally == written or (now_s - written_s < self._every_s and not last):
            return
        self._written = now_s, tally
        try:
            self._out.write(PROGRESS, json.dumps(self._content(tally)).encode())
        except OSError as error:
            if not self._failed:
                text = "what watches the job sees nothing new until it can be written; results are not affected"
                log.warning("progress.unwritable", text, file=f"{self._out.uri}/{PROGRESS}", error=error)
            self._failed = True
        else:
            self._failed = False

    def _content(self, tally: Tally) -> dict[str, Any]:
        streams: dict[str, dict[str, int]] = {}
        for (rule, stream), us in tally.streams_us().items():
            streams.setdefault(rule, {})[stream] = us
        names = [name for name in tally.by_rule if name != GONE]
        return {
            "updated_us": self._clock_us(),
            "started_us": self._started_us,
            "batches": tally.batches,
            "rules": {name: self._of_rule(tally, name, streams.get(name, {})) for name in names[:MOST_RULES]},
            "more_rules": max(0, len(names) - MOST_RULES),
            "recent": [one._asdict() for one in self._recent],
        }

    def _of_rule(self, tally: Tally, name: str, streams_us: Mapping[str, int]) -> dict[str, Any]:
        counts = tally.by_rule[name]
        return {
            "readings": counts["readings"], "results": counts[tally.unit], "late": counts["late"],
            "streams_us": dict(streams_us),
        }  # fmt: skip
