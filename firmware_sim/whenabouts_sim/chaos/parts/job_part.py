"""A simulated job: the product's queries on simulated micro-batches."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from whenabouts_cloud.jobs.output.checkpoint import check_checkpoint
from whenabouts_cloud.jobs.output.left_out import DamagedInputError
from whenabouts_cloud.jobs.output.output_place import Output
from whenabouts_cloud.jobs.output.sink import claim
from whenabouts_cloud.jobs.streaming import start_query
from whenabouts_cloud.jobs.work import QueryOptions
from whenabouts_cloud.landing.layout import FRONTIER
from whenabouts_cloud.landing.store import Entry, Store
from whenabouts_cloud.rules.model import Rule
from whenabouts_cloud.spark.landing_source import Pieces
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.machine.process import Machine, Process
from whenabouts_sim.chaos.machine.running import running
from whenabouts_sim.chaos.parts.job_rules import engine_of
from whenabouts_sim.chaos.parts.landing_files import Ends, FileId, ends_of, written
from whenabouts_sim.chaos.parts.micro_batches import Query, Spark
from whenabouts_sim.chaos.parts.part import Part
from whenabouts_sim.chaos.parts.true_reads import watched


class Job(Part):
    """A job. ends: how far each of its queries has read the landing. counts: by rule what its shards said, with the number
    of the micro-batch. read: by rule the files that it has read, with the times at which they were written.
    meanwhile: called after it has listed a folder of the landing, and before it looks whether one of watermarks has changed:
    others may write between two looks. misread: is told
    what it has read of a damaged file and was never written. at_commit: called once, before a micro-batch of which results
    were published is committed.
    """

    def __init__(
        self, rules: Sequence[Rule], landing: Path, machine: Machine, loop: VirtualLoop, trigger_s: float, shards: int,
        told: Callable[[str], None], meanwhile: Callable[[], None] = lambda: None,
        misread: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        super().__init__("job", machine, loop, told)
        self.rules, self._landing, self._trigger_s, self._shards = rules, landing, trigger_s, shards
        self._meanwhile, self._misread = meanwhile, misread
        self.rotten: Mapping[Path, bytes] = {}  # files of the landing as they were before a bit of them changed
        self.at_commit: Callable[[], None] | None = None
        self.out = machine.disk.root / "results"
        self.ends: list[Ends] = []
        self.counts: dict[str, list[tuple[int, dict[str, Any]]]] = {rule.name: [] for rule in rules}
        self.read: dict[str, dict[FileId, int]] = {rule.name: {} for rule in rules}

    def has_read(self, file: FileId) -> bool:
        """True if all its queries have read a file."""
        return bool(self.ends) and all(file.within(end) for end in self.ends)

    async def _serve(self, process: Process) -> None:
        queries = [self._query(rule) for rule in self.rules]
        while True:
            for number, query in enumerate(queries):
                try:
                    with self._interrupted(), watched(self.rotten, self._misread):
                        query.run_next()
                except (
                    DamagedInputError
                ):  # it is on the list of what is left out now; the driver starts the query again
                    queries[number] = self._query(self.rules[number])
            self.ends = [ends_of(query.end) for query in queries]
            await asyncio.sleep(self._trigger_s)

    @contextmanager
    def _interrupted(self) -> Iterator[None]:
        def changed_ns(store: Store, path: str) -> int | None:
            if path.startswith(f"{FRONTIER}/") and running() is self.process:
                self._meanwhile()
            return look(store, path)

        def entries(store: Store, folder: str = "") -> list[Entry]:
            found = list_entries(store, folder)
            if running() is self.process:
                self._meanwhile()
            return found

        list_entries, look = Store.entries, Store.changed_ns
        with patch.object(Store, "entries", entries), patch.object(Store, "changed_ns", changed_ns):
            yield

    def _stop(self) -> None:
        """Spark ends its queries as a kill does."""
        self.end()

    def _query(self, rule: Rule) -> Query:
        out = Output.at(self.out / rule.name)
        claim(out, rule, "streaming", self._shards)
        check_checkpoint(out)
        options = QueryOptions(self._landing, out, self._shards, self._trigger_s)

        def report(batch: int, published: object, counts: list[dict[str, Any]], _took_s: float) -> None:
            self.counts[rule.name] += [(batch, one) for one in counts]
            if published is not None and self.at_commit is not None:
                happens, self.at_commit = self.at_commit, None
                happens()

        def reads(partitions: Sequence[Any]) -> None:
            pieces = (piece for one in partitions if isinstance(one, Pieces) for piece in one.pieces)
            self.read[rule.name] |= written(self._landing, pieces)

        query: Query = start_query(engine_of(rule), {0: rule}, Spark(), options, report)  # type: ignore[arg-type, assignment]
        query.reads = reads
        return query
