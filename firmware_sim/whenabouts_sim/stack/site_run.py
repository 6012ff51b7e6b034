"""A whole simulated site, for any length of time: readers on pseudo-terminals, real agents with wrong clocks, a broker.

Every DURATION_S seconds other goods and people follow, made from the same seed. True time is this machine's UTC. What
truly happened is written to `truth/READER.jsonl` as it happens, one line per sighting that left its reader.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from whenabouts_sim.stack.sources import LEAD_US, SimulatedReaders
from whenabouts_sim.stack.stack import Stack
from whenabouts_sim.world.clocks import SimClock
from whenabouts_sim.world.world import World

DURATION_S = 60
ITEMS, PEOPLE = 40, 8
READY_S = 60.0
REPORT_S = 10.0


class SiteRun:
    """A site in a folder. broker: (host, port) of a running one, or None to start one."""

    def __init__(self, folder: Path, seed: int, broker: tuple[str, int] | None, say: Callable[[str], None]) -> None:
        self._seed, self._broker, self._say = seed, broker, say
        self._clock = SimClock(time.time_ns() // 1000, time.monotonic_ns())
        self._world = self._world_of(0)
        self._stack = Stack(folder)
        self._readers = SimulatedReaders(self._world, self._clock, folder / "ports", folder / "truth")

    def run(self, seconds: float | None) -> int:
        """Run for `seconds`, or without end if None; return the number of sightings that left their readers."""
        stack, readers = self._stack, self._readers
        with stack:
            try:
                self._start()
                readers.go(time.monotonic_ns(), stack)
                end_s = None if seconds is None else time.monotonic() + seconds
                self._go_on(end_s)
                return len(readers.emitted())
            finally:
                readers.stop()

    def _start(self) -> None:
        stack, readers = self._stack, self._readers
        if self._broker is None:
            stack.broker.start()
        host, port = self._broker or ("127.0.0.1", stack.broker.port)
        self._say(f"seed {self._seed}; broker {host}:{port}{'' if self._broker else ' (own)'}; files in {stack.folder}")
        readers.plug()
        sites = {reader.gateway: reader.site for reader in readers.readers}
        for gateway, site in sites.items():
            clock = self._world.clocks[gateway]
            stack.configure_agent(site, gateway, readers.tables(gateway), clock, self._clock, broker=(host, port))
            stack.start_agent(gateway)
            names = ", ".join(f"{r.name} ({r.model})" for r in readers.readers if r.gateway == gateway)
            self._say(f"agent {site}/{gateway}: {names}; clock wrong by {clock.offset_us / 1000:+.0f} ms")
        stack.wait("agents read and are connected", lambda: all(map(stack.agent_ready, sites)), READY_S)
        self._say(f"running; truth in {stack.folder / 'truth'}; Ctrl-C ends it")

    def _go_on(self, end_s: float | None) -> None:
        """Give the readers one world after the other, each before the previous one is over."""
        part, reported_s = 1, time.monotonic()
        waiting = threading.Event()
        while end_s is None or time.monotonic() < end_s:
            self._stack.check()
            if self._clock.true_us(time.monotonic_ns()) + LEAD_US > self._readers.end_us:
                self._readers.more(self._world_of(part))
                part += 1
            if time.monotonic() - reported_s >= REPORT_S:
                reported_s = time.monotonic()
                waiting_in = [
                    (self._stack.status(g) or {}).get("spool", {}).get("readings", 0) for g in self._world.clocks
                ]
                self._say(f"{len(self._readers.emitted())} sightings; {sum(waiting_in)} readings wait in the spools")
            waiting.wait(0.2)

    def _world_of(self, part: int) -> World:
        """The world of a part: its own goods and people, the clocks of the first part."""
        world = World.make(self._seed + part * 1_000_003, DURATION_S, ITEMS, PEOPLE, epoch_us=self._clock.epoch_us)
        return world if part == 0 else replace(world, clocks=self._world.clocks)
