"""Runs a swarm: broker and ingest as processes, the gateways in this one, rates step by step; compares with the truth.

Readings come at random moments, each at a random gateway; a commit period after its first reading a gateway sends the
readings collected since. A step is a rate held for some seconds; before the next one everything must have landed, so that
steps do not depend on each other.
"""

import asyncio
import os
import resource
import time
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import click
import pyarrow.parquet as pq

from whenabouts_sim.stack.stack import PartError, Stack
from whenabouts_sim.swarm.figures import LoadStep, needs, percentile, table
from whenabouts_sim.swarm.gateway import BOOT, CLOCK_BOUND_US, LATENCY_US, LightGateway, key_of, now_us
from whenabouts_sim.swarm.usage import of_machine, of_process

COMMIT_S = 0.05  # as in an agent
TURN_S = 0.005
FIRST_RATE_A_GATEWAY = 5.0
GROWTH = 1.6
STEPS_MAX = 12
CONNECT_S, DRAIN_S, REPORT_S = 60.0, 60.0, 2.0
WANTED = 10_000
FILES_A_GATEWAY = 2  # descriptors: its own connection and some reserve


@dataclass(frozen=True)
class SwarmResult:
    """The steps, and the comparison of the landing with the readings made."""

    gateways: int
    broker: str
    steps: list[LoadStep]
    made: int
    landed: int
    repeated: int
    missing: int
    different: int
    reconnects: int

    @property
    def exact(self) -> bool:
        """True if every reading made is in the landing exactly once, as it was made."""
        return self.made == self.landed and not (self.repeated or self.missing or self.different)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON types."""
        truth = ("gateways", "broker", "made", "landed", "repeated", "missing", "different", "reconnects", "exact")
        good = [step for step in self.steps if not step.bends]
        return {
            **{name: getattr(self, name) for name in truth},
            "steps": [step.as_dict() for step in self.steps],
            "computed_needs": needs(good[-1], self.gateways, WANTED) if good else None,
        }

    def text(self) -> str:
        """The report as text."""
        reported = "every one landed exactly once" if self.exact else "NOT as it was made"
        return (
            f"broker: {self.broker}\n{table(self.gateways, self.steps, WANTED)}\n"
            f"truth: {self.made} readings made, {self.landed} rows landed, {self.missing} missing, "
            f"{self.repeated} repeated, {self.different} different, {self.reconnects} reconnections: {reported}"
        )


class Swarm:
    """`gateways` light gateways. rate: readings a second of all together; None: raised until the system bends."""

    def __init__(
        self, folder: Path, gateways: int, rate: float | None, seconds: float, quiet: bool, seed: int = 1
    ) -> None:
        self._folder, self._rate, self._seconds, self._quiet = folder, rate, seconds, quiet
        self._count = gateways
        self._random = Random(f"swarm/{seed}")
        self._latencies_us = array("q")
        self._commits: deque[tuple[float, LightGateway]] = deque()
        self._made = 0
        self._late_us = array("q")
        self._clear_us = now_us()
        self._gateways: list[LightGateway] = []
        self._reported_s = 0.0

    def run(self) -> SwarmResult:
        """From the start of the broker to the comparison; every process has ended when it returns or raises."""
        _allow_files(self._count * FILES_A_GATEWAY + 200)
        with Stack(self._folder) as stack:
            stack.broker.start()
            part = stack.start_ingest()
            stack.wait("ingest is connected", lambda: "broker.connected" in part.log.read_text(), CONNECT_S)
            steps = asyncio.run(self._all_steps(stack))
            part.stop()
            del stack.parts["ingest"]
            return self._compare(stack, steps)

    async def _all_steps(self, stack: Stack) -> list[LoadStep]:
        self._gateways = [LightGateway(n, stack.broker.port, self._landed) for n in range(self._count)]
        jobs = [gateway.run() for gateway in self._gateways]
        tasks = [asyncio.create_task(job) for job in (*jobs, self._heartbeats(), self._commit_in_time())]
        try:
            await self._until(stack, "all are connected", lambda: all(g.connected for g in self._gateways), CONNECT_S)
            rate = self._rate or FIRST_RATE_A_GATEWAY * self._count
            steps: list[LoadStep] = []
            while len(steps) < (1 if self._rate else STEPS_MAX):
                steps.append(await self._step(stack, len(steps) + 1, rate))
                if steps[-1].bends:
                    break
                rate *= GROWTH
            return steps
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _step(self, stack: Stack, number: int, rate: float) -> LoadStep:
        """Hold a rate, then wait until everything has landed."""
        broker_pid, ingest_pid = stack.broker.pid, stack.parts["ingest"].process.pid
        if broker_pid is None:
            raise PartError(f"broker ended; its log is {stack.broker.log}")
        pids = (broker_pid, ingest_pid, os.getpid())
        self._latencies_us, self._late_us = array("q"), array("q")
        made, messages = self._made, sum(g.messages for g in self._gateways)
        used, machine, began_s = [of_process(pid) for pid in pids], of_machine(), time.monotonic()
        await self._read_for(stack, number, rate)
        seconds = time.monotonic() - began_s
        backlog, not_taken = self._outstanding, sum(g.not_taken for g in self._gateways)
        now, machine_now, landed = [of_process(pid) for pid in pids], of_machine(), len(self._latencies_us)
        sent = sum(g.messages for g in self._gateways) - messages
        try:
            await self._until(stack, "all readings landed", lambda: not self._outstanding, DRAIN_S)
        except TimeoutError as error:
            self._say(str(error))
        ordered, late_us = sorted(self._latencies_us), sorted(self._late_us)
        broker, ingest, swarm = ((b.cpu_s - a.cpu_s) / seconds for a, b in zip(used, now, strict=True))
        return LoadStep(
            offered=rate, seconds=seconds, made=self._made - made, messages=sent, landed=landed,
            p50_s=percentile(ordered, 0.5) / 1e6, p99_s=percentile(ordered, 0.99) / 1e6, backlog=backlog,
            not_taken=not_taken, late_s=percentile(late_us, 0.99) / 1e6, broker_cores=broker,
            ingest_cores=ingest, swarm_cores=swarm,
            machine_cores=(machine_now[0] - machine[0]) / seconds, iowait_cores=(machine_now[1] - machine[1]) / seconds,
            cores=os.cpu_count() or 1, ingest_write_bytes_s=(now[1].written_bytes - used[1].written_bytes) / seconds,
            broker_rss_bytes=now[0].rss_bytes, ingest_rss_bytes=now[1].rss_bytes,
        )  # fmt: skip

    async def _read_for(self, stack: Stack, number: int, rate: float) -> None:
        """Make readings at random moments; each turn of the loop makes those that are due."""
        end_us = now_us() + int(self._seconds * 1e6)
        next_us = float(now_us())
        while True:
            found_us = now_us()
            until_us = min(found_us, end_us)
            while next_us <= until_us:
                gateway = self._gateways[int(self._random.random() * self._count)]
                if gateway.read(int(next_us)):
                    self._commits.append((time.monotonic() + COMMIT_S, gateway))
                self._made += 1
                self._late_us.append(found_us - int(next_us))
                next_us += self._random.expovariate(rate) * 1e6
            self._clear_us = until_us
            if found_us >= end_us:
                return
            stack.check()
            self._progress(f"step {number}, {rate:.0f}/s")
            await asyncio.sleep(TURN_S)

    async def _commit_in_time(self) -> None:
        while True:
            now_s = time.monotonic()
            while self._commits and self._commits[0][0] <= now_s:
                self._commits.popleft()[1].commit()
            await asyncio.sleep(TURN_S)

    async def _heartbeats(self) -> None:
        """Tick every gateway once a second, each at another moment of it."""
        while True:
            for n, gateway in enumerate(self._gateways):
                gateway.tick(self._clear_us)
                if n % 10 == 9:
                    await asyncio.sleep(10 / self._count)
            await asyncio.sleep(10 / self._count if self._count < 10 else 0)

    async def _until(self, stack: Stack, what: str, condition: Callable[[], bool], limit_s: float) -> None:
        """Wait; TimeoutError when the time is up, PartError when a process ends."""
        deadline_s = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > deadline_s:
                raise TimeoutError(
                    f"{what}: not so within {limit_s:.0f} s; {self._outstanding} readings are not confirmed"
                )
            stack.check()
            self._progress(what)
            await asyncio.sleep(0.05)

    @property
    def _outstanding(self) -> int:
        return sum(gateway.outstanding for gateway in self._gateways)

    def _landed(self, events_us: list[int]) -> None:
        confirmed_us = now_us()
        self._latencies_us.extend(confirmed_us - at_us for at_us in events_us)

    def _compare(self, stack: Stack, steps: list[LoadStep]) -> SwarmResult:
        """Compare every row of the landing with the readings made."""
        by_name = {gateway.name: gateway for gateway in self._gateways}
        seen = {gateway.name: bytearray(len(gateway.truth)) for gateway in self._gateways}
        landed = repeated = different = 0
        for path in sorted(stack.landing.glob("hour=*/part-*.parquet")):
            columns = pq.ParquetFile(path).read(["gateway", "boot", "seq", "key", "t_min", "t_max"]).to_pydict()
            for name, boot, seq, key, t_min, t_max in zip(*columns.values(), strict=True):
                landed += 1
                gateway = by_name.get(name)
                if gateway is None or boot != BOOT or not 0 <= seq < len(gateway.truth):
                    different += 1
                    continue
                repeated += seen[name][seq]
                seen[name][seq] = 1
                event_us = gateway.truth[seq]
                stamp = event_us - LATENCY_US - CLOCK_BOUND_US, event_us + CLOCK_BOUND_US
                different += (t_min, t_max) != stamp or key != key_of(gateway.number, seq)
        missing = sum(marks.count(0) for marks in seen.values())
        reconnects = sum(gateway.reconnects for gateway in self._gateways)
        counts = self._made, landed, repeated, missing, different, reconnects
        return SwarmResult(self._count, stack.broker.kind, steps, *counts)

    def _progress(self, what: str) -> None:
        if time.monotonic() - self._reported_s >= REPORT_S:
            self._reported_s = time.monotonic()
            self._say(f"{what}: {self._made} readings made, {self._outstanding} not confirmed yet")

    def _say(self, text: str) -> None:
        if not self._quiet:
            click.echo(text, err=True)


def _allow_files(count: int) -> None:
    """Allow this process and those it starts this many open files, as far as the system does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
