"""A part of the system on a machine of its own: the process that runs it, started again after it has ended."""

import errno
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.machine.process import Machine, Process
from whenabouts_sim.chaos.machine.running import Killed


class Part(ABC):
    """A part during a schedule. told: gets errors that no process should end with. is_next: it was upgraded."""

    ends_on_full_disk: ClassVar[tuple[type[Exception], ...]] = (
        OSError,
    )  # with these it may end while the disk is full, or has refused a write

    def __init__(self, name: str, machine: Machine, loop: VirtualLoop, told: Callable[[str], None]) -> None:
        self.name, self.machine = name, machine
        self._loop, self._told = loop, told
        self.process: Process | None = None
        self.is_next = False

    def start(self) -> None:
        """Start it, unless it runs, or its machine has no power."""
        if self.machine.off or (self.process is not None and self.process.alive):
            return
        if self.process is not None:
            self.process.bury()
        process = self.process = Process(self.name, self.machine, self._loop)
        process.start(lambda: self._work(process))

    def stop(self) -> None:
        """Ask it to end in order."""
        if self.process is not None and self.process.alive:
            self.process.context.run(self._stop)

    def end(self) -> None:
        """Kill it."""
        if self.process is not None:
            self.process.kill()

    @abstractmethod
    def _stop(self) -> None:
        """Ask the product's code to end."""

    @abstractmethod
    async def _serve(self, process: Process) -> None:
        """The product's code."""

    async def _work(self, process: Process) -> None:
        try:
            await self._serve(process)
        except Killed:
            return
        except Exception as error:
            disk = self.machine.disk
            excused = (disk.full or disk.failed) and isinstance(error, self.ends_on_full_disk) and _is_of_disk(error)
            if process.alive and not excused:
                self._told(f"{self.name} ended: {error!r}")
        process.kill()


def _is_of_disk(error: Exception) -> bool:
    """False for an error of the system that no full or failing disk gives."""
    return not isinstance(error, OSError) or error.errno in (errno.EIO, errno.ENOSPC)
