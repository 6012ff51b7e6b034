"""Readings a second that one ingest process lands, beside a hand-written subscriber. Prints a table.

    python tests/bench/bench_ingest.py [--readings 100000]

A separate process publishes batches of 50 through a real broker as fast as it takes them. CPU is that of the receiving
side only, from its first message to its last file. The others subscribe with paho, acknowledge at once, keep no
repeats away and sync nothing: one writes each message as a file of JSON rows, one as a Parquet file.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from paho.mqtt.enums import CallbackAPIVersion

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "hardware", "edge", "cloud", "firmware_sim")]

from whenabouts_cloud.ingest.landing_writer import to_table  # noqa: E402
from whenabouts_protocol import Reading, decode_batch, encode_batch  # noqa: E402
from whenabouts_sim.stack.stack import Stack  # noqa: E402

BATCH = 50
GATEWAYS = 10
NOW_US = 1_790_000_000_000_000
FIELDS = ("site", "gateway", "boot", "seq", "stream", "kind", "key", "value", "unit", "attrs", "t_min", "t_max")
LIMIT_S = 300.0


def publish(port: int, readings: int) -> None:
    """Encode everything, then publish it at QoS 1."""
    messages = []
    for number in range(readings // BATCH):
        gateway, first = f"gate-{number % GATEWAYS}", number // GATEWAYS * BATCH
        batch = [
            Reading(site="bench", gateway=gateway, boot=1, seq=first + n, stream="dock/tags", kind="tag",
                    key=f"E2003412{n % 7:016X}", attrs={"antenna": 1, "rssi": -60 - n % 9},
                    t_min=NOW_US + (first + n) * 9000, t_max=NOW_US + (first + n) * 9000 + 7421, vclock=(3, 1, 4))
            for n in range(BATCH)
        ]  # fmt: skip
        messages.append((f"wa/2/bench/{gateway}/obs", encode_batch(batch)))
    print("encoded", flush=True)
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.max_inflight_messages_set(500)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for topic, payload in messages:
        info = client.publish(topic, payload, qos=1)
    info.wait_for_publish(LIMIT_S)
    client.disconnect()
    client.loop_stop()


def subscribe(port: int, folder: Path, how: str) -> None:
    """Hand-written counterpart of the ingest: one file for each message."""
    folder.mkdir(parents=True)
    count = 0

    def on_message(_client: mqtt.Client, _data: Any, message: mqtt.MQTTMessage) -> None:
        nonlocal count
        count += 1
        readings = decode_batch(message.payload)
        if how == "json":
            rows = [{name: getattr(r, name) for name in FIELDS} for r in readings]
            (folder / f"{count}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            pq.write_table(to_table(readings, 0), folder / f"{count}.parquet")

    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.on_connect = lambda c, *_: c.subscribe("wa/2/+/+/obs", qos=1)
    client.on_subscribe = lambda *_: print("broker.connected with paho", file=sys.stderr, flush=True)
    client.on_message = on_message
    client.connect("127.0.0.1", port)
    client.loop_forever()


def landed(folder: Path, how: str) -> int:
    """Readings in files now."""
    if how == "ingest":
        return sum(pq.read_metadata(path).num_rows for path in folder.glob("hour=*/part-*.parquet"))
    return BATCH * sum(1 for path in folder.iterdir() if path.stat().st_size)


def cpu_s(processes: tuple[psutil.Process, ...]) -> float:
    """CPU seconds of processes since they started."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def measure(readings: int, how: str) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds of the receiver, files."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, Stack(Path(folder)) as stack:
        stack.broker.start()
        port = stack.broker.port
        me = [sys.executable, __file__, "--port", str(port)]
        if how == "ingest":
            receiver = stack.start_ingest()
        else:
            receiver = stack.start("by hand", [*me, "--subscribe", how, "--folder", str(stack.landing)])
        stack.wait("connection", lambda: "broker.connected" in receiver.log.read_text(), LIMIT_S)
        process = psutil.Process(receiver.process.pid)
        processes = (process, *process.children())
        publisher = stack.start("publisher", [*me, "--publish", str(readings)])
        stack.wait("publisher", lambda: "encoded" in publisher.log.read_text(), LIMIT_S)
        before, began_s = cpu_s(processes), time.monotonic()
        while (count := landed(stack.landing, how)) < readings:
            receiver.check()
            if time.monotonic() - began_s > LIMIT_S:
                sys.exit(f"{how}: {count} of {readings} readings after {LIMIT_S:.0f} s; {receiver.tail()}")
            time.sleep(0.1)
        wall_s, after = time.monotonic() - began_s, cpu_s(processes)
        publisher.process.wait(LIMIT_S)
        del stack.parts["publisher"]
        files = sum(1 for _ in stack.landing.rglob("*.parquet")) + sum(1 for _ in stack.landing.rglob("[0-9]*.jsonl"))
        return wall_s, after - before, files


NAMES = {
    "ingest": "whenabouts-cloud ingest: durable, once each",
    "json": "by hand: JSON file a message, no sync",
    "parquet": "by hand: Parquet file a message, no sync",
}


def main() -> None:
    """Measure all in turn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--readings", type=int, default=300_000, help="how many, 300000 by default")
    for hidden in ("--port", "--publish"):
        parser.add_argument(hidden, type=int, help=argparse.SUPPRESS)
    for hidden in ("--subscribe", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.publish:
        return publish(given.port, given.publish)
    if given.subscribe:
        return subscribe(given.port, Path(given.folder), given.subscribe)
    readings = max(1, given.readings // (BATCH * GATEWAYS)) * BATCH * GATEWAYS
    print(f"pyarrow {pa.__version__}, {readings} readings in batches of {BATCH} from {GATEWAYS} gateways")
    print(f"{'':44}{'files':>7}{'wall s':>8}{'CPU s':>8}{'readings/CPU s':>16}{'ratio':>7}")
    base = 0.0
    for how, name in NAMES.items():
        wall_s, cpu_s, files = measure(readings, how)
        rate = readings / cpu_s
        base = base or rate
        print(f"{name:44}{files:7}{wall_s:8.1f}{cpu_s:8.2f}{rate:16.0f}{rate / base:7.2f}", flush=True)
    return None


if __name__ == "__main__":
    main()
