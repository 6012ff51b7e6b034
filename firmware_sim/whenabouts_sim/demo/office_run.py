"""The smart office in real processes: phone, speaker and projector, each watched by an agent, and the rule that mutes the
phone.

Simulated badge readers -> agents of one group, which exchange their states over the broker -> ingest -> the Spark job of
DEFINITELY. Each agent has another wrong clock. At the end the verdicts are compared with what truly happened.
"""

import threading
import time
from pathlib import Path

import click

from whenabouts_sim.judge.placement import place
from whenabouts_sim.judge.presence_overlap import OverlapSummary, summarise_together
from whenabouts_sim.stack.sources import SimulatedReaders
from whenabouts_sim.stack.stack import Part, Stack
from whenabouts_sim.stack.texts import verdict_text
from whenabouts_sim.world.clocks import EPOCH_US, MILLI, SimClock
from whenabouts_sim.world.posts import Post, rule_text, with_posts
from whenabouts_sim.world.world import SECOND_US, SimReader, World

DURATION_S = 45
GROUP = "office"
POSTS = (
    Post("phone", SimReader("access-1", "office", "phone", "phone/badges", "rdm6300"), "0A00B0B001"),
    Post("speaker", SimReader("rfid-1", "office", "rfid", "speaker/badges", "rdm6300"), "0A005BEA01"),
    Post("projector", SimReader("plug-1", "office", "projector", "projector/badges", "rdm6300"), "0A00B3A301"),
)
RULE = rule_text("mute", GROUP, POSTS)
READY_S, LANDED_S = 60.0, 60.0
EMITTED_S = 240.0  # the engine is compiled once per machine


def office_world(seed: int) -> World:
    """Badges at the three readers: meetings of all alternate with near misses."""
    empty = World(seed, EPOCH_US, DURATION_S * SECOND_US, d_us=0, readers=(), clocks={}, sightings=())
    return with_posts(empty, POSTS)


class OfficeRun:
    """One run; `run` returns the judgement."""

    def __init__(self, folder: Path, seed: int, speed: float, quiet: bool) -> None:
        self._began_s = time.monotonic()
        self._seed, self._speed, self._quiet = seed, speed, quiet
        self._clock = SimClock(EPOCH_US, time.monotonic_ns(), round(speed * MILLI))
        self._world = office_world(seed)
        self._stack = Stack(folder)
        self._source = SimulatedReaders(self._world, self._clock, folder / "ports")
        self._gateways = [post.reader.gateway for post in POSTS]

    def run(self) -> OverlapSummary:
        """Run from the start of the broker to the judgement; every process has ended when it returns or raises."""
        with self._stack as stack:
            try:
                self._start(stack)
                self._source.go(time.monotonic_ns(), stack)
                self._until(stack, time.monotonic() + self._source.duration_s + 0.5)
                self.say("office", "closed; waiting for all to land and for the last verdicts")
                stack.wait_while(lambda: not self._landed(stack), LANDED_S)
                stack.wait_while(lambda: bool(self._judge(stack).absent), EMITTED_S)
                job = stack.parts["job"]
                job.stop()  # a repeat that it was about to emit is emitted by now
                return self._judge(stack)
            finally:
                self._source.stop()

    def _start(self, stack: Stack) -> None:
        self.say("seed", f"{self._seed} (--seed {self._seed} repeats this run), speed {self._speed:g}")
        stack.enrol({f"{post.reader.site}/{post.reader.gateway}": [GROUP] for post in POSTS})
        stack.broker.start()
        self.say("broker", f"{stack.broker.kind} on 127.0.0.1:{stack.broker.port}")
        job = stack.start_job(RULE, "--shards", "1", "--master", "local[1]")
        threading.Thread(target=self._print, args=(job,), daemon=True).start()
        self.say("spark", "starting; verdicts are printed as it finds them")
        stack.start_ingest()
        self._source.plug()
        for post in POSTS:
            gateway, clock = post.reader.gateway, self._world.clocks[post.reader.gateway]
            tables = self._source.tables(gateway)
            stack.configure_agent(
                post.reader.site, gateway, tables, clock, self._clock, more=post.configuration(GROUP, POSTS)
            )
            stack.start_agent(gateway)
            self.say(
                "agent",
                f"{gateway} watches the {post.name}; clock wrong by {clock.offset_us / 1000:+.0f} ms, claims "
                f"{clock.base_bound_us / 1000:.0f} ms",
            )
        stack.wait("agents read and are connected", lambda: all(map(stack.agent_ready, self._gateways)), READY_S)
        stack.wait("agents are one group", lambda: stack.group_ready(self._gateways), READY_S)
        self.say("agents", f"one group; events for {self._source.duration_s:.0f} s")

    def _print(self, job: Part) -> None:
        for verdict in job.json_lines():
            self.say("mute", verdict_text(verdict))

    def _until(self, stack: Stack, end_s: float) -> None:
        while time.monotonic() < end_s:
            time.sleep(min(0.5, max(0.05, end_s - time.monotonic())))
            stack.check()

    def _landed(self, stack: Stack) -> bool:
        """True if all readings have landed, no spool holds any, and every agent has reported that its badge is gone."""
        statuses = [stack.status(gateway) or {} for gateway in self._gateways]
        quiet = all(s and not s["spool"]["readings"] and not s["group"]["values"].get("present") for s in statuses)
        return quiet and len(stack.landed()) >= sum(not e.damaged for e in self._source.emitted())

    def _judge(self, stack: Stack) -> OverlapSummary:
        emitted = self._source.emitted()
        placed = place(stack.landed(), emitted, self._source.readers, self._world.clocks)
        arrived = set(placed.sighting_of.values())
        reads = [entry for entry in emitted if entry.id in arrived]
        return summarise_together(POSTS, reads, stack.landed_states("present"), stack.found_verdicts())

    def say(self, what: str, text: str) -> None:
        """Print one line of progress, with the seconds since the start."""
        if not self._quiet:
            click.echo(f"{time.monotonic() - self._began_s:5.1f} s  {what:<9} {text}")
