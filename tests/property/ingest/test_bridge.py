"""The bridge under every order of messages, repeats, crashes and failing disks: each reading once, no frontier too early."""

import shutil
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from support.cloud.ingest import NOW_US, at, birth, frontiers, heartbeat, reading
from support.search import examples
from whenabouts_cloud.ingest import landing_writer as landing_module
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_protocol import encode_batch

GATEWAYS = ("g1", "g2", "g3")
MEMORY = Path("/dev/shm")


class Crash(Exception):
    """The process ended here."""


class BreakableLanding(Landing):
    """Crashes or fails at the named place once; shows frontiers to a judge before they are visible."""

    place = ""
    judge = None

    def _break(self, place: str) -> None:
        if self.place == place:
            self.place = ""
            raise OSError(28, "No space left on device") if place.startswith("full") else Crash

    def write(self, *args):
        self._break("full before write")
        self._break("before write")
        path = super().write(*args)
        self._break("after write")
        return path

    def snapshot(self, *args):
        self._break("full before snapshot")
        super().snapshot(*args)
        self._break("after snapshot")

    def write_frontiers(self, rows):
        self._break("full before frontier")
        self.judge(rows)
        super().write_frontiers(rows)
        self._break("after frontier")


PLACES = ("full before write", "before write", "after write", "full before snapshot", "after snapshot",
          "full before frontier", "after frontier")  # fmt: skip


