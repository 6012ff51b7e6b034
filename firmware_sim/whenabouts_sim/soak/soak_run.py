"""Runs the soak: mosquitto with certificates, agents on pseudo-terminals, two ingests in one landing, a Spark job; each of
them is killed now and then.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from whenabouts_edge.config.settings import SPOOL
from whenabouts_sim.demo.rules import CONFIDENCE, D_US, THEFT
from whenabouts_sim.soak.kill_plan import Kill, draw_kills
from whenabouts_sim.soak.memory import Sample, rss_bytes
from whenabouts_sim.soak.verdict import Found, PairRule, Span, Truth, Verdict, judged
from whenabouts_sim.stack.sources import SimulatedReaders
from whenabouts_sim.stack.stack import PartError, Stack
from whenabouts_sim.world.clocks import EPOCH_US, SimClock
from whenabouts_sim.world.shoppers import with_shoppers
from whenabouts_sim.world.world import DOCK, DOOR, World

ITEMS_S, PEOPLE_S, SHOPPERS_S = 0.6, 0.1, 0.4  # that pass the readers in a second
READY_S, SPARK_S = 90.0, 240.0
COMPLETE_S = 240.0  # after the last kill everything must have landed and been told
LOOK_S, SAMPLE_S, TELL_S = 0.1, 5.0, 30.0
# A kill can take the readings between the port and the disk: those of one commit. The rest is room for an agent without a
# processor for a while, as happens while Spark starts on the same machine.
LOSS_US = SPOOL["commit_ms"].default * 1000 + 1_950_000
NO_BROKER = "cannot connect"
JOB, BROKER = "job", "broker"
REST_S, JOB_REST_S = 8.0, 45.0  # Spark takes long until it runs again
RULES = """STREAM dock FROM "dock/tags" DELAY 2 min
STREAM door FROM "door/tags" DELAY 2 min
STREAM shelf FROM "shelf/tags" DELAY 2 min LENGTH 0 s .. 5 s
STREAM till  FROM "checkout/tags" DELAY 2 min LENGTH 0 s .. 5 s
STREAM exit  FROM "exit/tags" DELAY 2 min LENGTH 0 s .. 5 s

RULE handover
  CORRELATE dock AS a, door AS b
  WHERE |@a - @b| <= 2 s OVER 80 % AND a.key = b.key

RULE unpaid
  SEQ(shelf a, !till c, exit e) WITHIN 20 s PER key WHEN SURE
