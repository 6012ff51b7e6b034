"""Simulated gateways of one group over a network that loses, repeats, delays and reorders, in true time known to the test.

Each gateway has tags that are read at true moments; a read comes in later than it happened, with a stamp around it. The
reports of its process go to the others as state messages. Every call of a process is recorded, for a board to repeat it.
"""

import heapq
from dataclasses import dataclass, field
from random import Random

from whenabouts_edge.group.conditions import Presence
from whenabouts_edge.group.detection import Detection
from whenabouts_edge.group.process import GroupProcess, StateReport
from whenabouts_protocol import Reading, encode_batch
from whenabouts_protocol.group_state import attrs_of

GROUP, SITE = "office", "hall"
LATE_US, EARLY_US, WIDE_US = (
    400,
    300,
    200,
)  # at most: delay of a read, begin of its stamp before it, end of its stamp after it
LEAVE_US = 1500
SETTLED_US = 1_200_000  # by now every gateway has its view


@dataclass
class Read:
    """One read of a tag: its true moment and its stamp, in true time."""

    key: str
    true_us: int
    earliest_us: int
    latest_us: int


@dataclass
class Gateway:
    """One process; offset_us: its host clock minus true time."""

    name: str
    boot: int
    offset_us: int
    reads_needed: dict[str, int]
    process: GroupProcess = None
    reads: list[Read] = field(default_factory=list)
    states: list[StateReport] = field(default_factory=list)
    heartbeats: list[StateReport] = field(default_factory=list)
    heard: list[tuple[int, str, int]] = field(default_factory=list)  # host time, sender, number of its state
    calls: list = field(default_factory=list)
    clear_us: int = -1
    started_us: int = 0


def detection(needed: dict[str, int]) -> Detection:
    """One condition per tag."""
    return Detection([Presence(f"has_{key}", "tags", key, reads, LEAVE_US) for key, reads in sorted(needed.items())])


def wire(gateway: Gateway, report: StateReport, seq: int) -> bytes:
    """The state message of a report."""
    return encode_batch([
        Reading(
            site=SITE, gateway=gateway.name, boot=gateway.boot, seq=seq, stream="state", kind="state",
            attrs=attrs_of(GROUP, report.view, report.process, report.values, report.is_heartbeat),
            t_min=report.earliest_us, t_max=report.latest_us, vclock=report.clock,
        )
    ])  # fmt: skip


class Network:
    """All gateways; `run` plays a random plan to the end."""

    def __init__(self, chance: Random, size: int, steps: int = 60) -> None:
        self.chance, self.now_us = chance, 0
        self.gateways = [
            Gateway(f"g{i}", 5 + i, chance.randint(0, 10**6), {key: chance.choice([1, 1, 2]) for key in tags})
            for i, tags in enumerate(chance.choices(["x", "xy"], k=size))
        ]
        self._todo: list[tuple[int, int, object]] = []  # a heap
        self._order = 0
        for gateway in self.gateways:
            others = [g.name for g in self.gateways if g is not gateway]
            process = GroupProcess(GROUP, gateway.name, gateway.boot, others, detection(gateway.reads_needed), 0)
            gateway.process = process
            for other in self.gateways:
                if other is not gateway:
                    self._at(chance.randint(0, 50_000), self._birth, gateway, other)
            self._plan(gateway, steps)
        self._end_us = max(when for when, _, _ in self._todo) + 10 * LEAVE_US

    def run(self) -> None:
        """Run until everything that can become certain is certain."""
        for gateway in self.gateways:
            when = 0
            while when < self._end_us:
                self._at(when, self._look, gateway)
                when += self.chance.randint(1, 900) if when > SETTLED_US else 50_000
            self._at(self._end_us, self._look, gateway)
        while self._todo:
            self.now_us, _, (what, *args) = heapq.heappop(self._todo)
            what(*args)

    def _at(self, when: int, what, *args) -> None:
        self._order += 1
        heapq.heappush(self._todo, (when, self._order, (what, *args)))

    def _plan(self, gateway: Gateway, steps: int) -> None:
        """Bursts of reads with pauses around the leave time."""
        for key in gateway.reads_needed:
            when = SETTLED_US
            for _ in range(self.chance.randint(0, steps)):
                when += self.chance.choice([0, 100, 700, LEAVE_US, 2000, 6000])
                stamp = when - self.chance.randint(0, EARLY_US), when + self.chance.randint(0, WIDE_US)
                read = Read(key, when, *stamp)
                gateway.reads.append(read)
                self._at(max(when, stamp[1]) + self.chance.randint(0, LATE_US - WIDE_US), self._observe, gateway, read)

    def _call(self, gateway: Gateway, name: str, *args):
        result = getattr(gateway.process, name)(*args)
        gateway.calls.append([name, [a.hex() if isinstance(a, bytes) else a for a in args]])
        return result

    def _birth(self, gateway: Gateway, other: Gateway) -> None:
        self._call(gateway, "born", other.name, other.boot, GROUP, self.now_us + gateway.offset_us)

    def _observe(self, gateway: Gateway, read: Read) -> None:
        stamp = read.earliest_us + gateway.offset_us, read.latest_us + gateway.offset_us
        self._call(gateway, "observe", "tags", read.key, None, {}, *stamp)

    def _look(self, gateway: Gateway) -> None:
        now_us = self.now_us + gateway.offset_us
        clear_us = max(gateway.clear_us, now_us - LATE_US - EARLY_US - self.chance.choice([0, 0, 500]))
        if gateway.clear_us < 0:
            gateway.started_us = clear_us
        gateway.clear_us = clear_us
        for report in self._call(gateway, "advance", clear_us, now_us):
            if report.is_heartbeat:
                gateway.heartbeats.append(report)
                continue
            if len(report.clock) < len(self.gateways):
                continue  # a view from before all had joined
            gateway.states.append(report)
            payload = wire(gateway, report, len(gateway.states))
            for other in self.gateways:
                copies = self.chance.choice([0, 1, 1, 1, 2]) if other is not gateway else 0
                for _ in range(copies):
                    self._at(
                        self.now_us + self.chance.choice([1, 200, 4000]), self._deliver, gateway, other, payload, report
                    )

    def _deliver(self, sender: Gateway, gateway: Gateway, payload: bytes, report: StateReport) -> None:
        now_us = self.now_us + gateway.offset_us
        gateway.heard.append((now_us, sender.name, report.clock[report.process]))
        assert self._call(gateway, "receive", SITE, sender.name, payload, now_us) is None
