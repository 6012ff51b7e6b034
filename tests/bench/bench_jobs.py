"""Spark jobs beside what they are made of: a bare scan of the same Parquet files, and the engine alone. Prints a table.

    python tests/bench/bench_jobs.py [--events 2000000] [--rounds 3] [--seconds 30] [--only batch,stream,delay]

batch    CEP (the pattern of the paper's Table 1, 1024 keys) and correlation (two streams of tags, 8 pairs of a reading) over
         a landing of 16 files: readings a second by the clock, from the start of the job to the published file
scan     Spark with its own settings, in a process of its own, reads the columns that the job needs and counts a sum over
         them; the engine alone gets arrays in memory
stream   the same landing, with frontiers, read by a query that begins with it: readings a second until all is done
delay    2 000 readings a second land in files of half a second, three rules run: seconds from landed to published

The jobs must give the numbers of results that the engines give. Two cores; one round before the measured ones warms up.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "hardware", "edge", "cloud", "firmware_sim")]

from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

from whenabouts_cloud.cep import detect  # noqa: E402
from whenabouts_cloud.correlation.batch import api  # noqa: E402
from whenabouts_cloud.correlation.pairs import condition_of  # noqa: E402
from whenabouts_cloud.jobs.batch import publish_whole  # noqa: E402
from whenabouts_cloud.jobs.engines.cep import CEP  # noqa: E402
from whenabouts_cloud.jobs.engines.correlate import CORRELATION  # noqa: E402
from whenabouts_cloud.jobs.metrics import total  # noqa: E402
from whenabouts_cloud.jobs.session.java import java_home  # noqa: E402
from whenabouts_cloud.jobs.session.session import start_session  # noqa: E402
from whenabouts_cloud.jobs.streaming import start_query  # noqa: E402
from whenabouts_cloud.jobs.work import QueryOptions  # noqa: E402
from whenabouts_cloud.landing.layout import DATA, FRONTIER, Numbers, path_of  # noqa: E402
from whenabouts_cloud.landing.schema import SCHEMA, STAMPED  # noqa: E402
from whenabouts_cloud.landing.store import Store  # noqa: E402
from whenabouts_cloud.rules import parse_rules  # noqa: E402

TYPES = "ABCDEFGHIJ"
UNIT_US = 1000
BEGIN_US = 1_795_000_000_000_000
FILES = 16
SHARDS = 4
HOUR = "2026-11-20T18"
RULES = parse_rules(
    "".join(f'STREAM {x} FROM "line/{x.lower()}" DELAY 1 min LENGTH 0 us .. 0 us\n' for x in TYPES[:7])
    + f"RULE table1 SEQ(A, B, !C, D, E, F, G) WITHIN {40 * UNIT_US} us PER key\n"
    + f"RULE near CORRELATE A AS a, B AS b WHERE |@a - @b| <= {20 * UNIT_US} us OVER 80 % AND a.key = b.key\n"
)
THREE = parse_rules("""
STREAM dock FROM "dock/tags" DELAY 2 s
STREAM door FROM "door/tags" DELAY 2 s
STREAM till FROM "till/tags" DELAY 2 s
RULE near   CORRELATE dock AS a, door AS b WHERE |@a - @b| <= 5 s OVER 80 % AND a.key = b.key
RULE paying CORRELATE dock AS a, till AS b WHERE |@a - @b| <= 5 s OVER 80 % AND a.key = b.key
RULE order  SEQ(dock a, till c, door e) WITHIN 10 s PER key
""")
NAMES = ["dock/tags", "door/tags", "till/tags"]
EVERY_S, RATE = 0.5, 2000


def rows(columns: dict[str, Any]) -> pa.Table:
    """A table of the landing from some columns."""
    count = len(columns["t_min"])
    columns = {"boot": np.ones(count, np.int64), "landed_us": columns["t_max"], **columns}
    columns |= {"kind": pa.repeat("tag", count), "clock_state": pa.repeat("bounded", count)}
    made = [pa.array(columns[f.name]).cast(f.type) if f.name in columns else pa.nulls(count, f.type) for f in SCHEMA]
    return pa.table(made, schema=SCHEMA)


def write(landing: Path, kind: str, number: int, content: Any) -> None:
    """Land a file of readings or of frontiers."""
    path = landing / path_of(kind, HOUR, Numbers(number, number))
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    if kind == FRONTIER:
        hidden.write_text("".join(json.dumps(one) + "\n" for one in content))
    else:
        pq.write_table(content, hidden, compression="zstd")
    hidden.rename(path)


def said(gateways: list[str], us: int, streams: list[str]) -> list[dict[str, Any]]:
    return [{"site": "plant", "gateway": name, "frontier_us": us, "streams": streams} for name in gateways]


def make(landing: Path, events: int, keys: int = 1024) -> dict[str, np.ndarray]:
    """Land events of eight gateways in the order of time, a frontier after each file; return their columns."""
    rng = np.random.default_rng(1)
    types, key = rng.integers(0, len(TYPES), events), rng.integers(0, keys, events)
    t = BEGIN_US + np.sort(rng.integers(0, max(events // keys, 1) * UNIT_US, events))
    gateway = rng.integers(0, 8, events)
    seq = np.zeros(events, np.int64)
    for n in range(8):
        seq[gateway == n] = np.arange((gateway == n).sum())
    names = [f"gw-{n}" for n in range(8)]
    streams = [f"line/{x.lower()}" for x in TYPES]
    tags = pa.array([f"E2801160600002{n:010X}" for n in range(keys)])
    size = -(-events // FILES)
    for n in range(FILES):
        part = slice(n * size, (n + 1) * size)
        table = rows(
            {
                "site": pa.repeat("plant", len(t[part])), "gateway": pa.array(names).take(pa.array(gateway[part])),
                "seq": seq[part], "stream": pa.array(streams).take(pa.array(types[part])),
                "key": tags.take(pa.array(key[part])), "t_min": t[part], "t_max": t[part],
            }
        )  # fmt: skip
        write(landing, DATA, 2 * n + 1, table)
        write(landing, FRONTIER, 2 * n + 2, said(names, int(t[part][-1]), streams))
    return {"types": types, "key": key, "t": t}


def engines(made: dict[str, np.ndarray]) -> dict[str, Callable[[], int]]:
    """What the engines alone do with arrays in memory; each returns its number of results."""
    [events], [pairs] = RULES.cep_rules, RULES.correlate_rules
    mine = made["types"] < 7
    codes = np.array([events.type_names.index(x) for x in TYPES[:7]])[made["types"][mine]]
    key, t = made["key"][mine], made["t"][mine]
    a, b = made["types"] == 0, made["types"] == 1

    def correlated() -> int:
        sides = [made["t"][a], made["t"][a], made["t"][b], made["t"][b]]
        i, *_ = api.correlate(*sides, condition_of(pairs), made["key"][a], made["key"][b], probability=True)
        return len(i)

    return {
        "CEP": lambda: len(detect(events.plan(), events.type_names, codes, key, t)),
        "correlation": correlated,
    }


def median(work: Callable[[], int], rounds: int) -> tuple[float, int]:
    """Median seconds of the rounds after one to warm up, and the answer of all."""
    took, answers = [], set()
    for n in range(1 + rounds):
        began = time.monotonic()
        answers.add(work())
        if n:
            took.append(time.monotonic() - began)
    [answer] = answers
    return statistics.median(took), answer


JOBS = {"CEP": (CEP, RULES.cep_rules[0], "matches"), "correlation": (CORRELATION, RULES.correlate_rules[0], "pairs")}


def scan(folder: str, rounds: int) -> None:
    """Print the median seconds of a scan by a Spark that has nothing of ours."""
    os.environ["JAVA_HOME"] = str(java_home(os.environ))
    builder: Any = SparkSession.builder
    spark = builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame, total_of = spark.read.parquet(folder).select(*STAMPED), F.sum(F.xxhash64(*STAMPED).bitwiseAND(1))
    print(median(lambda: int(frame.agg(total_of).first()[0]), rounds)[0])
    spark.stop()


def batch(spark: Any, scratch: Path, landing: Path, made: dict[str, np.ndarray], rounds: int) -> None:
    """Jobs over the whole landing."""
    events = len(made["t"])
    alone = engines(made)
    command = [sys.executable, __file__, "--scan", f"{landing}/hour={HOUR}", "--rounds", str(rounds)]
    scan_s = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    print(f"{'batch':14}{'scan':>12}{'engine':>12}{'scan+engine':>13}{'job':>12}   readings/s; job to scan+engine")
    for name, (engine, rule, counted) in JOBS.items():
        engine_s, expected = median(alone[name], rounds)
        outs = iter(range(1000))

        def job(e: Any = engine, r: Any = rule, c: str = counted, n: str = name, o: Any = outs) -> int:
            return int(total(publish_whole(e, [r], spark, landing, scratch / f"{n}{next(o)}", SHARDS)[1])[c])

        job_s, found = median(job, rounds)
        check(name, found, expected)
        both = scan_s + engine_s
        print(
            f"{name:14}{events / scan_s:12,.0f}{events / engine_s:12,.0f}{events / both:13,.0f}{events / job_s:12,.0f}"
            f"   {both / job_s:.2f}   target: at least 0.5, {'0.8' if name == 'CEP' else '1.0'} M/s",
            flush=True,
        )


def check(name: str, found: int, expected: int) -> None:
    if found != expected:
        sys.exit(f"{name}: found {found} results, expected {expected}")


def stream(spark: Any, scratch: Path, landing: Path, made: dict[str, np.ndarray], rounds: int) -> None:
    """Queries that begin with a long history."""
    alone = engines(made)
    for name, (engine, rule, counted) in JOBS.items():
        expected, rates = alone[name](), []
        for n in range(1 + rounds):
            counts: list[int] = []  # of results, by micro-batch
            options = QueryOptions(landing, scratch / f"stream-{name}{n}", SHARDS, 0.0)
            began = time.monotonic()

            def report(
                number: int, folder: Store | None, some: list[dict[str, Any]], s: float, c: str = counted
            ) -> None:
                counts.append(sum(one[c] for one in some))  # noqa: B023

            query = start_query(engine, {0: rule}, spark, options, report)
            query.processAllAvailable()
            seconds = time.monotonic() - began
            query.stop()
            check(f"stream of {name}", sum(counts), expected)
            if n:
                rates.append(len(made["t"]) / seconds)
        print(
            f"stream, {name:14}{statistics.median(rates):12,.0f} readings/s in {len(counts)} micro-batches, with its start"
            "   target: 300,000",
            flush=True,
        )


def delay(spark: Any, scratch: Path, seconds: float) -> None:
    """Seconds from landed to published."""
    landing, landed, delays = scratch / "live", list[float](), list[tuple[int, float]]()
    landing.mkdir()

    def report(number: int, folder: Store | None, some: list[dict[str, Any]], s: float) -> None:
        now = time.monotonic()
        for file in () if folder is None or folder.local is None else folder.local.glob("*.parquet"):
            table = pq.read_table(file)
            if "events" in table.schema.names:
                newest = [max(one["seq"] for one in events) for events in table["events"].to_pylist()]
            else:
                newest = np.maximum(table["a_seq"].to_numpy(), table["b_seq"].to_numpy()).tolist()
            delays.extend((seq // 1000, now - landed[seq // 1000]) for seq in newest)

    queries = []
    for n, rule in enumerate(THREE.rules):
        engine: Any = CEP if rule in THREE.cep_rules else CORRELATION
        queries.append(
            start_query(engine, {0: rule}, spark, QueryOptions(landing, scratch / f"live{n}", SHARDS, 0.0), report)
        )
    rng, began = np.random.default_rng(2), time.monotonic()
    size = int(RATE * EVERY_S)
    while time.monotonic() - began < seconds:
        n, now_us = len(landed), time.time_ns() // 1000
        t = now_us - np.sort(rng.integers(0, int(EVERY_S * 1e6), size))[::-1]
        table = rows(
            {
                "site": pa.repeat("plant", size), "gateway": pa.repeat("g0", size),
                "seq": np.arange(n * 1000, n * 1000 + size),
                "stream": pa.array(NAMES).take(pa.array(rng.integers(0, 3, size))),
                "key": pa.array([f"E28011606000020000{k:06d}" for k in rng.integers(0, 10 * RATE, size)]),
                "t_min": t, "t_max": t + 2000,
            }
        )  # fmt: skip
        landed.append(time.monotonic())
        write(landing, DATA, 2 * n + 1, table)
        write(landing, FRONTIER, 2 * n + 2, said(["g0"], now_us, NAMES))
        time.sleep(max(0.0, began + EVERY_S * (n + 1) - time.monotonic()))
    for query in queries:
        query.processAllAvailable()
        query.stop()
    late = sorted(s for n, s in delays if n * EVERY_S > seconds / 3)
    print(
        f"delay of {len(late)} results, three rules at {RATE} readings/s: p50 {late[len(late) // 2]:.2f} s, "
        f"p99 {late[len(late) * 99 // 100]:.2f} s, longest {late[-1]:.2f} s   target: p50 1.5 s, p99 4 s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--only", default="batch,stream,delay")
    parser.add_argument("--scan", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.scan:
        scan(options.scan, options.rounds)
        return
    chosen = options.only.split(",")
    with tempfile.TemporaryDirectory() as folder:
        scratch, landing = Path(folder), Path(folder) / "landing"
        made = make(landing, options.events)
        spark = start_session("local[2]", "bench", shuffle_partitions=SHARDS)
        if "batch" in chosen:
            batch(spark, scratch, landing, made, options.rounds)
        if "stream" in chosen:
            stream(spark, scratch, landing, made, options.rounds)
        if "delay" in chosen:
            delay(spark, scratch, options.seconds)
        spark.stop()


if __name__ == "__main__":
    main()
