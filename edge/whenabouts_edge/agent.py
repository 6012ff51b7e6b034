"""The agent of one gateway: readers -> stamps -> spool -> broker, and the promise that goes with every heartbeat.

One event loop; reader threads hand batches to it, one worker thread owns the spool. The promise of a beat, "everything
with t_max < f has been published", is made like this: at one moment take the host time up to which every port is known,
less what a later frame can still be stamped earlier; wait until all that was read by then is in the spool and taken by the
broker; only then say it.
"""

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from whenabouts_edge.clock import ClockSource
from whenabouts_edge.intake import Intake
from whenabouts_edge.link import Batch, LinkThread
from whenabouts_edge.outbox import MAX_IN_FLIGHT
from whenabouts_edge.settings import Config
from whenabouts_edge.spool import Draft, Message, Spool
from whenabouts_edge.uplink import Uplink
from whenabouts_protocol import Ack, Beat, Birth, encode_beat
from whenabouts_protocol.messages import MAX_BOOTS

CLOCK_EVERY_S = 1.0
STATUS_EVERY_S = 1.0
PROMISE_EVERY_S = 0.25
OVERDUE_EVERY_S = 1.0
DRAIN_S = 5.0  # after SIGTERM: time to publish what is in the spool; what remains is sent after the next start
DELAY_US = 5_000_000  # told in the birth: readings arrive at most this late while the connection holds
LENGTH_US_MAX = 5_000_000  # told in the birth: longest stamp

T = TypeVar("T")
log = logging.getLogger("whenabouts.edge")


