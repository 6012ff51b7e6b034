"""A real agent and a real ingest on a broker that `enrol` configured, with the files that `enrol` wrote."""

import json
import shlex
import sys

import pytest

from support.cloud.enrolled import enrol, enrolled_broker
from support.edge.agent import CLOCK, badges, passed

WAIT_S = 30.0


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
