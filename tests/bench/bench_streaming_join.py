"""Intervals a second through the streaming join, tuple by tuple, on CPython and on the MicroPython VM.

Workloads of the 2009 and 2010 papers: intervals of 20 to 200 ms, d 1 s, confidence 0.8, arrivals of two streams merged in
order of time, at 12, 200 and 1600 a second a side. CPU seconds here, the best of three; wall time on the VM. Peak memory is
traced in a separate run. Prints a table; asserts nothing.
"""

import json
import random
import sys
import time
import tracemalloc
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "hardware", "edge", "cloud", "firmware_sim", "tests")]

from support.board.micropython import run_on_board  # noqa: E402
from whenabouts_protocol.streaming_join import StreamingJoin  # noqa: E402

BOARD = ROOT / "tests" / "micropython" / "board_streaming_join.py"
RATES = {12: 100_000, 200: 60_000, 1600: 20_000}
D_US, PI_US, RHO_US = 1_000_000, 200_000, 20_000
EPOCH_US = 1_790_000_000_000_000
ADVANCE_EVERY = 64


def arrivals(rate: int, count: int) -> list[tuple[int, int, int, int]]:
    """(t_max, side, index, t_min) in the order of t_max."""
    chance = random.Random(rate)
    tuples = []
    for side in (0, 1):
        at_us = EPOCH_US
        for index in range(count):
            at_us += chance.randint(0, 2_000_000 // rate)
            tuples.append((at_us + chance.randint(RHO_US, PI_US), side, index, at_us))
    return sorted(tuples)


def run(events: list[tuple[int, int, int, int]]) -> StreamingJoin:
    """All arrivals through one operator, its frontier following."""
    join = StreamingJoin(-D_US, D_US, 4, 5, (RHO_US, PI_US), (RHO_US, PI_US))
    push, left = join.push, ADVANCE_EVERY
    for t_max, side, index, t_min in events:
        push(side, index, t_min, t_max)
        left -= 1
        if not left:
            join.advance(t_max, t_max)
            left = ADVANCE_EVERY
    return join


def main() -> None:
    """Print the table."""
    print(
        "rate/side  matches/tuple  CPython tuples/s  probes/tuple  state peak kB | VM tuples/s  VM state kB  VM heap free kB"
    )
    for rate, count in RATES.items():
        events = arrivals(rate, count)
        best = float("inf")
        for _ in range(3):
            begin = time.process_time()
            join = run(events)
            best = min(best, time.process_time() - begin)
        tracemalloc.start()
        run(events[: 20 * rate])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        line = (
            f"{rate:9}  {join.pairs / count:13.1f}  {len(events) / best:16,.0f}  {join.evaluations / len(events):12.2f}"
            f"  {peak / 1000:13.1f}"
        )
        if rate <= 200:
            board = json.loads(run_on_board(BOARD, "speed", str(rate), str(D_US), "6000"))
            line += f" | {1e6 / board['us']:11,.0f}  {board['held'] / 1000:11.1f}  {board['free'] / 1000:15.1f}"
        print(line)


if __name__ == "__main__":
    main()
