"""Parts of the swarm: its figures, what a gateway sends and resends, what a process uses."""

import os
import time
from dataclasses import replace

import pytest

from whenabouts_protocol import Ack, decode_batch, decode_heartbeat, encode_ack, topic
from whenabouts_sim.swarm.figures import LoadStep, needs, percentile, table
from whenabouts_sim.swarm.gateway import BATCH_MAX, BOOT, SITE, LightGateway
from whenabouts_sim.swarm.usage import of_machine, of_process

GOOD = LoadStep(
    offered=1000, seconds=10, made=10_000, messages=5000, landed=9500, p50_s=0.3, p99_s=0.6, backlog=500, not_taken=3,
    late_s=0.01, broker_cores=0.1, ingest_cores=0.3, swarm_cores=0.2, machine_cores=0.7, iowait_cores=0.0, cores=2,
    ingest_write_bytes_s=100_000.0, broker_rss_bytes=10_000_000, ingest_rss_bytes=90_000_000,
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason", "limit"),
    [
        ({"p99_s": 2.1, "ingest_cores": 0.95}, "p99 2.1 s", "processor: ingest"),
        ({"backlog": 2001, "broker_cores": 0.9}, "2001 readings waited", "processor: broker"),
        ({"late_s": 0.6, "swarm_cores": 0.99}, "the swarm itself was 0.6 s late", "processor: swarm"),
        ({"p99_s": 3.0, "machine_cores": 1.9}, "p99", "all 2 cores; ingest 0.30"),
        ({"p99_s": 3.0, "iowait_cores": 0.5}, "p99", "disk"),
        ({"p99_s": 3.0, "not_taken": 251}, "p99", "broker's queue"),
        ({"p99_s": 3.0}, "p99", "nothing was used up"),
    ],
)
def test_a_step_reports_why_it_bends_and_what_was_used_up(change, reason, limit):
    """One figure over its limit is enough; whoever has used its core up is named first."""
    step = replace(GOOD, **change)
    assert reason in step.bends
    assert limit in step.limit
    assert step.as_dict()["limit"] == step.limit
    assert limit in table(200, [GOOD, step], 10_000)


def test_a_step_that_holds_reports_nothing_and_what_more_gateways_need_is_in_proportion():
    """50 times as many gateways: 15 cores of ingest at 0.6 of a core each are 25 ingests."""
    assert (GOOD.bends, GOOD.as_dict()["limit"]) == ("", "")
    needed = needs(GOOD, 200, 10_000)
    assert (needed["readings_s"], needed["messages_s"]) == (50_000, 25_000)
    assert (needed["ingest_cores"], needed["ingests"], needed["brokers"]) == (15.0, 25, 9)
    assert (needed["broker_rss_mb"], needed["landing_mb_s"]) == (500, 5.0)
    assert "did not bend up to 1000" in table(200, [GOOD], 10_000)


def test_percentiles():
    """The value below which a share lies; of nothing 0."""
    assert [percentile(range(100), share) for share in (0, 0.5, 0.99, 1)] == [0, 50, 99, 99]
    assert percentile([], 0.5) == 0


class Wire:
    """Keeps what a gateway writes, packet by packet."""

    def __init__(self):
        self.packets = []

    def write(self, data):
        self.packets.append(bytes(data))

    def close(self):
        pass

    def payloads(self, leaf):
        """Of the publications on that leaf, oldest first."""
        name = topic(SITE, "g00007", leaf).encode()
        return [p.split(name, 1)[1] for p in self.packets if name in p and p[0] >> 4 == 3]


@pytest.fixture
def connected(monkeypatch):
    """A connected gateway, its wire, and what was confirmed as landed."""
    monkeypatch.setattr("asyncio.Transport", Wire)
    reported = []
    gateway, wire = LightGateway(7, 1, reported.extend), Wire()
    gateway.connection_made(wire)
    gateway.data_received(b"\x20\x02\x00\x00")
    return gateway, wire, reported


def message(name, payload):
    """A QoS 0 publication to the gateway."""
    body = len(name).to_bytes(2, "big") + name.encode() + payload
    assert len(body) < 128
    return bytes([0x30, len(body)]) + body


def test_readings_go_out_as_batches_and_count_until_the_cloud_confirms(connected):
    """
    read   10  20 | commit    30 | commit     ack up to 1: the first two have landed
    """
    gateway, wire, reported = connected
    assert [gateway.read(10), gateway.read(20)] == [True, False]
    assert gateway.outstanding == 2
    gateway.commit()
    assert gateway.read(30)
    gateway.commit()
    batches = [decode_batch(payload[2:]) for payload in wire.payloads("obs")]
    assert [[r.seq for r in batch] for batch in batches] == [[0, 1], [2]]
    assert {(r.gateway, r.boot) for batch in batches for r in batch} == {("g00007", BOOT)}
    assert all(r.t_min < at < r.t_max for r, at in zip([*batches[0], *batches[1]], (10, 20, 30), strict=True))
    assert (gateway.outstanding, gateway.not_taken) == (3, 2)
    gateway.data_received(message(topic(SITE, "g00007", "ack"), encode_ack(Ack(SITE, "g00007", {BOOT: 1}))))
    assert (reported, gateway.outstanding) == ([10, 20], 1)
    gateway.tick(29)
    [heartbeat] = [decode_heartbeat(payload) for payload in wire.payloads("heartbeat")]
    assert (heartbeat.published, heartbeat.frontier_us) == (
        {BOOT: (2, 2)},
        None,
    )  # not all taken by the broker: no watermark


def test_what_was_not_confirmed_is_sent_again_after_reconnecting_byte_for_byte(connected):
    """The connection ends before any message of the cloud."""
    gateway, wire, _ = connected
    for n in range(BATCH_MAX):
        gateway.read(n)
    first = wire.payloads("obs")
    assert len(first) == 1  # a full batch does not wait for its commit
    gateway.connection_lost(None)
    assert not gateway.connected
    again = Wire()
    gateway.connection_made(again)
    gateway.data_received(b"\x20\x02\x00\x00")
    assert [p[2:] for p in again.payloads("obs")] == [p[2:] for p in first]


def test_use_of_a_process_and_of_the_machine_grows_as_it_works():
    """A few hundredths of a second of work are seen."""
    before, machine = of_process(os.getpid()), of_machine()
    until_s = time.process_time() + 0.1
    while time.process_time() < until_s:
        pass
    after = of_process(os.getpid())
    assert after.cpu_s - before.cpu_s >= 0.05
    assert after.rss_bytes > 1_000_000
    assert of_machine()[0] > machine[0]
    with pytest.raises(OSError, match="No such file"):
        of_process(1 << 30)
