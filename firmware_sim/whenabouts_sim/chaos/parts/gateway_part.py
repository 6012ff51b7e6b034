"""A simulated gateway: a machine with readers on its ports, and the real agent, which is started again when it ends."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whenabouts_edge.agent.agent import Agent
from whenabouts_edge.agent.machine import Machine as AgentMachine
from whenabouts_edge.clock.pace import PacedClock
from whenabouts_edge.config.load import parse
from whenabouts_edge.store.spool import SpoolError
from whenabouts_sim.chaos.machine.clock import BEGIN_NS, VirtualTime
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.machine.process import Machine, Process
from whenabouts_sim.chaos.network.broker_model import Broker
from whenabouts_sim.chaos.network.gateway_client import maker
from whenabouts_sim.chaos.parts.serial_line import ReaderTask, SerialLine
from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan, WrongClock
from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.world.clocks import EPOCH_US


@dataclass(frozen=True)
class GatewayPlan:
    """What a gateway is. readers: name and stream of each; group: tables of the configuration, or nothing."""

    site: str
    name: str
    readers: tuple[tuple[str, str], ...]
    clock: ClockPlan
    poll_ms: int = 200
    commit_ms: int = 50
    heartbeat_ms: int = 500
    resend_s: int = 3
    group: str = ""

    def configuration(self, state: Path) -> str:
        """The configuration file."""
        text = (
            f'site = "{self.site}"\ngateway = "{self.name}"\nstate_dir = "{state}"\n[broker]\nresend_s = {self.resend_s}\n'
            f"[spool]\ncommit_ms = {self.commit_ms}\n[heartbeat]\nevery_ms = {self.heartbeat_ms}\n"
        )
        for name, stream in self.readers:
            text += f'[[reader]]\nname = "{name}"\nkind = "rdm6300"\nport = "chaos://{name}"\nstream = "{stream}"\n'
        return text + self.group


class Gateway:
    """A gateway during a schedule. told: gets errors that no agent should end with."""

    def __init__(
        self, plan: GatewayPlan, machine: Machine, readers: dict[str, ReaderCore], clock: VirtualTime, loop: VirtualLoop,
        broker: Broker, told: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.plan, self.machine = plan, machine
        self._clock, self._loop, self._broker, self._told = clock, loop, broker, told
        self._lines = {f"chaos://{name}": SerialLine(core, clock, loop) for name, core in readers.items()}
        self._config = parse(plan.configuration(machine.disk.root / "state"))
        self.process: Process | None = None
        self.agent: Agent | None = None
        self.lives: list[list[int]] = []  # when its agents began and ended, us since 1970 UTC

    @property
    def client_id(self) -> str:
        """Its name at the broker."""
        return f"{self.plan.site}/{self.plan.name}"

    def start(self) -> None:
        """Start the agent, unless it runs."""
        if self.process is not None:
            if self.process.alive:
                return
            self.process.bury()
        self.process = Process(self.client_id, self.machine, self._loop)
        life = [self._clock.true_us, 1 << 62]
        self.lives.append(life)
        self.process.ended.append(lambda: life.__setitem__(1, self._clock.true_us))
        self.process.start(self._work)

    async def _work(self) -> None:
        process = self.process
        assert process is not None
        on_us = EPOCH_US + (self.machine.on_ns - BEGIN_NS) // 1000
        source = WrongClock(self.plan.clock, self._clock, EPOCH_US, on_us)
        machine = AgentMachine(self._reader, maker(self._broker, process), lambda: self.machine.run)
        try:
            self.agent = Agent(self._config, PacedClock(source, source.pace), None, machine)
            await self.agent.run()
        except SpoolError as error:
            if not self.machine.disk.full:
                self._told(f"the agent of {self.client_id} ended: {error}")
        except Exception as error:
            if process.alive:
                self._told(f"the agent of {self.client_id} ended: {error!r}")
        if process.alive:
            process.kill()

    def _reader(self, reader: Any, *args: Any) -> ReaderTask:
        return ReaderTask(self._lines[reader.port], self._clock, self.plan.poll_ms, reader, *args)
