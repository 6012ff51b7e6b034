"""Delivery to the cloud: the readings of the spool until they have landed, and heartbeats with the watermark.

The watermark of a heartbeat, "everything with t_max < f has been published", is made in three steps: at one moment take
the frontier f that every port and the clock allow; wait until all readings accepted by then are in the spool and taken by
the broker; only then put f into the heartbeat.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from whenabouts_edge.agent.group_host import GroupHost
from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.settings import Config
from whenabouts_edge.events import set_within
from whenabouts_edge.mqtt_client import MakeClient, made
from whenabouts_edge.rules.evaluate import KIND, UNIT
from whenabouts_edge.store.intake import Intake
from whenabouts_edge.store.spool import Spool, SpoolError
from whenabouts_edge.uplink.outbox import MAX_IN_FLIGHT, Position
from whenabouts_edge.uplink.uplink import Uplink, ignored
from whenabouts_protocol import Ack, Birth, Heartbeat, encode_heartbeat
from whenabouts_protocol.group_state import KIND as STATE_KIND
from whenabouts_protocol.layout import MAX_BOOTS
from whenabouts_protocol.logs import Log

OVERDUE_EVERY_S = 1.0
DELAY_US = 5_000_000  # in the birth message: readings arrive at most this late while the connection holds
LENGTH_US_MAX = 5_000_000  # in the birth message: longest stamp

log = Log(__name__)


class Delivery:
    """Publishes one spool. db: the spool's thread. on_rules, group: receive messages of the broker, as in `Uplink`.
    client: makes the client of a connection.

    frontier_us: the watermark that the heartbeat carries now, UTC, or None. work: set when there is more to publish.
    """

    def __init__(
        self,
        config: Config,
        birth: Birth,
        spool: Spool,
        db: Executor,
        on_rules: Callable[[bytes], None],
        group: GroupHost | None,
        client: MakeClient = made,
    ) -> None:
        self._config, self._spool, self._db, self._group = config, spool, db, group
        self._loop = asyncio.get_running_loop()
        self.work = asyncio.Event()
        self.frontier_us: int | None = None
        self._published: dict[int, tuple[int, int]] = {}
        self._kept = spool.numbers()
        self._acked: dict[int, int] = {}  # by boot, the last number confirmed by the cloud, until deleted
        self._acked_numbers = asyncio.Event()
        topics, heard = (group.topics, group.heard) if group else ([], ignored)
        self.uplink = Uplink(
            config.broker, birth, self._on_ack, self.work.set, on_rules, topics, heard, self._loop.time, client
        )

    async def publish(self) -> None:
        """Publish the messages of the spool in order, and again where nobody confirms them, until cancelled."""
        outbox = self.uplink.outbox
        while True:
            await set_within(self.work, OVERDUE_EVERY_S)
            self.work.clear()
            if outbox.overdue(self._loop.time()):
                log.warning("uplink.unconfirmed", "the cloud has not confirmed the messages sent; sends them again")
            while self.uplink.connected and (room := outbox.room()):
                before = outbox.cursor
                messages = await self._loop.run_in_executor(
                    self._db, self._spool.after, before, min(room, MAX_IN_FLIGHT)
                )
                if outbox.cursor != before:  # connected anew meanwhile: begins again with the oldest message
                    continue
                if not messages or not all(self.uplink.send(message) for message in messages):
                    break

    async def forget_landed(self) -> None:
        """Delete the readings that the cloud has confirmed from the spool, until cancelled."""
        while True:
            await self._acked_numbers.wait()
            self._acked_numbers.clear()
            acked, self._acked = self._acked, {}
            for boot, seq in acked.items():
                try:
                    await self._loop.run_in_executor(self._db, self._spool.landed, boot, seq)
                except SpoolError as error:  # the readings stay, are sent again and confirmed again
                    log.error("spool.failed", str(error))
                    continue
                self.uplink.outbox.landed(boot, seq, self._loop.time())
            self._kept = await self._loop.run_in_executor(self._db, self._spool.numbers)
            self.work.set()

    async def watermark(self, frontier_us: int | None, intake: Intake) -> None:
        """Raise the watermark to frontier_us once all readings accepted by now have been published.

        Keeps the last watermark while it cannot be renewed.
        """
        accepted = intake.accepted
        while intake.settled < accepted:
            await asyncio.sleep(0.01)
        # Read before the numbers, which do not include what is stored later.
        waits = intake.gap_open or (self._group is not None and self._group.owes)
        numbers = self._kept = await self._loop.run_in_executor(self._db, self._spool.numbers)
        newest = await self._loop.run_in_executor(self._db, self._spool.last_position)
        while not await self._is_published(newest):
            if not self.uplink.connected:
                return
            await asyncio.sleep(0.02)
        if frontier_us is None or waits or len(numbers) > MAX_BOOTS:
            return
        if self.frontier_us is None or frontier_us > self.frontier_us:
            self.frontier_us, self._published = frontier_us, numbers

    def heartbeat(self, sample: ClockSample, host_us: int, refused: int, invalid: int) -> None:
        """Publish a heartbeat with the state, the bound at host_us and the source of the clock, and counts of losses."""
        state = self._spool.state
        heartbeat = Heartbeat(
            self._config.site,
            self._config.gateway,
            self._spool.boot,
            self.frontier_us,
            still_kept(self._published, self._kept),
            sample.state,
            None if sample.bound_us is None else sample.bound_at(host_us),
            state.readings,
            state.payload_bytes,
            refused,
            invalid,
            sample.source or None,
            self.uplink.certificate_end_s,
        )
        self.uplink.heartbeat(encode_heartbeat(heartbeat))

    def status(self) -> dict[str, Any]:
        """Fields of the status file."""
        return self.uplink.status()

    def _on_ack(self, ack: Ack) -> None:
        """Believe an acknowledgement as far as readings were sent since the start: the rest cannot have landed.

        Of earlier boots it can name more, since they sent too; what they sent is sent again, and acknowledged again.
        """
        reach = self.uplink.outbox.reach
        boot = self._spool.boot
        if ack.landed.get(boot, -1) > reach(boot):
            self.uplink.acks_refused += 1
            log.warning(
                "ack.refused", "it names a reading that was not sent; do two gateways share this name?",
                found=ack.landed[boot], last=reach(boot),
            )  # fmt: skip
            return
        for boot, seq in ack.landed.items():
            if reach(boot) >= 0:
                self._acked[boot] = max(min(seq, reach(boot)), self._acked.get(boot, -1))
        self._acked_numbers.set()

    async def _is_published(self, position: Position | None) -> bool:
        """Return True if the broker has taken every message up to this position, or all of them have landed."""
        if position is None or (self.uplink.outbox.published or (-1, -1)) >= position:
            return True
        oldest = await self._loop.run_in_executor(self._db, self._spool.after, None, 1)
        return not oldest or oldest[0].position > position


def birth(
    config: Config,
    boot: int,
    derived: Sequence[str],
    group: GroupHost | None,
    parts_us: Mapping[str, tuple[int, ...]] | None = None,
) -> Birth:
    """The birth message of a gateway; derived: streams of its rules; parts_us: parts of the stamps by stream."""
    parts = parts_us or {}
    read = {r.stream: ("measure", r.line.unit) if r.line else ("tag", None) for r in config.readers}
    streams: list[tuple[Any, ...]] = [
        (name, *read[name], DELAY_US, LENGTH_US_MAX, *parts.get(name, ())) for name in sorted(read)
    ]
    present = [r.presence for r in config.readers if r.presence]
    streams += [(p.stream, "tag", None, DELAY_US, LENGTH_US_MAX + p.leave_ms * 1000) for p in present]
    streams += [(name, KIND, UNIT, DELAY_US, LENGTH_US_MAX) for name in derived]
    streams += [(group.stream, STATE_KIND, None, DELAY_US, LENGTH_US_MAX)] if group else []
    return Birth(
        config.site,
        config.gateway,
        boot,
        streams,
        group.group if group else None,
        group.members if group else [config.gateway],
        f"whenabouts {_version()}",
    )


@cache
def _version() -> str:
    try:
        return version("whenabouts")
    except PackageNotFoundError:
        return "from a checkout"


def still_kept(
    published: Mapping[int, tuple[int, int]], kept: Mapping[int, tuple[int, int]]
) -> dict[int, tuple[int, int]]:
    """The numbers that a watermark covers, by boot, without those that have landed since.

    Boots that it does not cover are named too, as (first, first - 1): an ingest that has just taken over learns from this
    that it need not wait for earlier numbers. Else it would confirm nothing while more waits than may be on the way.
    """
    return {
        boot: (first, max(first - 1, published.get(boot, (0, -1))[1]))
        for boot, (first, _) in sorted(kept.items())[:MAX_BOOTS]
        if first or boot in published
    }
