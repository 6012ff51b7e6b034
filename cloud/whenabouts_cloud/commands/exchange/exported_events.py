"""Events of all that has landed, or of all that jobs have published, one after the other."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from whenabouts_cloud.dashboard.results.outputs import outputs_in
from whenabouts_cloud.delivery.capturing.result_events import Wording
from whenabouts_cloud.delivery.cursor import NOTHING
from whenabouts_cloud.delivery.published import Batch, folder_of, numbers_after
from whenabouts_cloud.delivery.result_files import DamagedResultsError
from whenabouts_cloud.epcis.epcis_events import Event, NoEventError, of_reading, places_of
from whenabouts_cloud.epcis.zoned_times import TimeError
from whenabouts_cloud.frontier.times import INT64_MAX
from whenabouts_cloud.landing.history import Piece, everything, readings_of
from whenabouts_cloud.landing.schema import of
from whenabouts_cloud.landing.selection import Selection, overlapping
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.progress import Advance
from whenabouts_cloud.rules.coverage import streams_in

KINDS = ("pair", "match")
READ = of("site", "gateway", "boot", "seq", "stream", "kind", "key", "value", "attrs", "t_min", "t_max", "clock_state")


@dataclass
class Export:
    """What is exported: of intervals that overlap [from_us, to_us]. left_out: how many of what; problems: sentences."""

    wording: Wording
    from_us: int = -INT64_MAX
    to_us: int = INT64_MAX
    left_out: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def pieces(self, landing: Store) -> list[Piece]:
        """The files of a landing with readings."""
        return readings_of(everything(landing))

    def readings(
        self, landing: Store, pieces: Sequence[Piece], streams: Sequence[str], advance: Advance
    ) -> Iterator[Event]:
        """Yield the events of readings, file by file; of all streams if none is named. A repeated reading comes again."""
        where = overlapping(self.from_us, self.to_us)
        if streams:
            where &= streams_in(streams)
        for piece in pieces:
            selection = Selection(landing, READ, where, [piece])
            for table in selection:
                for row in table.to_pylist():
                    try:
                        yield of_reading(row, self.wording.names)
                    except (NoEventError, TimeError) as error:
                        self.left_out[_short(str(error))] += 1
            self.problems += selection.named
            if selection.incomplete:
                self.left_out["without an identity or a stamp"] += selection.incomplete
            advance(1)

    def batches(self, places: Sequence[Store]) -> list[tuple[Store, int]]:
        """The batches of pairs and matches that are published in or below these places, each with its output."""
        below = [one.store for one in outputs_in(list(places)) if one.kind in KINDS]
        found = []
        for out in (*places, *below):
            for number in numbers_after(out, NOTHING):
                try:
                    if set(_batch(out, number).schema.names) & {"a_site", "events"}:
                        found.append((out, number))
                except (DamagedResultsError, FileNotFoundError) as error:
                    self._problem(str(error))
        return found

    def results(
        self, batches: Sequence[tuple[Store, int]], rules: frozenset[str] | None, now_us: int, advance: Advance
    ) -> Iterator[Event]:
        """Yield the events of results, of these rules or of all, in the order in which they were published."""
        for out, number in batches:
            try:
                yield from self._of_batch(out, number, rules, now_us)
            except (DamagedResultsError, FileNotFoundError) as error:
                self._problem(f"{out.uri}/{folder_of(number)}: not all results in it are exported: {error}")
            advance(1)

    def _of_batch(self, out: Store, number: int, rules: frozenset[str] | None, now_us: int) -> Iterator[Event]:
        problems = list[str]()
        for rows in _batch(out, number, rules).parts():
            mine = [row for row in rows if self._wants(row)]
            for _, event in self.wording.events(mine, out, number, now_us, problems):
                if isinstance(event, str):
                    self.left_out[_short(event)] += 1
                    continue
                if not event.get("epcList", True):
                    self.left_out["object in an event, as the key is not known"] += 1
                yield event
        for one in problems:
            self._problem(f"{one}; keys in it are missing in the events")

    def _problem(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)

    def _wants(self, row: dict[str, object]) -> bool:
        places = places_of(row)
        return any(one.t_max >= self.from_us for one in places) and any(one.t_min <= self.to_us for one in places)


def _batch(out: Store, number: int, rules: frozenset[str] | None = None) -> Batch:
    return Batch(out.at_folder(folder_of(number)), "", number, rules)


def _short(reason: str) -> str:
    """The reason without the values in it, so that equal ones are counted together."""
    return "a time outside the years 1 to 9999" if reason.startswith("found the time") else reason
