"""Several ingests in one landing, each with its sites, on a real broker: a gateway may move, and an ingest may fail."""

import subprocess
import sys
from collections import Counter

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from support.cloud.ingest import NOW_US
from support.edge.mqtt_gateway import MqttGateway
from whenabouts_cloud.cli import main
from whenabouts_cloud.frontier.gateways import latest_watermarks
from whenabouts_cloud.landing.history import everything, readings_of
from whenabouts_cloud.landing.scan import read_piece
from whenabouts_cloud.landing.schema import of
from whenabouts_cloud.landing.store import Store
from whenabouts_sim.stack.stack import Stack

LIMIT_S = 90.0  # far above what any step takes
READINGS = 2000


def start(stack, name, *sites):
    """Start an ingest of these sites."""
    address = f"127.0.0.1:{stack.broker.port}"
    command = [sys.executable, "-m", "whenabouts_cloud.cli", "ingest", "--broker", address]
    command += ["--landing", str(stack.landing), "--name", name, *(part for site in sites for part in ("--site", site))]
    part = stack.start(f"ingest-{name}", command)
    stack.wait("connected", lambda: part.said("broker.connected"), LIMIT_S)
    return part


def confirmed(gateway):
    """The last number that the gateway knows to have landed; says first which it still keeps, so others landed elsewhere."""
    gateway.send_heartbeat(NOW_US)
    return gateway.acked


def landed(stack):
    """How often each reading is in the landing, as readers see it."""
    store = Store.at(stack.landing)
    tables = [read_piece(store, one, of("gateway", "seq")) for one in readings_of(everything(store))]
    return Counter((row["gateway"], row["seq"]) for table in tables for row in table.to_pylist())


@pytest.mark.parametrize("successor", ["b", "a"])
def test_the_sites_of_an_ingest_that_was_killed_are_taken_over_and_nothing_is_lost(tmp_path, successor):
    """By another ingest that lands its own site too, and by one of the same name.

    What the first had landed and not confirmed comes again: it is there twice, under one identity, which readers drop.
    """
    with Stack(tmp_path) as stack:
        stack.broker.start()
        first = start(stack, "a", "hall")
        gateway = MqttGateway("g0", stack.broker.port, READINGS, 20)
        try:
            stack.wait("some landed", lambda: gateway.acked >= READINGS // 3, LIMIT_S)
            first.process.kill()
            first.process.wait(LIMIT_S)
            del stack.parts["ingest-a"]
            second = start(stack, successor, "yard,hall")
            stack.wait("all acknowledged", lambda: confirmed(gateway) == READINGS - 1, LIMIT_S)
            gateway.send_heartbeat(NOW_US + 7)
            stack.wait(
                "frontier", lambda: ("hall/g0", NOW_US + 7, 0) in latest_watermarks(Store.at(stack.landing)), LIMIT_S
            )
        finally:
            gateway.close()
        assert second.stop() == 0, second.tail()
        found = landed(stack)
        assert set(found) == {("g0", seq) for seq in range(READINGS)}
        again = [seq for (_, seq), times in found.items() if times > 1]
        assert len(again) <= 12 * 20 + 20, "only what was on its way"
        names = {path.name for path in stack.landing.iterdir()}
        assert names == {"ingest=a", f"ingest={successor}"}


def test_a_gateway_that_moves_between_two_running_ingests_loses_and_repeats_nothing(tmp_path):
    """Its site is taken from one and given to the other, as a restart of both with other options does."""
    with Stack(tmp_path) as stack:
        stack.broker.start()
        ingests = {"a": start(stack, "a", "hall"), "b": start(stack, "b", "yard")}
        gateway = MqttGateway("g0", stack.broker.port, READINGS, 20)
        try:
            moves = [{"a": "mill", "b": "hall,yard"}, {"a": "hall", "b": "yard"}]
            for goal, sites in zip((READINGS // 3, READINGS * 2 // 3), moves, strict=True):
                stack.wait("some landed", lambda goal=goal: confirmed(gateway) >= goal, LIMIT_S)
                for name in ("a", "b"):
                    assert ingests[name].stop() == 0, ingests[name].tail()
                    ingests[name] = start(stack, name, sites[name])
            stack.wait("all acknowledged", lambda: confirmed(gateway) == READINGS - 1, LIMIT_S)
        finally:
            gateway.close()
        for ingest in ingests.values():
            assert ingest.stop() == 0, ingest.tail()
        found = landed(stack)
        assert set(found) == {("g0", seq) for seq in range(READINGS)}
        for name in ("a", "b"):
            files = list((stack.landing / f"ingest={name}").glob("hour=*/*.parquet"))
            assert sum(pq.read_metadata(file).num_rows for file in files) > READINGS // 10


def test_two_ingests_of_one_name_the_second_is_refused(tmp_path):
    """The sentence names the folder; the first goes on."""
    with Stack(tmp_path) as stack:
        stack.broker.start()
        first = start(stack, "a", "hall")
        command = [sys.executable, "-m", "whenabouts_cloud.cli", "ingest", "--broker", f"127.0.0.1:{stack.broker.port}"]
        command += ["--landing", str(stack.landing), "--name", "a"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 1
        assert "ingest=a: another ingest writes here; stop it or name another folder" in done.stderr
        assert first.stop() == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--site", "$share/group/hall"), "a shared subscription: the broker would scatter the numbers of one gateway"),
        (("--site", "hall,a/b"), "found 'a/b', expected the name of a site"),
        (("--name", "../a"), "found '../a', expected 1 to 63 letters"),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(tmp_path, options, text):
    """Shared subscriptions, names that are none."""
    done = CliRunner().invoke(main, ["ingest", "--broker", "localhost", "--landing", str(tmp_path / "l"), *options])
    assert done.exit_code == 2
    assert text in " ".join(done.output.split())
    assert not (tmp_path / "l").exists()
