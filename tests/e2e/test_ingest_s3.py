"""The ingest with its landing in an object store: a real S3 server, a real broker, ingests that are killed and paused."""

import signal
import sys
from collections import Counter

import pytest

from support.cloud.ingest import NOW_US
from support.cloud.s3 import BUCKET, s3_server
from support.edge.mqtt_gateway import MqttGateway
from whenabouts_cloud.frontier.gateways import latest_watermarks
from whenabouts_cloud.landing.history import everything, readings_of
from whenabouts_cloud.landing.index import START, PartIndex, moved
from whenabouts_cloud.landing.scan import read_piece
from whenabouts_cloud.landing.schema import of
from whenabouts_cloud.landing.store import Store
from whenabouts_sim.stack.stack import Stack

LIMIT_S = 90.0  # far above what any step takes
READINGS = 2000
LEASE = "2s"


@pytest.fixture
def landing(tmp_path):
    with s3_server():
        yield Store.at(f"s3://{BUCKET}/{tmp_path.name}")


def start(stack, landing, part, *more):
    """Start an ingest."""
    address = f"127.0.0.1:{stack.broker.port}"
    command = [sys.executable, "-m", "whenabouts_cloud.cli", "ingest", "--broker", address, "--landing", landing.uri]
    return stack.start(part, [*command, "--lease", LEASE, *more])


def landed(landing):
    """How often each reading is in the landing, as readers of the whole see it."""
    tables = [read_piece(landing, one, of("gateway", "seq")) for one in readings_of(everything(landing))]
    return Counter((row["gateway"], row["seq"]) for table in tables for row in table.to_pylist())


def followed(part):
    """What a reader that looks for the next number finds, from the first on: the numbers, each once, without a gap."""
    index, at, found = PartIndex(part, lambda: float("inf")), START, []
    while some := index.after(at):
        at = moved(at, some)
        found += some
    return sorted({file.numbers.first for file in found})


def test_an_ingest_that_is_killed_or_paused_is_taken_over_and_nothing_is_lost(tmp_path, landing):
    """killed -> second; second paused (SIGSTOP) -> third; the second wakes up, lands nothing more, and ends.

    What lands twice has one identity: readers drop it.
    """
    with Stack(tmp_path) as stack:
        stack.broker.start()
        first = start(stack, landing, "first", "--name", "a", "--site", "hall")
        stack.wait("connected", lambda: first.said("broker.connected"), LIMIT_S)
        gateway = MqttGateway("g0", stack.broker.port, READINGS, 20)
        try:
            stack.wait("some landed", lambda: gateway.acked >= READINGS // 4, LIMIT_S)
            first.process.kill()
            first.process.wait(LIMIT_S)
            del stack.parts["first"]
            second = start(stack, landing, "second", "--name", "a", "--site", "hall")
            stack.wait("taken over", lambda: second.said("broker.connected"), LIMIT_S)
            before = gateway.acked
            stack.wait("more landed", lambda: gateway.acked > before + READINGS // 8, LIMIT_S)
            second.process.send_signal(signal.SIGSTOP)
            third = start(stack, landing, "third", "--name", "a", "--site", "hall")
            stack.wait("taken over", lambda: third.said("broker.connected"), LIMIT_S)
            assert third.said("lease.waiting")
            second.process.send_signal(signal.SIGCONT)
            assert second.process.wait(LIMIT_S) == 1
            assert "has taken over: this one had not renewed its lease in time" in " ".join(second.tail().split())
            del stack.parts["second"]
            stack.wait("all acknowledged", lambda: gateway.done, LIMIT_S)
            gateway.send_heartbeat(NOW_US + 7)
            stack.wait("frontier", lambda: ("hall/g0", NOW_US + 7, 0) in latest_watermarks(landing), LIMIT_S)
        finally:
            gateway.close()
        assert third.stop() == 0, third.tail()
        found = landed(landing)
        assert set(found) == {("g0", seq) for seq in range(READINGS)}
        numbers = followed(landing.at_folder("ingest=a"))
        assert numbers == list(range(1, len(numbers) + 1))


def test_a_second_ingest_of_one_name_is_refused_and_one_that_ended_is_followed_at_once(tmp_path, landing):
    """The sentence names the machine of the first, which goes on."""
    with Stack(tmp_path) as stack:
        stack.broker.start()
        first = start(stack, landing, "first")
        stack.wait("connected", lambda: first.said("broker.connected"), LIMIT_S)
        second = start(stack, landing, "second")
        assert second.process.wait(LIMIT_S) == 1
        assert "another ingest, on " in second.tail()
        assert "writes here; stop it, or give this one another --name" in " ".join(second.tail().split())
        del stack.parts["second"]
        assert first.stop() == 0, first.tail()
        del stack.parts["first"]
        third = start(stack, landing, "third")
        stack.wait("connected", lambda: third.said("broker.connected"), LIMIT_S)
        assert not third.said("lease.waiting")
        assert third.stop() == 0, third.tail()
