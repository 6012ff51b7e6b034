"""Spark on time-ordered Parquet: a slab per task, native expressions, and a hand-written join. Prints a table.

    python tests/bench/bench_spark.py [--rows 1000000] [--plain-rows 100000] [--rounds 3]

Ten readings a second a side, lengths 20 to 300 ms, within 500 ms at 80 %: 8.7 pairs a reading. CPU seconds of Java and the
Python workers together, medians of the rounds after one to warm up; the plain range join, nested loops in Spark, runs once.
All ways must agree on the number of pairs and two sums over them.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "hardware", "edge", "cloud", "firmware_sim")]

from pyspark.sql import functions as F  # noqa: E402

from whenabouts_cloud.correlation import Condition  # noqa: E402
from whenabouts_cloud.jobs.session.session import start_session  # noqa: E402
from whenabouts_cloud.spark import within_probability  # noqa: E402
from whenabouts_cloud.spark.native import timing_join  # noqa: E402
from whenabouts_cloud.spark.sorted_files import Columns, Fold, correlate_files  # noqa: E402

D_US, RATE, SHORTEST_US, LONGEST_US = 500_000, 10, 20_000, 300_000
CONDITION = Condition("within", d=D_US, confidence="0.8")
FILES = 8
ENDS = ("a_t_min", "a_t_max", "b_t_min", "b_t_max")
SCHEMA = "pairs long, mixed long, second long"
Digest = tuple[int, int, int]


def make(folder: Path, rows: int, seed: int) -> list[str]:
    """Readings in the order of t_min, as files of a few row groups."""
    rng = np.random.default_rng(seed)
    t_min = np.sort(rng.integers(0, rows * 1_000_000 // RATE, rows)) + 1_795_000_000_000_000
    table = pa.table(
        {"id": np.arange(rows), "t_min": t_min, "t_max": t_min + rng.integers(SHORTEST_US, LONGEST_US, rows)}
    )
    folder.mkdir()
    size = -(-rows // FILES)
    for n in range(FILES):
        pq.write_table(table.slice(n * size, size), folder / f"{n}.parquet", row_group_size=65_536)
    return sorted(map(str, folder.glob("*.parquet")))


def fold(a: pa.Table, b: pa.Table, chunks: Iterator[tuple[Any, Any]]) -> pa.Table:
    """The digest of a slab's pairs."""
    a_id, b_id = a["id"].to_numpy(), b["id"].to_numpy()
    pairs = mixed = second = 0
    for i, j in chunks:
        other = b_id[j]
        pairs, mixed, second = pairs + len(i), mixed + int((a_id[i] ^ other).sum()), second + int(other.sum())
    return pa.table({"pairs": [pairs], "mixed": [mixed], "second": [second]})


def digest(frame: Any) -> Digest:
    """The digest of a frame of pairs."""
    row = frame.agg(F.count("*"), F.sum(F.col("a_id").bitwiseXOR(F.col("b_id"))), F.sum("b_id")).first()
    return tuple(row)


def summed(frame: Any) -> Digest:
    """The digest of a frame of digests."""
    return tuple(frame.agg(F.sum("pairs"), F.sum("mixed"), F.sum("second")).first())


def plain(a: Any, b: Any, test: Any) -> Digest:
    """A range join as one writes it, which Spark runs as nested loops."""
    near = (F.col("b_t_min") <= F.col("a_t_max") + D_US) & (F.col("a_t_min") <= F.col("b_t_max") + D_US)
    sides = [frame.select(*(F.col(x).alias(f"{n}_{x}") for x in frame.columns)) for n, frame in (("a", a), ("b", b))]
    return digest(sides[0].join(sides[1], near & test))


def cpu_s() -> float:
    """CPU seconds so far of this process, Java and the Python workers, ended ones included."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    times = [process.cpu_times() for process in processes if process.is_running()]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


def measure(work: Callable[[], Digest | None], rounds: int, warm: int = 1) -> tuple[float, float, Digest | None]:
    """Median CPU and wall seconds, and the answer."""
    took: list[tuple[float, float]] = []
    for n in range(warm + rounds):
        cpu, wall = cpu_s(), time.monotonic()
        answer = work()
        if n >= warm:
            took.append((cpu_s() - cpu, time.monotonic() - wall))
    return statistics.median(x for x, _ in took), statistics.median(x for _, x in took), answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--plain-rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    spark = start_session("local[2]", "bench", shuffle_partitions=8)
    results: dict[tuple[str, int], float] = {}
    print(f"{'way':34} {'rows a side':>12} {'CPU s':>8} {'wall s':>8} {'pairs':>10}")
    with tempfile.TemporaryDirectory() as scratch:
        for rows in sorted({options.rows, options.plain_rows}):
            a, b = (make(Path(scratch) / f"{side}{rows}", rows, seed) for seed, side in enumerate("ab"))
            frames = [spark.read.parquet(*files) for files in (a, b)]
            scan = frames[0].unionAll(frames[1])
            ways: dict[str, Callable[[], Digest | None]] = {
                "scan only": lambda scan=scan: (
                    scan.agg(F.sum(F.col("t_min").bitwiseXOR(F.col("t_max")) + F.col("id"))).first() and None
                ),
                "slab per task, kernel": lambda a=a, b=b: summed(
                    correlate_files(spark, a, b, CONDITION, Columns(carry=("id",)), fold=Fold(fold, SCHEMA))
                ),
                "native buckets, exact": lambda f=frames: digest(timing_join(*f, CONDITION, probability=False)),
            }
            expected: Digest | None = None
            for name, work in ways.items():
                cpu, wall, result = measure(work, options.rounds)
                expected = report(name, rows, cpu, wall, result, expected, results)
            if rows == options.plain_rows:
                test = within_probability(*ENDS, D_US) >= 0.8
                cpu, wall, result = measure(lambda f=frames, t=test: plain(*f, t), 1, warm=0)
                report("plain range join", rows, cpu, wall, result, expected, results)
    spark.stop()
    for text, above, below, size, target in (
        ("slab per task to scan", "slab per task, kernel", "scan only", options.rows, "at most 2"),
        (
            "slab per task to native buckets",
            "slab per task, kernel",
            "native buckets, exact",
            options.rows,
            "at most 0.5",
        ),
        ("plain to native buckets", "plain range join", "native buckets, exact", options.plain_rows, "at least 12"),
    ):
        print(f"{text:34} {size:>12} {results[above, size] / results[below, size]:8.2f}   target: {target}")


def report(
    name: str,
    rows: int,
    cpu: float,
    wall: float,
    result: Digest | None,
    expected: Digest | None,
    results: dict[tuple[str, int], float],
) -> Digest | None:
    """Print a line; return the answer that all ways must give."""
    results[name, rows] = cpu
    print(f"{name:34} {rows:>12} {cpu:8.2f} {wall:8.2f} {result[0] if result else '':>10}", flush=True)
    if result and expected and result != expected:
        sys.exit(f"{name}: found {result}, expected {expected}")
    return expected or result


if __name__ == "__main__":
    main()
