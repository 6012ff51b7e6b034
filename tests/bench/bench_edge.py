"""The gateway's speed: decoders against their lines, the agent's readings a second, its delay, its memory. Prints tables.

    python tests/bench/bench_edge.py [--readings 30000] [--seconds 20]

Decoders: megabytes a second of processor time, and how many times that is the line that carries the frames (10 bits a byte).
Agent: one process as installed, replaying M6e frames as fast as it can into a real mosquitto with the real ingest behind
it; then a simulated M6e Nano behind a pseudo-terminal at 200 tags a second, from the last byte handed over to the message
at a subscriber, commits of 50 ms in between; then four readers that see nothing. What a goal is, stands beside the figure.
"""

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import bench_agent
import paho.mqtt.client as mqtt
import psutil
from paho.mqtt.enums import CallbackAPIVersion

from whenabouts_hardware import READERS
from whenabouts_hardware.readers import em4100, pn532_frames, uhfreader18, yrm100
from whenabouts_hardware.readers.m6e_frames import tag_notice
from whenabouts_protocol import decode_batch
from whenabouts_sim.readers.m6e import M6eNano
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.stack.stack import Stack, reader_table
from whenabouts_sim.swarm.figures import percentile
from whenabouts_sim.world.clocks import EPOCH_US, GatewayClock, SimClock
from whenabouts_sim.world.world import DOCK, GATE, Sighting

FASTEST = {"m6e": 1_288_000}  # the fastest rate of the module's command; the agent leaves it at 115 200
CHUNK_BYTES = 188  # four tags to a read
TIMES = 15
KINDS = ("m6e", "yrm100", "uhfreader18", "pn532", "rdm6300", "id12la", "line")
SPACING_US = 5_000  # 200 tags a second
WAIT_S = 120.0


def frames_of(kind: str) -> list[bytes]:
    """A thousand frames with a tag each."""
    tags = [bytes(11) + bytes([n % 50]) for n in range(1000)]
    if kind == "m6e":
        return [tag_notice(t, rssi=-50, antenna="1/1", freq_khz=915250, ts_ms=n % 900) for n, t in enumerate(tags)]
    if kind in ("rdm6300", "id12la"):
        return [em4100.encode(10, n, crlf=kind == "id12la") for n in range(1000)]
    if kind == "pn532":
        return [
            pn532_frames.answer(pn532_frames.OP_LIST_PASSIVE, b"\1" + pn532_frames.target_106a(1, t[5:])) for t in tags
        ]
    if kind == "uhfreader18":
        return [uhfreader18.inventory_answer([t]) for t in tags]
    if kind == "yrm100":
        return [yrm100.tag_notice(t, -50) for t in tags]
    return [b'{"probe": "north", "temperature": %d.5}\n' % (n % 40) for n in range(1000)]


def decoding(kind: str) -> tuple[float, float]:
    """(bytes, frames) a second of processor time, the best of some runs."""
    frames = frames_of(kind)
    data, best_s = b"".join(frames), float("inf")
    for _ in range(TIMES):
        decode, good = READERS[kind].new_decoder(), 0
        began_s = time.process_time()
        for at in range(0, len(data), CHUNK_BYTES):
            good += sum(frame.ok for frame in decode.feed(data[at : at + CHUNK_BYTES]))
        best_s = min(best_s, time.process_time() - began_s)
        good += sum(frame.ok for frame in decode.flush())
        assert good >= len(frames) - 1, (
            kind,
            good,
        )  # a line reader gives up the first line, which may be a part of one
    return len(data) / best_s, len(frames) / best_s


def decoders() -> None:
    """The table of decoders."""
    print(f"{'decoder':<13}{'MB/s':>8}{'frames/s':>10}{'line Bd':>9}{'times the line':>16}")
    for kind in KINDS:
        rate, frames = decoding(kind)
        baud = FASTEST.get(kind, READERS[kind].baud)
        goal = "   goal: 20 MB/s or 50 times" if kind == "m6e" else ""
        print(f"{kind:<13}{rate / 1e6:8.2f}{frames:10.0f}{baud:9}{rate / (baud / 10):16.0f}{goal}", flush=True)


def throughput(readings: int) -> None:
    """How many readings the agent stamps, spools and publishes."""
    bench_agent.READINGS = readings
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder)) as stack:
        trace = Path(folder) / "trace.jsonl"
        bench_agent.write_trace(trace, readings)
        stack.broker.start()
        wall_s, cpu_s, peak_bytes = bench_agent.run_agent(stack, trace)
    print(
        f"agent, {readings} readings as fast as it can: {readings / cpu_s:.0f} readings a second of one core (goal 5000), "
        f"{readings / wall_s:.0f} a second by the wall with start and ingest, peak {peak_bytes / 1e6:.0f} MB"
    )