class Agent:
    """Runs one configuration until `stop` is called. To be made inside a running event loop.

    Raises:
        SpoolError: the spool cannot be used.
    """

    def __init__(self, config: Config, clock: ClockSource) -> None:
        self.config = config
        self._clock = clock
        self._sample = clock.sample()
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._work = asyncio.Event()
        self._db = ThreadPoolExecutor(1, "spool")
        self._spool = Spool(Path(config.state_dir) / "spool.sqlite", config.spool_limit_bytes)
        if self._spool.quarantined:
            log.error("spool was damaged, set aside as %s; began a new one", self._spool.quarantined)
        self._intake = Intake(self._append, self._work.set, config.commit_ms)
        self._clear_us: dict[str, int] = {}
        self._frontier_us: int | None = None
        self._published: dict[int, tuple[int, int]] = {}
        self._links = [
            LinkThread(r, config.site, config.gateway, clock.host_us, lambda: self._sample, self._deliverer(r.name))
            for r in config.readers
        ]
        self._uplink = Uplink(config.broker, self._birth(), self._on_ack, self._work.set)

    def stop(self) -> None:
        """Begin an orderly end."""
        self._stopping.set()

    async def run(self) -> None:
        """Run until stopped, then drain: store all that was read, publish for up to DRAIN_S, say `stopped`."""
        log.info("gateway %s/%s: boot %d", self.config.site, self.config.gateway, self._spool.boot)
        for link in self._links:
            link.start()
        jobs = [
            self._every(CLOCK_EVERY_S, self._take_sample),
            self._intake.run(),
            self._uplink.run(),
            self._publish(),
            self._every(PROMISE_EVERY_S, self._promise),
            self._every(self.config.beat_ms / 1000, self._beat),
            self._every(STATUS_EVERY_S, self._write_status),
        ]
        tasks = [asyncio.create_task(job) for job in [self._stopping.wait(), *jobs]]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a job that ended by itself has failed: show why
            await self._drain()
        finally:
            for link in self._links:
                link.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._uplink.close()
            await self._write_status(running=False)
            await self._in_db(self._spool.close)
            self._db.shutdown()

    async def _drain(self) -> None:
        for link in self._links:
            link.stop()
        for link in self._links:
            await asyncio.to_thread(link.join, 1.0)
        await asyncio.sleep(0)  # what the threads handed over last is accepted now
        deadline_s = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline_s:
            stored = self._intake.settled == self._intake.accepted
            if stored and (not self._uplink.connected or await self._all_published()):
                break
            await asyncio.sleep(0.02)
        await self._promise()
        await self._beat()
        state = self._spool.state
        log.info("stopped: %d readings this boot, %d wait in the spool", state.next_seq, state.readings)

    # Ports and spool.

    def _deliverer(self, name: str) -> Callable[[Batch], None]:
        def deliver(batch: Batch) -> None:
            self._intake.reserve(len(batch.drafts))
            self._loop.call_soon_threadsafe(self._accept, name, batch)

        return deliver

    def _accept(self, name: str, batch: Batch) -> None:
        self._intake.accept(batch.drafts)
        self._clear_us[name] = batch.clear_us

    async def _append(self, drafts: Sequence[Draft]) -> Message:
        return await self._in_db(self._spool.append, drafts)

    async def _in_db(self, call: Callable[..., T], *args: Any) -> T:
        return await self._loop.run_in_executor(self._db, call, *args)

    async def _take_sample(self) -> None:
        self._sample = await asyncio.to_thread(self._clock.sample)

    # Spool and broker.

    async def _publish(self) -> None:
        outbox = self._uplink.outbox
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._work.wait(), OVERDUE_EVERY_S)
            self._work.clear()
            if outbox.overdue(time.monotonic()):
                log.warning("the cloud has not confirmed what was sent; sending it again")
            while self._uplink.connected and (room := outbox.room()):
                messages = await self._in_db(self._spool.after, outbox.cursor, min(room, MAX_IN_FLIGHT))
                if not messages or not all(self._uplink.send(message) for message in messages):
                    break

    def _on_ack(self, ack: Ack) -> None:
        self._loop.create_task(self._landed(ack))

    async def _landed(self, ack: Ack) -> None:
        for boot, seq in ack.landed.items():
            await self._in_db(self._spool.landed, boot, seq)
            self._uplink.outbox.landed(boot, seq, time.monotonic())
        self._work.set()

    async def _all_published(self) -> bool:
        last = await self._in_db(self._spool.last_position)
        return last is None or (self._uplink.outbox.published or (-1, -1)) >= last

    async def _promise(self) -> None:
        """Renew what the beat may promise; keeps the last promise while it cannot be renewed."""
        if len(self._clear_us) < len(self._links) or self._sample.bound_us is None:
            return
        host_us = min(self._clear_us[link.reader.name] - link.reach_us() for link in self._links)
        frontier_us = self._sample.to_utc(host_us, host_us).t_min
        accepted = self._intake.accepted
        while self._intake.settled < accepted:
            await asyncio.sleep(0.01)
        numbers = await self._in_db(self._spool.numbers)
        while not await self._all_published():
            if not self._uplink.connected:
                return
            await asyncio.sleep(0.02)
        if self._intake.gap_open or len(numbers) > MAX_BOOTS:
            return
        if self._frontier_us is None or frontier_us > self._frontier_us:
            self._frontier_us, self._published = frontier_us, numbers

    async def _beat(self) -> None:
        state, sample, config = self._spool.state, self._sample, self.config
        beat = Beat(
            config.site,
            config.gateway,
            self._spool.boot,
            self._frontier_us,
            self._published,
            sample.state,
            None if sample.bound_us is None else sample.bound_at(self._clock.host_us(time.monotonic_ns())),
            state.readings,
            state.payload_bytes,
        )
        self._uplink.beat(encode_beat(beat))

    def _birth(self) -> Birth:
        config = self.config
        streams = [(name, "tag", None, DELAY_US, LENGTH_US_MAX) for name in sorted({r.stream for r in config.readers})]
        return Birth(
            config.site,
            config.gateway,
            self._spool.boot,
            list(streams),
            None,
            [config.gateway],
            f"whenabouts {_version()}",
        )

    # Health.

    async def _write_status(self, running: bool = True) -> None:
        path = Path(self.config.state_dir) / "status.json"
        await asyncio.to_thread(_replace, path, json.dumps(self._status(running), indent=1))

    def _status(self, running: bool) -> dict[str, Any]:
        state, uplink, sample = self._spool.state, self._uplink, self._sample
        return {
            "site": self.config.site,
            "gateway": self.config.gateway,
            "running": running,
            "pid": os.getpid(),
            "written_us": time.time_ns() // 1000,
            "boot": state.boot,
            "readings": state.next_seq,
            "refused": self._intake.refused,
            "spool": {"readings": state.readings, "bytes": state.payload_bytes, "limit_bytes": self._spool.limit_bytes},
            "broker": {
                "connected": uplink.connected,
                "problem": uplink.problem,
                "connections": uplink.connections,
                "resends": uplink.outbox.resends,
                "acks_refused": uplink.acks_refused,
            },
            "clock": {"state": sample.state, "bound_us": sample.bound_us, "frontier_us": self._frontier_us},
            "readers": {
                link.reader.name: {
                    "state": link.link_state.state,
                    "problem": link.link_state.problem,
                    "opened": link.link_state.opened,
                    "restarts": link.link_state.restarts,
                    "readings": link.link_state.readings,
                    **link.link_state.counters,
                }
                for link in self._links
            },
        }

    async def _every(self, period_s: float, job: Callable[[], Awaitable[None]]) -> None:
        while True:
            await job()
            await asyncio.sleep(period_s)


def _replace(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old or the new one, never half of it."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text + "\n")
    temporary.replace(path)


def _version() -> str:
    try:
        return version("whenabouts")
    except PackageNotFoundError:
        return "from a checkout"
