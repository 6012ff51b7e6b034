"""Counting matches beside listing them, as windows grow. Prints a table, asserts only that both find the same number.

    python tests/bench/bench_cep_count.py [--events 400000] [--rounds 3]

CPU microseconds an event of this process, medians of the rounds. Workload: Table 1 of the INFA-HTS paper, 20 % of the events
late by up to 10 units, one event a unit and key; the number of matches grows with the sixth power of the window.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "cloud")]

from whenabouts_cloud.cep import Pattern, engine  # noqa: E402
from whenabouts_cloud.cep.count.counter import counter  # noqa: E402
from whenabouts_cloud.research.experiments.cep_workload import TYPES, UNIT, table_1  # noqa: E402

WINDOWS = (40, 80, 160)
LISTED = (40, 80)  # a window of 160 would write 186 rows an event
BLOCK = 65536


def pattern(window):
    """Table 1 with another window, in units."""
    return Pattern.parse(f"SEQ(A, B, !C, D, E, F, G) WITHIN {window}", unit_us=UNIT)


def count(window, stream, aggregates=()):
    """Number of matches, CPU seconds, and the counter."""
    one = counter(pattern(window), list(TYPES), k=stream.k, aggregates=aggregates)
    value = {"value": stream.t.astype(float) % 100} if aggregates else None
    began = time.process_time()
    for at in range(0, len(stream.t), BLOCK):
        part = slice(at, at + BLOCK)
        columns = {name: column[part] for name, column in value.items()} if value else None
        one.feed(stream.type_code[part], stream.key[part], stream.t[part], attributes=columns)
    one.finish()
    return one.totals.matches, time.process_time() - began


def listed(window, stream):
    """Number of matches and CPU seconds of the engine, which lists each match."""
    one = engine(pattern(window), list(TYPES), k=stream.k)
    began, matches = time.process_time(), 0
    for at in range(0, len(stream.t), BLOCK):
        part = slice(at, at + BLOCK)
        matches += len(one.feed(stream.type_code[part], stream.key[part], stream.t[part]).matches)
    matches += len(one.finish().matches)
    return matches, time.process_time() - began


def main():
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--events", type=int, default=400_000)
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    warm = table_1(2000, 1, 0.2, seed=3)
    count(40, warm, [("sum", "D.value")])
    listed(40, warm)
    print(f"{'keys':>5} {'window':>6} {'matches/event':>13} {'way':<18} {'us/event':>8} {'M events/s':>10}")
    for keys in (1, 1024):
        stream = table_1(options.events, keys, 0.2, seed=1)
        for window in WINDOWS:
            ways = {"counted": lambda w=window, s=stream: count(w, s)}
            ways["counted, with sum"] = lambda w=window, s=stream: count(w, s, [("sum", "D.value")])
            if window in LISTED:
                ways["listed"] = lambda w=window, s=stream: listed(w, s)
            numbers = set()
            for name, way in ways.items():
                rounds = [way() for _ in range(options.rounds)]
                numbers |= {matches for matches, _ in rounds}
                us = 1e6 * statistics.median(seconds for _, seconds in rounds) / options.events
                print(
                    f"{keys:>5} {window:>6} {max(numbers) / options.events:>13.3f} {name:<18} {us:>8.3f} {1 / us:>10.2f}"
                )
            if len(numbers) != 1:
                sys.exit(f"window {window}: found {sorted(numbers)} matches, expected one number")


if __name__ == "__main__":
    main()
