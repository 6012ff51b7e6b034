"""A simulated MQTT broker: sessions, retained messages, wills, QoS 1, and connections that are slow, stall and break.

Over one connection messages arrive in order, or the connection ends and what was on its way is lost, as with TCP. Beyond
that a broker promises little, and this one takes the liberty: after a reconnection it sends again what was not acknowledged,
it may send a message twice, and it may lose sessions and retained messages.
"""

from collections import OrderedDict
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, Protocol

from whenabouts_sim.chaos.machine.loop import VirtualLoop

SLOWEST_S = 0.05  # of a message, between a client and the broker
TICK_S = 1e-6  # between two messages on one connection: the loop keeps no order of timers for one moment
NOTICED_S = 1.0  # until both ends notice that a connection has broken


class Message(NamedTuple):
    """A published message."""

    topic: str
    payload: bytes
    qos: int
    retain: bool


class Client(Protocol):
    """What a client learns of its connection."""

    def came(self, message: Message, mid: int) -> None:
        """A message came; mid is 0 with QoS 0."""

    def taken(self, mid: int) -> None:
        """The broker has taken a message."""

    def refused(self, mid: int) -> None:
        """The broker has refused a message."""

    def lost(self) -> None:
        """The connection has broken."""


@dataclass
class Session:
    """What the broker keeps of a client. waiting: messages that it has not acknowledged, by number."""

    filters: dict[str, int] = field(default_factory=dict)
    waiting: "OrderedDict[int, Message]" = field(default_factory=OrderedDict)
    connection: "Connection | None" = None
    kept: bool = False
    next_mid: int = 1


class Connection:
    """One connection of a client. broken: nothing passes any more; left: the client sends no more."""

    def __init__(self, broker: "Broker", name: str, client: Client, will: Message | None) -> None:
        self._broker, self.name, self._client = broker, name, client
        self.will = will
        self.broken = self.stalled = self.left = False
        self._up_s = self._down_s = 0.0  # when the newest message arrives
        self._held: list[tuple[bool, Callable[[], None]]] = []  # while it stalls

    def publish(self, message: Message, mid: int) -> None:
        """Send a message to the broker."""
        self._send(True, lambda: self._broker.published(self, message, mid))

    def subscribe(self, filters: dict[str, int]) -> None:
        """Ask for messages: QoS by filter."""
        self._send(True, lambda: self._broker.subscribed(self, filters))

    def acknowledge(self, mid: int) -> None:
        """Acknowledge a message."""
        self._send(True, lambda: self._broker.acknowledged(self, mid))

    def disconnect(self) -> None:
        """End in order: no will is published."""
        self.will = None
        self._send(True, lambda: self._broker.end(self))
        self.left = True

    def deliver(self, message: Message, mid: int) -> None:
        """Send a message to the client."""

        def come() -> None:
            self._broker.arrived(self.name, message)
            self._client.came(message, mid)

        self._send(False, come)

    def take(self, mid: int) -> None:
        """Tell the client that a message was taken."""
        self._send(False, lambda: self._client.taken(mid))

    def refuse(self, mid: int) -> None:
        """Tell the client that a message was refused."""
        self._send(False, lambda: self._client.refused(mid))

    def cut(self, noticed_s: float) -> None:
        """Break it: what is on its way is lost, and the client learns of it after a while."""
        if not self.broken:
            self.broken = True
            self._broker.loop.call_later(noticed_s, self._client.lost, context=self._broker.context)

    def release(self) -> None:
        """What was held while it stalled goes on."""
        self.stalled = False
        held, self._held = self._held, []
        for upwards, arrive in held:
            self._send(upwards, arrive)

    def _send(self, upwards: bool, arrive: Callable[[], None]) -> None:
        if self.broken or (self.left and upwards):
            return
        if self.stalled:
            self._held.append((upwards, arrive))
            return
        loop = self._broker.loop
        at_s = loop.time() + self._broker.latency_s()
        at_s = max(at_s, (self._up_s if upwards else self._down_s) + TICK_S)
        if upwards:
            self._up_s = at_s
        else:
            self._down_s = at_s
        loop.call_at(at_s, self._arrive, upwards, arrive, context=self._broker.context)

    def _arrive(self, upwards: bool, arrive: Callable[[], None]) -> None:
        if self.stalled:
            self._held.append((upwards, arrive))
        elif not self.broken:
            arrive()


