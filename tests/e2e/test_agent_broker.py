"""The agent as a process against brokers that are hostile, strict or old, and others that use its name; and over TLS."""

import shutil
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from support.edge.agent import CLOCK, badges, passed, witness
from support.edge.old_broker import only_3
from support.edge.tls_broker import make_certificates, make_client, mosquitto, tls_broker
from whenabouts_protocol import topic
from whenabouts_sim.stack.broker import free_port
from whenabouts_sim.stack.stack import reader_table
from whenabouts_sim.world.world import GATE

HUGE_BYTES = 120 << 20
PEAK_BYTES = 120 << 20
GROUP = f"""\
[group]
name = "pair"
members = ["gw", "peer"]
[[state]]
name = "busy"
stream = "{GATE.stream}"
"""


@contextmanager
def door(version, port):
    """The port of a broker for agents: the broker's own, or of one that knows only MQTT 3.1.1."""
    if version == "5":
        yield port
    else:
        with only_3(port) as old:
            yield old


def configure(bench, port, broker="", more=""):
    """An agent with a badge reader and further lines of [broker]."""
    reader = reader_table(GATE, bench.folder / "ports" / "gate")
    path = bench.configure_agent("bench", "gw", [reader], CLOCK, bench.sim_clock, 2, more, ("localhost", port))
    path.write_text(path.read_text().replace("[broker]", "[broker]\n" + broker))


def peak_bytes(pid: int) -> int:
    """The most memory that a process has had."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) << 10


def published(port, name, payload):
    """Publish a retained message."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    client.publish(name, payload, qos=1, retain=True).wait_for_publish(30)
    client.disconnect()
    client.loop_stop()


def namesake(port, client_id):
    """A client with a name, connected."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id, reconnect_on_failure=False)
    client.connect("127.0.0.1", port)
    client.loop_start()
    return client


def troubled(bench, text, key="troubles"):
    """Wait until the agent's status has the text."""
    return bench.wait_status(text, lambda s: text in str(s["broker"][key]), 60)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_huge_message_takes_no_memory_and_delivery_goes_on(bench, gate, version):
    """A birth of a peer with 120 MiB, retained: readings arrive, the rest of the process's life needs 120 MB at most."""
    bench.broker.start()
    published(bench.broker.port, topic("bench", "peer", "birth"), bytes(HUGE_BYTES))
    with door(version, bench.broker.port) as port, witness(bench.broker.port) as seen:
        configure(bench, port, more=GROUP)
        agent = bench.start_agent("gw")
        bench.wait_status("connected", lambda s: s["broker"]["mqtt"] == version)
        if version == "3.1.1":  # a broker with 5 keeps it back
            troubled(bench, f"found a message of {HUGE_BYTES}"[:22])
            assert bench.agent_status()["broker"]["oversized"] == 1
        keys = passed(bench, gate, badges(bench, 5))
        seen.wait("badges", lambda: seen.keys() >= keys)
        assert peak_bytes(agent.process.pid) < PEAK_BYTES
        assert bench.agent_status()["broker"]["connections"] == 1


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_another_client_with_its_name_is_told(bench, gate, version):
    """Three losses within seconds are the sign, since this broker gives no reason. It connects again and delivers."""
    bench.broker.start()
    with door(version, bench.broker.port) as port:
        configure(bench, port)
        bench.start_agent("gw")
        for count in range(1, 4):
            bench.wait_status("connected", lambda s, count=count: s["broker"]["connections"] == count)
            bench.wait_status("as such", lambda s: s["broker"]["connected"])
            other = namesake(bench.broker.port, "bench/gw")
            bench.wait_status("again", lambda s, count=count: s["broker"]["connections"] > count, 60)
            other.loop_stop()
        troubled(bench, "another client uses this name, bench/gw")


def test_what_the_broker_forbids_is_told_and_nothing_counts_as_published(bench, gate):
    """Readings stay in the spool, the watermark stands, and once it is permitted all arrive without a restart."""
    port, folder = free_port(), bench.folder / "strict"
    folder.mkdir()
    own = {leaf: topic("bench", "gw", leaf) for leaf in ("ack", "birth", "obs", "status")}
    (folder / "acl").write_text(f"topic readwrite {own['status']}\ntopic read {own['ack']}\n")
    lines = f"listener {port} 127.0.0.1\nallow_anonymous true\nacl_file {folder}/acl\n"
    with mosquitto(folder, lines, port) as broker:
        configure(bench, port)
        bench.start_agent("gw")
        troubled(bench, f"does not let this client publish to {own['birth']}: Not authorized")
        keys = passed(bench, gate, badges(bench, 3))
        status = troubled(bench, f"does not let this client publish to {own['obs']}: Not authorized")
        assert status["broker"]["connected"]
        assert status["spool"]["readings"] == len(keys)
        assert status["clock"]["frontier_us"] is None or status["clock"]["frontier_us"] < bench.true_us() - 300_000
        (folder / "acl").write_text("topic readwrite #\n")
        broker.send_signal(signal.SIGHUP)
        with witness(port) as seen:
            seen.wait("badges", lambda: seen.keys() >= keys, 60)


