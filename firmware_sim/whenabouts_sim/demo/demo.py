"""The demonstration: two sites with wrong clocks, in real processes. It finds the pairs that truly belong together, goods
that were not paid for, and the times when both sites were staffed at once.

Readers (simulated, or a recorded capture) -> agents -> broker -> ingest -> a Spark job; every pair, theft and verdict is
printed as it is found, and at the end the run is compared with what truly happened. A dashboard shows the run meanwhile,
and stays open where a person is at the terminal. The line between the till's gateway and the broker is cut for a while. A
capture has no thefts and no staff.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

from whenabouts_sim.demo.liar import Liar
from whenabouts_sim.demo.reporter import Reporter
from whenabouts_sim.demo.rules import CONFIDENCE, D_US, GROUP, POSTS, RULE, THEFT, more_rules
from whenabouts_sim.judge.judgement import Judgement, Lies
from whenabouts_sim.judge.placement import place
from whenabouts_sim.judge.presence_overlap import OverlapSummary, summarise_together
from whenabouts_sim.judge.thefts import TheftSummary, summarise_thefts
from whenabouts_sim.judge.truth import Rule, summarise
from whenabouts_sim.judge.truth_file import write_truth
from whenabouts_sim.stack.slow_uplink import SlowUplink
from whenabouts_sim.stack.sources import Capture, SimulatedReaders
from whenabouts_sim.stack.stack import Part, Stack
from whenabouts_sim.stack.texts import match_text, pair_text, verdict_text
from whenabouts_sim.world.clocks import EPOCH_US, MILLI, SimClock
from whenabouts_sim.world.posts import Post, with_posts
from whenabouts_sim.world.shoppers import with_shoppers
from whenabouts_sim.world.world import SECOND_US, SimReader, World

DURATION_S = 30
ITEMS, PEOPLE, SHOPPERS = 40, 8, 16
LIAR = ("shop", "liar-1")  # site and name of a gateway that tries to publish as others
REPORT_S = 2.0
READY_S, LANDED_S, PAIRS_S = 60.0, 60.0, 240.0
SPARK_S = 240.0  # without an archive of its classes, on a busy machine
THEFTS_S = TOGETHER_S = 240.0  # their engines are compiled once per machine, which takes minutes on a slow one


class Demo:
    """One run; `run` returns the judgement."""

    def __init__(
        self, folder: Path, seed: int, speed: float, trace: Path | None, quiet: bool, dashboard: bool = True
    ) -> None:
        self._seed, self._speed = seed, speed
        self._reporter = Reporter(quiet)
        self.say = self._reporter.say
        clock = SimClock(EPOCH_US, time.monotonic_ns(), round(speed * MILLI))
        self._clock = clock
        self._world = World.make(seed, DURATION_S, ITEMS, PEOPLE, D_US)
        if trace is None:
            self._world = with_posts(with_shoppers(self._world, SHOPPERS), POSTS)
        self._stack = Stack(folder)
        self._source: Capture | SimulatedReaders = (
            Capture(trace, clock, folder) if trace else SimulatedReaders(self._world, clock, folder / "ports")
        )
        self._pairs = 0
        self._unpaid: set[str] = set()
        self._together = 0
        self._uplinks: dict[str, SlowUplink] = {}
        self._liar: Liar | None = None
        self._dashboard = dashboard

    def run(self, judged: Callable[[Judgement], bool] = lambda judgement: False) -> Judgement:
        """Run from the start of the broker to the judgement; every process has ended when it returns or raises.

        judged: told the judgement; if it returns True, the dashboard stays open until Ctrl-C.
        """
        a, b = self._side("dock-1"), self._side("door-1")
        with self._stack as stack:
            try:
                self._start(stack, RULE.format(a=a, b=b))
                self._source.go(time.monotonic_ns(), stack)
                self._cut_in_time()
                self._watch(stack)
                judgement = self._judge(stack, Rule(a, b, D_US, CONFIDENCE))
                if judged(judgement) and self._dashboard:
                    self._hold(stack.parts["dashboard"])
                return judgement
            finally:
                self._source.stop()
                if self._liar is not None:
                    self._liar.stop()
                for uplink in self._uplinks.values():
                    uplink.stop()

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
        self._start_broker(stack)
        if self._world.cut:
            rule += more_rules()
            self._uplinks[self._world.cut.gateway] = SlowUplink(stack.broker.port)
        job = stack.start_job(rule, "--shards", "1")
        threading.Thread(target=self._print_results, args=(job,), daemon=True).start()
        self.say("spark", "starting; results are printed as it finds them")
        if self._dashboard:
            threading.Thread(target=self._tell_address, args=(stack.start_dashboard(),), daemon=True).start()
        stack.start_ingest()
        self._source.plug()
        sites = {reader.gateway: reader.site for reader in self._source.readers}
        for gateway, site in sites.items():
            clock = self._world.clocks[gateway]
            broker = ("127.0.0.1", self._uplinks[gateway].port) if gateway in self._uplinks else None
            more = "".join(post.configuration(GROUP, POSTS) for post in self._posts if post.reader.gateway == gateway)
            tables = self._source.tables(gateway)
            stack.configure_agent(site, gateway, tables, clock, self._clock, more=more, broker=broker)
            stack.start_agent(gateway)
            kinds = ", ".join(f"{r.name} ({r.model})" for r in self._source.readers if r.gateway == gateway)
            self.say(
                "agent",
                f"{gateway} at the {site}: readers {kinds}; clock wrong by {clock.offset_us / 1000:+.0f} ms and drifting "
                f"{clock.drift_ppm:+d} ppm, claims {clock.base_bound_us / 1000:.0f} ms",
            )
        self._start_liar(stack)
        with self._reporter.waiting("agents connect"):
            stack.wait("agents read and are connected", lambda: all(map(stack.agent_ready, sites)), READY_S)
        if self._posts:
            staffed = [post.reader.gateway for post in self._posts]
            with self._reporter.waiting("agents find their group"):
                stack.wait(f"{' and '.join(staffed)} are one group", lambda: stack.group_ready(staffed), READY_S)
        with self._reporter.waiting("Spark starts, mostly in 10 to 20 s"):
            stack.wait("the Spark job watches the landing", stack.job_watches, SPARK_S)
        self.say("agents", f"reading; events for {self._source.duration_s:.0f} s")

    def _start_broker(self, stack: Stack) -> None:
        """Start the broker; with mosquitto only those are let in who have a certificate, the liar is one of them."""
        staffed = {post.reader.gateway for post in self._posts}
        names = {(reader.site, reader.gateway) for reader in self._source.readers} | {LIAR}
        groups = {"/".join(name): [GROUP] if name[1] in staffed else [] for name in sorted(names)}
        is_enrolled = stack.enrol(groups)
        stack.broker.start()
        how = "TLS, a certificate for each" if is_enrolled else "no TLS and no liar, which need mosquitto"
        self.say("broker", f"{stack.broker.kind} on 127.0.0.1:{stack.broker.port}; {how}")

    def _start_liar(self, stack: Stack) -> None:
        if stack.enrolment is not None:
            victims = sorted({(reader.site, reader.gateway) for reader in self._source.readers})
            context = stack.enrolment.context("/".join(LIAR))
            self._liar = Liar(("127.0.0.1", stack.broker.port), context, LIAR, victims)
            self._liar.start()
            self.say("liar", f"{'/'.join(LIAR)} has a certificate of its own, and tries to speak as the others")

    def _watch(self, stack: Stack) -> None:
        """Report progress while events happen and until everything has landed."""
        end_s = time.monotonic() + self._source.duration_s + 0.5
        with self._reporter.waiting("events", end_s - time.monotonic()):
            while time.monotonic() < end_s:
                time.sleep(min(REPORT_S, max(0.1, end_s - time.monotonic())))
                stack.check()
                self._progress(stack)
        gateways = {reader.gateway for reader in self._source.readers}

        def landed() -> bool:
            waiting = sum((stack.status(g) or {"spool": {"readings": 1}})["spool"]["readings"] for g in gateways)
            made = sum(not e.damaged for e in self._source.emitted())
            return waiting == 0 and stack.landed_count() >= made

        try:
            with self._reporter.waiting("the last readings land"):
                stack.wait("all readings landed", landed, LANDED_S)
        except TimeoutError:
            self.say("landing", "not everything has landed in time; the summary counts what is missing")
        self._progress(stack)

    def _cut_in_time(self) -> None:
        """Schedule the cut of the uplink and its repair at the world's times."""
        cut = self._source.world.cut if isinstance(self._source, SimulatedReaders) else None
        if cut is None:
            return
        uplink = self._uplinks[cut.gateway]
        length_s = (cut.end_us - cut.begin_us) / SECOND_US
        moments = (
            (cut.begin_us, uplink.cut, f"{cut.gateway} is cut off for {length_s:g} s; its agent spools"),
            (cut.end_us, uplink.mend, f"{cut.gateway} is connected again"),
        )
        for true_us, act, text in moments:

            def at(act: Callable[[], None] = act, text: str = text) -> None:
                act()
                self.say("uplink", text)

            timer = threading.Timer((self._clock.mono_ns(true_us) - time.monotonic_ns()) / 1e9, at)
            timer.daemon = True
            timer.start()

    def _judge(self, stack: Stack, rule: Rule) -> Judgement:
        landed = stack.landed()
        emitted, readers, clocks = self._source.emitted(), self._source.readers, self._world.clocks
        placement = place(landed, emitted, readers, clocks)
        arrived = [entry for entry in emitted if entry.id in set(placement.sighting_of.values())]
        write_truth(stack.landing, placement, emitted, {reader.gateway: reader.site for reader in readers})

        lies: Lies | None = None

        def judge() -> Judgement:
            summary = summarise(rule, emitted, landed, stack.found_pairs(), readers, clocks)
            return Judgement(rule, summary, thefts(), staff(), lies)

        def thefts() -> TheftSummary | None:
            if self._world.cut is None:
                return None
            matches = [(match[0], match[-1]) for match in stack.found_matches()]
            return summarise_thefts(THEFT, emitted, landed, matches, placement)

        def staff() -> OverlapSummary | None:
            if not self._posts:
                return None
            return summarise_together(POSTS, arrived, stack.landed_states("present"), stack.found_verdicts())

        self.say("spark", f"last results ({judge().summary.expected_pairs} pairs in all by the rule's definition)")
        with self._reporter.waiting("Spark emits the last results"):
            stack.wait_while(lambda: bool(judge().summary.absent), PAIRS_S)
            stack.wait_while(lambda: bool((summary := thefts()) and summary.absent), THEFTS_S)
            stack.wait_while(lambda: bool((summary := staff()) and summary.absent), TOGETHER_S)
        self.say("spark", "no more results to wait for; ending the job")
        with self._reporter.waiting("Spark ends"):
            stack.parts["job"].stop()  # a repeat that it was about to emit is emitted by now
        lies = self._liar.stop() if self._liar is not None else None
        return judge()

    def _tell_address(self, dashboard: Part) -> None:
        for told in dashboard.json_lines():
            self.say("dashboard", f"{told['address']} shows this run")

    def _hold(self, dashboard: Part) -> None:
        """Keep the dashboard until Ctrl-C, or until it ends by itself."""
        with contextlib.suppress(KeyboardInterrupt):  # a reader may be quicker with Ctrl-C than this with its wait
            self.say("dashboard", "stays open with the finished run; Ctrl-C ends it")
            dashboard.process.wait()

    def _progress(self, stack: Stack) -> None:
        made, landed = len(self._source.emitted()), stack.landed_count()
        self.say(
            "readings",
            f"{made} made, {landed} landed, {self._pairs} pairs, {len(self._unpaid)} unpaid goods and "
            f"{self._together} times together found",
        )

    def _print_results(self, job: Part) -> None:
        for result in job.json_lines():
            if result["rule"] == "handover":
                self._pairs += 1
                self.say("pair", pair_text(result))
            elif result["rule"] == "staffed":
                self._together += 1
                self.say("together", verdict_text(result))
            elif result["key"] not in self._unpaid:  # goods that a reader saw several times are in several matches
                self._unpaid.add(result["key"])
                self.say("unpaid", match_text(result))

    @property
    def _posts(self) -> tuple[Post, ...]:
        """The posts of the run; a capture has none."""
        return POSTS if isinstance(self._source, SimulatedReaders) else ()