class Arrivals:
    """When each key came to a subscriber, in true microseconds."""

    def __init__(self, port: int, clock: SimClock) -> None:
        self.came_us: dict[str, int] = {}
        self._clock = clock
        client = mqtt.Client(CallbackAPIVersion.VERSION2)
        client.on_connect = lambda c, *_: c.subscribe("wa/2/+/+/obs", qos=1)
        client.on_message = self._take
        client.connect("127.0.0.1", port)
        client.loop_start()
        self.client = client

    def _take(self, _client: mqtt.Client, _data: object, message: mqtt.MQTTMessage) -> None:
        now_us = self._clock.true_us(time.monotonic_ns())
        for reading in decode_batch(message.payload):
            if reading.key is not None:
                self.came_us.setdefault(reading.key, now_us)


def delay(seconds: float) -> None:
    """From the last byte handed to the port to the message at a subscriber."""
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder)) as stack:
        clock = SimClock(EPOCH_US, time.monotonic_ns())
        stack.broker.start()
        with PtyLink(M6eNano(DOCK.name, 1), clock, stack.folder / "ports" / DOCK.name) as link:
            stack.configure_agent(
                "bench", "gw", [reader_table(DOCK, link.path)], GatewayClock(EPOCH_US, base_bound_us=1000), clock
            )
            part = stack.start_agent("gw")
            stack.start_ingest()
            stack.wait("agent is ready", lambda: stack.agent_ready("gw"), WAIT_S)
            if not link.started_by_host.wait(WAIT_S):
                raise SystemExit("the agent did not start the reader")
            arrivals = Arrivals(stack.broker.port, clock)
            begin_us = clock.true_us(time.monotonic_ns()) + 1_500_000
            count = int(seconds * 1_000_000 / SPACING_US)
            link.go(Sighting(begin_us + n * SPACING_US, DOCK.name, n, f"{n:024X}") for n in range(count))
            process = psutil.Process(part.process.pid)
            before = process.cpu_times()
            stack.wait("all emitted", lambda: len(link.emitted) + link.unseen >= count, WAIT_S + seconds)
            sent = {e.key: e.last_byte_us for e in link.emitted if not e.damaged}
            stack.wait("all published", lambda: sent.keys() <= arrivals.came_us.keys(), WAIT_S)
            cpu = process.cpu_times()
            arrivals.client.loop_stop()
    late = sorted(arrivals.came_us[key] - at_us for key, at_us in sent.items())
    share = (cpu.user + cpu.system - before.user - before.system) / seconds
    print(
        f"serial to publish, {len(sent)} of {count} tags at {1e6 / SPACING_US:.0f} a second, commits of 50 ms: p50 "
        f"{percentile(late, 0.5) / 1000:.0f} ms, p99 {percentile(late, 0.99) / 1000:.0f} ms (goal below 150), "
        f"worst {late[-1] / 1000:.0f} ms; agent {share:.2f} of a core"
    )


def memory() -> None:
    """An agent with four readers that see nothing."""
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder)) as stack:
        clock = SimClock(EPOCH_US, time.monotonic_ns())
        stack.broker.start()
        readers = [replace((GATE, DOCK)[n % 2], name=f"r{n}", stream=f"r{n}/tags") for n in range(4)]
        links = [
            PtyLink((Rdm6300, M6eNano)[n % 2](r.name, n), clock, stack.folder / "ports" / r.name)
            for n, r in enumerate(readers)
        ]
        try:
            for link in links:
                link.start()
            tables = [reader_table(r, link.path) for r, link in zip(readers, links, strict=True)]
            stack.configure_agent("bench", "gw", tables, GatewayClock(EPOCH_US, base_bound_us=1000), clock)
            process = psutil.Process(stack.start_agent("gw").process.pid)
            stack.wait("agent is ready", lambda: stack.agent_ready("gw"), WAIT_S)
            time.sleep(5)  # heartbeats, status and clock have all been at work by then
            full = process.memory_full_info()
        finally:
            for link in links:
                link.stop()
    print(
        f"idle agent with four readers: {full.rss / 1e6:.1f} MB resident (goal below 40), "
        f"{full.uss / 1e6:.1f} MB of them its own"
    )


def main() -> None:
    """Everything in one run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--readings", type=int, default=30_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    print(f"load of this machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    decoders()
    memory()
    delay(given.seconds)
    throughput(given.readings)
    print(f"load of this machine after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
