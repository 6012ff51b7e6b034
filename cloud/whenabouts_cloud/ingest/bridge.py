"""The ingest's core between broker and landing: processes each message and decides when to acknowledge it.

A message may be acknowledged to the broker only when all its content is durable: its readings in a Parquet file, or the
message itself in the dead letters. Then the gateway gets an acknowledgement of how far its numbers are complete. What is
refused gets none, so it stays in the gateway's spool.

The driver calls `take` for each message, `flush` when enough has gathered, and sends the acknowledgements flush returns.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from whenabouts_cloud.health.recorder import Recorder
from whenabouts_cloud.ingest.announcements import Gateway, Gateways, OverBudget
from whenabouts_cloud.ingest.dead_letters import DeadLetters
from whenabouts_cloud.ingest.ingest_counters import Counters, GatewayCounters
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.ledger import Ledger, LedgerFull, ledger_name
from whenabouts_cloud.ingest.log_limit import LogLimit
from whenabouts_cloud.ingest.owners import Owners
from whenabouts_cloud.landing.ranges import as_ranges, runs
from whenabouts_cloud.landing.schema import AHEAD_DIR
from whenabouts_protocol import (
    Ack,
    Heartbeat,
    Reading,
    WireError,
    decode_batch,
    decode_birth,
    decode_heartbeat,
    decode_status,
    parse_topic,
)  # fmt: skip
from whenabouts_protocol.logs import Log
from whenabouts_protocol.messages.compiled_rule import DERIVED_PREFIX, decode_rules

MAX_RECENT = 100_000  # contents remembered to distinguish a repeat from a conflict
MAX_ACK_BOOTS = 16  # newest boots that an acknowledgement names
MAX_SHOWN_RUNS = 8  # of numbers, in the text of a dead letter
FRONTIER_EVERY_US = 1_000_000
AHEAD_MARGIN_US = 600_000_000  # readings that begin later than now and this go to the side output
CLOCK_AHEAD_US = 1_000_000  # a gateway whose watermark is further ahead of the present is reported
READING_BYTES = 400  # of a reading in memory, beside its texts

log = Log(__name__)


@dataclass(slots=True)
class Flushed:
    """Result of a flush: tokens of messages to acknowledge, acknowledgements to publish."""

    tokens: list[object] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)


class Bridge:
    """Takes messages, lands readings. now_us gives UTC in microseconds for arrival times.

    owners: which gateway may publish which streams. Readings that begin later than now + ahead_margin_us go to the side
    output. sites: whose messages are landed; those of others are left to the ingest of their site. None: of all. health:
    keeps what gateways report about themselves; None: nobody does.
    """

    def __init__(
        self,
        landing: Landing,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        owners: Owners | None = None,
        ahead_margin_us: int = AHEAD_MARGIN_US,
        sites: Sequence[str] = (),
        health: Recorder | None = None,
    ) -> None:
        self._sites, self._health = frozenset(sites), health
        self._landing, self._now_us, self._ahead_margin_us = landing, now_us, ahead_margin_us
        self._owners = Owners() if owners is None else owners
        self._owners.restore(landing.read_sent_rules())
        self._sent_changed = False
        self._ledger = Ledger()
        landing.recover_into(self._ledger)
        self._gateways = Gateways(self._ledger, self._owners.may_publish)
        self._dead = DeadLetters(landing.letters())
        self._waiting: dict[str, list[Reading]] = {"": [], AHEAD_DIR: []}  # by folder in the landing
        self._bytes = 0
        self._reported_conflicts = 0
        self._tokens: list[object] = []
        self._to_ack: dict[Gateway, set[int]] = {}
        self._frontiers_written_us = 0
        self._clocks_ahead: set[Gateway] = set()
        self._log_limit = LogLimit()
        self._recent: OrderedDict[tuple[str, str, int, int], int] = OrderedDict()
        self.counters, self.by_gateway = Counters(), GatewayCounters()

    @property
    def waiting(self) -> int:
        """Number of messages taken but not durable yet."""
        return len(self._tokens)

    @property
    def waiting_readings(self) -> int:
        """Number of readings taken but not durable yet."""
        return sum(map(len, self._waiting.values()))

    @property
    def waiting_bytes(self) -> int:
        """Size of what was taken but is not durable yet: messages, readings with all that they share, dead letters."""
        return self._bytes + self._dead.waiting_bytes

    def dead_letters(self) -> dict[str, int]:
        """Number of dead letters since the start, by reason."""
        return dict(self._dead.reasons)

    def frontiers(self) -> dict[Gateway, int]:
        """The time before which all readings of a gateway have landed, by gateway, us since 1970 UTC."""
        return dict(self._gateways.frontiers)

    def take(self, topic: str, payload: bytes, token: object) -> None:
        """Take one message; the flush that makes it durable returns token. Its content never raises."""
        self.counters.messages += 1
        self._bytes += len(payload)
        self._tokens.append(token)
        place = parse_topic(topic)
        if place is not None and self._sites and place[0] not in self._sites:
            self.counters.other_sites += 1  # the broker remembers subscriptions of an earlier start
            return
        try:
            if place is None:
                raise _Refused("topic", "expected wa/2/<site>/<gateway>/<leaf>")
            self._take_by_topic(topic, place[2], (place[0], place[1]), payload)
        except WireError as error:
            self._bury(topic, payload, "undecodable", str(error))
        except _Refused as error:
            self._bury(topic, payload, error.reason, str(error))
        except (LedgerFull, OverBudget) as error:
            self.counters.over_budget += 1
            self.by_gateway.over_budget.add(place[:2] if place else ("", ""), 1)
            self._bury(topic, payload, "numbering" if isinstance(error, LedgerFull) else "over_budget", str(error))

    def refused(self, messages: Mapping[str, int]) -> None:
        """Note messages that were refused before they were taken, by the topic of their gateway: one dead letter each."""
        for sender, count in messages.items():
            place = parse_topic(f"{sender}/obs")
            self.counters.over_budget += count
            self.by_gateway.over_budget.add(place[:2] if place else ("", ""), count)
            text = f"refused {count} messages: more of this gateway waited than one may have; its spool keeps them"
            self._bury(f"{sender}/obs", b"", "over_budget", text)

    def flush(self) -> Flushed:
        """Make everything taken durable.

        Raises:
            OSError: the landing cannot be written; what was not written is kept and the next flush tries again.
            LandingLost: another ingest holds the landing; what was not written goes to that one.
        """
        self._landing.keep()
        now_us = self._now_us()
        for output in self._waiting:
            self._land(output, now_us)
        self._dead.flush()
        self.counters.dead_dropped = self._dead.dropped
        if self._sent_changed:
            self._landing.write_sent_rules(self._owners.snapshot())
            self._sent_changed = False
        if self._landing.snapshot_due():
            self._landing.snapshot(self._ledger.landed_ranges(), self._ledger.closed_boots())
            self._landing.drop_old_frontiers(now_us)
        self._write_frontiers(now_us)
        self._report_conflicts()
        acks = [self._ack(gateway, boots) for gateway, boots in self._to_ack.items()]
        done = Flushed(self._tokens, [ack for ack in acks if ack.landed])
        self._tokens, self._to_ack, self._bytes = [], {}, 0
        return done

    def _land(self, output: str, now_us: int) -> None:
        readings = self._waiting[output]
        if not readings:
            return
        ranges = as_ranges((ledger_name(r.site, r.gateway), r.boot, r.seq) for r in readings)
        self._landing.write(readings, ranges, now_us, output)
        self._ledger.land(ranges)
        self.counters.files += 1
        if output == AHEAD_DIR:
            self.counters.ahead += len(readings)
        else:
            self.counters.landed += len(readings)
        self._waiting[output] = []

    def _take_by_topic(self, topic: str, leaf: str, origin: Gateway, payload: bytes) -> None:
        if leaf == "rules":
            self._take_rules(origin, payload)
            return
        refusal = self._owners.refusal(origin)
        if refusal is not None:
            raise _Refused("gateway", f"{'/'.join(origin)} {refusal}")
        if leaf == "obs":
            self._take_batch(topic, origin, payload)
        elif leaf == "heartbeat":
            self._take_heartbeat(origin, payload)
        elif leaf == "birth":
            birth = decode_birth(payload)
            _check_origin(origin, (birth.site, birth.gateway))
            self._gateways.born(origin, [str(stream[0]) for stream in birth.streams])
            if self._health is not None:
                self._health.birth(birth, self._now_us())
        elif leaf == "status":
            self._take_status(origin, payload)
        else:
            raise _Refused("topic", f"found leaf {leaf}, expected obs, heartbeat, birth or status")

    def _take_rules(self, origin: Gateway, payload: bytes) -> None:
        """Note which derived streams a gateway may publish; an empty payload removes its rules at the broker."""
        if payload:
            site, gateway, rules = decode_rules(payload)
            _check_origin(origin, (site, gateway))
            self._sent_changed |= self._owners.note_sent(origin, [rule.derived for rule in rules])

    def _take_status(self, origin: Gateway, payload: bytes) -> None:
        """Note the condition of a gateway; an empty payload removes it at the broker."""
        if payload:
            status = decode_status(payload)
            _check_origin(origin, (status.site, status.gateway))
            if self._health is not None:
                self._health.status(status, self._now_us())

    def _take_batch(self, topic: str, origin: Gateway, payload: bytes) -> None:
        readings = decode_batch(payload)
        first = readings[0]
        _check_origin(origin, (first.site, first.gateway))
        readings = self._owned(topic, origin, payload, readings)
        if not readings:
            return
        new = self._ledger.admit(ledger_name(*origin), first.boot, [r.seq for r in readings])
        latest_us = self._now_us() + self._ahead_margin_us
        conflicts, ahead = [], 0
        for reading, is_new in zip(readings, new, strict=True):
            digest = _digest(reading)
            if is_new:
                self._recent[reading.site, *reading.identity] = digest
                ahead += reading.t_min > latest_us
                self._waiting[AHEAD_DIR if reading.t_min > latest_us else ""].append(reading)
                self._bytes += _size(reading)
                continue
            self.counters.repeats += 1
            if self._recent.get((reading.site, *reading.identity), digest) != digest:
                conflicts.append(reading)
        if conflicts:
            self._bury_conflicts(topic, conflicts)
        if ahead:
            self._note_ahead(origin, ahead)
        while len(self._recent) > MAX_RECENT:
            self._recent.popitem(last=False)
        self._to_ack.setdefault(origin, set()).add(first.boot)

    def _owned(self, topic: str, origin: Gateway, payload: bytes, readings: list[Reading]) -> list[Reading]:
        """Those readings whose stream the gateway may publish; a dead letter tells of the others."""
        allowed = {r.stream for r in readings}
        refused = {stream for stream in allowed if not self._owners.may_publish(origin, stream)}
        if not refused:
            return readings
        others = [r for r in readings if r.stream in refused]
        text = f"{'/'.join(origin)} may not publish {min(refused)!r}; not taken: {_shown(others)}"
        if min(refused).startswith(DERIVED_PREFIX):
            text += "; send it the rule with `whenabouts-cloud publish`, or name the stream in the file of gateways"
        self._bury(topic, payload, "stream", text)
        return [r for r in readings if r.stream not in refused]

    def _bury_conflicts(self, topic: str, conflicts: list[Reading]) -> None:
        """One dead letter for all conflicts of a message, with the first in full."""
        self.counters.conflicts += len(conflicts)
        first = conflicts[0]
        text = f"boot {first.boot} number {first.seq} came with another content before; the first one stays"
        if len(conflicts) > 1:
            text += f"; so did {len(conflicts)} readings of this message: {_shown(conflicts)}"
        self._bury(topic, repr(first).encode(), "conflict", text)

    def _report_conflicts(self) -> None:
        """Log conflicts, at most once a flush: readings with a known identity and another content."""
        new = self.counters.conflicts - self._reported_conflicts
        if new:
            log.error(
                "reading.conflict", "another content came under a known identity; the first one stays, see _dead; does a "
                "gateway use another's name, or an old spool?", readings=new,
            )  # fmt: skip
        self._reported_conflicts = self.counters.conflicts

    def _note_ahead(self, origin: Gateway, readings: int) -> None:
        if origin not in self.by_gateway.ahead.counts:
            log.error(
                "gateway.readings_ahead", "they begin in the future and are in _ahead; check its clock and this machine's",
                gateway="/".join(origin), readings=readings,
            )  # fmt: skip
        self.by_gateway.ahead.add(origin, readings)

    def _take_heartbeat(self, origin: Gateway, payload: bytes) -> None:
        heartbeat = decode_heartbeat(payload)
        _check_origin(origin, (heartbeat.site, heartbeat.gateway))
        now_us = self._now_us()
        kept_from = {boot: self._gateways.first_kept(origin, boot) for boot in heartbeat.published}
        before = self._gateways.heard(origin, heartbeat, now_us)
        if self._health is not None:
            self._health.heartbeat(heartbeat, now_us)
        self._count_lost(origin, before, heartbeat, now_us)
        self._note_clock_ahead(origin, heartbeat.frontier_us, now_us)
        for boot, (first, _) in heartbeat.published.items():
            reach = self._ledger.reach(ledger_name(*origin), boot, kept_from[boot])
            if reach < first - 1:
                self._to_ack.setdefault(origin, set()).add(boot)
                self.counters.forgotten += first - 1 - reach
                if self._log_limit.allows("numbers_elsewhere", origin, now_us):
                    log.warning(
                        "gateway.numbers_elsewhere", "these were confirmed elsewhere and are not waited for",
                        gateway="/".join(origin), boot=boot, first=reach + 1, last=first - 1,
                    )  # fmt: skip

    def _count_lost(self, origin: Gateway, before: Heartbeat | None, heartbeat: Heartbeat, now_us: int) -> None:
        """Count what the gateway lost since its previous heartbeat; warn when losses begin."""
        for what, why in (("refused", "its spool is full"), ("invalid", "its readers send invalid data")):
            known = getattr(before, what) or 0 if before is not None and before.boot == heartbeat.boot else 0
            new = (getattr(heartbeat, what) or 0) - known
            if new > 0:
                setattr(self.counters, what, getattr(self.counters, what) + new)
                if not known and self._log_limit.allows(what, origin, now_us):
                    log.warning(
                        f"gateway.{what}",
                        f"{why}; see `whenabouts-edge status` there",
                        gateway="/".join(origin),
                        readings=new,
                    )

    def _note_clock_ahead(self, origin: Gateway, frontier_us: int | None, now_us: int) -> None:
        if frontier_us is not None and frontier_us > now_us + CLOCK_AHEAD_US and origin not in self._clocks_ahead:
            self._clocks_ahead.add(origin)
            self.counters.clocks_ahead += 1
            log.error(
                "gateway.clock_ahead", "its clock is ahead of this machine's; check both",
                gateway="/".join(origin), ahead_s=round((frontier_us - now_us) / 1e6, 1),
            )  # fmt: skip

    def _ack(self, origin: Gateway, boots: set[int]) -> Ack:
        reaches = {boot: self._confirmed(origin, boot) for boot in sorted(boots)[-MAX_ACK_BOOTS:]}
        return Ack(*origin, {boot: reach for boot, reach in reaches.items() if reach >= 0})

    def _confirmed(self, origin: Gateway, boot: int) -> int:
        """The number up to which a gateway may forget a boot, -1 for none: the last of those that landed here without a gap,
        from the first or from the lowest that the gateway still keeps.
        """
        name, first = ledger_name(*origin), self._gateways.first_kept(origin, boot)
        reach = self._ledger.reach(name, boot, first)
        return reach if reach >= first else self._ledger.reach(name, boot)

    def _write_frontiers(self, now_us: int) -> None:
        if 0 <= now_us - self._frontiers_written_us < FRONTIER_EVERY_US:
            return
        rows = list(self._gateways.moved(now_us))
        if not rows:
            return
        self._landing.write_frontiers(rows)
        self._gateways.frontiers.update({(row["site"], row["gateway"]): row["frontier_us"] for row in rows})
        self._frontiers_written_us = now_us
        self.counters.frontiers += len(rows)

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


def _shown(readings: list[Reading]) -> str:
    """The numbers of readings as ranges, in a text of bounded length."""
    found = runs(sorted({r.seq for r in readings}))
    shown = ", ".join(f"{first}..{last}" if last > first else str(first) for first, last in found[:MAX_SHOWN_RUNS])
    return shown if len(found) <= MAX_SHOWN_RUNS else f"{shown}, and {len(found) - MAX_SHOWN_RUNS} more ranges"


def _size(reading: Reading) -> int:
    """Bytes of a reading when it is written: names, which a message holds once for all readings, count for each."""
    texts = sum(map(_escaped, reading.attrs)) if reading.attrs else 0
    return READING_BYTES + len(reading.key or "") + len(reading.stream) + 8 * len(reading.vclock) + texts


def _escaped(name: str) -> int:
    """The most bytes that a name takes in JSON."""
    return 8 + (len(name) if name.isascii() else 12 * len(name))


def _digest(reading: Reading) -> int:
    """Hash of a reading's content, for this process only; the order of attributes does not count.

    Of its text, because True and 1 are equal and -1 and -2 have the same hash. This takes 3 of the 28 us that `take` needs
    for a reading; a hash of the values themselves would take 1 us and miss such conflicts.
    """
    return hash(repr((reading.site, reading.stream, reading.kind, reading.key, reading.value, reading.t_min,
                      reading.t_max, reading.clock_state, reading.vclock, reading.unit,
                      sorted(reading.attrs.items()))))  # fmt: skip
