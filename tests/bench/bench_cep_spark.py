"""A rule about events in an order over a landing on disk as one Spark job: events a second on two cores. Prints a table.

    python tests/bench/bench_cep_spark.py [--events 2000000] [--keys 1024] [--rounds 3]

The workload of the paper's Table 1: SEQ(A, B, !C, D, E, F, G) within 40 units, an event a key and unit, types at random
among ten; those of the three that the rule does not have are left out by Spark. Read from Parquet as the ingest writes it.
Wall time counts from the start of the job to the published file; CPU seconds are of this process, Java and the Python
workers together. One round before them warms Java and the kernels up. The number of matches must be that of the engine in
this process.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "hardware", "edge", "cloud", "firmware_sim")]

from whenabouts_cloud.cep import detect  # noqa: E402
from whenabouts_cloud.jobs.batch import publish_whole  # noqa: E402
from whenabouts_cloud.jobs.engines.cep import CEP  # noqa: E402
from whenabouts_cloud.jobs.metrics import total  # noqa: E402
from whenabouts_cloud.jobs.session.session import start_session  # noqa: E402
from whenabouts_cloud.landing.schema import SCHEMA  # noqa: E402
from whenabouts_cloud.rules import parse_rules  # noqa: E402

TYPES = "ABCDEFGHIJ"
UNIT_US = 1000
BEGIN_US = 1_795_000_000_000_000
FILES = 16
TARGET = 200_000
RULE = parse_rules(
    "".join(f'STREAM {x} FROM "line/{x.lower()}" DELAY 1 min LENGTH 0 us .. 0 us\n' for x in TYPES[:7])
    + f"RULE table1 SEQ(A, B, !C, D, E, F, G) WITHIN {40 * UNIT_US} us PER key"
).cep_rules[0]


def make(folder: Path, events: int, keys: int) -> tuple[int, int]:
    """Land events of eight gateways in order of time; how many the rule has, and how many matches the engine finds."""
    rng = np.random.default_rng(1)
    types, key = rng.integers(0, len(TYPES), events), rng.integers(0, keys, events)
    t = BEGIN_US + np.sort(rng.integers(0, max(events // keys, 1) * UNIT_US, events))
    names = pa.array([f"line/{x.lower()}" for x in TYPES])
    tags = pa.array([f"E2801160600002{n:010X}" for n in range(keys)])
    gateway = rng.integers(0, 8, events)
    seq = np.zeros(events, np.int64)
    for n in range(8):
        seq[gateway == n] = np.arange((gateway == n).sum())
    columns = {
        "site": pa.repeat("plant", events), "gateway": pa.array([f"gw-{n}" for n in range(8)]).take(pa.array(gateway)),
        "boot": np.ones(events, np.int64), "seq": seq, "stream": names.take(pa.array(types)),
        "kind": pa.repeat("tag", events), "key": tags.take(pa.array(key)), "t_min": t, "t_max": t,
        "clock_state": pa.repeat("bounded", events), "landed_us": t,
    }  # fmt: skip
    empty = {"vclock": pa.array([[]] * events, pa.list_(pa.int64()))}
    columns |= empty | {
        x.name: pa.nulls(events, x.type) for x in SCHEMA if x.name not in columns and x.name not in empty
    }
    table = pa.table([pa.array(columns[x.name]).cast(x.type) for x in SCHEMA], schema=SCHEMA)
    size = -(-events // FILES)
    (folder / "hour=2026-11-20T18").mkdir(parents=True)
    for n in range(FILES):
        pq.write_table(table.slice(n * size, size), folder / f"hour=2026-11-20T18/part-{n}.parquet", compression="zstd")
    mine = types < len(RULE.type_names)
    code = np.array([RULE.type_names.index(x) for x in TYPES[:7]])[types[mine]]
    return int(mine.sum()), len(detect(RULE.plan(), RULE.type_names, code, key[mine], t[mine]))


def cpu_s() -> float:
    """CPU seconds so far of this process, Java and the Python workers, ended ones included."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    times = [process.cpu_times() for process in processes if process.is_running()]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=1024)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        landing = Path(scratch) / "landing"
        expected = make(landing, options.events, options.keys)
        spark = start_session("local[2]", "bench", shuffle_partitions=options.shards)
        walls, cpus = [], []
        for n in range(1 + options.rounds):
            cpu, wall = cpu_s(), time.monotonic()
            _, counts = publish_whole(CEP, [RULE], spark, landing, Path(scratch) / f"out{n}", options.shards)
            cpu, wall = cpu_s() - cpu, time.monotonic() - wall
            summed = total(counts)
            if (summed["readings"], summed["matches"]) != expected:
                sys.exit(f"found {dict(summed)}, expected {expected[0]} readings, {expected[1]} matches")
            print(f"{'warming up' if n == 0 else f'round {n}':12} {wall:7.2f} s  {cpu:7.2f} CPU s", flush=True)
            if n:
                walls.append(wall)
                cpus.append(cpu)
        spark.stop()
    wall, cpu = statistics.median(walls), statistics.median(cpus)
    print(
        f"{options.events} events of {options.keys} keys, {expected[1]} matches: {options.events / wall:,.0f} events/s"
    )
    print(
        f"{cpu / options.events * 1e6:.2f} us CPU an event: {2 * options.events / cpu:,.0f} events/s on two free cores"
        f"   target: {TARGET:,}"
    )


if __name__ == "__main__":
    main()
