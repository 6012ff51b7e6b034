"""Readings a second that a board's agent takes from its UART and publishes, on the VM of simulated boards.

Frames of a badge reader come at a steady rate, faster than any badge reader sends; the receive buffer is 1 kB as on a board,
and what does not fit is lost. A real mosquitto takes the messages and this process confirms them as the cloud does. For each
size of the heap and each rate: what was published of what was sent, and how long after the last byte the last reading came.
Prints a table; asserts nothing. A rate is kept up when nothing is lost.

    python tests/bench/bench_boards.py [--heap-kb 96 128] [--rate 250 500 1000] [--seconds 10]
"""

import argparse
import contextlib
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from support.board.node_board import Console, install  # noqa: E402
from support.board.site import TimeServer  # noqa: E402
from support.edge.agent import Witness, highest, witness  # noqa: E402
from whenabouts_hardware.readers.em4100 import encode  # noqa: E402
from whenabouts_sim.boards.node_board import NodeBoard  # noqa: E402
from whenabouts_sim.stack.broker import running_broker  # noqa: E402
from whenabouts_sim.world.clocks import SimClock  # noqa: E402

TICK_S = 0.005  # bytes are handed over as often: 14 bytes at 500 a second fill a third of the buffer in 50 ms
QUIET_S = 3.0  # without a new reading: no more will come
MAIN = """
from whenabouts_edge.board.run import steps
print("imported")
program = steps("/board.json")
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--heap-kb", type=int, nargs="+", default=[96, 128, 192])
    parser.add_argument("--rate", type=int, nargs="+", default=[250, 500, 1000])
    parser.add_argument("--seconds", type=int, default=10)
    args = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'heap kB':>8} {'rate/s':>7} {'sent':>7} {'published':>10} {'lost':>6} {'after s':>8} {'CPU %':>6}")
    for heap_kb in args.heap_kb:
        for rate in args.rate:
            run = measured(heap_kb, rate, args.seconds)
            if run is None:
                break
            sent, published, after_s, cpu = run
            print(f"{heap_kb:8} {rate:7} {sent:7} {published:10} {sent - published:6} {after_s:8.2f} {cpu:6.0f}")


def measured(heap_kb: int, rate: int, seconds: int) -> "tuple[int, int, float, float] | None":
    """(sent, published, seconds from the last byte to the last reading, CPU per cent); None: it does not start."""
    clock = SimClock(time.time_ns() // 1000, time.monotonic_ns())
    with (
        tempfile.TemporaryDirectory() as name,
        running_broker(Path(name) / "broker", kind="mosquitto") as broker,
        TimeServer(clock) as ntp,
        socket.create_server(("127.0.0.1", 0)) as wire,
        witness(broker.port) as seen,
    ):
        flash = Path(name) / "flash"
        config = {
            "site": "bench", "gateway": "gw", "broker": {"host": "127.0.0.1", "port": broker.port},
            "ntp": {"host": "127.0.0.1", "port": ntp.port}, "heartbeat_ms": 1000, "commit_ms": 1000,
            "readers": [{"port": {"id": 0}, "kind": "rdm6300", "stream": "gate/tags"}],
        }  # fmt: skip
        install(flash, config, MAIN)
        with NodeBoard(flash, {0: f"tcp:127.0.0.1:{wire.getsockname()[1]}"}, heap_kb) as board:
            console = Console(board)
            try:
                text = console.wait("a start", lambda text: "imported" in text or ">>> " in text, 30)
                seen.wait("a watermark", lambda: any(b.frontier_us for b in seen.heartbeats()), 20)
            except AssertionError:
                text = console.text
            if "Error" in text or not seen.heartbeats():
                print(f"{heap_kb:8} does not start: {error_in(console) or 'no heartbeat within 20 s'}")
                return None
            with wire.accept()[0] as line:
                before_s = cpu_s(board.pid)
                began = time.monotonic()
                sent = send(line, rate, seconds, seen)
                last = time.monotonic()
                cpu = 100 * (cpu_s(board.pid) - before_s) / (last - began)
                published, last_new = settle(seen)
                ended = error_in(console)
            console.close()
    if ended:
        print(f"{heap_kb:8} {rate:7} ended with: {ended}")
    return sent, published, last_new - last, cpu


def error_in(console: Console) -> str:
    """The exception that the main program ended with, if it did."""
    with contextlib.suppress(AssertionError):
        console.wait("an end", lambda text: ">>> " in text, 0.5)
    return next((line for line in console.text.splitlines() if "Error" in line), "")


def send(line: socket.socket, rate: int, seconds: int, seen: Witness) -> int:
    """Send frames at this rate and confirm the readings that come; return the number of frames sent."""
    began, sent, confirmed = time.monotonic(), 0, time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        wanted = int(passed * rate)
        line.sendall(b"".join(encode(0x2A, sent + n) for n in range(wanted - sent)))
        sent = wanted
        if time.monotonic() - confirmed > 1:
            confirm(seen)
            confirmed = time.monotonic()
        time.sleep(TICK_S)
    return sent


def confirm(seen: Witness) -> None:
    """Confirm as the cloud does that all that came has landed."""
    landed = highest(seen.readings())
    if landed:
        seen.acknowledge(landed)


def settle(seen: Witness) -> tuple[int, float]:
    """(how many badges came, when the last new one did), when no more come."""
    count, last_new = 0, time.monotonic()
    while time.monotonic() - last_new < QUIET_S:
        confirm(seen)
        now = len(seen.keys())
        if now != count:
            count, last_new = now, time.monotonic()
        time.sleep(0.1)
    return count, last_new


def cpu_s(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
