"""The agent of a board, without ports and sockets: takes bytes and the time, returns bytes, in steps that never wait.

readers -> store -> flash log -> publisher -> MQTT, beside them the clock, and the watermark in each heartbeat:
"everything with t_max < f has been published". It is made in three steps: at one moment take the time up to which every
port is clear, less the furthest that the stamp of a later frame can lie before it; wait until all readings accepted by
then are in the flash log and taken by the broker; only then publish it.

A driver (`run`) moves the bytes: it passes in bytes from ports and sockets, calls `step`, and writes the packets in
`mqtt`.
"""

from whenabouts_edge.backoff import Backoff
from whenabouts_edge.board.mqtt import Mqtt
from whenabouts_edge.board.publisher import Publisher
from whenabouts_edge.board.sntp import Clock, Exchange
from whenabouts_edge.board.store import Store
from whenabouts_edge.readers.session import ReaderSession, widest
from whenabouts_protocol.cbor import dumps
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.layout import (
    CLOCK_STATES,
    K_BOOT,
    K_BOUND,
    K_CLOCK_SOURCE,
    K_CLOCK_STATE,
    K_FRONTIER,
    K_GATEWAY,
    K_LANDED,
    K_PUBLISHED,
    K_REFUSED,
    K_SCHEMA,
    K_SITE,
    K_SPOOL_BYTES,
    K_SPOOL_READINGS,
    MAX_BOOTS,
    SCHEMA,
    boots_in,
    read_head,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_edge.board.flash_log import FlashLog
    from whenabouts_edge.board.group import BoardGroup
    from whenabouts_edge.board.rules import BoardRules
    from whenabouts_edge.readers.pending import PendingReading

SAVE_US = 60_000_000  # between writes of the landed position: less wear against more repeats after a cut
WATERMARK_US = 250_000
RECONNECT_US_MIN, RECONNECT_US_MAX = 500_000, 30_000_000
DELAY_US = 10_000_000  # in the birth message: readings arrive at most this late while the connection holds
LENGTH_US_MAX = 5_000_000  # in the birth message: longest stamp
QUICK_US, QUICK_LOSSES = 10_000_000, 3  # as in `uplink.trouble`: somebody ends these connections
UNREPORTED_MAX = 8  # states to publish to the peers; beyond it the oldest is dropped, as a newer one holds more


class Agent:
    """One board. config: as returned by `whenabouts_edge.board.config.checked`. flash_log: its boot has begun.

    rules: the content of the file of rules in the configuration. mqtt: the connection, or None while there is none to
    write to. problem: why there is none, or ''. births: birth messages made; after each the modules that only they need
    may be unloaded.

    Raises:
        ValueError: a reader that does not exist, or rules of another gateway.
    """

    def __init__(self, config: "dict[str, Any]", flash_log: "FlashLog", now_us: int, rules: bytes = b"") -> None:
        self._config, self._flash_log = config, flash_log
        self._site, self._gateway = config["site"], config["gateway"]
        self._topics = ""
        self.clock = Clock()
        self.exchange = Exchange(self.clock)
        self.readers = [ReaderSession(one, now_us) for one in config["readers"]]
        self.store = Store(self._site, self._gateway, flash_log, self.clock, 1000 * config["commit_ms"])
        self.publisher = Publisher(flash_log, 1_000_000 * config["resend_s"])
        self.mqtt: Mqtt | None = None
        self.problem = "not connected yet"
        self.connections = self.acks_refused = 0
        self._quick = self._connected_us = 0
        self.rules: BoardRules | None = None
        self.group: BoardGroup | None = None
        self._load(rules)
        self._states: list[bytes] = []  # for the peers, not published yet
        self._state = b""  # the newest
        self.births = 0
        self._statuses: dict[str, bytes] = {}
        self._birth = b""
        self._next_try_us = now_us
        self._backoff = Backoff(RECONNECT_US_MIN, RECONNECT_US_MAX)
        self._heartbeat_us = self._save_us = self._watermark_us = now_us
        self._pending_watermark: _PendingWatermark | None = None
        self._published_watermark: _PendingWatermark | None = None

    def prepare(self) -> None:
        """Make the birth and status messages, if not made yet. Separate from the constructor, as it takes memory.

        Raises:
            ValueError: names that are no topic levels, or a stream that a birth message cannot hold.
        """
        if not self._birth:
            from whenabouts_protocol.topics import topic  # only needed here

            self._topics = topic(self._site, self._gateway, "obs")[: -len("obs")]
            self._birth = self._announcement()

    # Ports.

    def took(self, reader: int, data: bytes, after_us: int, before_us: int) -> None:
        """Take in a reader's next bytes: the first came not before after_us, all by before_us."""
        self._accept(self.readers[reader].took(data, after_us, before_us), before_us)

    def silent(self, reader: int, empty_us: int) -> None:
        """Note that nothing had come from a reader by empty_us."""
        self._accept(self.readers[reader].silent(empty_us), empty_us)

    def _accept(self, pending_readings: "list[PendingReading]", now_us: int) -> None:
        if pending_readings:
            if self.group is not None:
                self.group.stamp(pending_readings)
            self.store.accept(pending_readings, now_us)

    # Rules and group, where configured.

    def _load(self, rules: bytes) -> None:
        config = self._config
        if "rules" in config:
            from whenabouts_edge.board.rules import BoardRules

            self.rules = BoardRules(self._site, self._gateway, config["rules"]["limit"], rules)
        if "group" in config:
            from whenabouts_edge.board.group import BoardGroup

            clock_heartbeat_us = 1000 * config["commit_ms"]
            self.group = BoardGroup(
                config["group"], self._site, self._gateway, self._flash_log.boot, clock_heartbeat_us
            )
        if "rules" in config or "group" in config:
            self.store.on_stored = self._stored

    def _stored(self, pending_readings: "list[PendingReading]", first_seq: int, now_us: int) -> None:
        """Handle readings that are numbered and durable: run the rules on them, and queue states for the peers."""
        rules = self.rules
        for n, pending in enumerate(pending_readings):
            derives = rules is not None and rules.wants(pending)
            if not derives and not pending.publish:
                continue
            reading = self.store.reading(pending, first_seq + n, now_us)
            if pending.publish:
                from whenabouts_protocol.messages.batch import encode_checked

                self._state = encode_checked([reading])  # `reading` checked it
                self._states.append(self._state)
                if len(self._states) > UNREPORTED_MAX:
                    del self._states[0]
            if rules is not None and derives:
                self.store.accept(rules.stored(pending, reading), now_us)

    def _detect(self, clear_us: int, now_us: int) -> None:
        """Store the states that are certain by now, before a watermark covers a later time."""
        group = self.group
        if group is None:
            return
        pending_readings = group.advance(clear_us, now_us, self.readers)
        if pending_readings:
            self.store.accept(pending_readings, now_us)
        if group.view_changed():
            self._announce(now_us)
        if group.peer_came:  # it may have missed states
            group.peer_came = False
            if self._state and not self._states:
                self._states = [self._state]

    def _announce(self, now_us: int) -> None:
        """Publish a changed birth, now if connected, and on every new connection."""
        self._birth = self._announcement()
        if self.mqtt is not None and self.mqtt.room:
            self.mqtt.publish(self._topic("birth"), self._birth, now_us, retain=True)

    # The broker.

    def wants_line(self, now_us: int) -> bool:
        """Return True if the driver should open a connection to the broker and then call `begin`, or `lost` if it cannot."""
        return self.mqtt is None and now_us >= self._next_try_us

    def begin(self, now_us: int) -> None:
        """Begin MQTT on an open connection to the broker."""
        self.prepare()
        broker = self._config["broker"]
        password = broker.get("password")
        self.mqtt = Mqtt(
            broker.get("client_id", self._site + "/" + self._gateway),
            broker["keepalive_s"],
            (self._topic("status"), self._statuses["offline"]),
            broker.get("username"),
            None if password is None else password.encode(),
        )
        self.mqtt.begin(now_us)

    def lost(self, reason: str, now_us: int) -> None:
        """Note that the connection was lost or could not be opened; try again after growing pauses."""
        self.mqtt = None
        if not self.problem:  # it was connected
            self._quick = self._quick + 1 if now_us - self._connected_us < QUICK_US else 0
            if self._quick >= QUICK_LOSSES:
                reason += "; another client uses this name"
        self.problem = reason
        self._next_try_us = now_us + self._backoff.pause_us(self._flash_log.boot)  # whose lowest bits are random

    def has_network(self, now_us: int) -> None:
        """Note that the network is back: try again without waiting any longer."""
        self._next_try_us = now_us
        self._backoff.reset()

    def heard(self, data: bytes, now_us: int) -> None:
        """Take in bytes from the broker."""
        mqtt = self.mqtt
        if mqtt is None:
            return
        for event in mqtt.feed(data, now_us):
            if event[0] == "connected" and mqtt.ended is None:  # a packet behind it may have ended it already
                self._connected(mqtt, now_us)
            elif event[0] == "taken":
                self.publisher.taken(event[1])  # type: ignore[arg-type]
            elif event[0] == "message":
                self._message(event[1], event[2], now_us)  # type: ignore[arg-type]

    def _message(self, name: str, payload: bytes, now_us: int) -> None:
        if name == self._topic("ack"):
            self._acknowledged(payload, now_us)
        elif self.rules is not None and name == self._topic("rules"):
            if self.rules.received(payload):
                self._announce(now_us)
        elif self.group is not None:
            self.group.heard(name, payload, now_us)

    def _connected(self, mqtt: Mqtt, now_us: int) -> None:
        self.problem = ""
        self._connected_us = now_us
        self._backoff.reset()
        self.connections += 1
        self.publisher.restart()
        # Subscribe before the birth is sent: peers answer it with their newest states. One by one: packets stay small.
        topics = []
        if self.group is not None:
            topics = self.group.topics
        if self.rules is not None:
            topics.append(self._topic("rules"))
        topics.append(self._topic("ack"))
        for name in topics:
            mqtt.subscribe([name], now_us)
        mqtt.publish(self._topic("birth"), self._birth, now_us, retain=True)
        mqtt.publish(self._topic("status"), self._statuses["online"], now_us, retain=True)
        self._states = [self._state] if self._state else []

    def _acknowledged(self, payload: bytes, now_us: int) -> None:
        flash_log = self._flash_log
        try:
            head = read_head(payload)
            landed = boots_in(head, K_LANDED)
        except WireError:
            self.acks_refused += 1
            return
        foreign = (head.get(K_SITE), head.get(K_GATEWAY)) != (self._site, self._gateway)
        reach = self.publisher.reach
        if foreign or landed.get(flash_log.boot, -1) > reach(flash_log.boot):  # for numbers not sent yet
            self.acks_refused += 1
            return
        forgotten = 0
        for boot in sorted(landed):
            # Earlier boots sent more, maybe; it is sent again, and acknowledged again.
            forgotten += flash_log.landed(boot, min(landed[boot], reach(boot)))
        if forgotten:
            self.publisher.landed(now_us)

    # Time.

    def step(self, now_us: int) -> None:
        """Do the work that is due; at most one message is stored. Raises OSError when the flash cannot be read."""
        self.store.step(now_us)
        mqtt = self.mqtt
        if mqtt is not None:
            mqtt.advance(now_us)
            if mqtt.ended is not None:
                self.lost(mqtt.ended, now_us)
            elif mqtt.connected:
                self.publisher.step(mqtt, self._topic("obs"), now_us)
                while self._states and mqtt.room:
                    mqtt.publish(self._topic("state"), self._states.pop(0), now_us)
        if now_us - self._watermark_us >= WATERMARK_US:
            self._watermark_us = now_us
            clear_us = self._clear_host_us()
            self._detect(clear_us, now_us)
            self._renew(clear_us if self.group is None else self.group.clear_until(clear_us))
        if now_us - self._heartbeat_us >= 1000 * self._config["heartbeat_ms"]:
            self._heartbeat_us = now_us
            self._heartbeat(now_us)
        if now_us - self._save_us >= SAVE_US:
            self._save_us = now_us
            self._flash_log.save()

    def stop(self, now_us: int) -> None:
        """End in order: store waiting readings and publish `stopped`. The driver writes the packets in `mqtt` after this."""
        while self.store.accepted > self.store.settled:
            self.store.step(now_us, flush=True)
        self.store.step(now_us, flush=True)  # a gap, if there is one
        self._flash_log.save()
        if self.mqtt is not None and self.mqtt.room:
            self.mqtt.publish(self._topic("status"), self._statuses["stopped"], now_us, retain=True)
            self.mqtt.disconnect(now_us)

    # The watermark.

    def _renew(self, clear_us: int) -> None:
        """Begin a pending watermark, or adopt the one that was begun if all that it covers has been published."""
        pending_watermark, store = self._pending_watermark, self.store
        if pending_watermark is None:
            if self.clock.sample is not None:
                self._pending_watermark = _PendingWatermark(self.clock.to_utc(clear_us, clear_us)[0], store.accepted)
            return
        if pending_watermark.end is None:
            if store.settled < pending_watermark.accepted:
                return
            if store.gap_open or (self.group is not None and self.group.owes):  # these must be stored before
                self._pending_watermark = None
                return
            if self.rules is not None and not pending_watermark.derived:
                # Readings derived from these came behind them; the watermark covers them too.
                pending_watermark.derived, pending_watermark.accepted = True, store.accepted
                self.rules.running.advance(pending_watermark.frontier_us)
                return
            pending_watermark.end, pending_watermark.published = self._flash_log.end, self._flash_log.numbers()
        if not self.publisher.is_published(pending_watermark.end):
            return
        self._pending_watermark = None
        newer = (
            self._published_watermark is None or pending_watermark.frontier_us > self._published_watermark.frontier_us
        )
        if newer and len(pending_watermark.published) <= MAX_BOOTS:
            self._published_watermark = pending_watermark

    def _clear_host_us(self) -> int:
        """Earliest moment at which the stamp of a reading not yet accepted can begin."""
        moments: list[int] = [reader.clear_us - reader.reach_us for reader in self.readers]
        return min(moments)

    # Messages.

    def _heartbeat(self, now_us: int) -> None:
        mqtt, watermark = self.mqtt, self._published_watermark
        if mqtt is None or not mqtt.connected:
            return
        published, kept = ({} if watermark is None else watermark.published), self._flash_log.numbers()
        still_kept = []  # as in the agent's `delivery.still_kept`
        for boot in sorted(kept)[:MAX_BOOTS]:
            first = kept[boot][0]
            if first or boot in published:
                still_kept.append([boot, first, max(first - 1, published[boot][1] if boot in published else -1)])
        heartbeat = {  # as in `heartbeats.encode_heartbeat`
            K_SCHEMA: SCHEMA,
            K_SITE: self._site,
            K_GATEWAY: self._gateway,
            K_BOOT: self._flash_log.boot,
            K_FRONTIER: None if watermark is None else watermark.frontier_us,
            K_PUBLISHED: still_kept,
            K_CLOCK_STATE: CLOCK_STATES.index(self.clock.state(now_us)),
            K_BOUND: self.clock.bound_us(now_us),
            K_SPOOL_READINGS: self._flash_log.readings,
            K_SPOOL_BYTES: self._flash_log.payload_bytes,
            K_REFUSED: self.store.refused,  # includes invalid readings, which are found when they are stored
            K_CLOCK_SOURCE: "sntp",
        }
        mqtt.publish(self._topic("heartbeat"), dumps(heartbeat), now_us, qos=0)

    def _announcement(self) -> bytes:
        """The present birth message; the first call also makes the status messages."""
        from whenabouts_edge.board.announce import birth, statuses

        site, gateway, boot = self._site, self._gateway, self._flash_log.boot
        if not self._statuses:
            self._statuses = statuses(site, gateway, boot)
        read = {r.stream: (r.reading_kind, r.unit) for r in self.readers}
        delay_us = DELAY_US + 1000 * self._config["commit_ms"]
        streams = [(name, read[name][0], read[name][1]) for name in sorted(read)]
        if self.rules is not None:
            streams += [(name, "measure", "[ppm]") for name in self.rules.streams]
        group, view = None, [gateway]
        if self.group is not None:
            streams.append((self.group.stream, "state", None))
            group, view = self.group.name, self.group.members
        parts_us = widest([(r.stream, r.parts_us) for r in self.readers])
        reported = []
        for name, kind, unit in streams:  # how often a board looks at a port is part of what it gathers
            parts = parts_us[name] + (None,) if name in parts_us else ()
            reported.append((name, kind, unit, delay_us, LENGTH_US_MAX) + parts)  # noqa: RUF005
        self.births += 1
        return birth(site, gateway, boot, reported, group, view, self._config.get("build", ""))

    def _topic(self, leaf: str) -> str:
        return self._topics + leaf


class _PendingWatermark:
    """A watermark on its way: its frontier, the count of readings accepted by then, and their end in the flash log."""

    __slots__ = ("accepted", "derived", "end", "frontier_us", "published")

    def __init__(self, frontier_us: int, accepted: int) -> None:
        self.frontier_us, self.accepted, self.derived = frontier_us, accepted, False
        self.end: tuple[int, int] | None = None
        self.published: dict[int, tuple[int, int]] = {}
