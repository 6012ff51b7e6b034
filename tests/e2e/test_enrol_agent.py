"""A real agent and a real ingest on a broker that `enrol` configured, with the files that `enrol` wrote."""

import json
import shlex
import sys

import pytest

from support.cloud.enrolled import enrol, enrolled_broker
from support.edge.agent import CLOCK, badges, passed
from whenabouts_cloud.health.reader import records
from whenabouts_cloud.landing.store import Store
from whenabouts_edge.uplink import certificate
from whenabouts_hardware import READERS

WAIT_S = 60.0
LATENCY_US = READERS["rdm6300"].latency_us


@pytest.fixture
def broker(tmp_path):
    with enrolled_broker(tmp_path / "enrol") as made:
        yield made


def start_ingest(bench, broker, *options):
    """The ingest as the last line of `enrol ingest` says."""
    out = broker.folder / "ingest"
    command = shlex.split(enrol("ingest", "--dir", broker.ca, "--out", out).splitlines()[-1])[:-2]
    part = [sys.executable, "-m", "whenabouts_cloud.cli", *command[1:], "--landing", str(bench.landing)]
    return bench.start("ingest", [*part, *options])


def start_agent(bench, broker, site="bench", name="gw", *options):
    """An agent whose table [broker] is that of `enrol gateway`."""
    folder = broker.gateway(site, name, *options)
    port = bench.folder / "ports" / "gate"
    reader = {"name": "gate", "kind": "rdm6300", "port": str(port), "stream": "gate/tags"}
    path = bench.configure_agent(site, name, [reader], CLOCK, bench.sim_clock)
    before, _, after = path.read_text().partition("[broker]\n")
    table = (folder / "broker.toml").read_text()
    path.write_text(before + table + "resend_s = 1\n" + after[after.index("[clock]") :])
    return bench.start_agent(name)


def test_readings_land_and_spools_empty(bench, gate, broker):
    """With the files that were written and the commands that were printed, and nothing else."""
    start_ingest(bench, broker)
    start_agent(bench, broker)
    bench.wait("the agent is connected", lambda: bench.agent_ready("gw"), WAIT_S)
    keys = passed(bench, gate, badges(bench, 8))
    bench.wait("all land", lambda: {r.key for r in bench.landed()} >= keys, WAIT_S)
    bench.wait("the spool is empty", lambda: not bench.agent_status()["spool"]["readings"], WAIT_S)
    assert bench.agent_status()["broker"]["connected"]


def test_what_a_gateway_and_the_ingest_report_can_be_read_from_the_landing(bench, gate, broker):
    """
    agent    connected ... a heartbeat ... killed (the broker tells it) ... again ... asked to end     ingest asked to end
    """
    ingest = start_ingest(bench, broker)
    agent = start_agent(bench, broker)
    ends_s = certificate.ends(str(broker.folder / "bench.gw" / "client.crt"))[0]

    def reported(kind):
        return list(records(Store.at(bench.landing), 0, 1 << 60, [kind]))

    def conditions():
        return [one["condition"] for one in reported("status")]

    bench.wait("birth and heartbeat", lambda: reported("birth") and reported("heartbeat"), WAIT_S)
    stream = reported("birth")[0]["streams"][0]
    assert (stream["name"], stream["latency_us"], stream["adapter_us"]) == ("gate/tags", LATENCY_US, 16_000)
    assert (stream["poll_us"], stream["wire_us"] > 0) == (20_000, True)
    beat = reported("heartbeat")[0]
    assert (beat["site"], beat["gateway"], beat["boot"]) == ("bench", "gw", reported("birth")[0]["boot"])
    assert (beat["clock_state"], beat["clock_source"], beat["certificate_ends_s"]) == ("bounded", "sim", ends_s)
    assert beat["bound_us"] >= CLOCK.base_bound_us
    agent.kill()
    del bench.parts["gw"]
    bench.wait("offline", lambda: conditions()[-1:] == ["offline"], WAIT_S)
    again = bench.start_agent("gw")
    bench.wait("online again", lambda: conditions()[-1:] == ["online"], WAIT_S)
    assert again.stop() == 0
    del bench.parts["gw"]
    bench.wait("stopped", lambda: conditions()[-1:] == ["stopped"], WAIT_S)
    assert list(dict.fromkeys(one["boot"] for one in reported("status"))) == sorted(
        {one["boot"] for one in reported("birth")}
    )
    assert ingest.stop() == 0
    first, *_, last = reported("ingest")
    assert (first["connected"], last["connected"]) == (True, False)
    assert 5 < last["counters"]["health_records"] < len(list(records(Store.at(bench.landing), 0, 1 << 60)))
    assert last["counters"]["health_thinned"] > 0
    assert last["dead_letters"] == {}


def test_a_stream_that_was_not_given_to_the_gateway_does_not_land(bench, gate, broker):
    """`--stream` of `enrol gateway` reaches the ingest by gateways.json."""
    ingest = start_ingest(bench, broker, "--json")
    start_agent(bench, broker, "bench", "gw", "--stream", "other/+")
    bench.wait("the agent is connected", lambda: bench.agent_ready("gw"), WAIT_S)
    passed(bench, gate, badges(bench, 4))

    def refused():
        lines = [json.loads(line) for line in ingest.log.read_text().splitlines() if line.startswith("{")]
        return any(line["dead_letters"] for line in lines)

    bench.wait("dead letters", refused, WAIT_S)
    assert bench.landed() == []
