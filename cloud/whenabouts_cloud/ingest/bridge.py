"""The ingest's core between broker and landing: processes each message and decides when to acknowledge it.

A message may be acknowledged to the broker only when all its content is durable: its readings in a Parquet file, or the
message itself in the dead letters. Then the gateway gets an acknowledgement of how far its numbers are complete. A gateway's
frontier counts only when every number that its heartbeat named has landed.

The driver calls `take` for each message, `flush` when enough has gathered, and sends the acknowledgements flush returns.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from whenabouts_cloud.frontier.times import INT64_MIN
from whenabouts_cloud.ingest.dead_letters import DeadLetters
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.ledger import Ledger, LedgerFull, as_ranges, ledger_name
from whenabouts_protocol import (
    Ack,
    Heartbeat,
    Reading,
    WireError,
    decode_batch,
    decode_birth,
    decode_heartbeat,
    parse_topic,
)  # fmt: skip
from whenabouts_protocol.logs import Log

MAX_GATEWAYS = 100_000  # whose births and frontiers are remembered
MAX_RECENT = 100_000  # contents remembered to distinguish a repeat from a conflict
MAX_ACK_BOOTS = 16  # newest boots that an acknowledgement names
FRONTIER_EVERY_US = 1_000_000
AHEAD_US = 1_000_000  # a gateway further ahead of the present is reported

Gateway = tuple[str, str]  # site, gateway
log = Log(__name__)


@dataclass(slots=True)
class Counters:
    """Counts since the start."""

    messages: int = 0
    landed: int = 0
    repeats: int = 0
    conflicts: int = 0
    dead: int = 0
    dead_dropped: int = 0
    files: int = 0
    frontiers: int = 0
    forgotten: int = 0  # numbers that gateways no longer keep and that never landed here
    clocks_ahead: int = 0  # gateways whose watermark was ahead of this machine's clock
    refused: int = 0  # readings that gateways had no room for, from their heartbeats
    invalid: int = 0  # invalid data of readers, from heartbeats


@dataclass(slots=True)
class Flushed:
    """Result of a flush: tokens of messages to acknowledge, acknowledgements to publish."""

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
        self._bytes = 0
        self._reported_conflicts = 0
        self._tokens: list[object] = []
        self._to_ack: dict[Gateway, set[int]] = {}
        self._streams: dict[Gateway, list[str]] = {}
        self._heartbeats: dict[Gateway, list[Heartbeat]] = {}  # the one waited for, and the newest
        self._frontiers: dict[Gateway, int] = {}
        self._frontiers_written_us = 0
        self._ahead: set[Gateway] = set()
        self._recent: OrderedDict[tuple[str, str, int, int], int] = OrderedDict()
        self.counters = Counters()

    @property
    def waiting(self) -> int:
        """Number of messages taken but not durable yet."""
        return len(self._tokens)

    @property
    def waiting_readings(self) -> int:
        """Number of readings taken but not durable yet."""
        return len(self._readings)

    @property
    def waiting_bytes(self) -> int:
        """Size of the messages taken but not durable yet."""
        return self._bytes

    def dead_letters(self) -> dict[str, int]:
        """Number of dead letters since the start, by reason."""
        return dict(self._dead.reasons)

    def frontiers(self) -> dict[Gateway, int]:
        """The time before which all readings of a gateway have landed, by gateway, us since 1970 UTC."""
        return dict(self._frontiers)

    def take(self, topic: str, payload: bytes, token: object) -> None:
        """Take one message; the flush that makes it durable returns token. Its content never raises."""
        self.counters.messages += 1
        self._bytes += len(payload)
        self._tokens.append(token)
        place = parse_topic(topic)
        try:
            if place is None:
                raise _Refused("topic", "expected wa/2/<site>/<gateway>/<leaf>")
            self._take_by_topic(topic, place[2], (place[0], place[1]), payload)
        except WireError as error:
            self._bury(topic, payload, "undecodable", str(error))
        except _Refused as error:
            self._bury(topic, payload, error.reason, str(error))
        except LedgerFull as error:
            self._bury(topic, payload, "numbering", str(error))

    def flush(self) -> Flushed:
        """Make everything taken durable.

        Raises:
            OSError: the landing cannot be written; all is kept and the next flush tries again.
        """
        now_us = self._now_us()
        if self._readings:
            ranges = as_ranges((ledger_name(r.site, r.gateway), r.boot, r.seq) for r in self._readings)
            self._landing.write(self._readings, ranges, now_us)
            self._ledger.land(ranges)
            self.counters.landed += len(self._readings)
            self.counters.files += 1
            self._readings = []
        self._dead.flush()
        self.counters.dead_dropped = self._dead.dropped
        if self._landing.snapshot_due():
            self._landing.snapshot(self._ledger.landed_ranges())
            self._landing.drop_old_frontiers(now_us)
        self._write_frontiers(now_us)
        self._report_conflicts()
        acks = [self._ack(gateway, boots) for gateway, boots in self._to_ack.items()]
        done = Flushed(self._tokens, [ack for ack in acks if ack.landed])
        self._tokens, self._to_ack, self._bytes = [], {}, 0
        return done

    def _take_by_topic(self, topic: str, leaf: str, origin: Gateway, payload: bytes) -> None:
        if leaf == "obs":
            self._take_batch(topic, origin, payload)
        elif leaf == "heartbeat":
            self._take_heartbeat(origin, payload)
        elif leaf == "birth":
            birth = decode_birth(payload)
            _check_origin(origin, (birth.site, birth.gateway))
            if origin in self._streams or len(self._streams) < MAX_GATEWAYS:
                self._streams[origin] = [str(stream[0]) for stream in birth.streams]
        else:
            raise _Refused("topic", f"found leaf {leaf}, expected obs, heartbeat or birth")

    def _take_batch(self, topic: str, origin: Gateway, payload: bytes) -> None:
        readings = decode_batch(payload)
        first = readings[0]
        _check_origin(origin, (first.site, first.gateway))
        new = self._ledger.admit(ledger_name(*origin), first.boot, [r.seq for r in readings])
        for reading, is_new in zip(readings, new, strict=True):
            digest = _digest(reading)
            if is_new:
                self._recent[reading.site, *reading.identity] = digest
                self._readings.append(reading)
                continue
            self.counters.repeats += 1
            if self._recent.get((reading.site, *reading.identity), digest) != digest:
                self.counters.conflicts += 1
                text = f"boot {reading.boot} number {reading.seq} came with another content before; the first one stays"
                self._bury(topic, repr(reading).encode(), "conflict", text)
        while len(self._recent) > MAX_RECENT:
            self._recent.popitem(last=False)
        self._to_ack.setdefault(origin, set()).add(first.boot)

    def _report_conflicts(self) -> None:
        """Log conflicts, at most once a flush: readings with a known identity and another content."""
        new = self.counters.conflicts - self._reported_conflicts
        if new:
            log.error(
                "reading.conflict", "another content came under a known identity; the first one stays, see _dead; does a "
                "gateway use another's name, or an old spool?", readings=new,
            )  # fmt: skip
        self._reported_conflicts = self.counters.conflicts

    def _take_heartbeat(self, origin: Gateway, payload: bytes) -> None:
        heartbeat = decode_heartbeat(payload)
        _check_origin(origin, (heartbeat.site, heartbeat.gateway))
        for boot, (first, _) in heartbeat.published.items():
            reach = self._ledger.reach(ledger_name(*origin), boot)
            if reach < first - 1:
                self.counters.forgotten += first - 1 - reach
                log.warning(
                    "gateway.numbers_elsewhere", "these were confirmed elsewhere and are not waited for",
                    gateway="/".join(origin), boot=boot, first=reach + 1, last=first - 1,
                )  # fmt: skip
                self._ledger.forget_before(ledger_name(*origin), boot, first)
                self._to_ack.setdefault(origin, set()).add(boot)
        if origin in self._heartbeats or len(self._heartbeats) < MAX_GATEWAYS:
            self._count_lost(origin, heartbeat)
            self._heartbeats[origin] = [*self._heartbeats.get(origin, [])[:1], heartbeat]

    def _count_lost(self, origin: Gateway, heartbeat: Heartbeat) -> None:
        """Count what the gateway lost since its previous heartbeat; warn when losses begin."""
        before = self._heartbeats[origin][-1] if origin in self._heartbeats else None
        for what, why in (("refused", "its spool is full"), ("invalid", "its readers send invalid data")):
            known = getattr(before, what) or 0 if before is not None and before.boot == heartbeat.boot else 0
            new = (getattr(heartbeat, what) or 0) - known
            if new > 0:
                setattr(self.counters, what, getattr(self.counters, what) + new)
                if not known:
                    log.warning(
                        f"gateway.{what}",
                        f"{why}; see `whenabouts-edge status` there",
                        gateway="/".join(origin),
                        readings=new,
                    )

    def _ack(self, origin: Gateway, boots: set[int]) -> Ack:
        newest = sorted(boots)[-MAX_ACK_BOOTS:]
        reaches = {boot: self._ledger.reach(ledger_name(*origin), boot) for boot in newest}
        return Ack(*origin, {boot: reach for boot, reach in reaches.items() if reach >= 0})

    def _write_frontiers(self, now_us: int) -> None:
        if 0 <= now_us - self._frontiers_written_us < FRONTIER_EVERY_US:
            return
        moved = {}
        for origin, heartbeats in self._heartbeats.items():
            frontier_us = self._not_ahead(origin, self._fulfilled(origin, heartbeats), now_us)
            if frontier_us is not None and frontier_us > self._frontiers.get(origin, INT64_MIN):
                moved[origin] = frontier_us
        if not moved:
            return
        self._landing.write_frontiers(
            [
                {"site": origin[0], "gateway": origin[1], "frontier_us": frontier_us, "streams": self._streams[origin],
                 "landed_us": now_us}
                for origin, frontier_us in moved.items()
            ]
        )  # fmt: skip
        self._frontiers.update(moved)
        self._frontiers_written_us = now_us
        self.counters.frontiers += len(moved)

    def _not_ahead(self, origin: Gateway, frontier_us: int | None, now_us: int) -> int | None:
        """Cap a watermark at the present: one gateway with a clock ahead would make all others late forever."""
        if frontier_us is None or frontier_us <= now_us:
            return frontier_us
        if frontier_us > now_us + AHEAD_US and origin not in self._ahead:
            self._ahead.add(origin)
            self.counters.clocks_ahead += 1
            log.error(
                "gateway.clock_ahead", "its clock is ahead of this machine's; check both",
                gateway="/".join(origin), ahead_s=round((frontier_us - now_us) / 1e6, 1),
            )  # fmt: skip
        return now_us

    def _fulfilled(self, origin: Gateway, heartbeats: list[Heartbeat]) -> int | None:
        """The frontier of the newest heartbeat whose numbers have all landed; None without one or without a birth.

        A heartbeat may overtake earlier readings. During a backlog the newest heartbeat may never be fulfilled in time, so
        one older heartbeat is kept until it is fulfilled.
        """
        if origin not in self._streams:
            return None
        for at in reversed(range(len(heartbeats))):
            published = heartbeats[at].published.items()
            if all(self._ledger.reach(ledger_name(*origin), boot) >= last for boot, (_, last) in published):
                frontier_us = heartbeats[at].frontier_us
                del heartbeats[:-1]  # wait for the newest next
                return frontier_us
        return None

    def _bury(self, topic: str, payload: bytes, reason: str, text: str) -> None:
        self.counters.dead += 1
        self._dead.add(topic, payload, reason, text, self._now_us())


class _Refused(Exception):
    """A message that decodes but must be refused."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def _check_origin(topic_origin: Gateway, message_origin: Gateway) -> None:
    """Refuse messages about another gateway: the broker's access rules guard the topic, this guards the content."""
    if topic_origin != message_origin:
        raise _Refused(
            "foreign", f"found a message of {'/'.join(message_origin)} on a topic of {'/'.join(topic_origin)}"
        )


def _digest(reading: Reading) -> int:
    """Hash of a reading's content, for this process only; the order of attributes does not count.

    Of its text, because True and 1 are equal and -1 and -2 have the same hash. This takes 3 of the 28 us that `take` needs
    for a reading; a hash of the values themselves would take 1 us and miss such conflicts.
    """
    return hash(repr((reading.site, reading.stream, reading.kind, reading.key, reading.value, reading.t_min,
                      reading.t_max, reading.clock_state, reading.vclock, reading.unit,
                      sorted(reading.attrs.items()))))  # fmt: skip
