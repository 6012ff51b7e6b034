"""The agent of one gateway: readers -> stamps -> group, rules -> spool -> broker, and the watermark in each heartbeat.

One event loop; reader threads hand batches to it, and one worker thread owns the spool. This module joins the parts and
takes a batch from its reader to the spool. `timekeeping` handles time, `delivery` the way from the spool to the cloud.
"""

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from whenabouts_edge.agent.delivery import Delivery, birth
from whenabouts_edge.agent.group_host import GroupHost, to_publish
from whenabouts_edge.agent.machine import THIS_MACHINE, Machine
from whenabouts_edge.agent.timekeeping import Timekeeper
from whenabouts_edge.clock import HostClock
from whenabouts_edge.config.settings import Config
from whenabouts_edge.health.notify import FEEDS_A_PERIOD, Flow, Notifier, summary
from whenabouts_edge.health.status import StatusFiles
from whenabouts_edge.readers.host_session import Batch
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.readers.presence import PresenceHost
from whenabouts_edge.readers.session import widest
from whenabouts_edge.readers.thread import MAX_WAITING, ReaderState
from whenabouts_edge.rules.rule_host import RuleHost
from whenabouts_edge.store.gaps import Gap
from whenabouts_edge.store.intake import Intake
from whenabouts_edge.store.spool import BOOT_RANDOM_BITS, Message, Spool, SpoolState
from whenabouts_protocol import Birth
from whenabouts_protocol.group_state import KIND as STATE
from whenabouts_protocol.logs import Log
from whenabouts_protocol.reading import NO_EVENT_KINDS

CLOCK_EVERY_S = 1.0
STATUS_EVERY_S = 1.0
WATERMARK_EVERY_S = 0.25
DATE_EVERY_S = 0.1
NO_RULE_KINDS = (*NO_EVENT_KINDS, STATE)  # readings that no rule sees when they have waited for UTC, as none does else
# After SIGTERM; all of them together are less than the command allows, which then ends the process.
JOIN_S = 2.0  # for the threads to end; one that holds readings has longer
STORE_S = 12.0  # to store what was read; what is left then is stored after the drain
DRAIN_S = 5.0  # to publish the spool; the rest is sent after the next start

log = Log(__name__)