class Broker:
    """The broker. most_waiting: messages that it keeps for a session; further ones are dropped. unreachable: clients that
    cannot connect. refuses: the probability with which it refuses a message of QoS 1, by client. slow: times as slow as
    usual. twice: the probability with which it sends a message of QoS 1 twice. confirmed: what ingests have acknowledged
    after they had processed it.

    witness, arrived: are told of each message that it takes from a client, and that reaches one. linked: is told when
    messages begin, and cease, to pass between it and a client.
    """

    def __init__(self, loop: VirtualLoop, chance: Random, most_waiting: int = 1000) -> None:
        self.loop, self._chance, self._most_waiting = loop, chance, most_waiting
        self.context = copy_context()  # of the world, not of the process that sends
        self.sessions: dict[str, Session] = {}
        self.retained: dict[str, Message] = {}
        self.unreachable: set[str] = set()
        self.refuses: dict[str, float] = {}
        self.slow = 1.0
        self.twice = 0.0
        self.witness: Callable[[str, Message], None] = lambda name, message: None
        self.arrived: Callable[[str, Message], None] = lambda name, message: None
        self.linked: Callable[[str, bool], None] = lambda name, is_up: None
        self.confirmed = list[Message]()

    def latency_s(self) -> float:
        """How long the next message takes."""
        return self.slow * SLOWEST_S * self._chance.random() ** 3

    def connect(self, name: str, client: Client, will: Message | None, keep: bool) -> Connection:
        """Open a connection; an earlier one of this name ends.

        Raises:
            ConnectionRefusedError: the broker cannot be reached.
        """
        if name in self.unreachable:
            raise ConnectionRefusedError("the broker cannot be reached")
        session = self.sessions.get(name)
        if session is None or not (keep and session.kept):
            if session is not None and session.connection is not None:
                self._break(session, 0.0)
            session = self.sessions[name] = Session()
        elif session.connection is not None:
            self._break(session, 0.0)
        session.kept = keep
        connection = session.connection = Connection(self, name, client, will)
        self.linked(name, True)
        for mid, message in session.waiting.items():
            connection.deliver(message, mid)
        return connection

    def published(self, connection: Connection, message: Message, mid: int) -> None:
        """A message has come from a client."""
        refuses = self.refuses.get(connection.name, 0.0) if message.qos else 0.0
        if refuses and self._chance.random() < refuses:
            connection.refuse(mid)
            return
        self.witness(connection.name, message)
        self.spread(message)
        if message.qos:
            connection.take(mid)

    def spread(self, message: Message) -> None:
        """Send a message to all who have asked for it, and retain it if it says so."""
        if message.retain:
            if message.payload:
                self.retained[message.topic] = message
            else:
                self.retained.pop(message.topic, None)
        for session in list(self.sessions.values()):
            found = [qos for one, qos in session.filters.items() if matches(one, message.topic)]
            if found:
                self._queue(session, message._replace(qos=min(max(found), message.qos), retain=False))

    def subscribed(self, connection: Connection, filters: dict[str, int]) -> None:
        """A client asks for messages."""
        session = self._session(connection)
        if session is None:
            return
        session.filters.update(filters)
        for name, message in self.retained.items():
            for one, qos in filters.items():
                if matches(one, name):
                    self._queue(session, message._replace(qos=min(qos, message.qos)))

    def acknowledged(self, connection: Connection, mid: int) -> None:
        """A client has acknowledged a message."""
        session = self._session(connection)
        if session is not None:
            session.waiting.pop(mid, None)

    def end(self, connection: Connection) -> None:
        """A client leaves in order."""
        connection.broken = True
        session = self._session(connection)
        if session is not None:
            self.linked(connection.name, False)
            session.connection = None
            if not session.kept:
                del self.sessions[connection.name]

    def cut(self, name: str, noticed_s: float = NOTICED_S) -> None:
        """Break the connection of a client; the broker notices too, and publishes the will."""
        session = self.sessions.get(name)
        if session is not None and session.connection is not None:
            self._break(session, noticed_s)

    def stall(self, name: str) -> None:
        """Nothing passes over the connection of a client, which stands."""
        session = self.sessions.get(name)
        if session is not None and session.connection is not None:
            session.connection.stalled = True
            self.linked(name, False)

    def release(self, name: str) -> None:
        """The connection of a client carries messages again, first those that waited."""
        session = self.sessions.get(name)
        if session is not None and session.connection is not None:
            session.connection.release()
            self.linked(name, True)

    def restart(self, forget_sessions: bool, forget_retained: bool) -> None:
        """Break all connections, as a broker that is started again, with or without what it kept on its disk."""
        for name, session in list(self.sessions.items()):
            if session.connection is not None:
                self.linked(name, False)
                session.connection.will = None
                session.connection.cut(self._chance.random() * NOTICED_S)
                session.connection = None
        self.sessions = {} if forget_sessions else {n: s for n, s in self.sessions.items() if s.kept}
        if forget_retained:
            self.retained.clear()

    def _break(self, session: Session, noticed_s: float) -> None:
        connection, session.connection = session.connection, None
        assert connection is not None
        self.linked(connection.name, False)
        connection.cut(noticed_s)
        if not session.kept:
            self.sessions.pop(connection.name, None)
        if connection.will is not None:
            self.spread(connection.will)

    def _session(self, connection: Connection) -> Session | None:
        session = self.sessions.get(connection.name)
        return session if session is not None and session.connection is connection else None

    def _queue(self, session: Session, message: Message) -> None:
        if not message.qos:
            if session.connection is not None:
                session.connection.deliver(message, 0)
            return
        if len(session.waiting) >= self._most_waiting:
            return
        mid, session.next_mid = session.next_mid, session.next_mid % 65535 + 1
        session.waiting[mid] = message
        if session.connection is not None:
            session.connection.deliver(message, mid)
            if self._chance.random() < self.twice:
                session.connection.deliver(message, mid)


def matches(pattern: str, topic: str) -> bool:
    """Return True if a topic fits a filter with + and #."""
    parts, names = pattern.split("/"), topic.split("/")
    for at, part in enumerate(parts):
        if part == "#":
            return True
        if at >= len(names) or part not in ("+", names[at]):
            return False
    return len(parts) == len(names)
