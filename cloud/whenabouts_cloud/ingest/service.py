"""Driver of the bridge: takes messages from where they are received, lands them, and confirms what is durable."""

import threading
import time
from collections import deque
from collections.abc import Callable

from whenabouts_cloud.broker.connection import BrokerError
from whenabouts_cloud.ingest.bridge import Bridge, Flushed
from whenabouts_cloud.ingest.receiving.receiver import ReceiverLost
from whenabouts_cloud.ingest.receiving.reception import Confirmed, Source, Token
from whenabouts_protocol import encode_ack, topic
from whenabouts_protocol.logs import Log

FLUSH_S = 0.5  # readings wait at most this long for a file
FLUSH_READINGS = 10_000  # take a quarter of a second
FLUSH_BYTES = 16 << 20  # of messages, readings and dead letters: bounds the memory for large or hostile ones
FLUSH_MESSAGES = 4000
WAIT_S = 0.02  # for a message
IDLE_S = 0.05  # with a small receive window: flush after this long without a message
RETRY_S = 1.0
OLD_VERSION = "MQTTv311"  # its brokers often allow only some twenty unacknowledged messages

log = Log(__name__)


class IngestService:
    """Lands the messages of a source. name: of the broker, in the log."""

    def __init__(self, source: Source, bridge: Bridge, name: str) -> None:
        self._source, self._bridge, self._name = source, bridge, name
        self._stopping = threading.Event()
        self._received: deque[tuple[str, bytes, Token]] = deque()  # and not taken by the bridge yet
        self._small_window = False
        self._flushed_s = time.monotonic()
        self.connected = False
        self.dropped = 0  # messages of QoS 0 that arrived at a full inbox

    def connect(self) -> None:
        """Connect with the newest version of MQTT that the broker supports. Returns early when stopped.

        Raises:
            BrokerError: it cannot be reached, or refuses the connection; or the receiving process has ended.
        """
        version = "" if self._stopping.is_set() else self._source.connect()
        if version:
            self._small_window, self.connected = version == OLD_VERSION, True
            log.info("broker.connected", broker=self._name, version=version)

    def run(self, tick: Callable[[], None], tick_s: float) -> None:
        """Land messages until `stop`; calls tick about every tick_s seconds. Flushes before it returns.

        Messages received but not taken yet stay at the broker, which sends them to the next start.
        """
        ticked_s = time.monotonic()
        while not self._stopping.is_set():
            try:
                if not self.turn():
                    self._stopping.wait(RETRY_S)
            except ReceiverLost as error:
                self._connect_again(error)
            if time.monotonic() - ticked_s >= tick_s:
                ticked_s = time.monotonic()
                tick()
        self._flush_last()
        self.close()

    def turn(self) -> bool:
        """Take what has come, and land it when it is time; False if the landing cannot be written now.

        Raises:
            ReceiverLost: what is durable is not confirmed; it comes again, and counts as repeats.
            LandingLost: another ingest holds the landing.
        """
        idle = not self._receive(self._flushed_s + FLUSH_S)
        due = time.monotonic() - self._flushed_s >= FLUSH_S or self._full
        if not due and not (idle and self._small_window and self._bridge.waiting):
            return True
        flushed = self._flush()
        self._flushed_s = time.monotonic()
        return flushed

    def stop(self) -> None:
        """Make `connect` and `run` end; callable from any thread, not from a signal handler."""
        self._stopping.set()
        self._source.stop()

    def close(self) -> None:
        """Disconnect; the broker keeps the session."""
        self.connected = False
        self._source.close()

    @property
    def _full(self) -> bool:
        bridge = self._bridge
        return (
            bridge.waiting_readings >= FLUSH_READINGS
            or bridge.waiting_bytes >= FLUSH_BYTES
            or bridge.waiting >= FLUSH_MESSAGES
        )

    def _receive(self, until_s: float) -> bool:
        """Take received messages until it is time to flush; True if any came. Takes none when full."""
        taken = False
        while not (self._full or self._stopping.is_set() or time.monotonic() >= until_s):
            if not self._received and not self._ask():
                break
            self._bridge.take(*self._received.popleft())
            taken = True
        return taken

    def _ask(self) -> bool:
        """Get the next messages; True if any came."""
        received = self._source.take(IDLE_S if self._small_window else WAIT_S)
        self.dropped += received.dropped
        self.connected = received.connected
        self._bridge.refused(received.refused)
        self._received.extend(received.messages)
        return bool(received.messages)

    def _flush(self) -> bool:
        """Make durable what was taken, and confirm it; False if it cannot be written now. Errors as for `turn`."""
        try:
            done = self._bridge.flush()
        except OSError as error:
            log.error("landing.unwritable", "nothing is acknowledged; tries again", error=error)
            return False
        self._source.confirm(_confirmed(done))
        return True

    def _flush_last(self) -> None:
        try:
            self._flush()
        except ReceiverLost:
            log.debug("receiver.ended", "at the end of the ingest")

    def _connect_again(self, error: ReceiverLost) -> None:
        self.connected = False
        self._received.clear()
        log.error("receiver.ended", "starts another; what was not acknowledged comes again", error=error)
        while not self._stopping.wait(RETRY_S):
            try:
                self.connect()
            except BrokerError as failure:
                log.warning("broker.lost", "tries again", reason=failure)
            else:
                return


def _confirmed(done: Flushed) -> Confirmed:
    acks = [(topic(ack.site, ack.gateway, "ack"), encode_ack(ack)) for ack in done.acks if ack.landed]
    return Confirmed([token for token in done.tokens if isinstance(token, Token)], acks)
