"""The agent of one gateway: readers -> stamps -> group, rules -> spool -> broker, and the promise that goes with each beat.

One event loop; reader threads hand batches to it, one worker thread owns the spool. The promise of a beat, "everything
with t_max < f has been published", is made like this: at one moment take the host time up to which every port is known,
less what a later frame can still be stamped earlier; wait until all that was read by then is in the spool and taken by the
broker; only then say it.
"""

import asyncio
import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from whenabouts_edge.clock import ClockSample, HostClock
from whenabouts_edge.eager.host import RuleHost
from whenabouts_edge.eager.rules import KIND, UNIT
from whenabouts_edge.gaps import Gap
from whenabouts_edge.group.host import GroupHost, to_tell
from whenabouts_edge.intake import MAX_WAITING, RETRY_S, Intake
from whenabouts_edge.link import Batch, LinkState, LinkThread, Observed
from whenabouts_edge.notify import FEEDS_A_PERIOD, Flow, Notifier, summary
from whenabouts_edge.outbox import MAX_IN_FLIGHT, Position
from whenabouts_edge.presence.host import PresenceHost
from whenabouts_edge.report import Report
from whenabouts_edge.settings import Config, GroupConfig
from whenabouts_edge.spool import Draft, Message, Spool, SpoolError, SpoolState
from whenabouts_edge.undated import LIMIT, Undated
from whenabouts_edge.uplink import Uplink
from whenabouts_protocol import Ack, Beat, Birth, encode_beat
from whenabouts_protocol.group_state import KIND as STATE_KIND
from whenabouts_protocol.messages import MAX_BOOTS
from whenabouts_protocol.reading import NO_EVENT_KINDS

CLOCK_EVERY_S = 1.0
STATUS_EVERY_S = 1.0
PROMISE_EVERY_S = 0.25
DATE_EVERY_S = 0.1
NOTE_TIME_EVERY_S = 600.0
OVERDUE_EVERY_S = 1.0
DRAIN_S = 5.0  # after SIGTERM: time to publish what is in the spool; what remains is sent after the next start
DELAY_US = 5_000_000  # told in the birth: readings arrive at most this late while the connection holds
LENGTH_US_MAX = 5_000_000  # told in the birth: longest stamp

T = TypeVar("T")
log = logging.getLogger("whenabouts.edge")


