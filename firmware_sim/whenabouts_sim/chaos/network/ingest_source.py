"""Where a simulated ingest gets its messages: a kept session at the broker, and the real inbox."""

import asyncio
from collections.abc import Sequence
from contextvars import Context

from whenabouts_cloud.ingest.receiving.inbox import Inbox
from whenabouts_cloud.ingest.receiving.reception import LEAVES, TAKEN_MESSAGES, Confirmed, Received, Token
from whenabouts_protocol.topics import subscription
from whenabouts_sim.chaos.machine.process import Process
from whenabouts_sim.chaos.network.broker_model import Broker, Connection, Message
from whenabouts_sim.chaos.network.next_version import next_topic, understood, upgraded

AGAIN_S = 1.0  # between attempts to connect


class IngestSource:
    """A source (`reception.Source`) over a simulated connection; connects again by itself, as paho does.

    knows_next: it understands the next version of the wire beside the present one.
    """

    def __init__(
        self, broker: Broker, process: Process, session: str, sites: Sequence[str] = (), knows_next: bool = False
    ) -> None:
        self._knows_next = knows_next
        self._broker, self._process, self._session = broker, process, session
        self._sites = sites or ("+",)
        self._context: Context = process.context
        self._inbox: Inbox[tuple[str, bytes, Token]] = Inbox()
        self._connection: Connection | None = None
        self._connections = self._dropped = self._told_dropped = 0
        self._taken: dict[tuple[int, int], Message] = {}  # not confirmed yet, by connection and number
        self.arrived = asyncio.Event()
        process.ended.append(self._died)

    def connect(self) -> str:
        """Connect, now or as soon as the broker can be reached."""
        self._try()
        return "MQTTv5"

    def take(self, _timeout_s: float) -> Received:
        """What has come."""
        messages = list[tuple[str, bytes, Token]]()
        while len(messages) < TAKEN_MESSAGES and (message := self._inbox.get()) is not None:
            messages.append(message)
        self.arrived.clear()
        dropped, self._told_dropped = self._dropped - self._told_dropped, self._dropped
        connected = self._connection is not None and not self._connection.broken
        return Received(messages, self._inbox.take_refused(), dropped, connected)

    def confirm(self, confirmed: Confirmed) -> None:
        """Acknowledge messages to the broker, and send acknowledgements to gateways."""
        connection = self._connection
        if connection is None or not self._process.alive:
            return
        for token in confirmed.tokens:
            if token.qos and token.connection == self._connections:
                connection.acknowledge(token.mid)
                message = self._taken.pop((token.connection, token.mid), None)  # None: it came twice
                self._broker.confirmed += [] if message is None else [message]
        for topic, payload in confirmed.acks:
            ack = Message(topic, payload, 1, True)
            for one in (ack, upgraded(ack)) if self._knows_next else (ack,):
                connection.publish(one, 0)

    def stop(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Disconnect; the broker keeps the session."""
        if self._connection is not None:
            self._connection.disconnect()

    def came(self, message: Message, mid: int) -> None:
        """A message came."""
        message = understood(message) if self._knows_next else message
        token = Token(self._connections, mid, message.qos)
        sender = message.topic.rpartition("/")[0]
        added = self._inbox.put(sender, (message.topic, message.payload, token), len(message.payload), 0.0)
        self._taken[self._connections, mid] = message
        if added is None and not message.qos:
            self._dropped += 1
        if added is False and message.qos and self._connection is not None:
            self._connection.acknowledge(mid)  # refused: the gateway's spool keeps it
        self.arrived.set()

    def taken(self, mid: int) -> None:
        """Acknowledgements to gateways are not waited for."""

    def refused(self, mid: int) -> None:
        """A gateway that is not told sends again."""

    def lost(self) -> None:
        """The connection has broken."""
        self._again()

    def _try(self) -> None:
        try:
            self._connection = self._broker.connect(self._session, self, None, keep=True)
        except ConnectionRefusedError:
            self._again()
            return
        self._connections += 1
        filters = {subscription(leaf, site): qos for leaf, qos in LEAVES for site in self._sites}
        if self._knows_next:
            filters |= {next_topic(name): qos for name, qos in filters.items()}
        self._connection.subscribe(filters)

    def _again(self) -> None:
        if self._process.alive:
            self._broker.loop.call_later(AGAIN_S, self._try, context=self._context)

    def _died(self) -> None:
        if self._connection is not None and not self._connection.broken:
            self._connection.broken = True
            self._broker.cut(self._session)
