"""Decides which health records are kept, and holds them until they are written.

Births, statuses and changes of a clock's state are always kept, other heartbeats one per gateway in HEARTBEAT_EVERY_US: at
most so many records an hour fit HOUR_BYTES. With more than FULL_RATE gateways they are kept more rarely. What is beyond a
limit is dropped and counted; nothing here waits or raises. One thread records, another one takes.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from whenabouts_cloud.health import records
from whenabouts_cloud.health.records import Record, hour_of, line_of
from whenabouts_protocol import Birth, Heartbeat, Status

HEARTBEAT_EVERY_US = INGEST_EVERY_US = 10_000_000
FULL_RATE = 400  # gateways whose heartbeats are kept every HEARTBEAT_EVERY_US; their records take 50 MB an hour
HOUR_US = 3_600_000_000
MAX_GATEWAYS = 10_000  # heard in an hour
HOUR_BYTES, GATEWAY_BYTES = 64 << 20, 1 << 20  # kept in an hour, of all gateways and of one
WAITING_BYTES = 8 << 20  # not written yet
REPEATED_BYTES = 8 << 20  # of the last births and statuses, which each hour begins with

Gateway = tuple[str, str]  # site, gateway


@dataclass(slots=True)
class HealthCounters:
    """Counts since the start."""

    health_records: int = 0  # kept
    health_thinned: int = 0  # heartbeats that came too soon after one that was kept
    health_dropped: int = 0  # records beyond a limit
    health_failed: int = 0  # attempts to write that failed; they are repeated


@dataclass(slots=True)
class _Heard:
    """Of one gateway in this hour."""

    bytes: int = 0
    heartbeat_us: int | None = None  # when the last one was kept
    state: str = ""  # of its clock then


class Recorder:
    """Records of one ingest. name: that of the ingest, "" for none."""

    def __init__(self, name: str = "") -> None:
        self._name = name
        self.counters = HealthCounters()
        self._lock = threading.Lock()
        self._lines: list[tuple[str, bytes]] = []  # hour, line
        self._waiting = 0
        self._hour_number, self._now_us = -1, 0
        self._hour = self._repeated_hour = ""
        self._heard: dict[Gateway, _Heard] = {}
        self._gateways = self._bytes = 0  # gateways of the hour before; bytes of this one
        self._ingest_us: int | None = None
        self._last: dict[tuple[str, Gateway], tuple[int, Record]] = {}  # size, last birth or status
        self._last_bytes = 0

    def heartbeat(self, m: Heartbeat, now_us: int) -> None:
        """Keep a heartbeat, if it is due or the state of the clock has changed."""
        self._enter(now_us)
        heard = self._of((m.site, m.gateway))
        if heard is None:
            return
        soon = heard.heartbeat_us is not None and 0 <= now_us - heard.heartbeat_us < self._period_us()
        if soon and heard.state == m.clock_state:
            self.counters.health_thinned += 1
            return
        heard.heartbeat_us, heard.state = now_us, m.clock_state
        self._keep(heard, line_of(records.heartbeat(m, now_us)))

    def birth(self, m: Birth, now_us: int) -> None:
        """Keep a birth."""
        self._announced(records.birth(m, now_us), now_us)

    def status(self, m: Status, now_us: int) -> None:
        """Keep a status."""
        self._announced(records.status(m, now_us), now_us)

    def ingest(
        self,
        counters: Mapping[str, int],
        dead_letters: Mapping[str, int],
        connected: bool,
        now_us: int,
        last: bool = False,
    ) -> None:
        """Keep the counts of the ingest, if they are due or the last ones."""
        self._enter(now_us)
        if last or self._ingest_us is None or not 0 <= now_us - self._ingest_us < INGEST_EVERY_US:
            self._ingest_us = now_us
            self._put(line_of(records.ingest(self._name, now_us, counters, dead_letters, connected)))

    def take(self) -> list[tuple[str, bytes]]:
        """The lines to write, each with its hour; they are the caller's then. Called by the thread that writes."""
        with self._lock:
            lines, self._lines, self._waiting = self._lines, [], 0
            hour, now_us = self._hour, self._now_us
            repeated = list(self._last.values()) if hour != self._repeated_hour != "" else []
            self._repeated_hour = hour
        return [(hour, line_of(record | {"at_us": now_us})) for _, record in repeated] + lines

    def _enter(self, now_us: int) -> None:
        self._now_us = now_us
        if now_us // HOUR_US != self._hour_number:
            self._hour_number, self._bytes = now_us // HOUR_US, 0
            self._gateways, self._heard = len(self._heard), {}
            with self._lock:
                self._hour = hour_of(now_us)

    def _of(self, origin: Gateway) -> _Heard | None:
        heard = self._heard.get(origin)
        if heard is None:
            if len(self._heard) >= MAX_GATEWAYS:
                self.counters.health_dropped += 1
                return None
            heard = self._heard[origin] = _Heard()
        return heard

    def _period_us(self) -> int:
        gateways = max(self._gateways, len(self._heard))
        return HEARTBEAT_EVERY_US * max(1, -(-gateways // FULL_RATE))

    def _announced(self, record: Record, now_us: int) -> None:
        self._enter(now_us)
        origin = record["site"], record["gateway"]
        heard = self._of(origin)
        if heard is not None:
            line = line_of(record)
            self._keep(heard, line)
            self._remember((record["type"], origin), len(line), record)

    def _remember(self, which: tuple[str, Gateway], size: int, record: Record) -> None:
        """Let each hour to come begin with this; without room for it, with none of this gateway and type."""
        with self._lock:
            self._last_bytes -= self._last.pop(which, (0, {}))[0]
            if self._last_bytes + size > REPEATED_BYTES:
                self.counters.health_dropped += 1
                return
            self._last[which] = size, record
            self._last_bytes += size

    def _keep(self, heard: _Heard, line: bytes) -> None:
        """Keep a record of a gateway, within the limits of the hour."""
        size = len(line)
        if heard.bytes + size > GATEWAY_BYTES or self._bytes + size > HOUR_BYTES:
            self.counters.health_dropped += 1
        elif self._put(line):
            heard.bytes += size
            self._bytes += size

    def _put(self, line: bytes) -> bool:
        with self._lock:
            fits = self._waiting + len(line) <= WAITING_BYTES
            if fits:
                self._lines.append((self._hour, line))
                self._waiting += len(line)
        self.counters.health_records += fits
        self.counters.health_dropped += not fits
        return fits