class Agent:
    """Runs one configuration until `stop` is called. Must be created inside a running event loop.

    notifier: the service manager to notify; None for none. machine: where it runs.

    Raises:
        SpoolError: the spool cannot be used.
        RulesFileError: the file of rules cannot be used.
    """

    def __init__(
        self, config: Config, clock: HostClock, notifier: Notifier | None = None, machine: Machine = THIS_MACHINE
    ) -> None:
        self.config = config
        self._notifier = notifier or Notifier({})
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._db = ThreadPoolExecutor(1, "spool")
        site, gateway = config.site, config.gateway
        self._rules = RuleHost(site, gateway, config.rules_file)
        self._spool = spool = Spool(Path(config.state_dir) / "spool.sqlite", config.spool_limit_bytes, machine.run())
        if spool.quarantined:
            log.error("spool.damaged", "renamed; began a new one", file=spool.quarantined)
        self._time = Timekeeper(clock, self._db, spool.waiting, spool.waiting.read(site, gateway))
        self._group: GroupHost | None = None
        if config.group is not None:
            clock_heartbeat_us = config.commit_ms * 1000
            self._group = GroupHost(config.group, site, gateway, spool.boot, clock_heartbeat_us, self._time.now_us)
        self._threads = {
            r.name: machine.reader(r, site, gateway, clock.host_us, self._time.current, self._deliverer(r.name))
            for r in config.readers
        }
        self._delivery = Delivery(config, self._birth(), spool, self._db, self._on_rules, self._group, machine.client)
        before = spool.gaps.read(site, gateway)
        self._intake = Intake(self._append, self._delivery.work.set, config.commit_ms, self._keep_gaps, before)
        self._status_files = StatusFiles(config.state_dir, config.metrics_file)
        self._clear_us: dict[str, int] = {}
        first_visit = spool.boot >> BOOT_RANDOM_BITS << BOOT_RANDOM_BITS
        self._presence = {
            thread.reader.name: PresenceHost(thread.reader.presence, site, gateway, thread.reach_us, first_visit)
            for thread in self._threads.values()
            if thread.reader.presence
        }

    def stop(self) -> None:
        """Begin an orderly end."""
        self._stopping.set()

    @property
    def readers(self) -> dict[str, ReaderState]:
        """Health of each reader by its name."""
        return {thread.reader.name: thread.reader_state for thread in self._threads.values()}

    @property
    def spool_state(self) -> SpoolState:
        """State of the spool; also readable after the agent has ended."""
        return self._spool.state

    async def run(self) -> None:
        """Run until stopped, then drain: store all readings, publish for up to DRAIN_S, publish the status `stopped`.

        A job that fails ends it too: all readings are stored, and the broker sends the last will.
        """
        log.info("agent.started", site=self.config.site, gateway=self.config.gateway, boot=self._spool.boot)
        for thread in self._threads.values():
            thread.start()
        jobs = [
            self._every(CLOCK_EVERY_S, self._time.take_sample),
            self._delivery.uplink.run(),
            self._delivery.publish(),
            self._delivery.forget_landed(),
            self._every(DATE_EVERY_S, self._date),
            self._every(self.config.commit_ms / 1000, self._time.write),
            self._every(WATERMARK_EVERY_S, self._watermark),
            self._every(self.config.heartbeat_ms / 1000, self._heartbeat),
            self._every(STATUS_EVERY_S, self._write_status),
            *([self._feed(self._notifier.watchdog_s / FEEDS_A_PERIOD)] if self._notifier.watchdog_s else []),
        ]
        self._notifier.ready()
        tasks = [asyncio.create_task(job) for job in [self._stopping.wait(), *jobs]]
        storing = asyncio.create_task(self._intake.run())
        try:
            done, _ = await asyncio.wait([storing, *tasks], return_when=asyncio.FIRST_COMPLETED)
            self._notifier.stopping()
            with contextlib.suppress(TimeoutError):  # the next agent dates readings that still wait
                async with asyncio.timeout(STORE_S):
                    await self._finish_reading(storing)
            for task in done:
                task.result()  # a job that ended by itself has failed: raise its error
            await self._drain()
            await self._delivery.uplink.close()
        finally:
            for thread in self._threads.values():
                thread.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._intake.end()  # not cancelled: it would not know whether a commit that is under way succeeds
            await asyncio.gather(storing, return_exceptions=True)
            await self._write_status(running=False)
            await self._loop.run_in_executor(self._db, self._spool.close)
            self._db.shutdown()

    async def _finish_reading(self, storing: asyncio.Task[None]) -> None:
        """End the threads, and wait until all that they have read is stored."""
        self._stopping.set()
        for thread in self._threads.values():
            thread.stop()
        until_s = self._loop.time() + JOIN_S
        for thread in self._threads.values():
            await asyncio.to_thread(thread.join, max(0.0, until_s - self._loop.time()))
        while any(thread.holds for thread in self._threads.values()) and not storing.done():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)  # accept the last batches of the threads
        for presence in self._presence.values():
            entered, gone = presence.finish(self._time.current())
            self._time.keep([*entered, *gone])
        self._detect()
        await self._date()
        await self._time.write_all()
        while self._intake.waiting and not storing.done():
            await asyncio.sleep(0.01)

    async def _drain(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._renew_watermark(), DRAIN_S)
        await self._heartbeat()
        state = self._spool.state
        log.info("agent.stopped", readings=state.next_seq, spooled=state.readings)

    # Ports and spool.

    def _deliverer(self, name: str) -> Callable[[Batch], None]:
        def deliver(batch: Batch) -> None:
            self._intake.reserve(len(batch.readings))
            self._loop.call_soon_threadsafe(self._accept, name, batch)

        return deliver

    def _accept(self, name: str, batch: Batch) -> None:
        if self._group:
            self._group.stamp(batch.readings)
        presence = self._presence.get(name)
        entered, gone = presence.through(batch, self._time.current()) if presence else ([], [])
        readings = self._time.passed(batch.readings)
        self._intake.release(len(batch.readings) - len(readings))
        derived = self._rules.through(readings)
        self._intake.accept(readings)
        self._intake.offer(derived)  # before the port counts as clear up to here: the watermark covers these too
        self._store_presence(self._time.passed(entered), self._time.passed(gone))
        self._clear_us[name] = batch.clear_us
        if self._group:
            self._group.scanned(self._threads[name].reader, batch, self._threads[name].reach_us)
        self._detect()

    def _store_presence(self, entered: Sequence[PendingReading], gone: Sequence[PendingReading]) -> None:
        """Store presence readings. Rules see entries only: the departure of a tag is no event."""
        derived = self._rules.through(entered)
        self._intake.offer([*entered, *derived])
        self._intake.offer(gone)

    async def _date(self) -> None:
        """Pass on the readings that waited until the clock was known."""
        while self._time.waits and self._intake.waiting < MAX_WAITING // 2:
            ready = self._time.released()
            if not ready:
                break
            events = [one for one in ready if one.kind not in NO_RULE_KINDS]
            self._store_presence(events, [one for one in ready if one.kind in NO_RULE_KINDS])

    def _detect(self) -> None:
        """Store the states that are certain by now, before a watermark covers a later time. They wait for UTC as all do."""
        clear_us = self._clear_host_us()
        if self._group is None or clear_us is None:
            return
        states = self._group.advance(clear_us, self._time.current())
        self._intake.offer(self._time.passed(states))
        if self._group.view_changed():
            self._delivery.uplink.announce(self._birth())
        if self._group.peer_came:
            self._group.peer_came = False
            self._delivery.uplink.publish_again()

    async def _append(self, readings: Sequence[PendingReading], gaps: Sequence[Gap]) -> Message:
        message = await self._loop.run_in_executor(self._db, self._spool.append, readings, gaps)
        for state in to_publish(readings):
            self._delivery.uplink.publish(state)
        return message

    def _on_rules(self, payload: bytes) -> None:
        if self._rules.received(payload):
            self._delivery.uplink.announce(self._birth())

    async def _keep_gaps(self, gaps: Sequence[Gap]) -> None:
        with contextlib.suppress(sqlite3.OperationalError):  # a full disk, which is logged already
            await asyncio.get_running_loop().run_in_executor(self._db, self._spool.keep_gaps, gaps)

    async def _watermark(self) -> None:
        self._detect()
        await self._renew_watermark()

    async def _renew_watermark(self) -> None:
        """Renew the watermark of the heartbeat: the time before which ports and clock leave nothing open."""
        clear_us = self._clear_host_us()
        if clear_us is not None and self._group is not None:
            clear_us = self._group.clear_until(clear_us)
        frontier_us = None if clear_us is None else self._time.utc_us(clear_us)
        self._rules.running.advance(frontier_us)
        await self._delivery.watermark(frontier_us, self._intake)

    def _clear_host_us(self) -> int | None:
        """Earliest time at which the stamp of a reading accepted later can begin; None until every port has reported."""
        if len(self._clear_us) < len(self._threads):
            return None
        return min(self._clear_us[thread.reader.name] - thread.reach_us for thread in self._threads.values())

    async def _heartbeat(self) -> None:
        self._delivery.heartbeat(self._time.sample, self._time.now_us(), self._intake.refused, self._invalid)

    @property
    def _invalid(self) -> int:
        return sum(thread.reader_state.invalid for thread in self._threads.values())

    def _birth(self) -> Birth:
        parts_us = widest([(thread.reader.stream, thread.parts_us) for thread in self._threads.values()])
        return birth(self.config, self._spool.boot, self._rules.streams, self._group, parts_us)

    # Health.

    async def _feed(self, period_s: float) -> None:
        """Feed the watchdog from this loop, after the spool's queued work, while accepted readings are being settled."""
        flow = Flow()
        while True:
            ready = await self._loop.run_in_executor(self._db, self._spool.can_commit)
            if flow.moves(time.monotonic(), self._intake.accepted, self._intake.settled) and ready:
                self._notifier.feed()
            await asyncio.sleep(period_s)

    async def _write_status(self, running: bool = True) -> None:
        status = self._status(running)
        self._notifier.say(summary(status))
        await asyncio.to_thread(self._status_files.write, status)

    def _status(self, running: bool) -> dict[str, Any]:
        state = self._spool.state
        return {
            "site": self.config.site,
            "gateway": self.config.gateway,
            "running": running,
            "pid": os.getpid(),
            "written_us": time.time_ns() // 1000,
            "boot": state.boot,
            "readings": state.next_seq,
            "refused": self._intake.refused,
            "invalid": self._invalid,
            "spool": {"readings": state.readings, "bytes": state.payload_bytes, "limit_bytes": self._spool.limit_bytes},
            "broker": self._delivery.status(),
            "clock": {**self._time.status(), "frontier_us": self._delivery.frontier_us},
            "rules": {"refused": self._rules.refused, "running": self._rules.running.counters()},
            "group": self._group.status() if self._group else None,
            "presence": {name: presence.status() for name, presence in self._presence.items()},
            "readers": {name: health.status() for name, health in self.readers.items()},
        }

    async def _every(self, period_s: float, job: Callable[[], Awaitable[None]]) -> None:
        """Do the job until the agent stops: the drain does what is left, and nothing may begin behind it."""
        while not self._stopping.is_set():
            await job()
            await asyncio.sleep(period_s)
