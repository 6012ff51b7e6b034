"""Readings a second that one agent stamps, spools and publishes, and its memory.

A trace of M6e tag notices is replayed as fast as the agent reads it, into a real mosquitto, with the real ingest
acknowledging. Beside it, in the same run, a plain script: read the same port, decode, publish each
reading as JSON at QoS 1, keeping nothing. Prints a table; asserts nothing.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from whenabouts_edge.trace.format import Head, Record, encode_head, encode_record
from whenabouts_hardware.readers.m6e_frames import tag_notice
from whenabouts_sim.stack.stack import Stack
from whenabouts_sim.world.clocks import EPOCH_US, GatewayClock, SimClock

READINGS = 30_000
SCRIPT = """
import json, sys, time
import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from whenabouts_edge.readers.port import open_port
from whenabouts_hardware import decoder
url, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
client = mqtt.Client(CallbackAPIVersion.VERSION2)
client.connect("127.0.0.1", port)
client.loop_start()
decode, sent = decoder("m6e", mode="reader"), 0
with open_port(url, 115200) as source:
    while sent < count:
        chunk = source.read()
        for frame in decode.feed(chunk.data) if chunk else ():
            reading = {"epc": frame.fields["epc"], "rssi": frame.fields["rssi"], "time": time.time()}
            last = client.publish("plain/tags", json.dumps(reading), qos=1)
            sent += 1
last.wait_for_publish()
print(json.dumps({"cpu_s": time.process_time()}))
"""


def write_trace(path: Path, readings: int) -> None:
    """A capture of so many tag notices of 50 tags, four to a read."""
    frames = [
        tag_notice(bytes(11) + bytes([i % 50]), rssi=-50, antenna="1/1", freq_khz=915250, ts_ms=i % 900)
        for i in range(50)
    ]
    with path.open("wb") as file:
        file.write(encode_head(Head(port="bench", baud=115200)))
        for i in range(readings // 4):
            data = b"".join(frames[(4 * i + k) % 50] for k in range(4))
            file.write(encode_record(Record("rx", i * 16_000_000, i * 16_000_000 + 15_000_000, data)))


def run_agent(stack: Stack, trace: Path) -> tuple[float, float, int]:
    """(wall s, CPU s, peak RSS in bytes) of the agent for all readings of a trace."""
    clock = SimClock(EPOCH_US, time.monotonic_ns())
    table = {"name": "dock", "kind": "m6e", "port": f"replay://{trace}?speed=max", "listen_only": True}
    stack.configure_agent("bench", "agent-1", [table], GatewayClock(EPOCH_US, base_bound_us=1000), clock)
    stack.start_ingest()
    began_s = time.monotonic()
    process = psutil.Process(stack.start_agent("agent-1").process.pid)
    rss_bytes = 0

    def published() -> bool:
        nonlocal rss_bytes
        rss_bytes = max(rss_bytes, process.memory_info().rss)
        return stack.landed_count() >= READINGS

    stack.wait("all landed", published, 300)
    wall_s, cpu = time.monotonic() - began_s, process.cpu_times()
    return wall_s, cpu.user + cpu.system, rss_bytes


def run_script(stack: Stack, trace: Path) -> tuple[float, float]:
    """(wall s, CPU s) of the plain script for the same trace."""
    began_s = time.monotonic()
    command = [sys.executable, "-c", SCRIPT, f"replay://{trace}?speed=max", str(stack.broker.port), str(READINGS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.monotonic() - began_s, json.loads(done.stdout)["cpu_s"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder)) as stack:
        trace = Path(folder) / "trace.jsonl"
        write_trace(trace, READINGS)
        stack.broker.start()
        script_wall_s, script_cpu_s = run_script(stack, trace)
        wall_s, cpu_s, rss_bytes = run_agent(stack, trace)
    print(f"agent: {READINGS} readings of an M6e through spool and mosquitto, every process on this machine")
    print(f"{'':34}{'wall s':>8}{'CPU s':>8}{'readings/CPU s':>16}{'peak MB':>9}")
    print(
        f"{'agent (stamps, spools, publishes)':34}{wall_s:8.1f}{cpu_s:8.1f}{READINGS / cpu_s:16.0f}{rss_bytes / 1e6:9.1f}"
    )
    print(
        f"{'plain script, JSON, keeps nothing':34}{script_wall_s:8.1f}{script_cpu_s:8.1f}{READINGS / script_cpu_s:16.0f}"
    )
    print(f"agent / script, readings per CPU second: {script_cpu_s / cpu_s:.2f}")


if __name__ == "__main__":
    main()
