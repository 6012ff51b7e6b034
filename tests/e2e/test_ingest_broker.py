"""The ingest as a process on a real broker, killed and started again, under honest and hostile senders."""

import json
import random
import shutil
import subprocess
import sys
import threading
from contextlib import ExitStack

import cbor2
import paho.mqtt.client as mqtt
import pyarrow.parquet as pq
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from support.cloud.ingest import NOW_US, SITE, at, batch, birth, frontiers, identities, letters
from support.edge.mqtt_gateway import MqttGateway
from whenabouts_protocol import decode_ack
from whenabouts_sim.stack.broker import RunningBroker
from whenabouts_sim.stack.stack import Stack

LIMIT_S = 40.0  # far above what any step takes


@pytest.fixture
def stack(tmp_path):
    """Broker running, nothing else; everything ends with the test."""
    with Stack(tmp_path) as made:
        made.broker.start()
        yield made


def retained_ack(port: int, gateway: str) -> dict[int, int]:
    """Acknowledgement that a new subscriber receives: {boot: landed}."""
    reported: list[dict[int, int]] = []
    came = threading.Event()
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.on_connect = lambda c, *_: c.subscribe(at(gateway, "ack"), qos=1)
    client.on_message = lambda _c, _u, message: (reported.append(decode_ack(message.payload).landed), came.set())
    client.connect("127.0.0.1", port)
    client.loop_start()
    assert came.wait(LIMIT_S), f"no retained acknowledgement for {gateway}"
    client.disconnect()
    client.loop_stop()
    return reported[0]


def attack(port: int, stop: threading.Event) -> None:
    """Noise, foreign names, wrong leaves and messages of all sizes, until stopped."""
    chance = random.Random(7)
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.reconnect_delay_set(1, 1)
    client.connect("127.0.0.1", port)
    client.loop_start()
    while not stop.wait(0.05):
        client.publish(at("evil"), chance.randbytes(200), qos=1)
        client.publish(at("evil"), batch("g0", 0, chance.randrange(5000), 3), qos=1)
        client.publish(at("evil", "heartbeat"), batch("evil", 0, 0, 3), qos=0)
        client.publish(at("evil", "birth"), birth("g1"), qos=0)
        if chance.random() < 0.1:
            client.publish(at("evil"), bytes(300 << 10), qos=1)
            client.publish(at("evil"), bytes(3 << 20), qos=1)
    client.disconnect()
    client.loop_stop()


def test_every_reading_lands_once_while_ingest_and_broker_are_killed(stack):
    """acknowledged:  15 %      30 %      45 %          60 %      75 %
    killed:        ingest    ingest    broker        ingest    ingest asked to end (exit 0)"""
    port, stop = stack.broker.port, threading.Event()
    attacker = threading.Thread(target=attack, args=(port, stop))
    with ExitStack() as opened:
        opened.callback(attacker.join)
        opened.callback(stop.set)
        attacker.start()
        stack.start_ingest()
        gateways = [MqttGateway(f"g{n}", port, 4000 + n, 20) for n in range(4)]
        for gateway in gateways:
            opened.callback(gateway.close)
        total = sum(gateway.count for gateway in gateways)

        def acknowledged() -> int:
            return sum(gateway.acked + 1 for gateway in gateways)

        for share, victim in ((0.15, "ingest"), (0.3, "ingest"), (0.45, "broker"), (0.6, "ingest"), (0.75, "end")):
            stack.wait(f"{share:.0%} acknowledged", lambda share=share: acknowledged() >= share * total, LIMIT_S)
            assert acknowledged() < total, "all was over before it could be killed"
            if victim == "broker":
                stack.broker.kill()
                stack.broker.start()
            else:
                part = stack.parts["ingest"]
                if victim == "end":
                    stack.wait("ingest again", lambda part=part: part.said("broker.connected"), LIMIT_S)
                    assert part.stop() == 0, part.tail()
                else:
                    part.kill()
                stack.start_ingest()
        stack.wait("all acknowledged", lambda: all(gateway.done for gateway in gateways), LIMIT_S)
        reported: list[str] = []

        def all_frontiers() -> bool:
            for gateway in gateways:
                gateway.send_heartbeat(NOW_US)
            reported[:] = [row["gateway"] for row in frontiers(stack.landing)]
            return set(reported) == {gateway.name for gateway in gateways}

        stack.wait("frontiers", all_frontiers, LIMIT_S)
    part = stack.parts["ingest"]
    assert part.stop() == 0, part.tail()
    rows = identities(stack.landing)
    assert sorted(rows) == sorted((g.name, 0, seq) for g in gateways for seq in range(g.count))
    for gateway in gateways:
        assert retained_ack(port, gateway.name) == {0: gateway.count - 1}
    assert {letter["reason"] for letter in letters(stack.landing)} == {"undecodable", "foreign"}
    assert "Traceback" not in part.log.read_text()


def publish_with_tool(port: int, topic: str, message: object) -> None:
    """Publish with mosquitto_pub bytes that cbor2 made."""
    tool = shutil.which("mosquitto_pub")
    assert tool, "mosquitto_pub: not found; install the clients of mosquitto"
    subprocess.run(
        [tool, "-h", "127.0.0.1", "-p", str(port), "-t", topic, "-q", "1", "-s"],
        input=cbor2.dumps(message), check=True, timeout=LIMIT_S,
    )  # fmt: skip


