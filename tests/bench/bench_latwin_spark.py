"""A rule about the states of groups over a landing on disk as Spark jobs: states a second on two cores. Prints a table.

    python tests/bench/bench_latwin_spark.py [--states 200000] [--groups 100] [--rounds 3]

Groups of four gateways whose state goes on and off with means of 25 and 5 s; each onset is sent to the other three of the
group, which they report without a state of their own (a clock heartbeat). Stamps are 100 ms long. Read from Parquet as the
ingest writes it, with a heartbeat of every gateway. The rule is DEFINITELY all four. Wall time counts from the start of the
job to the published file, for the batch job over everything and for the streaming job that finds it landed, in one
micro-batch and in ten; CPU seconds are of this process, Java and the Python workers together. One round before them warms
Java up. Each must emit as many verdicts as the core in this process, whose time is the table's last line.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "hardware", "edge", "cloud", "firmware_sim")]

from whenabouts_cloud.jobs.batch import publish_whole  # noqa: E402
from whenabouts_cloud.jobs.engines.latwin import LATWIN  # noqa: E402
from whenabouts_cloud.jobs.metrics import total  # noqa: E402
from whenabouts_cloud.jobs.session.session import start_session  # noqa: E402
from whenabouts_cloud.jobs.streaming import start_query  # noqa: E402
from whenabouts_cloud.jobs.work import QueryOptions  # noqa: E402
from whenabouts_cloud.landing.schema import SCHEMA  # noqa: E402
from whenabouts_cloud.latwin.shard.report import reports_of  # noqa: E402
from whenabouts_cloud.latwin.shard.shard import LatwinShard  # noqa: E402
from whenabouts_cloud.rules import parse_rules  # noqa: E402
from whenabouts_protocol.group_state import attrs_of  # noqa: E402

GATEWAYS = 4
SECOND_US = 1_000_000
BEGIN_US = 1_795_000_000 * SECOND_US
ON_S, OFF_S, DELAY_S, LENGTH_US = 25.0, 5.0, 0.5, 100_000
TARGET = 20_000
RULE = parse_rules(
    "".join(f'STREAM s{n} FROM "s{n}/state" DELAY 1 h LENGTH 0 us .. {LENGTH_US} us\n' for n in range(GATEWAYS))
    + f'RULE together DEFINITELY {" AND ".join(f"s{n}" for n in range(GATEWAYS))} WINDOW 4 IN GROUP "office-+"'
).latwin_rules[0]


def group(number: int, readings: int) -> list[dict[str, object]]:
    """The readings of one group, in the order of their true times."""
    rng = random.Random(number)
    clocks, seqs = [[0] * GATEWAYS for _ in range(GATEWAYS)], [0] * GATEWAYS
    on = [False] * GATEWAYS
    todo = sorted((rng.expovariate(1 / OFF_S), n, None) for n in range(GATEWAYS))
    rows = [_row(number, n, seqs, clocks, on, 0.0, False, rng) for n in range(GATEWAYS)]
    while len(rows) < readings:
        t, n, message = todo.pop(0)
        if message is None:
            on[n] = not on[n]
            clocks[n][n] += 1
            todo.append((t + rng.expovariate(1 / (ON_S if on[n] else OFF_S)), n, None))
            if on[n]:
                others = [x for x in range(GATEWAYS) if x != n]
                todo += [(t + rng.expovariate(1 / DELAY_S), x, list(clocks[n])) for x in others]
        else:
            clocks[n] = [max(a, b) for a, b in zip(clocks[n], message, strict=True)]
        rows.append(_row(number, n, seqs, clocks, on, t, message is not None, rng))
        todo.sort(key=lambda entry: entry[:2])
    return rows


def _row(
    number: int, n: int, seqs: list[int], clocks: list[list[int]], on: list[bool], t: float, is_heartbeat: bool,
    rng: random.Random,
) -> dict[str, object]:  # fmt: skip
    seqs[n] += 1
    t_min = BEGIN_US + int(t * SECOND_US) - rng.randrange(LENGTH_US)
    return {
        "site": f"site{number}", "gateway": f"gw-{n}", "boot": 1, "seq": seqs[n], "stream": f"s{n}/state",
        "kind": "state", "value": None if is_heartbeat else json.dumps(on[n]),
        "attrs": json.dumps(attrs_of(f"office-{number}", 1, n, {}, is_heartbeat)),
        "t_min": t_min, "t_max": t_min + LENGTH_US,
        "clock_state": "bounded", "vclock": list(clocks[n]), "landed_us": t_min + LENGTH_US,
    }  # fmt: skip


def land(folder: Path, table: pa.Table, groups: int, parts: int, at: int) -> None:
    """One of so many parts of the readings as files, and the watermarks that the gateways can give then."""
    size = -(-table.num_rows // parts)
    mine = table.slice(at * size, size)
    (folder / "hour=2026-11-20T18").mkdir(parents=True, exist_ok=True)
    (folder / "_frontier").mkdir(exist_ok=True)
    for n in range(2):
        half = -(-mine.num_rows // 2)
        made = folder / f"hour=2026-11-20T18/.part-{at}-{n}.parquet"
        pq.write_table(mine.slice(n * half, half), made, compression="zstd")
        made.rename(made.with_name(made.name[1:]))
    last = mine["t_min"][-1].as_py() - LENGTH_US if at < parts - 1 else BEGIN_US + 10**6 * SECOND_US
    watermark(folder, groups, at, last)


def watermark(folder: Path, groups: int, at: int, us: int) -> None:
    """Write a heartbeat of every gateway."""
    lines = [
        json.dumps({"site": f"site{g}", "gateway": f"gw-{n}", "frontier_us": us, "boot": 1, "streams": [f"s{n}/state"]})
        for g in range(groups)
        for n in range(GATEWAYS)
    ]
    made = folder / f"_frontier/.part-{at}.json"
    made.write_text("\n".join(lines) + "\n", encoding="utf-8")
    made.rename(made.with_name(made.name[1:]))


def cpu_s() -> float:
    """CPU seconds so far of this process, Java and the Python workers, ended ones included."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    times = [process.cpu_times() for process in processes if process.is_running()]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=200_000)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = [row for g in range(options.groups) for row in group(g, options.states // options.groups)]
    rows.sort(key=lambda row: row["landed_us"])
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    forever = [
        (f"site{g}/gw-{n}", BEGIN_US + 10**6 * SECOND_US) for g in range(options.groups) for n in range(GATEWAYS)
    ]
    began = time.process_time()
    core = LatwinShard(RULE)
    expected = core.step({"reports": reports_of(RULE, table)[0]}, [forever], everything=True).results.num_rows
    core_s = time.process_time() - began
    spark = start_session("local[2]", "bench", shuffle_partitions=options.shards)
    print(f"{len(rows)} readings of {options.groups} groups of {GATEWAYS}, {expected} verdicts")
    with tempfile.TemporaryDirectory() as scratch:

        def batch(name: str) -> int:
            folders = Path(scratch) / "whole", Path(scratch) / f"out-{name}"
            return total(publish_whole(LATWIN, [RULE], spark, *folders, options.shards)[1])["verdicts"]

        def stream(name: str, parts: int) -> int:
            counts: list[dict[str, object]] = []
            landing = Path(scratch) / f"landing-{name}"
            (landing / "_frontier").mkdir(parents=True)
            out = Path(scratch) / f"out-{name}"
            land(landing, table, options.groups, parts, 0)
            report = lambda *emitted: counts.extend(emitted[2])  # noqa: E731
            query = start_query(LATWIN, {0: RULE}, spark, QueryOptions(landing, out, options.shards, 0.0), report)
            for at in range(1, parts):
                query.processAllAvailable()
                land(landing, table, options.groups, parts, at)
            query.processAllAvailable()
            watermark(landing, options.groups, parts, BEGIN_US + 10**6 * SECOND_US + 1)
            query.processAllAvailable()
            query.stop()
            return total(counts)["verdicts"]

        land(Path(scratch) / "whole", table, options.groups, 1, 0)
        works = {
            "batch": batch,
            "stream, 1 micro-batch": lambda name: stream(name, 1),
            "stream, 10 micro-batches": lambda name: stream(name, 10),
        }
        for what, work in works.items():
            walls, cpus = [], []
            for n in range(1 + options.rounds):
                cpu, wall = cpu_s(), time.monotonic()
                count = work(f"{what.replace(', ', '-').replace(' ', '-')}-{n}")
                cpu, wall = cpu_s() - cpu, time.monotonic() - wall
                if count != expected:
                    sys.exit(f"{what}: found {count} verdicts, expected {expected}")
                if n:
                    walls.append(wall)
                    cpus.append(cpu)
            wall, cpu = statistics.median(walls), statistics.median(cpus)
            print(
                f"{what:26} {wall:7.2f} s  {len(rows) / wall:9,.0f} states/s   {cpu:7.2f} CPU s: "
                f"{2 * len(rows) / cpu:9,.0f} states/s on two free cores   target {TARGET:,}",
                flush=True,
            )
        spark.stop()
    print(f"{'core in this process':26} {core_s:7.2f} s of CPU: {len(rows) / core_s:9,.0f} states/s and core")


if __name__ == "__main__":
    main()
