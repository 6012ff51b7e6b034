"""The demonstration: two sites, wrong clocks, real processes, and the pairs that truly belong together.

Readers (simulated, or a recorded capture) -> three agents -> broker -> ingest -> Spark; every pair is printed as it is
found, and in the end the run is held against what truly happened.
"""

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from whenabouts_sim.clocks import EPOCH_US, MILLI, SimClock
from whenabouts_sim.sources import Capture, SimulatedReaders
from whenabouts_sim.stack import Part, Stack
from whenabouts_sim.truth import Rule, Summary, summarise
from whenabouts_sim.world import SimReader, World

DURATION_S = 30
ITEMS, PEOPLE = 40, 8
D_US = 2_000_000
CONFIDENCE = Fraction(8, 10)
RULE = """# Goods seen at the warehouse's dock and at the shop's door within two seconds, at least 80 % sure.
STREAM dock FROM "{a.stream}" AT SITE "{a.site}" DELAY 30 s
STREAM door FROM "{b.stream}" AT SITE "{b.site}" DELAY 30 s

RULE handover
  CORRELATE dock AS a, door AS b
  WHERE |@a - @b| <= 2 s OVER 80 % AND a.key = b.key
"""
REPORT_S = 2.0
READY_S, LANDED_S, PAIRS_S = 30.0, 30.0, 60.0


class Demo:
    """One run; `run` gives the judgement."""

    def __init__(self, folder: Path, seed: int, speed: float, trace: Path | None, quiet: bool) -> None:
        self._began_s = time.monotonic()
        self._seed, self._speed, self._quiet = seed, speed, quiet
        clock = SimClock(EPOCH_US, time.monotonic_ns(), round(speed * MILLI))
        self._clock = clock
        self._world = World.make(seed, DURATION_S, ITEMS, PEOPLE, D_US)
        self._stack = Stack(folder)
        self._source: Capture | SimulatedReaders = (
            Capture(trace, clock, folder) if trace else SimulatedReaders(self._world, clock, folder / "ports")
        )
        self._pairs = 0

    def run(self) -> Summary:
        """Run from the start of the broker to the judgement; every process has ended when it returns or raises."""
        a, b = self._side("dock-1"), self._side("door-1")
        with self._stack as stack:
            try:
                self._start(stack, RULE.format(a=a, b=b))
                self._source.go(time.monotonic_ns(), stack)
                self._watch(stack)
                rule = Rule(a, b, D_US, CONFIDENCE)
                return self._judge(stack, rule)
            finally:
                self._source.stop()

    def _side(self, gateway: str) -> SimReader:
        return next(reader for reader in self._source.readers if reader.gateway == gateway)

    def _start(self, stack: Stack, rule: str) -> None:
        self.say("seed", f"{self._seed} (SEED={self._seed} repeats this run), speed {self._speed:g}")
        if isinstance(self._source, Capture):
            source = self._source
            names = source.files[0].name if len(source.files) == 1 else f"{len(source.files)} files"
            self.say(
                "capture", f"{names}: {source.frames} good frames of reader {source.model}, {source.damaged} damaged"
            )
        stack.broker.start()
        self.say("broker", f"{stack.broker.kind} on 127.0.0.1:{stack.broker.port}")
        correlate = stack.start_correlate(rule)
        threading.Thread(target=self._print_pairs, args=(correlate,), daemon=True).start()
        self.say("spark", "starting; pairs are printed as it finds them")
        stack.start_ingest()
        self._source.plug()
        sites = {reader.gateway: reader.site for reader in self._source.readers}
        for gateway, site in sites.items():
            clock = self._world.clocks[gateway]
            stack.configure_agent(site, gateway, self._source.tables(gateway), clock, self._clock)
            stack.start_agent(gateway)
            kinds = ", ".join(f"{r.name} ({r.model})" for r in self._source.readers if r.gateway == gateway)
            self.say(
                "agent",
                f"{gateway} at the {site}: readers {kinds}; clock wrong by {clock.offset_us / 1000:+.0f} ms and drifting "
                f"{clock.drift_ppm:+d} ppm, claims {clock.base_bound_us / 1000:.0f} ms",
            )
        stack.wait("agents read and are connected", lambda: all(map(stack.agent_ready, sites)), READY_S)
        self.say("agents", f"reading; events for {self._source.duration_s:.0f} s")

    def _watch(self, stack: Stack) -> None:
        """Report while events happen, until everything has landed and every expected pair is there."""
        end_s = time.monotonic() + self._source.duration_s + 0.5
        while time.monotonic() < end_s:
            time.sleep(min(REPORT_S, max(0.1, end_s - time.monotonic())))
            stack.check()
            self._progress(stack)
        self._end_s = time.monotonic()
        gateways = {reader.gateway for reader in self._source.readers}

        def landed() -> bool:
            waiting = sum((stack.status(g) or {"spool": {"readings": 1}})["spool"]["readings"] for g in gateways)
            made = sum(not e.damaged for e in self._source.emitted())
            return waiting == 0 and stack.landed_count() >= made

        try:
            stack.wait("all readings landed", landed, LANDED_S)
        except TimeoutError:
            self.say("landing", "not everything has landed in time; the summary counts what is missing")
        self._progress(stack)

    def _judge(self, stack: Stack, rule: Rule) -> Summary:
        landed = stack.landed()
        readers = self._source.readers

        def judge() -> Summary:
            return summarise(rule, self._source.emitted(), landed, stack.found_pairs(), readers, self._world.clocks)

        self.say("spark", f"last pairs ({judge().expected_pairs} in all by the rule's definition)")
        deadline_s = time.monotonic() + PAIRS_S
        while judge().absent and time.monotonic() < deadline_s:
            stack.check()
            time.sleep(0.5)
        stack.parts["correlate"].stop()  # what it was about to say twice it has said now
        return judge()

    def _progress(self, stack: Stack) -> None:
        made, landed = len(self._source.emitted()), stack.landed_count()
        self.say("readings", f"{made} made, {landed} landed, {self._pairs} pairs found")

    def _print_pairs(self, correlate: Part) -> None:
        for pair in _json_lines(correlate):
            self._pairs += 1
            self.say("pair", _pair_text(pair))

    def say(self, what: str, text: str) -> None:
        """One line of progress, with the seconds since the start."""
        if not self._quiet:
            click.echo(f"{time.monotonic() - self._began_s:5.1f} s  {what:<9} {text}")


