"""A simulated job: the product's queries on simulated micro-batches, started again when it ends."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from whenabouts_cloud.jobs.output.checkpoint import check_checkpoint
from whenabouts_cloud.jobs.output.left_out import DamagedInputError
from whenabouts_cloud.jobs.output.output_place import Output
from whenabouts_cloud.jobs.output.sink import claim
from whenabouts_cloud.jobs.streaming import start_query
from whenabouts_cloud.jobs.work import QueryOptions
from whenabouts_cloud.rules.model import Rule
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.machine.process import Machine, Process
from whenabouts_sim.chaos.machine.running import Killed
from whenabouts_sim.chaos.parts.job_rules import engine_of
from whenabouts_sim.chaos.parts.micro_batches import Query, Spark


class Job:
    """A job during a schedule. told: gets errors that no job should end with."""

    def __init__(
        self, rules: Sequence[Rule], landing: Path, machine: Machine, loop: VirtualLoop, trigger_s: float, shards: int,
        told: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.rules, self.machine = rules, machine
        self._landing, self._loop, self._trigger_s, self._shards, self._told = landing, loop, trigger_s, shards, told
        self.out = machine.disk.root / "results"
        self.process: Process | None = None
        self.read = 0  # number of the last file of the landing that all queries have read

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.process is not None:
            if self.process.alive:
                return
            self.process.bury()
        self.process = Process("job", self.machine, self._loop)
        self.process.start(self._work)

    async def _work(self) -> None:
        process = self.process
        assert process is not None
        try:
            queries = [self._query(rule) for rule in self.rules]
            while True:
                for query in queries:
                    query.run_next()
                self.read = min(query.read for query in queries)
                await asyncio.sleep(self._trigger_s)
        except Killed:
            return
        except DamagedInputError:
            pass  # the next start leaves the files out
        except Exception as error:
            if not self.machine.disk.full:
                self._told(f"the job ended: {error!r}")
        if process.alive:
            process.kill()

    def _query(self, rule: Rule) -> Query:
        out = Output.at(self.out / rule.name)
        claim(out, rule, "streaming", self._shards)
        check_checkpoint(out)
        options = QueryOptions(self._landing, out, self._shards, self._trigger_s)
        return start_query(engine_of(rule), {0: rule}, Spark(), options)  # type: ignore[arg-type, return-value]
