"""The readings around a time that a question is about, and what was not looked at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.correlation.pairs import without_repeats
from whenabouts_cloud.frontier.times import FURTHEST_US
from whenabouts_cloud.landing.history import everything, readings_of
from whenabouts_cloud.landing.layout import AHEAD
from whenabouts_cloud.landing.schema import IDENTITY, SCHEMA
from whenabouts_cloud.landing.selection import Selection, overlapping
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules.coverage import covered, may_cover, of_kinds
from whenabouts_cloud.rules.model import Stream
from whenabouts_protocol.reading import NO_EVENT_KINDS

MAX_ROWS = 200_000  # read from the landing; the answer says if there are more
MAX_AHEAD = 100  # readings of the side output that are read


class TooManyReadingsError(ValueError):
    """An answer would need more readings than are read; the text says what to do."""


@dataclass(frozen=True)
class Around:
    """Readings (SCHEMA), each once, whose stamps overlap [first_us, last_us], of some streams.

    `repeats` were dropped; `more` is True if MAX_ROWS had been read before all were. `incomplete` readings and `damaged`
    files (texts) were left out. `ahead`: readings that lie in the side output, as they began in the future.
    """

    rows: pa.Table
    first_us: int
    last_us: int
    repeats: int
    more: bool
    incomplete: int
    damaged: tuple[str, ...]
    ahead: pa.Table

    def joined(self, other: "Around") -> "Around":
        """Both together; what is in both counts once."""
        rows = without_repeats(pa.concat_tables([self.rows, other.rows]))
        return Around(
            rows,
            min(self.first_us, other.first_us),
            max(self.last_us, other.last_us),
            max(self.repeats, other.repeats),
            self.more or other.more,
            max(self.incomplete, other.incomplete),
            tuple(dict.fromkeys((*self.damaged, *other.damaged))),
            without_repeats(pa.concat_tables([self.ahead, other.ahead])),
        )

    def said(self) -> dict[str, Any]:
        """Which part of the landing was looked at, as JSON values."""
        return {
            "from_us": self.first_us,
            "to_us": self.last_us,
            "readings": self.rows.num_rows,
            "repeats": self.repeats,
            "more_readings_landed": self.more,
            "incomplete": self.incomplete,
            "damaged": list(self.damaged),
            "ahead": [reading_name(row) for row in self.ahead.select(NAMED).to_pylist()],
        }

    def lines(self) -> list[str]:
        """The same for people."""
        dropped = f", {self.repeats} repeats dropped" if self.repeats else ""
        said = [f"looked at {self.rows.num_rows} readings{dropped}"]
        if self.more:
            said.append(f"more than {MAX_ROWS} readings have landed: some were not examined")
        if self.incomplete:
            said.append(f"{self.incomplete} readings without an identity or a stream were left out")
        said += [f"left out: {text}" for text in self.damaged]
        if self.ahead.num_rows:
            said.append(f"{self.ahead.num_rows} readings lie in the side output _ahead: they began in the future")
        return said


NAMED = (*IDENTITY, "stream")


def reading_name(row: dict[str, Any]) -> str:
    """A reading by its stream, gateway and numbers."""
    return f"{row['stream']}@{row['site']}/{row['gateway']} {row['boot']}:{row['seq']}"


def readings_around(
    landing: Store, streams: Sequence[Stream], first_us: int, last_us: int, key: str | None = None
) -> Around:
    """Read the readings of these streams in a time, of one key unless it is None.

    Raises:
        OSError: the landing cannot be listed.
    """
    first_us, last_us = max(first_us, -4 * FURTHEST_US), min(last_us, 4 * FURTHEST_US)
    where = overlapping(first_us, last_us) & may_cover(streams)
    if key is not None:
        where &= pc.field("key") == key
    pieces = everything(landing)
    selection = Selection(landing, SCHEMA, where, readings_of(pieces))
    rows, more = _limited(selection, streams, MAX_ROWS)
    beside = Selection(landing, SCHEMA, where, [one for one in pieces if one.kind == AHEAD])
    ahead, _ = _limited(beside, streams, MAX_AHEAD)
    once = without_repeats(rows)
    repeats, damaged = rows.num_rows - once.num_rows, (*selection.named, *beside.named)
    incomplete = selection.incomplete + beside.incomplete
    return Around(once, first_us, last_us, repeats, more, incomplete, damaged, without_repeats(ahead))


def nearest(rows: pa.Table, time_us: int, most: int) -> tuple[pa.Table, int]:
    """The readings nearest to a time, at most this many, in their order; and how many others there are."""
    left_out = rows.num_rows - most
    if left_out <= 0:
        return rows, 0
    first, last = (rows[name].to_numpy().astype(np.float64) for name in ("t_min", "t_max"))
    distance = np.maximum(np.maximum(first - time_us, time_us - last), 0.0)
    chosen = np.sort(np.argsort(distance, kind="stable")[:most])
    return rows.take(pa.array(chosen)), left_out


def _limited(selection: Selection, streams: Sequence[Stream], most: int) -> tuple[pa.Table, bool]:
    """The events of these streams among the first `most` and a few more selected readings; True if there are others."""
    parts, count = [SCHEMA.empty_table()], 0
    for table in selection:
        mine = _events(streams, table)
        room = most - count
        count += int(mine.sum())
        parts.append(table.filter(pa.array(mine))[:room])
        if count > most:
            break
    return pa.concat_tables(parts).combine_chunks(), count > most


def _events(streams: Sequence[Stream], table: pa.Table) -> npt.NDArray[np.bool_]:
    mine: npt.NDArray[np.bool_] = covered(streams, table).any(axis=1) & ~of_kinds(table, NO_EVENT_KINDS)
    return mine