class Agent:
    """Runs one configuration until `stop` is called. To be made inside a running event loop.

    notifier: whom to tell that it runs; without one nobody.

    Raises:
        SpoolError: the spool cannot be used.
        RulesFileError: the file of rules cannot be used.
    """

    def __init__(self, config: Config, clock: HostClock, notifier: Notifier | None = None) -> None:
        self.config = config
        self._notifier = notifier or Notifier({})
        self._clock = clock
        self._sample = clock.sample()
        self._clock_epoch = 0  # counts steps beyond the bound
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._work = asyncio.Event()
        self._db = ThreadPoolExecutor(1, "spool")
        self._rules = RuleHost(config.site, config.gateway, config.rules_file)
        self._spool = Spool(Path(config.state_dir) / "spool.sqlite", config.spool_limit_bytes)
        if self._spool.quarantined:
            log.error("spool was damaged, set aside as %s; began a new one", self._spool.quarantined)
        self._group = None if config.group is None else self._join(config.group)
        before = self._spool.gaps.read(config.site, config.gateway)
        self._intake = Intake(self._append, self._work.set, config.commit_ms, self._keep_gaps, before)
        self._undated = Undated(clock.host_us(0))
        self._undated.keep(self._spool.waiting.read(config.site, config.gateway))
        self._unwritten: list[Observed] = []  # wait for the clock, and for their rows in the spool
        self._one_writes = asyncio.Lock()  # or a row could come back after its reading was stored
        self._known_s: float | None = None  # when a moment of UTC was last written down
        self._report = Report(config.state_dir, config.metrics_file)
        self._clear_us: dict[str, int] = {}
        self._acked: dict[int, int] = {}  # by boot, what the cloud confirmed and the spool still holds
        self._acked_numbers = asyncio.Event()
        self._frontier_us: int | None = None
        self._published: dict[int, tuple[int, int]] = {}
        self._links = [
            LinkThread(r, config.site, config.gateway, clock.host_us, self._current_sample, self._deliverer(r.name))
            for r in config.readers
        ]
        self._presence = {
            link.reader.name: PresenceHost(link.reader.presence, config.site, config.gateway, link.reach_us())
            for link in self._links
            if link.reader.presence
        }
        self._uplink = Uplink(
            config.broker,
            self._birth(),
            self._on_ack,
            self._work.set,
            self._on_rules,
            *((self._group.topics, self._group.heard) if self._group else ()),
        )

    def stop(self) -> None:
        """Begin an orderly end."""
        self._stopping.set()

    @property
    def readers(self) -> dict[str, LinkState]:
        """Health of each reader by its name."""
        return {link.reader.name: link.link_state for link in self._links}

    @property
    def spool_state(self) -> SpoolState:
        """How much is stored, also after the end."""
        return self._spool.state

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
            self._forget_landed(),
            self._every(DATE_EVERY_S, self._date),
            self._every(self.config.commit_ms / 1000, self._write_waiting),
            self._every(PROMISE_EVERY_S, self._promise),
            self._every(self.config.beat_ms / 1000, self._beat),
            self._every(STATUS_EVERY_S, self._write_status),
            *([self._feed(self._notifier.watchdog_s / FEEDS_A_PERIOD)] if self._notifier.watchdog_s else []),
        ]
        self._notifier.ready()
        tasks = [asyncio.create_task(job) for job in [self._stopping.wait(), *jobs]]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a job that ended by itself has failed: show why, and let the last will speak
            self._notifier.stopping()
            await self._drain()
            await self._uplink.close()
        finally:
            for link in self._links:
                link.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._write_status(running=False)
            await self._in_db(self._spool.close)
            self._db.shutdown()

    async def _drain(self) -> None:
        for link in self._links:
            link.stop()
        for link in self._links:
            await asyncio.to_thread(link.join, 1.0)
        await asyncio.sleep(0)  # what the threads handed over last is accepted now
        for presence in self._presence.values():
            self._wait_for_clock([draft for drafts in presence.finish(self._current_sample()) for draft in drafts])
        await self._date()
        with contextlib.suppress(TimeoutError):  # what waits for the clock is dated by the next agent
            await asyncio.wait_for(self._write_all_waiting(), DRAIN_S)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._promise(), DRAIN_S)
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
        if self._group:
            self._group.stamp(batch.drafts)
            self._rules.view = self._group.views
        presence = self._presence.get(name)
        entered, gone = presence.through(batch, self._current_sample()) if presence else ([], [])
        drafts = batch.drafts
        if self._undated or self._sample.bound_us is None:
            self._wait_for_clock([*drafts, *entered, *gone])
            self._intake.release(len(drafts))
            drafts, entered, gone = [], [], []
        passed, derived = self._rules.through(drafts)
        self._intake.accept(passed)
        self._intake.offer(derived)  # before the port counts as clear up to here: the promise covers them too
        self._tell(entered, gone)
        self._clear_us[name] = batch.clear_us
        self._detect()

    def _wait_for_clock(self, observed: list[Observed]) -> None:
        self._spool.waiting.numbered(observed)
        self._undated.keep(observed)
        self._unwritten += observed

    async def _write_waiting(self) -> None:
        """Write down what waits for the clock; what a full disk refuses is tried again, and waits in memory meanwhile."""
        async with self._one_writes:
            written = self._unwritten[:MAX_WAITING]
            if not written:
                return
            try:
                await self._in_db(self._spool.waiting.write, written)
            except sqlite3.OperationalError as error:
                log.error("spool: cannot write readings that wait for the clock (%s); free space on its disk", error)
                del self._unwritten[:-LIMIT]
                await asyncio.sleep(RETRY_S)
            else:
                del self._unwritten[: len(written)]

    async def _write_all_waiting(self) -> None:
        while self._unwritten:
            await self._write_waiting()

    def _tell(self, entered: list[Observed], gone: list[Observed]) -> None:
        """Store what became known of presence; rules see tags that enter, and no event in a tag that is not there."""
        for drafts in self._rules.through(entered):
            self._intake.offer(drafts)
        self._intake.offer(gone)

    async def _date(self) -> None:
        """Let readings go on that waited for the clock to be known."""
        while self._undated and self._intake.waiting < MAX_WAITING // 2:
            ready = self._undated.released(self._current_sample(), self._clock.host_us(time.monotonic_ns()))
            if not ready:
                break
            events = [draft for draft in ready if draft.kind not in NO_EVENT_KINDS]
            self._tell(events, [draft for draft in ready if draft.kind in NO_EVENT_KINDS])

    def _join(self, group: GroupConfig) -> GroupHost:
        config, clock = self.config, self._clock
        evidence_us = config.commit_ms * 1000
        return GroupHost(group, config.site, config.gateway, self._spool.boot, evidence_us,
                         lambda: clock.host_us(time.monotonic_ns()))  # fmt: skip

    def _detect(self) -> None:
        """Take up the states that are certain by now, before anything is promised for a later time."""
        clear_us = self._clear_host_us()
        if self._group is None or clear_us is None:
            return
        self._intake.offer(self._group.advance(clear_us, self._current_sample()))
        if self._group.view_changed():
            self._uplink.announce(self._birth())
        if self._group.peer_came:
            self._group.peer_came = False
            self._uplink.tell_again()

    async def _append(self, drafts: Sequence[Draft]) -> Message:
        message = await self._in_db(self._spool.append, drafts)
        for state in to_tell(drafts):
            self._uplink.tell(state)
        return message

    async def _keep_gaps(self, gaps: Sequence[Gap]) -> None:
        with contextlib.suppress(sqlite3.OperationalError):  # a full disk; what could be done about it is told already
            await self._in_db(self._spool.gaps.write, gaps)

    async def _in_db(self, call: Callable[..., T], *args: Any) -> T:
        return await self._loop.run_in_executor(self._db, call, *args)

    def _current_sample(self) -> ClockSample:
        """The newest sample as it counts now; for the readers' threads too."""
        return self._clock.current(self._sample)

    async def _take_sample(self) -> None:
        before, self._sample = self._sample, await asyncio.to_thread(self._clock.sample)
        await self._note_time()
        step_us = self._sample.step_since(before)
        if step_us:
            self._clock_epoch += 1
            log.warning(
                "clock: stepped by %+.3f s, more than its bound; clock epoch %d begins",
                step_us / 1e6,
                self._clock_epoch,
            )

    async def _note_time(self) -> None:
        """Write down now and then that UTC has come so far: what a next run reads before it knows the time came later."""
        if self._sample.bound_us is None or (
            self._known_s is not None and time.monotonic() - self._known_s < NOTE_TIME_EVERY_S
        ):
            return
        self._known_s = time.monotonic()
        with contextlib.suppress(sqlite3.OperationalError):  # a full disk: an older moment is true too
            await self._in_db(
                self._spool.waiting.know, self._sample.to_utc(self._sample.host_us, self._sample.host_us).t_min
            )

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
        state = self._spool.state
        if ack.landed.get(state.boot, -1) >= state.next_seq:
            self._uplink.acks_refused += 1
            log.warning("ack refused: found number %d of this boot, given are 0 to %d; do two gateways share this name?",
                        ack.landed[state.boot], state.next_seq - 1)  # fmt: skip
            return
        for boot, seq in ack.landed.items():
            self._acked[boot] = max(seq, self._acked.get(boot, -1))
        self._acked_numbers.set()

    def _on_rules(self, payload: bytes) -> None:
        if self._rules.received(payload):
            self._uplink.announce(self._birth())

    async def _forget_landed(self) -> None:
        while True:
            await self._acked_numbers.wait()
            self._acked_numbers.clear()
            acked, self._acked = self._acked, {}
            for boot, seq in acked.items():
                try:
                    await self._in_db(self._spool.landed, boot, seq)
                except SpoolError as error:  # they stay, are sent again, and confirmed again
                    log.error("%s", error)
                    continue
                self._uplink.outbox.landed(boot, seq, time.monotonic())
            self._work.set()

    async def _is_published(self, position: Position | None) -> bool:
        """Whether every message up to this position was taken by the broker, or has even landed."""
        if position is None or (self._uplink.outbox.published or (-1, -1)) >= position:
            return True
        oldest = await self._in_db(self._spool.after, None, 1)
        return not oldest or oldest[0].position > position

    async def _promise(self) -> None:
        """Renew what the beat may promise; keeps the last promise while it cannot be renewed."""
        self._detect()
        frontier_us = self._clear_utc_us()
        self._rules.running.advance(frontier_us)
        accepted = self._intake.accepted
        while self._intake.settled < accepted:
            await asyncio.sleep(0.01)
        gap_open = self._intake.gap_open  # asked before the numbers: a gap told after them is not among them
        numbers = await self._in_db(self._spool.numbers)
        newest = await self._in_db(self._spool.last_position)
        while not await self._is_published(newest):
            if not self._uplink.connected:
                return
            await asyncio.sleep(0.02)
        if frontier_us is None or gap_open or len(numbers) > MAX_BOOTS:
            return
        if self._frontier_us is None or frontier_us > self._frontier_us:
            self._frontier_us, self._published = frontier_us, numbers

    def _clear_utc_us(self) -> int | None:
        """The time before which nothing more can be stamped than what was accepted by now; None if it is not known."""
        host_us = self._clear_host_us()
        sample = self._current_sample()
        if host_us is None or sample.bound_us is None or self._undated:
            return None
        return sample.to_utc(host_us, host_us).t_min

    def _clear_host_us(self) -> int | None:
        """The same in host time: every reading that is accepted later has a stamp that begins then or later."""
        if len(self._clear_us) < len(self._links):
            return None
        return min(self._clear_us[link.reader.name] - link.reach_us() for link in self._links)

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
        config, group = self.config, self._group
        read = {r.stream: ("measure", r.line.unit) if r.line else ("tag", None) for r in config.readers}
        streams = [(name, *read[name], DELAY_US, LENGTH_US_MAX) for name in sorted(read)]
        present = [r.presence for r in config.readers if r.presence]
        visits = [(p.stream, "tag", None, DELAY_US, LENGTH_US_MAX + p.leave_ms * 1000) for p in present]
        derived = [(name, KIND, UNIT, DELAY_US, LENGTH_US_MAX) for name in self._rules.streams]
        states = [(group.stream, STATE_KIND, None, DELAY_US, LENGTH_US_MAX)] if group else []
        return Birth(
            config.site,
            config.gateway,
            self._spool.boot,
            [*streams, *visits, *derived, *states],
            group.group if group else None,
            group.members if group else [config.gateway],
            f"whenabouts {_version()}",
        )

    # Health.

    async def _feed(self, period_s: float) -> None:
        """Feed the watchdog from this loop, behind what the spool has to do, while what was accepted gets settled."""
        flow = Flow()
        while True:
            ready = await self._in_db(self._spool.can_commit)
            if flow.moves(time.monotonic(), self._intake.accepted, self._intake.settled) and ready:
                self._notifier.feed()
            await asyncio.sleep(period_s)

    async def _write_status(self, running: bool = True) -> None:
        status = self._status(running)
        self._notifier.say(summary(status))
        await asyncio.to_thread(self._report.write, status)

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
            "clock": {
                "state": sample.state,
                "bound_us": sample.bound_us,
                "source": sample.source,
                "frontier_us": self._frontier_us,
                "epoch": self._clock_epoch,
                "undated": len(self._undated),
                "unwritten": len(self._unwritten),
                "dated_late": self._undated.dated,
                "never_dated": self._undated.given_up,
            },
            "rules": {"refused": self._rules.refused, "running": self._rules.running.counters()},
            "group": self._group.status() if self._group else None,
            "presence": {name: presence.status() for name, presence in self._presence.items()},
            "readers": {
                link.reader.name: {
                    "state": link.link_state.state,
                    "problem": link.link_state.problem,
                    "device": link.link_state.device,
                    "opened": link.link_state.opened,
                    "failed": link.link_state.failed,
                    "opened_ns": link.link_state.opened_ns,
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


def _version() -> str:
    try:
        return version("whenabouts")
    except PackageNotFoundError:
        return "from a checkout"
