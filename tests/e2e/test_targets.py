"""Results at the real far sides, of a process that is killed before each of its lines (`whenabouts_cloud.delivery`)."""

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import boto3
import deltalake
import duckdb
import paho.mqtt.client as mqtt
import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from moto.server import ThreadedMotoServer

from support.child import environment
from support.cloud import killed_delivery
from support.cloud.published_results import batch, publish, states
from support.cloud.target_servers import http_server, kafka_broker, postgres
from support.edge.tls_broker import mosquitto
from support.epcis.capture_server import repository
from support.search import SEED
from support.waiting import until
from whenabouts_cloud.delivery.deliveries import Deliveries
from whenabouts_sim.stack.broker import free_port

KILLED = 9
STEP, QUICK = 5, random.Random(os.environ.get("CI"))


class Killing:
    """Delivers `out` in processes that are killed; `published` batches so far."""

    def __init__(self, out: Path, uri: str) -> None:
        self._out, self._uri, self.published = out, uri, 0
        program = [sys.executable, killed_delivery.__file__]
        self._process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True
        )

    def deliver(self, kill=None):
        """Publish two batches and deliver, until the end or to the line."""
        for _ in range(2):
            publish(self._out, self.published)
            self.published += 1
        work = {"out": str(self._out), "uri": self._uri, "unit": "matches", "kill": kill}
        print(json.dumps(work), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def everywhere(self):
        """Deliver, killed before each line in turn, then to the end. A quick run takes each fifth line, from any on."""
        first = self.deliver()
        assert first["code"] == 0
        lines = first["lines"] if SEED else first["lines"][QUICK.randrange(STEP) :: STEP]
        killed = sum(self.deliver(line)["signal"] == KILLED for line in lines)
        assert self.deliver()["code"] == 0
        assert killed == len(lines) > 5

    def end(self):
        self._process.stdin.close()
        self._process.wait(60)


@pytest.fixture
def killing(tmp_path):
    """Makes one for a URI."""
    made = []

    def make(uri):
        made.append(Killing(tmp_path / "out", uri))
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture(scope="module")
def database():
    with postgres() as server:
        yield server


def sent(batches):
    """How often each (id, status) is in these batches."""
    return Counter((row["result_id"], row["status"]) for n in range(batches) for row in batch(n))


def test_postgresql_has_each_result_once_with_its_last_status(killing, database):
    """Killed before every line of the delivery, also within the transaction."""
    job = killing(f"{database.uri}?table=shop_matches")
    job.everywhere()
    with psycopg.connect(database.uri) as connection:
        rows = connection.execute("SELECT result_id, status FROM shop_matches").fetchall()
        assert dict(rows) == states(job.published)
        assert len(rows) == len(states(job.published))
        key, events = connection.execute("SELECT key, events FROM shop_matches LIMIT 1").fetchone()
        assert (key, events[1]["stream"]) == (batch(0)[0]["key"], "exit")
        assert connection.execute("SELECT max(batch) FROM whenabouts_delivered").fetchone() == (job.published - 1,)


@pytest.mark.parametrize("store", ["folder", "s3"])
def test_delta_has_each_row_of_the_folder_once(killing, tmp_path, monkeypatch, store):
    """Read by delta-rs and by DuckDB; on a disk, and on a server of S3's protocol."""
    with contextlib.ExitStack() as stack:
        table = str(tmp_path / "table")
        if store == "s3":
            server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
            server.start()
            stack.callback(server.stop)
            for name, value in s3_variables(server).items():
                monkeypatch.setenv(name, value)
            boto3.client("s3").create_bucket(Bucket="shop")
            table = "s3://shop/matches"
        job = killing(f"delta:{table}")
        job.everywhere()
        rows = deltalake.DeltaTable(table, storage_options={"allow_http": "true"}).to_pyarrow_table()
        assert Counter(zip(rows["result_id"].to_pylist(), rows["status"].to_pylist(), strict=True)) == sent(
            job.published
        )
        if store == "folder":
            files = deltalake.DeltaTable(table).file_uris()
            [(count,)] = duckdb.sql(f"SELECT count(*) FROM read_parquet({files})").fetchall()
            assert count == rows.num_rows


def s3_variables(server):
    host, port = server.get_host_and_port()
    return {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip


def check_at_least_once(got, batches):
    """Each result came, in the order of the batches but for repeats, and repeats are whole results."""
    wanted = sent(batches)
    counts = Counter((row["result_id"], row["status"]) for row in got)
    assert counts.keys() == wanted.keys()
    assert all(counts[one] >= n for one, n in wanted.items())
    by_id = {row["result_id"]: row["status"] for row in got}
    assert by_id == states(batches)  # the last message of an id is its state


def test_mqtt_subscribers_get_each_result_at_least_once(killing, tmp_path):
    """One message a result, on a topic of its rule; the last one of an id is its state."""
    port = free_port()
    with mosquitto(tmp_path, f"allow_anonymous true\nmax_queued_messages 0\nlistener {port} 127.0.0.1\n", port):
        got, client = [], mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        client.on_message = lambda _c, _u, message: got.append((message.topic, json.loads(message.payload)))
        subscribed = threading.Event()
        client.on_subscribe = lambda *_: subscribed.set()
        client.connect("127.0.0.1", port)
        client.subscribe("results/+/matches", qos=1)
        client.loop_start()
        assert subscribed.wait(60)
        job = killing(f"mqtt://127.0.0.1:{port}/results/{{rule}}/{{unit}}")
        job.everywhere()
        last = batch(job.published - 1)[-1]["result_id"]
        until(lambda: got[-1][1]["result_id"] == last and got[-1][1]["status"] == "retracted", "the last message")
        client.disconnect()
        client.loop_stop()
    assert {topic for topic, row in got if row["rule"] == "stolen"} == {"results/stolen/matches"}
    check_at_least_once([row for _, row in got], job.published)


def test_a_webhook_gets_each_result_at_least_once_and_repeats_have_their_key(killing):
    """A server that drops requests with a known key has each batch once."""
    with http_server() as server:
        job = killing(server.uri)
        job.everywhere()
        check_at_least_once([row for _, rows in server.requests for row in rows], job.published)
        by_key = {headers["Idempotency-Key"]: rows for headers, rows in server.requests}
        once = Counter((row["result_id"], row["status"]) for rows in by_key.values() for row in rows)
        assert len(by_key) < len(server.requests)
        assert once == sent(job.published)


def test_a_repository_of_epcis_has_each_event_once(killing):
    """By its id, with the events that take others back; a repeat has the same id."""
    with repository() as server:
        server.looks = 0
        job = killing(server.uri)
        job.everywhere()
        results = {
            (event["whenabouts:result"].removeprefix("urn:whenabouts:result/"), "retracted" if back else "match")
            for (_, back), event in server.events.items()
        }
        assert results == set(sent(job.published))
        assert len(results) == len(server.events) < server.posts.total()


def test_a_topic_of_kafka_has_each_result_at_least_once_with_its_id_as_key(killing, tmp_path):
    """Read from the beginning by another client."""
    with kafka_broker(tmp_path) as where:
        admin = AdminClient({"bootstrap.servers": where})
        admin.create_topics([NewTopic("results", 1, 1)])["results"].result(30)
        job = killing(f"kafka://{where}/results")
        job.everywhere()
        consumer = Consumer({"bootstrap.servers": where, "group.id": "test", "enable.auto.commit": False})
        consumer.assign([TopicPartition("results", 0, 0)])
        got, last = [], batch(job.published - 1)[-1]
        while not got or (got[-1]["result_id"], got[-1]["status"]) != (last["result_id"], last["status"]):
            message = consumer.poll(30)
            assert message is not None, (got[-1:], last)
            assert not message.error()
            got.append(json.loads(message.value()))
            assert message.key() == got[-1]["result_id"].encode()
        consumer.close()
    check_at_least_once(got, job.published)


def test_while_a_database_is_down_batches_wait_and_come_later(tmp_path, caplog):
    """The target is given again what it has missed, in order; the failure is logged once, with no password."""
    out = tmp_path / "out"
    publish(out, 0)
    with postgres() as server:
        some = Deliveries(out, "matches", [f"{server.uri}?table=pairs"], {})
        server.stop()
        caplog.set_level("INFO")
        some.start()
        until(lambda: some.progress()[0].failures, "a failure")
        for number in range(1, 4):
            publish(out, number)
            some.published(number)
        assert some.progress()[0].waiting == 4
        assert some.progress()[0].lag_s(time.time() + 5) > 4
        server.start()
        assert some.finish(None) == []
        with psycopg.connect(server.uri) as connection:
            assert dict(connection.execute("SELECT result_id, status FROM pairs").fetchall()) == states(4)
    assert [r.event for r in caplog.records if hasattr(r, "event")] == ["delivery.failed", "delivery.resumed"]
    said = caplog.text + "".join(f"{r.fields}" for r in caplog.records if hasattr(r, "fields"))
    stored = "".join(one.read_text() for one in (out / "_delivered").iterdir())
    assert "unused" not in said + stored
    assert "***@127.0.0.1" in said


def test_a_target_that_stays_down_is_named_at_the_end(tmp_path):
    """With what waits for it and why; nothing is lost in the folder."""
    publish(tmp_path / "out", 0)
    some = Deliveries(tmp_path / "out", "matches", [f"http://127.0.0.1:{free_port()}/x"], {})
    some.start()
    [problem] = some.finish(time.monotonic() + 0.5)
    assert "found 1 batches of" in problem
    assert "ConnectionRefusedError" in problem
