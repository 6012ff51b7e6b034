"""One simulated reader on a pseudo-terminal: tags pass it at random, faults happen as configured.

True time is this machine's UTC, so that the truth can be compared with the stamps of an agent on the same machine.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from whenabouts_sim.readers.cards import Id12La, Pn532
from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.readers.faults import Faults
from whenabouts_sim.readers.line import LineSensor
from whenabouts_sim.readers.m6e import M6eNano
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.readers.uhf import UhfReader18, Yrm100
from whenabouts_sim.world.clocks import SimClock
from whenabouts_sim.world.world import Sighting

AHEAD_US = 1_000_000  # sightings are given to the reader this long before they happen
UNPLUGGED_S = 2.0
TURN_S = 0.05


@dataclass(frozen=True)
class Kind:
    """Maker of a kind of reader, the bytes of its keys, and the least time between two sightings."""

    core: Callable[[str, int, Faults], ReaderCore]
    key_bytes: int
    spacing_us: int


KINDS = {
    "m6e": Kind(M6eNano, 12, 5_000),
    "rdm6300": Kind(Rdm6300, 5, 65_000),
    "id12la": Kind(Id12La, 5, 65_000),
    "pn532": Kind(Pn532, 7, 50_000),
    "uhfreader18": Kind(UhfReader18, 12, 5_000),
    "yrm100": Kind(Yrm100, 12, 10_000),
    "line": Kind(LineSensor, 4, 70_000),
}


@dataclass(frozen=True)
class FaultOptions:
    """Seconds between power losses; 0 for none. brown_out: the module boots. unplug: its port is gone for UNPLUGGED_S."""

    brown_out_s: float = 0
    unplug_s: float = 0


class Passage:
    """Tags that pass a reader: `rate` sightings a second on average, of `tags` different tags, by seed."""

    def __init__(self, name: str, kind: Kind, seed: int, rate: float, tags: int, begin_us: int) -> None:
        self._name, self._rate, self._spacing_us = name, rate, kind.spacing_us
        self._random = random = Random(f"passage/{seed}")
        self._keys = [random.randbytes(kind.key_bytes).hex().upper() for _ in range(tags)]
        self._next_us, self._number = begin_us, 0

    def until(self, true_us: int) -> list[Sighting]:
        """The sightings up to a moment that were not returned yet, in order of time."""
        sightings = []
        while self._next_us <= true_us:
            sightings.append(Sighting(self._next_us, self._name, self._number, self._random.choice(self._keys)))
            self._number += 1
            self._next_us += max(self._spacing_us, int(self._random.expovariate(self._rate) * 1e6))
        return sightings


class ReaderRun:
    """A reader of a kind behind the port `path`.

    Raises:
        ValueError: brown-outs of a reader that has none, or fault rates that add up to more than all frames.
    """

    def __init__(
        self, kind: str, path: Path, seed: int, rate: float, tags: int, faults: Faults, mishaps: FaultOptions,
        truth: Path | None,
    ) -> None:  # fmt: skip
        facts = KINDS[kind]
        core = facts.core(kind, seed, faults)
        if mishaps.brown_out_s and not isinstance(core, M6eNano):
            raise ValueError(
                f"--brown-out: found reader {kind}, expected m6e, the only one with brown-outs; use --unplug"
            )
        clock = SimClock(time.time_ns() // 1000, time.monotonic_ns())
        self._clock, self._mishaps = clock, mishaps
        self._passage = Passage(kind, facts, seed, rate, tags, clock.epoch_us + AHEAD_US)
        self.link = PtyLink(core, clock, path, truth)

    def run(self, seconds: float | None, ready: Callable[[], None], report: Callable[[str], None]) -> None:
        """Serve for `seconds`, or without end if None. `ready` is called when the port exists."""
        began_s = time.monotonic()
        brown_out_s, unplug_s = (began_s + every if every else None for every in _periods(self._mishaps))
        plug_s: float | None = None
        with self.link:
            ready()
            while seconds is None or time.monotonic() < began_s + seconds:
                now_s = time.monotonic()
                due = self._passage.until(self._clock.true_us(time.monotonic_ns()) + AHEAD_US)
                if due:
                    self.link.go(due)
                if brown_out_s is not None and now_s >= brown_out_s:
                    brown_out_s = now_s + self._mishaps.brown_out_s
                    report("brown-out")
                    self.link.brown_out()
                if unplug_s is not None and now_s >= unplug_s:
                    unplug_s, plug_s = None, now_s + UNPLUGGED_S
                    report("unplugged")
                    self.link.unplug()
                if plug_s is not None and now_s >= plug_s:
                    unplug_s, plug_s = now_s + self._mishaps.unplug_s, None
                    report("plugged in")
                    self.link.plug()
                time.sleep(TURN_S)

    def figures(self) -> dict[str, Any]:
        """Counts of what happened so far."""
        link = self.link
        emitted = list(link.emitted)
        return {
            "reported": len(emitted),
            "damaged": sum(bool(entry.damaged) for entry in emitted),
            "unseen": link.unseen,
            "overruns": link.overruns,
            "late": link.late,
        }


def _periods(mishaps: FaultOptions) -> tuple[float, float]:
    return mishaps.brown_out_s, mishaps.unplug_s


def run_reader(run: ReaderRun, seconds: float | None, ready: Callable[[], None], report: Callable[[str], None]) -> str:
    """Serve until the time is over or Ctrl-C; return the figures as JSON."""
    with contextlib.suppress(KeyboardInterrupt):
        run.run(seconds, ready, report)
    return json.dumps(run.figures())
