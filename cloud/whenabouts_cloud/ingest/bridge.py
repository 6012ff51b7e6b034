"""What the ingest does with each message, and when it may say so: the core between broker and landing.

A message is settled, and may be acknowledged to the broker, only when everything in it is durable: its readings in a
Parquet file, or itself in the dead letters. After that the gateway is told how far its numbers are complete, and only
then its frontier is believed: when every number that the beat spoke of has landed.

The driver calls `take` for each message, `flush` when enough has gathered, and sends what flush returns.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from whenabouts_cloud.ingest.dead import DeadLetters
from whenabouts_cloud.ingest.landing import Landing
from whenabouts_cloud.ingest.ledger import Ledger, LedgerFull, as_ranges
from whenabouts_protocol import (
    Ack,
    Beat,
    Reading,
    WireError,
    decode_batch,
    decode_beat,
    decode_birth,
    parse_topic,
)  # fmt: skip

MAX_GATEWAYS = 100_000  # of which births and frontiers are remembered
MAX_RECENT = 100_000  # contents remembered to tell a repeat from a conflict
MAX_ACK_BOOTS = 16  # newest boots that an acknowledgement names
FRONTIER_EVERY_US = 1_000_000

Gateway = tuple[str, str]  # site, gateway
log = logging.getLogger("whenabouts.ingest")


@dataclass(slots=True)
class Counters:
    """What has come, since the start."""

    messages: int = 0
    landed: int = 0
    repeats: int = 0
    conflicts: int = 0
    dead: int = 0
    files: int = 0
    frontiers: int = 0


@dataclass(slots=True)
class Flushed:
    """What a flush made durable: tokens of messages to acknowledge, acknowledgements to publish."""

    tokens: list[object] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)


class Bridge:
    """Takes messages, lands readings. now_us gives UTC in microseconds for arrival times."""

    def __init__(self, landing: Landing, now_us: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self._landing, self._now_us = landing, now_us
        self._ledger = Ledger()
        self._ledger.land(landing.recover())
        self._dead = DeadLetters(landing.folder / "_dead")
        self._readings: list[Reading] = []
        self._tokens: list[object] = []
        self._to_ack: dict[Gateway, set[int]] = {}
        self._streams: dict[Gateway, list[str]] = {}
        self._beats: dict[Gateway, Beat] = {}
        self._frontiers: dict[Gateway, int] = {}
        self._frontiers_written_us = 0
        self._recent: dict[tuple[str, int, int], int] = {}
        self.counters = Counters()

    @property
    def waiting(self) -> int:
        """Messages that are taken but not durable yet."""
        return len(self._tokens)

    @property
    def waiting_readings(self) -> int:
        """Readings that are taken but not durable yet."""
        return len(self._readings)

    def dead_letters(self) -> dict[str, int]:
        """How many dead letters there were, by reason."""
        return dict(self._dead.reasons)

    def take(self, topic: str, payload: bytes, token: object) -> None:
        """Take one message; token comes back from the flush that makes it durable. Never raises for its content."""
        self.counters.messages += 1
        self._tokens.append(token)
        place = parse_topic(topic)
        try:
            if place is None:
                raise _Refused("topic", "expected wa/1/<site>/<gateway>/<leaf>")
            self._take_leaf(place[2], (place[0], place[1]), payload)
        except WireError as error:
            self._bury(topic, payload, "undecodable", str(error))
        except _Refused as error:
            self._bury(topic, payload, error.reason, str(error))

    def flush(self) -> Flushed:
        """Make everything taken durable.

        Raises:
            OSError: the landing cannot be written; all is kept and the next flush tries again.
        """
        now_us = self._now_us()
        if self._readings:
            ranges = as_ranges(r.identity for r in self._readings)
            self._landing.write(self._readings, ranges, now_us)
            self._ledger.land(ranges)
            self.counters.landed += len(self._readings)
            self.counters.files += 1
            self._readings = []
        self._dead.flush()
        if self._landing.snapshot_due():
            self._landing.snapshot(self._ledger.landed_ranges())
            self._landing.drop_old_frontiers(now_us)
        done = Flushed(self._tokens, [self._ack(gateway, boots) for gateway, boots in self._to_ack.items()])
        self._tokens, self._to_ack = [], {}
        self._write_frontiers(now_us)
        return done

    def _take_leaf(self, leaf: str, origin: Gateway, payload: bytes) -> None:
        if leaf == "obs":
            self._take_batch(origin, payload)
        elif leaf == "beat":
            self._take_beat(origin, payload)
        elif leaf == "birth":
            birth = decode_birth(payload)
            _check_origin(origin, (birth.site, birth.gateway))
            if origin in self._streams or len(self._streams) < MAX_GATEWAYS:
                self._streams[origin] = [str(stream[0]) for stream in birth.streams]
        else:
            raise _Refused("topic", f"found leaf {leaf}, expected obs, beat or birth")

    def _take_batch(self, origin: Gateway, payload: bytes) -> None:
        readings = decode_batch(payload)
        first = readings[0]
        _check_origin(origin, (first.site, first.gateway))
        try:
            new = self._ledger.admit(first.gateway, first.boot, [r.seq for r in readings])
        except LedgerFull as error:
            raise _Refused("numbering", str(error)) from None
        fresh = [r for r, is_new in zip(readings, new, strict=True) if is_new]
        if len(fresh) < len(readings):
            self.counters.repeats += len(readings) - len(fresh)
            self._check_repeats(readings, new)
        for reading in fresh:
            self._recent[reading.identity] = _digest(reading)
        while len(self._recent) > MAX_RECENT:
            del self._recent[next(iter(self._recent))]
        self._readings.extend(fresh)
        self._to_ack.setdefault(origin, set()).add(first.boot)

    def _check_repeats(self, readings: list[Reading], new: list[bool]) -> None:
        """A repeat says what the first one said; another content under the same identity is an alarm."""
        for reading, is_new in zip(readings, new, strict=True):
            known = self._recent.get(reading.identity)
            if not is_new and known is not None and known != _digest(reading):
                self.counters.conflicts += 1
                log.error("conflict: %s came with another content; the first one stays", reading.identity)
                self._bury(f"{reading.gateway}/{reading.boot}/{reading.seq}", repr(reading).encode(), "conflict", "")

    def _take_beat(self, origin: Gateway, payload: bytes) -> None:
        beat = decode_beat(payload)
        _check_origin(origin, (beat.site, beat.gateway))
        for boot, (first, _) in beat.published.items():
            if self._ledger.reach(beat.gateway, boot) < first - 1:
                self._ledger.forget_before(beat.gateway, boot, first)
                self._to_ack.setdefault(origin, set()).add(boot)
        if origin in self._beats or len(self._beats) < MAX_GATEWAYS:
            self._beats[origin] = beat

    def _ack(self, origin: Gateway, boots: set[int]) -> Ack:
        newest = sorted(boots)[-MAX_ACK_BOOTS:]
        reaches = {boot: self._ledger.reach(origin[1], boot) for boot in newest}
        return Ack(*origin, {boot: reach for boot, reach in reaches.items() if reach >= 0})

    def _write_frontiers(self, now_us: int) -> None:
        if now_us - self._frontiers_written_us < FRONTIER_EVERY_US:
            return
        rows = []
        for (site, gateway), beat in self._beats.items():
            frontier_us, streams = beat.frontier_us, self._streams.get((site, gateway))
            if (
                frontier_us is None
                or streams is None
                or frontier_us <= self._frontiers.get((site, gateway), -(1 << 63))
            ):
                continue
            if all(self._ledger.reach(gateway, boot) >= last for boot, (_, last) in beat.published.items()):
                self._frontiers[site, gateway] = frontier_us
                rows.append({"site": site, "gateway": gateway, "frontier_us": frontier_us, "streams": streams,
                             "landed_us": now_us})  # fmt: skip
        if rows:
            self._landing.write_frontiers(rows)
            self._frontiers_written_us = now_us
            self.counters.frontiers += len(rows)

    def _bury(self, topic: str, payload: bytes, reason: str, text: str) -> None:
        self.counters.dead += 1
        self._dead.add(topic, payload, reason, text, self._now_us())


class _Refused(Exception):
    """A message that decodes but cannot be taken."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def _check_origin(topic_origin: Gateway, message_origin: Gateway) -> None:
    """A gateway speaks for itself alone: the broker's rules guard the topic, this guards the content."""
    if topic_origin != message_origin:
        raise _Refused(
            "foreign", f"found a message of {'/'.join(message_origin)} on a topic of {'/'.join(topic_origin)}"
        )


def _digest(reading: Reading) -> int:
    return hash((reading.site, reading.stream, reading.kind, reading.key, reading.value, reading.t_min, reading.t_max,
                 reading.clock_state, reading.vclock, reading.unit, tuple(sorted(reading.attrs.items()))))  # fmt: skip
