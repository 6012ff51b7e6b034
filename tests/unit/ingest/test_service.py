"""The loop of the ingest over a source of messages (`whenabouts_cloud.ingest.service`)."""

import threading
import time

from support.cloud.ingest import at, quick_folder
from whenabouts_cloud.ingest import service as service_module
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.receiving.receiver import ReceiverLost
from whenabouts_cloud.ingest.receiving.reception import Received, Token
from whenabouts_cloud.ingest.service import FLUSH_MESSAGES, IngestService


class Source:
    """Gives what is listed; an error is raised. At the end it asks the service to stop."""

    def __init__(self, *given: Received | ReceiverLost) -> None:
        self._given = list(given)
        self.connections = 0
        self.service: IngestService | None = None

    def connect(self) -> str:
        self.connections += 1
        return "MQTTv5"

    def take(self, timeout_s: float) -> Received:
        if not self._given:
            self.service.stop()
            return Received([], {}, 0, True)
        one = self._given.pop(0)
        if isinstance(one, ReceiverLost):
            raise one
        return one

    def confirm(self, confirmed) -> None:
        """Nothing is sent."""

    def stop(self) -> None:
        """It never waits."""

    def close(self) -> None:
        """Nothing is open."""


def test_counts_of_lost_receiving_processes_add_up(tmp_path, monkeypatch):
    """Messages dropped, and refused, before and after another process took over; one is lost before the first answer."""
    monkeypatch.setattr(service_module, "RETRY_S", 0.01)
    landing = Landing(tmp_path)
    bridge = Bridge(landing)
    source = Source(
        ReceiverLost("at once"),
        Received([], {"wa/2/hall/evil": 3}, 2, True),
        Received([], {}, 1, False),
        ReceiverLost("later"),
        Received([], {"wa/2/hall/evil": 4}, 5, True),
    )
    source.service = service = IngestService(source, bridge, "broker")
    service.connect()
    service.run(lambda: None, 1.0)
    landing.close()
    assert (source.connections, service.dropped, bridge.counters.over_budget) == (3, 8, 7)


class Endless:
    """A source that always has one more message, which comes slowly."""

    def __init__(self) -> None:
        self.taken, self.confirmed = 0, threading.Event()

    def take(self, _timeout_s):
        time.sleep(0.002)
        self.taken += not self.confirmed.is_set()
        return Received([(at("g1"), b"noise", Token(1, self.taken, 1))], {}, 0, True)

    def confirm(self, confirmed):
        if confirmed.tokens:
            self.confirmed.set()

    def stop(self):
        pass

    close = stop


def test_messages_without_a_pause_are_confirmed_after_the_flush_time():
    """The inbox is left when it is time to flush, though it is never empty and the flush has room for more."""
    source = Endless()
    with quick_folder() as folder:
        service = IngestService(source, Bridge(Landing(folder)), "broker")
        running = threading.Thread(target=service.run, args=(lambda: None, 1.0))
        running.start()
        try:
            assert source.confirmed.wait(60.0)
        finally:
            service.stop()
            running.join()
    assert source.taken < FLUSH_MESSAGES // 4