@pytest.mark.parametrize("process", ["the one that stored them", "a later one"])
def test_an_acknowledgement_of_what_was_never_sent_deletes_nothing(bench, gate, process):
    """A retained one waits at an open broker for readings that the agent has stored but sent to nobody."""
    configure(bench, bench.broker.port)
    agent = bench.start_agent("gw")
    bench.wait_status("port open", lambda s: s["readers"][GATE.name]["state"] == "reading")
    keys = passed(bench, gate, badges(bench, 8))
    boot = bench.wait_status("stored", lambda s: s["spool"]["readings"] == len(keys))["boot"]
    if process == "a later one":
        assert agent.stop() == 0
    else:
        agent.process.send_signal(signal.SIGSTOP)  # or it may send before the acknowledgement is there
    bench.broker.start()
    with witness(bench.broker.port) as seen:
        seen.acknowledge({boot: len(keys) - 1}, retain=True)
        if process == "a later one":
            bench.start_agent("gw")
        else:
            agent.process.send_signal(signal.SIGCONT)
        seen.wait("all of them", lambda: seen.keys() >= keys)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    with tls_broker(tmp_path_factory.mktemp("tls")) as broker:
        yield broker


def mutual(broker, folder, ca=None):
    """Lines of [broker] with files in a folder, which are copies."""
    for source, name in ((ca or broker.ca, "ca"), (broker.cert, "cert"), (broker.key, "key")):
        shutil.copy(source, folder / name)
    return "".join(f'{name}_file = "{folder / name}"\n' for name in ("ca", "cert", "key"))


def test_over_mutual_tls_readings_land_and_renewed_files_are_taken_without_a_restart(bench, gate, secured):
    """First half of a pair is refused and told, the connection stays; then a new connection, with the new end, by order."""
    configure(bench, secured.mutual, mutual(secured, bench.folder))
    folder = secured.ca.parent
    make_client(folder, "renewed", 700)
    with witness(secured.plain) as seen:
        bench.start_agent("gw")
        before = bench.wait_status("connected", lambda s: s["broker"]["connected"])["broker"]
        assert 86_400 < before["certificate_end_s"] - time.time() <= 2 * 86_400
        keys = passed(bench, gate, badges(bench, 3))
        seen.wait("badges", lambda: seen.keys() >= keys)
        shutil.copy(folder / "renewed.pem", bench.folder / "cert")
        status = troubled(bench, "renewed files cannot be used")
        assert (status["broker"]["connected"], status["broker"]["connections"]) == (True, 1)
        shutil.copy(folder / "renewed.key", bench.folder / "key")
        after = bench.wait_status(
            "connected again", lambda s: s["broker"]["connections"] == 2 and s["broker"]["connected"]
        )
        assert after["broker"]["certificate_end_s"] - time.time() > 690 * 86_400
        assert after["broker"]["troubles"] == []
        assert "offline" not in seen.conditions()
        keys |= passed(bench, gate, badges(bench, 3, 3))
        seen.wait("badges", lambda: seen.keys() >= keys)


@pytest.mark.parametrize(("wrong", "said"), [
    ("authority", "the broker's certificate is not believed by ca_file"),
    ("certificate", "the broker refuses this gateway's certificate"),
])  # fmt: skip
def test_a_certificate_that_is_not_believed_is_told_by_whom(bench, gate, secured, wrong, said):
    """The agent does not believe the broker, or the broker does not believe the agent."""
    lines = mutual(secured, bench.folder, secured.other_ca if wrong == "authority" else None)
    if wrong == "certificate":
        (bench.folder / "foreign").mkdir()
        make_certificates(bench.folder / "foreign")
        for suffix, name in (("pem", "cert"), ("key", "key")):
            shutil.copy(bench.folder / "foreign" / f"client.{suffix}", bench.folder / name)
    configure(bench, secured.mutual, lines)
    bench.start_agent("gw")
    troubled(bench, said, "problem")