"""


class Soak:
    """One run of `seconds`; `run` returns the verdict. say: gets progress. kills: drawn from the seed if None."""

    def __init__(
        self, folder: Path, seed: int, seconds: float, say: Callable[[str], None], kills: tuple[Kill, ...] | None = None
    ) -> None:
        self._seconds, self._say = seconds, say
        world = World.make(seed, int(seconds), int(seconds * ITEMS_S), int(seconds * PEOPLE_S), D_US)
        self._world = with_shoppers(world, int(seconds * SHOPPERS_S))
        self._clock = SimClock(EPOCH_US, time.monotonic_ns())
        self._source = SimulatedReaders(self._world, self._clock, folder / "ports")
        self._stack = Stack(folder)
        self._gateways = {reader.gateway: reader.site for reader in self._source.readers}
        self._ingests = {f"ingest-{site}": site for site in sorted(set(self._gateways.values()))}
        rests_s = dict.fromkeys((*self._gateways, *self._ingests, BROKER), REST_S) | {JOB: JOB_REST_S}
        self._kills = draw_kills(seed, seconds, rests_s) if kills is None else kills
        self._counts: Counter[str] = Counter()
        self._down: dict[str, float] = {}  # when each of those that were killed is started again
        self._dead: dict[str, list[Span]] = defaultdict(list)
        self._dead_since_us: dict[str, int] = {}
        self._memory: dict[str, list[Sample]] = defaultdict(list)
        self._faults: list[str] = []

    def run(self) -> Verdict:
        """Run it; every process has ended when it returns or raises.

        Raises:
            PartError: a part did not start, or there is no mosquitto.
        """
        with self._stack:
            try:
                self._start()
                self._source.go(time.monotonic_ns(), self._stack)
                self._events()
                verdict = self._finish()
            finally:
                self._source.stop()
        return verdict

    def _start(self) -> None:
        stack = self._stack
        gateways: dict[str, list[str]] = {f"{site}/{gateway}": [] for gateway, site in self._gateways.items()}
        if not stack.enrol(gateways, {site: [site] for site in self._ingests.values()}):
            raise PartError("soak: found no mosquitto, expected one; on Debian: apt-get install mosquitto")
        stack.broker.start()
        self._start_job()
        for name in self._ingests:
            self._start_part(name)
        self._source.plug()
        for gateway, site in self._gateways.items():
            tables, clock = self._source.tables(gateway), self._world.clocks[gateway]
            stack.configure_agent(site, gateway, tables, clock, self._clock)
            stack.start_agent(gateway)
        self._say(f"{len(self._gateways)} agents, {len(self._ingests)} ingests, mosquitto and Spark start")
        stack.wait("agents read and are connected", lambda: all(map(stack.agent_ready, self._gateways)), READY_S)
        stack.wait("the Spark job watches the landing", stack.job_watches, SPARK_S)

    def _start_job(self) -> None:
        self._stack.start_job(RULES, "--shards", "2", "--trigger", "3", stdout=False)

    def _start_part(self, name: str) -> None:
        stack = self._stack
        if name in self._gateways:
            stack.start_agent(name)
        elif name in self._ingests:
            stack.start_ingest(self._ingests[name], [self._ingests[name]])
        elif name == BROKER:
            stack.broker.start()
        else:
            self._start_job()

    # While events happen.

    def _events(self) -> None:
        began_s = time.monotonic()
        kills = list(self._kills)
        told_s = sampled_s = began_s
        while (now_s := time.monotonic()) < began_s + self._seconds + 1:
            while kills and kills[0].at_s <= now_s - began_s:
                self._kill(kills.pop(0))
            self._turn()
            if now_s - sampled_s >= SAMPLE_S:
                sampled_s = now_s
                self._sample()
            if now_s - told_s >= TELL_S:
                told_s = now_s
                self._tell(now_s - began_s)
            time.sleep(LOOK_S)

    def _kill(self, kill: Kill) -> None:
        name, stack = kill.target, self._stack
        self._counts["agent" if name in self._gateways else "ingest" if name in self._ingests else name] += 1
        if name in self._gateways and name not in self._dead_since_us:
            self._dead_since_us[name] = self._true_us() - LOSS_US
        if name == BROKER:
            stack.broker.kill()
        elif (part := stack.parts.pop(name, None)) is not None:
            part.kill()
        self._down[name] = time.monotonic() + kill.down_s

    def _turn(self) -> None:
        """Start what was down for long enough; note what ended by itself, and whose agent reads again."""
        for name, until_s in list(self._down.items()):
            if time.monotonic() >= until_s:
                del self._down[name]
                self._start_part(name)
        for name, part in list(self._stack.parts.items()):
            if not part.running:
                if name not in self._ingests or not part.said(NO_BROKER):  # it needs a broker when it starts
                    self._faults.append(f"{name} ended by itself with code {part.process.returncode}: {part.tail(500)}")
                del self._stack.parts[name]
                self._down[name] = time.monotonic()
        for name in list(self._dead_since_us):
            if self._reads(name):
                self._dead[name].append((self._dead_since_us.pop(name), self._true_us()))

    def _reads(self, gateway: str) -> bool:
        """True if the running agent reads all its ports."""
        status, part = self._stack.status(gateway), self._stack.parts.get(gateway)
        if status is None or part is None or status["pid"] != part.process.pid:
            return False
        return all(reader["state"] == "reading" for reader in status["readers"].values())

    def _sample(self) -> None:
        for name, part in self._stack.parts.items():
            if size := rss_bytes(part.process.pid):
                self._memory[name].append(Sample(time.monotonic() - part.began_s, size))

    def _tell(self, passed_s: float) -> None:
        stack = self._stack
        kills = ", ".join(f"{name} {count}" for name, count in sorted(self._counts.items())) or "nobody"
        self._say(
            f"{passed_s / 60:.1f} of {self._seconds / 60:.1f} min: {len(self._source.emitted())} sightings, "
            f"{stack.landed_count()} landed, {len(stack.found_pairs())} pairs, {len(stack.found_matches())} unpaid; "
            f"killed: {kills}"
        )

    def _true_us(self) -> int:
        return self._clock.true_us(time.monotonic_ns())

    # Afterwards.

    def _finish(self) -> Verdict:
        self._say("no more events and kills; waiting until all has landed and all results are told")
        end_s = time.monotonic() + COMPLETE_S
        while True:
            self._turn()
            if not self._down and not self._dead_since_us and self._spools_empty():
                verdict = self._judge()
                if verdict.complete:
                    break
            if time.monotonic() > end_s:
                self._faults.append(f"not all has come within {COMPLETE_S:g} s after the end")
                break
            time.sleep(1.0)
        for name in (JOB, *self._ingests):  # a repeat that the job was about to publish is published by now
            if (part := self._stack.parts.get(name)) is not None:  # else it is down, which the verdict tells
                part.stop()
        return self._judge()

    def _spools_empty(self) -> bool:
        states = [self._stack.status(gateway) for gateway in self._gateways]
        return all(state is not None and not state["spool"]["readings"] for state in states)

    def _judge(self) -> Verdict:
        stack = self._stack
        truth = Truth(self._source.readers, self._world.clocks, self._source.emitted(), self._dead)
        matches = [(match[0], match[-1]) for match in stack.found_matches()]
        found = Found(stack.landed(), stack.found_pairs(), matches)
        return judged(
            PairRule(DOCK, DOOR, D_US, CONFIDENCE), THEFT, truth, found, kills=self._counts, memory=self._memory,
            faults=self._faults,
        )  # fmt: skip
