"""Where everything lies in a landing.

    LANDING/hour=2026-01-31T17/part-00000042.parquet            readings, by hour of arrival
    LANDING/_frontier/hour=2026-01-31T17/part-00000043.json     how far each gateway's readings are complete
    LANDING/_ahead/hour=2026-01-31T17/part-00000044.parquet     side output: readings that begin in the future
    LANDING/_health/hour=2026-01-31T17/part-*.jsonl             what gateways and the ingest reported about themselves
    LANDING/_dead/, _ingest/, _damaged/                         dead letters; the ingest's own; records of repairs
    LANDING/_truth.jsonl                                        true times of readings, where a simulation has written them
    LANDING/_compacted, _compacting                             how far small files are merged; lock of who merges them
    LANDING/ingest=NAME/...                                     the same for each ingest that has a name: a part

Each part has one writer, which gives its files (readings, frontiers, side output) the numbers 1, 2, 3 ... in the order in
which they appear, without a gap, and hours that never go back. So "everything up to number n" is a state of a part that
never changes: a frontier in it covers only readings in it. That is how far a reader has read a part.

Files of a part may be merged: part-00000042-00000107.parquet holds the readings of the files 42 to 107 with their numbers
in a column `number`, and hides these files. The folders of older versions have frontiers without an hour and a number
(`_frontier/part-<microseconds>.json`), and are read in the order of their names.
"""

import re
from typing import NamedTuple

from whenabouts_cloud.landing.schema import AHEAD_DIR, FRONTIER_DIR
from whenabouts_cloud.landing.store import Store

PART = "ingest="  # prefix of the folder of a named ingest
HOUR = "hour="
NUMBER = "number"  # column of merged files: the number of the file that a reading was in
DATA, AHEAD, FRONTIER = "", AHEAD_DIR, FRONTIER_DIR  # folders of a part that hold numbered files
KINDS = (DATA, AHEAD, FRONTIER)
SNAPSHOT = "_ingest/ledger.json"  # of what the ingest of a part has landed, so that a start reads few files
HEALTH = "_health"  # folder of a part: its files have no numbers, and no reader of readings looks at them
SUFFIX = {DATA: ".parquet", AHEAD: ".parquet", FRONTIER: ".json"}
INGEST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_NUMBERED = re.compile(r"part-([0-9]{1,18})(?:-([0-9]{1,18}))?\.(?:parquet|json)")


class Numbers(NamedTuple):
    """The numbers that a file holds, both included."""

    first: int
    last: int


def numbers_of(name: str) -> Numbers | None:
    """The numbers of a file by its name; None for a file that no ingest has written.

    >>> numbers_of("part-00000042.parquet"), numbers_of("part-00000042-00000107.json"), numbers_of("other.parquet")
    (Numbers(first=42, last=42), Numbers(first=42, last=107), None)
    """
    found = _NUMBERED.fullmatch(name)
    if found is None:
        return None
    first = int(found[1])
    last = first if found[2] is None else int(found[2])
    return Numbers(first, last) if first <= last else None


def path_of(kind: str, hour: str, numbers: Numbers) -> str:
    """The path of a file in its part. kind: DATA, AHEAD or FRONTIER; hour as in 2026-01-31T17."""
    name = (
        f"part-{numbers.first:08d}" if numbers.first == numbers.last else f"part-{numbers.first:08d}-{numbers.last:08d}"
    )
    folder = f"{HOUR}{hour}"
    return f"{kind}/{folder}/{name}{SUFFIX[kind]}" if kind else f"{folder}/{name}{SUFFIX[kind]}"


def parts_of(landing: Store) -> list[str]:
    """The folders of the parts of a landing, sorted; the first is "", the landing itself."""
    return ["", *sorted(one.name for one in landing.entries() if one.name.startswith(PART))]