def test_a_gateway_made_of_mosquitto_pub_and_cbor2_is_accepted(stack):
    """The description of the wire is enough: birth, batch and heartbeat by other people's tools land, get acknowledged,
    move the frontier; a message that does not fit the description is a dead letter; --json logs all of it in lines."""
    command = [sys.executable, "-m", "whenabouts_cloud.cli", "ingest", "--json", "--broker",
               f"127.0.0.1:{stack.broker.port}", "--landing", str(stack.landing)]  # fmt: skip
    part = stack.start("ingest", command, stdout=True)
    port, head = stack.broker.port, {0: 2, 1: SITE, 2: "diy", 3: 5}

    def frontier_moved() -> bool:
        """Publishes all again until then, as a gateway does: messages without a subscriber are lost."""
        publish_with_tool(port, at("diy", "birth"), {
            **head, 4: [["door", 0, None, 1_000_000, 2000], ["temp", 1, "Cel", 1_000_000, 0]], 5: None, 6: [], 7: "diy 1",
        })  # fmt: skip
        publish_with_tool(port, at("diy"), {
            **head, 4: 0, 5: NOW_US, 6: [[]], 7: [["door", 0, None], ["temp", 1, "Cel"]],
            8: [bytes.fromhex("E200AB"), "tom"], 9: [["antenna", "rssi"]],
            10: [[0, 0, 1500, 0, 0, 0, 0, None, 0, 2, -61.5], [0, -300, 0, 1, None, 1, 0, 21.25],
                 [0, 7, 9, 0, 1, 2, 0, True]],
            99: "unknown keys are ignored",
        })  # fmt: skip
        publish_with_tool(port, at("diy", "heartbeat"), {
            **head, 4: NOW_US + 9, 5: [[5, 0, 2]], 6: 0, 7: 1500, 8: 3, 9: 60})  # fmt: skip
        return bool(frontiers(stack.landing))

    stack.wait("frontier", frontier_moved, LIMIT_S)
    assert retained_ack(port, "diy") == {5: 2}
    publish_with_tool(port, at("diy"), {**head, 4: -1, 5: NOW_US, 6: [[]], 7: [], 8: [], 9: [], 10: []})
    stack.wait("dead letter", lambda: bool(letters(stack.landing)), LIMIT_S)
    part.ask_to_end()
    lines = [json.loads(line) for line in part.stdout]
    assert part.stop() == 0, part.tail()
    assert lines[-1]["landed"] == 3
    assert lines[-1]["dead_letters"] == {"undecodable": 1}
    assert lines[-1].keys() >= {"messages", "repeats", "conflicts", "dead", "dead_dropped", "files", "frontiers"}
    (row,) = frontiers(stack.landing)
    assert (row["frontier_us"], row["streams"]) == (NOW_US + 9, ["door", "temp"])
    columns = ["stream", "kind", "key", "value", "unit", "attrs", "t_min", "t_max", "clock_state"]
    rows = pq.read_table(stack.landing, columns=columns).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("door", "tag", "E200AB", None, None, '{"antenna": 2, "rssi": -61.5}', NOW_US, NOW_US + 1500, "bounded"),
        ("temp", "measure", None, "21.25", "Cel", None, NOW_US - 300, NOW_US - 300, "free-running"),
        ("door", "tag", "tom", "true", None, None, NOW_US - 293, NOW_US - 284, "unbounded"),
    ]


def test_every_line_of_the_log_is_json_where_this_is_configured(stack):
    """Start, connection, progress and end are events with fields; no plain text is between them."""
    command = [sys.executable, "-m", "whenabouts_cloud.cli", "ingest", "--log-format", "json", "--broker",
               f"127.0.0.1:{stack.broker.port}", "--landing", str(stack.landing)]  # fmt: skip
    part = stack.start("ingest", command)
    batch = {0: 2, 1: SITE, 2: "diy", 3: 5, 4: 0, 5: NOW_US, 6: [[]], 7: [["door", 0, None]], 8: ["tom"], 9: [],
             10: [[0, 0, 1500, 0, 0, 0, 0, None]]}  # fmt: skip

    def progress_logged() -> bool:
        publish_with_tool(stack.broker.port, at("diy"), batch)
        return part.said("ingest.progress")

    stack.wait("progress", progress_logged, LIMIT_S)
    assert part.stop() == 0, part.tail()
    lines = [json.loads(line) for line in part.log.read_text().splitlines()]
    events = [line["event"] for line in lines]
    assert [events[0], events[1], events[-1]] == ["broker.connected", "ingest.started", "ingest.stopped"]
    assert (lines[-1]["landed"], lines[-1]["files"]) == (1, 1)


def test_a_broker_with_only_mqtt_3_1_1_is_enough(tmp_path):
    """The embedded broker refuses MQTT 5: the ingest takes 3.1.1, and all is landed and acknowledged."""
    with Stack(tmp_path) as stack, ExitStack() as opened:
        stack.broker = RunningBroker(tmp_path / "embedded", kind="embedded")
        stack.broker.start()
        part = stack.start_ingest()
        gateways = [MqttGateway(f"g{n}", stack.broker.port, 300, 20) for n in range(2)]
        for gateway in gateways:
            opened.callback(gateway.close)
        stack.wait("all acknowledged", lambda: all(gateway.done for gateway in gateways), LIMIT_S)
        assert part.stop() == 0, part.tail()
        assert "version=MQTTv311" in part.log.read_text()
        assert sorted(identities(stack.landing)) == [(f"g{n}", 0, seq) for n in range(2) for seq in range(300)]
