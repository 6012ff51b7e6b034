"""The form of the file that tells how far a query is, for people and programs that watch it.

    OUT/_progress.json    {"updated_us", "started_us", "batches", "more_rules",
                          "rules": {NAME: {"readings", "results", "late", "streams_us"}},
                          "recent": [{"number", "ended_us", "seconds", "readings", "results", "late"}]}

Counts are those since the job was started; `streams_us` is the frontier of each stream. `recent` are the last batches that
had readings or results, also of earlier starts; a batch that is repeated is listed once.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from whenabouts_cloud.landing.store import Store

PROGRESS = "_progress.json"
MOST_RECENT = 200


class BatchDone(NamedTuple):
    """A batch that ended. seconds: its duration; late: readings below the frontier."""

    number: int
    ended_us: int
    seconds: float
    readings: int
    results: int
    late: int


def progress_in(out: Store) -> dict[str, Any]:
    """The content of the file of an output; nothing without a readable one."""
    try:
        found = json.loads(out.read(PROGRESS))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def recent_in(progress: Mapping[str, Any]) -> tuple[BatchDone, ...]:
    """The batches that a file lists; entries of another form are left out."""
    listed = progress.get("recent")
    entries = listed[-MOST_RECENT:] if isinstance(listed, list) else []
    return tuple(found for one in entries if (found := _batch_in(one)) is not None)


def _batch_in(entry: Any) -> BatchDone | None:
    try:
        values = [entry[name] for name in BatchDone._fields]
        number, ended_us, seconds, readings, results, late = values
        counts = [int(x) for x in (number, ended_us, readings, results, late)]
        return BatchDone(counts[0], counts[1], float(seconds), *counts[2:])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