def _pair_text(pair: dict[str, Any]) -> str:
    """A pair in one line: key, gateway and interval of both sides, probability."""
    sides = [f"{pair[f'{x}_gateway']} {_interval(pair[f'{x}_t_min'], pair[f'{x}_t_max'])}" for x in "ab"]
    return f"{pair['key']}  {'  '.join(sides)}  p = {pair['probability']:.4f}"


def _interval(t_min: int, t_max: int) -> str:
    first, last = (datetime.fromtimestamp(t / 1e6, UTC) for t in (t_min, t_max))
    return f"[{first:%H:%M:%S}.{t_min // 1000 % 1000:03d}, {last:%H:%M:%S}.{t_max // 1000 % 1000:03d}]"


def _json_lines(part: Part) -> Iterator[dict[str, Any]]:
    for line in part.stdout:
        yield json.loads(line)


def table(summary: Summary) -> str:
    """The judgement for a person."""
    s = summary
    lines = [
        "",
        "                     made   landed     lost  repeated   stamp without the true time",
        f"readings         {s.made:>8} {s.landed:>8} {s.lost:>8} {s.repeated:>9}   {s.violations}",
    ]
    if s.damaged:
        how = ", ".join(f"{count} {_DAMAGE.get(reason, reason)}" for reason, count in sorted(s.damage.items()))
        lines.append(f"  of these {s.damaged_lost} did not land for a reason that lies before the agent: {how}")
    lines += [
        "",
        f"pairs within {D_US / 1e6:g} s          true     found     false    missed",
        f"interval stamps, 80 % sure {s.true_pairs:>5} {s.job.found:>9} {s.job.false:>9} {s.job.missed:>9}",
        f"plain timestamps           {s.true_pairs:>5} {s.naive.found:>9} {s.naive.false:>9} {s.naive.missed:>9}",
        "",
    ]
    if s.missed_not_landed:
        lines.append(f"{s.missed_not_landed} true pairs could not be found, their readings did not land.")
    exact = "exactly the pairs" if not (s.unexpected or s.absent) else f"{s.unexpected} more and {s.absent} fewer pairs"
    lines.append(f"The Spark job found {exact} that the rule's definition, computed in exact fractions, gives.")
    lines.append(verdict(s))
    return "\n".join(lines)


_DAMAGE = {
    "late": "withheld, because this machine was too busy to play the reader in time",
    "overrun": "sent while nobody read the port",
}


def verdict(s: Summary) -> str:
    """One sentence: what the plain join got wrong, and what the intervals cost."""
    if s.naive.false > s.job.false:
        return (
            f"A join on plain timestamps would have reported {s.naive.false} pairs that never happened; "
            f"with intervals {s.job.false} of {s.job.found + s.job.false} reported are wrong, and {s.job.missed} were too "
            "unsure to be told."
        )
    return f"Plain timestamps gave {s.naive.false} false pairs here, interval stamps {s.job.false}."


def flawless(s: Summary) -> bool:
    """Whether every promise held: nothing lost, nothing twice, every stamp right, the rule's exact pairs."""
    return not (
        s.lost or s.repeated or s.pairs_repeated or s.violations or s.surplus or s.invented or s.unexpected or s.absent
    )
