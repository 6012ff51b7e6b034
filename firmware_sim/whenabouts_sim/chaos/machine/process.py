"""Simulated machines, and the processes on them, which can be killed between any two steps.

A process is the code that runs in a context with its name. Killed, none of its callbacks is ever called again, its disk
refuses what it still does, and no `finally` of it has any effect: as with SIGKILL.
"""

import contextlib
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from random import Random
from typing import Any

from whenabouts_sim.chaos.machine.disk import Disk
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.machine.running import RUNNING, Killed, running


@dataclass
class Machine:
    """A computer. on_ns: when it was switched on; off: it has no power.

    back_ns: how far its clock is behind UTC. usual_disk_s, usual_threads_s: the most that disk and threads let others wait
    on a good day; disk_s, threads_s: now.
    """

    name: str
    disk: Disk
    on_ns: int
    off: bool = False
    runs: int = 0
    back_ns: int = 0
    usual_disk_s: float = 0.0
    usual_threads_s: float = 0.0

    def __post_init__(self) -> None:
        self.disk_s, self.threads_s = self.usual_disk_s, self.usual_threads_s
        self.chance = Random(f"machine/{self.name}")

    @property
    def run(self) -> str:
        """Name of the time since it was switched on."""
        return f"{self.name}-{self.runs}"


@dataclass(eq=False)
class Process:
    """A running program. writes_left: it is killed before so many more writes to its disk; None: it is not. on_write: what
    happens then, instead of a kill. syncs_left, on_sync: the same for syncs of folders.

    ended: called when it is killed, for what others see of it at once: its connections break. opened: its open files and
    databases, which the system closes.
    """

    name: str
    machine: Machine
    loop: VirtualLoop
    alive: bool = True
    writes_left: int | None = None
    on_write: Callable[[], None] | None = None
    syncs_left: int | None = None
    on_sync: Callable[[], None] | None = None
    ended: list[Callable[[], None]] = field(default_factory=list)
    opened: list[Any] = field(default_factory=list)

    @property
    def context(self) -> Context:
        """A new context of this process."""
        context = copy_context()
        context.run(RUNNING.set, self)
        return context

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this coroutine in the process."""
        context = self.context
        context.run(lambda: self.loop.create_task(work(), context=context))

    def kill(self) -> None:
        """End it at once."""
        if not self.alive:
            return
        self.alive = False
        for one in self.ended:
            one()

    def bury(self) -> None:
        """Close what it had open, without any effect on its disk; before another one opens the same files."""
        opened, self.opened = self.opened, []

        def close() -> None:
            for one in opened:
                with contextlib.suppress(Exception, Killed):
                    one.close()

        self.context.run(close)

    def delay_s(self, disk: bool) -> float:
        """How long its disk, or one of its threads, lets it wait now."""
        most_s = self.machine.disk_s if disk else self.machine.threads_s
        return most_s * self.machine.chance.random() ** 3 if most_s else 0.0  # mostly short, now and then long

    def about_to_write(self) -> None:
        """Count a write.

        Raises:
            Killed: this was one too many, or it is dead already.
        """
        if self.writes_left is not None:
            self.writes_left -= 1
            if self.writes_left < 0 and self.alive:
                self.writes_left = None
                (self.on_write or self.kill)()
        if not self.alive:
            raise Killed

    def about_to_sync_folder(self) -> None:
        """Count a sync of a folder.

        Raises:
            Killed: this was one too many.
        """
        if self.syncs_left is not None:
            self.syncs_left -= 1
            if self.syncs_left < 0 and self.alive:
                self.syncs_left = None
                (self.on_sync or self.kill)()
        if not self.alive:
            raise Killed


def current() -> Process | None:
    """The process whose code runs now; None for the world."""
    process = running()
    assert process is None or isinstance(process, Process)
    return process
