"""A simulated ingest: the real bridge and its driver over a landing on a simulated disk."""

from collections.abc import Callable
from pathlib import Path

from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.holding import LandingError
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.service import FLUSH_S, RETRY_S, IngestService
from whenabouts_cloud.landing.store import Store
from whenabouts_edge.events import set_within
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.machine.process import Machine, Process
from whenabouts_sim.chaos.machine.running import Killed
from whenabouts_sim.chaos.network.broker_model import Broker
from whenabouts_sim.chaos.network.ingest_source import IngestSource


class Ingest:
    """An ingest during a schedule. told: gets errors that no ingest should end with."""

    def __init__(
        self, name: str, folder: Path, machine: Machine, loop: VirtualLoop, broker: Broker, told: Callable[[str], None]
    ) -> None:
        self.name, self.folder, self.machine = name, folder, machine
        self._loop, self._broker, self._told = loop, broker, told
        self.process: Process | None = None
        self.bridge: Bridge | None = None
        self.session = ""

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.process is not None:
            if self.process.alive:
                return
            self.process.bury()
        self.process = Process(self.name, self.machine, self._loop)
        self.process.start(self._work)

    async def _work(self) -> None:
        process = self.process
        assert process is not None
        try:
            await self._serve(process)
        except Killed:
            return
        except (LandingError, OSError) as error:
            if not self.machine.disk.full:
                self._told(f"{self.name} ended: {error}")
        except Exception as error:
            self._told(f"{self.name} ended: {error!r}")
        if process.alive:
            process.kill()

    async def _serve(self, process: Process) -> None:
        landing = Landing(Store.at(self.folder))
        self.bridge = bridge = Bridge(landing)
        self.session = f"wa-ingest-{landing.session}"
        source = IngestSource(self._broker, process, self.session)
        service = IngestService(source, bridge, "broker")
        service.connect()
        while True:
            await set_within(source.arrived, FLUSH_S if service.turn() else RETRY_S)