class BridgeMachine(RuleBasedStateMachine):
    """Gateways that publish, a broker that keeps messages until they are acknowledged, a bridge that may end any time."""

    @initialize()
    def start(self):
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
        self.every, landing_module.SNAPSHOT_EVERY = landing_module.SNAPSHOT_EVERY, 3
        self.now_us = NOW_US
        self.boot = dict.fromkeys(GATEWAYS, 0)
        self.sent = {}  # identity -> reading
        self.confirmed = {}  # (gateway, boot) -> highest acknowledged
        self.at_broker = {}  # token -> (topic, payload)
        self.with_bridge = set()  # tokens
        self.contents = {}  # token -> identities
        self.shown = {}  # path -> identities
        self.tokens = 0
        self.frontier, self.arrived_us = {}, {}
        self.open()

    def open(self):
        self.landing = BreakableLanding(self.folder)
        self.landing.judge = self.judge
        self.bridge = Bridge(self.landing, lambda: self.now_us)
        self.with_bridge.clear()
        for gateway in GATEWAYS[:2]:  # the third is born later
            self.bridge.take(at(gateway, "birth"), birth(gateway), None)

    @rule(gateway=st.sampled_from(GATEWAYS), count=st.integers(1, 6), shuffled=st.randoms(), late_us=st.integers(0, 9))
    def publish(self, gateway, count, shuffled, late_us):
        boot = self.boot[gateway]
        first = 1 + max((seq for g, b, seq in self.sent if (g, b) == (gateway, boot)), default=-1)
        readings = []
        for seq in range(first, first + count):
            # Never before the watermark: t_max >= frontier.
            t_min = max(self.now_us + seq - late_us, self.frontier.get(gateway, 0)) - 1000
            readings.append(reading(gateway, boot, seq, t_min))
        shuffled.shuffle(readings)
        self.sent.update((r.identity, r) for r in readings)
        self.post(readings)

    @rule(gateway=st.sampled_from(GATEWAYS), random=st.randoms())
    def resend(self, gateway, random):
        """Any of what was sent, in another grouping and order."""
        boots = sorted({b for g, b, _ in self.sent if g == gateway})
        if boots:
            boot = random.choice(boots)
            known = [r for (g, b, _), r in sorted(self.sent.items()) if (g, b) == (gateway, boot)]
            self.post(random.choices(known, k=random.randint(1, len(known) + 2)))

    def post(self, readings):
        self.tokens += 1
        self.at_broker[self.tokens] = at(readings[0].gateway), encode_batch(readings)
        self.contents[self.tokens] = {r.identity for r in readings}

    @rule(gateway=st.sampled_from(GATEWAYS))
    def reboot(self, gateway):
        self.boot[gateway] += 1

    @rule(random=st.randoms(), count=st.integers(1, 4))
    def deliver(self, random, count):
        waiting = sorted(self.at_broker.keys() - self.with_bridge)
        for token in random.sample(waiting, min(count, len(waiting))):
            self.bridge.take(*self.at_broker[token], token)
            self.with_bridge.add(token)

    @rule(gateway=st.sampled_from(GATEWAYS))
    def send_heartbeat(self, gateway):
        """Sends a watermark for all published readings; it may overtake every batch."""
        published = {}
        for g, boot, seq in self.sent:
            if g == gateway:
                first = self.confirmed.get((g, boot), -1) + 1
                published[boot] = (first, max(seq, published.get(boot, (0, first - 1))[1]))
        published = {b: r for b, r in published.items() if r[1] >= 0}
        self.arrived_us[gateway] = self.now_us
        frontier_us = self.frontier[gateway] = max(self.frontier.get(gateway, 0), self.now_us)
        self.bridge.take(at(gateway, "heartbeat"), heartbeat(gateway, self.boot[gateway], frontier_us, published), None)

    @rule(step_us=st.sampled_from([400_000, 1_100_000, 1_100_000, 3_600_000_000, -3_600_000_000]))
    def pass_time(self, step_us):
        self.now_us += step_us

    @rule()
    def flush(self):
        self.check(self.bridge.flush())

    @rule(place=st.sampled_from(PLACES))
    def flush_and_break(self, place):
        self.landing.place = place
        try:
            done = self.bridge.flush()
        except OSError:
            assert place.startswith("full")
            self.check(self.bridge.flush())
        except Crash:
            self.landing.close()
            self.open()
        else:
            self.landing.place = ""
            self.check(done)

    @rule()
    def crash(self):
        self.landing.close()
        self.open()

    def visible(self):
        for path in (*self.folder.glob("hour=*/part-*.parquet"), *self.folder.glob("_ahead/hour=*/part-*.parquet")):
            if path not in self.shown:
                table = pq.ParquetFile(path).read(["gateway", "boot", "seq"])
                rows = list(zip(*(c.to_pylist() for c in table.columns), strict=True))
                self.shown[path] = rows
        return [identity for rows in self.shown.values() for identity in rows]

    def check(self, done):
        visible = self.visible()
        assert len(visible) == len(set(visible))
        assert set(visible) <= self.sent.keys()
        tokens = [token for token in done.tokens if token is not None]
        assert sorted(tokens) == sorted(self.with_bridge)
        assert self.bridge.waiting == 0
        for token in tokens:
            assert self.contents[token] <= set(visible)
            del self.at_broker[token]
        self.with_bridge.clear()
        for ack in done.acks:
            for boot, reach in ack.landed.items():
                assert all((ack.gateway, boot, seq) in set(visible) for seq in range(reach + 1))
                assert reach >= self.confirmed.get((ack.gateway, boot), -1)
                self.confirmed[ack.gateway, boot] = reach

    def judge(self, rows):
        visible = set(self.visible())
        for row in rows:
            watermarked = {i for i, r in self.sent.items() if i[0] == row["gateway"] and r.t_max < row["frontier_us"]}
            assert watermarked <= visible
            assert row["gateway"] in GATEWAYS[:2] or self.born_third

    born_third = False

    def teardown(self):
        if not hasattr(self, "folder"):
            return
        try:
            while self.at_broker:
                for token, message in self.at_broker.items():
                    if token not in self.with_bridge:
                        self.bridge.take(*message, token)
                        self.with_bridge.add(token)
                self.flush()
            self.born_third = True
            self.bridge.take(at("g3", "birth"), birth("g3"), None)
            for gateway in GATEWAYS:
                self.now_us += 10
                self.send_heartbeat(gateway)
            self.now_us += 2_000_000
            self.flush()
            assert sorted(self.visible()) == sorted(self.sent)
            for gateway, boot, seq in self.sent:
                assert self.confirmed[gateway, boot] >= seq
            reported = {}
            for row in frontiers(self.folder):
                reported[row["gateway"]] = max(row["frontier_us"], reported.get(row["gateway"], 0))
            assert reported.keys() == self.frontier.keys()
            for gateway, frontier_us in self.frontier.items():  # a watermark ends at the arrival of its heartbeat
                assert min(frontier_us, self.arrived_us[gateway]) <= reported[gateway] <= frontier_us
        finally:
            self.landing.close()
            landing_module.SNAPSHOT_EVERY = self.every
            shutil.rmtree(self.folder)


BridgeMachine.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
test_every_reading_lands_once_and_no_frontier_is_early = BridgeMachine.TestCase
