"""A simulated ingest: the real bridge and its driver over a landing on a simulated disk."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

from whenabouts_cloud.ingest import service as service_module
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.holding import LandingError
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.owners import OwnersFile
from whenabouts_cloud.ingest.service import FLUSH_S, RETRY_S, IngestService
from whenabouts_cloud.landing.damage import check
from whenabouts_cloud.landing.repair import locked, repair
from whenabouts_cloud.landing.store import Store
from whenabouts_edge.events import set_within
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.machine.process import Machine, Process
from whenabouts_sim.chaos.machine.running import Killed
from whenabouts_sim.chaos.network.broker_model import Broker
from whenabouts_sim.chaos.network.ingest_source import IngestSource
from whenabouts_sim.chaos.parts.part import Part


class Ingest(Part):
    """An ingest. folder: its part of the landing. sites: what it lands, none: all. session: its name at the broker.
    gateways: the file that says who may publish what. is_damaged: a file of it has changed, and is repaired if it does not
    start.
    is_checked: its operator repairs its landing before its next start.
    """

    ends_on_full_disk = (LandingError, OSError)

    def __init__(
        self, name: str, folder: Path, machine: Machine, loop: VirtualLoop, broker: Broker, told: Callable[[str], None],
        sites: Sequence[str] = (), gateways: Path | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, machine, loop, told)
        self._file = gateways
        self._watched: OwnersFile | None = None
        self.folder, self._broker, self.sites = folder, broker, tuple(sites)
        self.bridge: Bridge | None = None
        self.session = ""
        self.is_damaged = self.is_checked = self._stopping = False
        self._serving: tuple[Process, IngestService] | None = None
        self._error: Exception | None = None  # of what it did while another program ran

    def flush_meanwhile(self) -> None:
        """Land what it has taken, in the middle of what another program does."""
        process, service = self._serving or (None, None)
        # The next process may have been started, and not have begun.
        if (
            process is None
            or service is None
            or process is not self.process
            or not process.alive
            or self._error is not None
        ):
            return

        def flush() -> None:
            try:
                service.turn()
            except Killed:
                pass
            except Exception as error:
                self._error = error

        with patch.object(service_module, "FLUSH_S", 0.0):
            process.context.run(flush)

    def look_at_owners(self) -> None:
        """Read the file of gateways again if it has changed, as it does every few seconds."""
        if self.process is not None and self.process.alive and self._watched is not None:
            self.process.context.run(self._watched.look)

    def _opened(self) -> tuple[Landing, Bridge]:
        landing = Landing(Store.at(self.folder))
        try:
            owners = None
            if self._file is not None:
                self._watched = OwnersFile(self._file)
                owners = self._watched.owners
            return landing, Bridge(landing, owners=owners, sites=self.sites)
        except LandingError:
            landing.close()
            raise

    def _repair(self) -> None:
        with locked(self.folder):
            repair(self.folder, check(self.folder), time.time_ns() // 1000)

    async def _serve(self, process: Process) -> None:
        if self.is_checked:
            self._repair()
            self.is_checked = False
        try:
            landing, bridge = self._opened()
        except LandingError:
            if not self.is_damaged:
                raise
            self._repair()  # its message says that the operator does it now
            landing, bridge = self._opened()
        self.bridge = bridge
        self.session = f"wa-ingest-{landing.session}"
        source = IngestSource(self._broker, process, self.session, self.sites, self.is_next)
        service = IngestService(source, bridge, "broker")
        service.connect()
        self._serving, self._error, self._stopping = (process, service), None, False
        while not self._stopping:
            if self._error is not None:
                raise self._error
            await asyncio.sleep(process.delay_s(disk=True))
            await set_within(source.arrived, FLUSH_S if service.turn() else RETRY_S)
        self._serving = None
        service.stop()
        service.run(lambda: None, 0.0)  # which flushes and closes
        landing.close()

    def _stop(self) -> None:
        self._stopping = True
