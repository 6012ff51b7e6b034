"""A simulated gateway: a machine with readers on its ports, and the real agent, which is started again when it ends."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
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
from whenabouts_sim.chaos.parts.job_rules import GROUP, STATE, rules_message, state_stream
from whenabouts_sim.chaos.parts.part import Part
from whenabouts_sim.chaos.parts.rule_form import Near, Sending
from whenabouts_sim.chaos.parts.serial_line import ReaderTask, SerialLine
from whenabouts_sim.chaos.parts.state_form import StateForm
from whenabouts_sim.chaos.parts.watched_clock import WatchedClock
from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan, WrongClock
from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.readers.faults import NO_FAULTS, Faults
from whenabouts_sim.world.clocks import EPOCH_US

STORED_US = 1_000_000  # laws allow 1.5 s before a kill; an orderly end stores what was read half a second before
UNIT = "Cel"  # of what line sensors measure
SENSOR = f'kind = "line"\nkey_field = "probe"\nvalue_field = "temperature"\nunit = "{UNIT}"\nlatency_us = 30000\n'
LEAVE_MS = 300  # after its last read a badge is gone


def badge_of(gateway: str) -> str:
    """The name of the reader on which the badge of a gateway lies."""
    return f"badge{gateway.rpartition('-')[2]}"


def presence_stream(reader: str) -> str:
    """The stream of visits at a reader."""
    return f"{reader}/presence"


def badge_key(gateway: str) -> str:
    """The key of that badge."""
    return f"BA{int(gateway.rpartition('-')[2]):08X}"


@dataclass(frozen=True)
class GatewayPlan:
    """What a gateway is. readers: name and stream of each. disk_s, threads_s: the most that these make others wait.

    group: its members as site/name, if it is in one; it watches the badge that lies on its reader `badge_of(name)`, and
    tells its visits.
    spool_bytes: the limit of its spool; 0 for the usual one, which no schedule reaches. near: the rule that it runs
    itself, if it runs one; sent: those that it is sent in place of it. damage: of bytes between its readers and it.
    has_sensors: its readers, but the one of its badge, send lines of text. further: values of its state beside that badge's.
    """

    site: str
    name: str
    readers: tuple[tuple[str, str], ...]
    clock: ClockPlan
    poll_ms: int = 200
    commit_ms: int = 50
    heartbeat_ms: int = 500
    resend_s: int = 3
    disk_s: float = 0.0
    threads_s: float = 0.0
    group: tuple[str, ...] = ()
    spool_bytes: int = 0
    near: Near | None = None
    sent: tuple[Sending, ...] = ()
    damage: Faults = NO_FAULTS
    has_sensors: bool = False
    further: tuple[StateForm, ...] = ()

    @property
    def streams(self) -> list[str] | None:
        """Patterns of what it may publish, None for all: those that a rule of its own derives must be named."""
        return None if self.near is None else ["#", self.near.stream]

    @property
    def own_streams(self) -> list[str]:
        """The names of all streams that it publishes."""
        names = {stream for _, stream in self.readers}
        if self.group:
            names |= {state_stream(self.name), presence_stream(badge_of(self.name))}
        return sorted(names | {one.stream for one in (self.near,) if one is not None})

    def is_sensor(self, reader: str) -> bool:
        """True if this reader sends lines of text."""
        return self.has_sensors and reader != badge_of(self.name)

    def configuration(self, state: Path, rules: Path | None = None) -> str:
        """The configuration file. rules: the file of its own rules."""
        text = (
            f'site = "{self.site}"\ngateway = "{self.name}"\nstate_dir = "{state}"\n[broker]\nresend_s = {self.resend_s}\n'
            f"[spool]\ncommit_ms = {self.commit_ms}\n[heartbeat]\nevery_ms = {self.heartbeat_ms}\n"
        )
        if rules is not None:
            text = f'rules_file = "{rules}"\n' + text
        if self.group:
            members = ", ".join(f'"{one}"' for one in self.group)
            text += f'[group]\nname = "{GROUP}"\nmembers = [{members}]\nstream = "{state_stream(self.name)}"\n'
            text += (
                f'[[state]]\nname = "{STATE}"\nstream = "{badge_of(self.name)}/tags"\nkey = "{badge_key(self.name)}"\n'
            )
            text += f"leave_ms = {LEAVE_MS}\n"
            badge = f"{badge_of(self.name)}/tags", badge_key(self.name)
            text += "".join(one.declared(*badge) for one in self.further)
        for name, stream in self.readers:
            text += f'[[reader]]\nname = "{name}"\nport = "chaos://{name}"\nstream = "{stream}"\n'
            text += SENSOR if self.is_sensor(name) else 'kind = "rdm6300"\n'
            if name == badge_of(self.name):
                text += f'leave_ms = {LEAVE_MS}\npresence_stream = "{presence_stream(name)}"\n'
        return text


class Gateway(Part):
    """A gateway. lives: when its agents began and ended, us since 1970 UTC. wrong_times: what its clock said of UTC
    that was not true. lines: to its readers, by their names. ended: called when one has ended in order."""

    ends_on_full_disk = (SpoolError,)

    def __init__(
        self, plan: GatewayPlan, machine: Machine, readers: dict[str, ReaderCore], clock: VirtualTime, loop: VirtualLoop,
        broker: Broker, told: Callable[[str], None], ended: Callable[["Gateway"], None] = lambda _: None,
    ) -> None:  # fmt: skip
        super().__init__(f"{plan.site}/{plan.name}", machine, loop, told)
        self.plan = plan
        self._clock, self._broker, self._ended = clock, broker, ended
        self.lines = {name: SerialLine(core, clock, loop) for name, core in readers.items()}
        rules = None
        if plan.near is not None:
            rules = machine.disk.root.with_suffix(".rules")
            rules.write_bytes(rules_message(plan.site, plan.name, [plan.near]))
        config = parse(plan.configuration(machine.disk.root / "state", rules))
        self._config = replace(config, spool_limit_bytes=plan.spool_bytes) if plan.spool_bytes else config
        self.agent: Agent | None = None
        self.lives: list[list[int]] = []
        self.wrong_times: list[str] = []

    async def _serve(self, process: Process) -> None:
        life = [self._clock.true_us, 1 << 62]
        self.lives.append(life)
        process.ended.append(lambda: life.__setitem__(1, min(life[1], self._clock.true_us)))
        on_us = EPOCH_US + (self.machine.on_ns - BEGIN_NS) // 1000
        source = WrongClock(self.plan.clock, self._clock, EPOCH_US, on_us)
        machine = AgentMachine(self._reader, maker(self._broker, process, self.is_next), lambda: self.machine.run)
        clock = WatchedClock(
            PacedClock(source, source.pace),
            lambda: (source.host_us(time.monotonic_ns()), self._clock.seen_us),
            self.wrong_times,
        )
        self.agent = Agent(self._config, clock, None, machine)
        await self.agent.run()
        self._ended(self)

    def _stop(self) -> None:
        if self.agent is not None:
            life = self.lives[-1]
            life[1] = min(life[1], self._clock.true_us + STORED_US)  # it may have been asked before
            self.agent.stop()

    def _reader(self, reader: Any, *args: Any) -> ReaderTask:
        return ReaderTask(self.lines[reader.name], self._clock, self.plan.poll_ms, reader, *args)
