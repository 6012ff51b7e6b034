"""CPU time of the correlation of two streams, beside the usual alternatives. Prints tables.

    python tests/bench/bench_correlation.py [--rounds 3] [--large]

Workload: 10 intervals a second and side, lengths from 20 to 300 ms, within 500 ms at 0.8, which is 8.7 matches an interval;
dense: 100 a second; skewed: 30 % of the intervals in 1 % of the time. Parquet in (time-ordered), digest out: every way must
find the same number of pairs and the same sums of i, j and i * j. Each measurement is a separate process that has
run once on a small input before; CPU is that of all its threads, memory what it took beyond that small run. Peers take both
cores. Ratios compare medians over rounds in which every way runs once. Needs the extra `bench` (duckdb, polars).
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "cloud")]

from whenabouts_cloud.correlation import Condition, correlate, count_pairs  # noqa: E402
from whenabouts_cloud.correlation.batch.api import CHUNK_PAIRS, correlate_chunks, correlate_ranges  # noqa: E402
from whenabouts_cloud.correlation.batch.blocks import correlate_blocks  # noqa: E402

PI_US, RHO_US, D_US = 300_000, 20_000, 500_000
START_US = 1_795_000_000_000_000
CONDITION = Condition("within", d=D_US, confidence="0.8")
# |M| <= 2 max M over the lengths, the tightest band there is: d - Q at twice the shortest length (Q there is 7351 us).
BAND_US = 985_300
ROWS_OF_A_BLOCK = 131_072
MASK = (1 << 64) - 1
Digest = tuple[int, int, int, int]

# The exact test in whole numbers; D >= T holds for all lengths of the workload, so one tail decides.
TERMS = "w1 + w2 AS t, least(greatest(500000 + (w1 + w2 - abs(m2 - m1)) // 2, 0), w1 + w2) AS s"
EXACT = (
    "(s * s - greatest(s - w1, 0) * greatest(s - w1, 0) - greatest(s - w2, 0) * greatest(s - w2, 0)) * 5 >= 8 * w1 * w2"
)
DUCK_SIDE = "SELECT i, t_min, t_max, t_max - t_min AS w, t_min + t_max AS m FROM '{}'"
DUCK_PAIRS = (
    "WITH x AS ({a}), y AS ({b}), c AS (SELECT x.i AS i, y.i AS j, x.w AS w1, y.w AS w2, x.m AS m1, y.m AS m2 FROM x JOIN y "
    "ON {on}), e AS (SELECT *, {terms} FROM c) SELECT {what} FROM e WHERE {exact}"
)
DUCK_DIGEST = "count(*), sum(i), sum(j), sum(i * j)"
MIDDLES = f"y.m >= x.m - {BAND_US} AND y.m <= x.m + {BAND_US}"
OVERLAP = f"y.t_max >= x.t_min - {D_US} AND y.t_min <= x.t_max + {D_US}"


def workload(kind: str, rows: int, seed: int) -> pa.Table:
    """One side, in the order of its minima."""
    chance = np.random.default_rng(seed)
    rate = 100 if kind == "dense" else 10
    span = rows / rate * 1e6
    start = chance.random(rows) * span
    if kind == "skewed":
        crowded = chance.random(rows) < 0.3
        start[crowded] = span * (0.5 + 0.01 * chance.random(int(crowded.sum())))
    t_min = np.sort(start.astype(np.int64)) + START_US
    length = chance.integers(RHO_US, PI_US + 1, rows)
    return pa.table({"i": np.arange(rows), "t_min": t_min, "t_max": t_min + length})


@numba.njit(cache=True)
def add_digest(i: Any, j: Any, sums: Any) -> None:
    sum_i = sum_j = product = np.uint64(0)
    for at in range(len(i)):
        x, y = np.uint64(i[at]), np.uint64(j[at])
        sum_i, sum_j, product = sum_i + x, sum_j + y, product + x * y
    sums += np.array([np.uint64(len(i)), sum_i, sum_j, product])


@numba.njit(cache=True)
def rename(rows: Any, number: Any, out: Any) -> None:
    for at in range(len(rows)):
        out[at] = number[rows[at]]


def digest_of(parts: Iterator[tuple[Any, Any]]) -> Digest:
    """Pairs, and the sums of i, j and i * j modulo 2^64; compiled, as those of the peers are."""
    sums = np.zeros(4, np.uint64)
    for i, j in parts:
        add_digest(i, j, sums)
    count, sum_i, sum_j, product = sums.tolist()
    return count, sum_i, sum_j, product


def stamps(folder: Path) -> list[Any]:
    """a_min, a_max, b_min, b_max."""
    tables = [pq.read_table(folder / f"{side}.parquet", columns=["t_min", "t_max"], pre_buffer=False) for side in "ab"]
    return [table[name].to_numpy() for table in tables for name in ("t_min", "t_max")]


def blocks(path: Path) -> Iterator[tuple[Any, Any]]:
    for batch in pq.ParquetFile(path, pre_buffer=False).iter_batches(ROWS_OF_A_BLOCK, columns=["t_min", "t_max"]):
        yield batch["t_min"].to_numpy(), batch["t_max"].to_numpy()


def files_in_blocks(folder: Path, engine: Any) -> Digest:
    return digest_of(
        correlate_blocks(blocks(folder / "a.parquet"), blocks(folder / "b.parquet"), CONDITION, engine=engine)
    )


def arrays_in_chunks(folder: Path, engine: Any) -> Digest:
    return digest_of(correlate_chunks(*stamps(folder), CONDITION, engine=engine))


def shuffled_in_chunks(folder: Path, engine: Any) -> Digest:
    columns, rows = stamps(folder), []
    for at in (0, 2):
        order = np.random.default_rng(at).permutation(len(columns[at]))
        rows.append(order)
        columns[at], columns[at + 1] = columns[at][order], columns[at + 1][order]
    names = np.empty(CHUNK_PAIRS, np.int64), np.empty(CHUNK_PAIRS, np.int64)

    def in_order() -> Iterator[tuple[Any, Any]]:
        for pairs in correlate_chunks(*columns, CONDITION, engine=engine):
            for written, number, name in zip(pairs, rows, names, strict=True):
                rename(written, number, name)
            yield names[0][: len(pairs[0])], names[1][: len(pairs[1])]

    before = cpu_s()
    digest = digest_of(in_order())
    shuffled_in_chunks.cpu_s = cpu_s() - before  # type: ignore[attr-defined]
    return digest


def pairs_kept(folder: Path, engine: Any) -> Digest:
    i, j = correlate(*stamps(folder), CONDITION, engine=engine)
    return digest_of(iter([(i, j)]))


def ranges(folder: Path, engine: Any) -> Digest:
    """The digest from sums over stretches."""
    joined = correlate_ranges(*stamps(folder), CONDITION, engine=engine)
    ends = np.concatenate([[0], np.cumsum(joined.b_order)])
    count, sum_j = joined.last - joined.first, ends[joined.last] - ends[joined.first]
    sums = int(count.sum()), int(np.dot(joined.i, count)), int(sum_j.sum()), int(np.dot(joined.i, sum_j))
    return sums[0], sums[1] & MASK, sums[2] & MASK, sums[3] & MASK


def counted(folder: Path, engine: Any) -> Digest:
    """Only the number; the rest of the digest is not asked for."""
    return count_pairs(*stamps(folder), CONDITION, engine=engine), -1, -1, -1


def duckdb_join(folder: Path, on: str) -> Digest:
    import duckdb

    a, b = (DUCK_SIDE.format(folder / f"{side}.parquet") for side in "ab")
    query = DUCK_PAIRS.format(a=a, b=b, on=on, terms=TERMS, what=DUCK_DIGEST, exact=EXACT)
    row = duckdb.connect().execute(query).fetchone()
    assert row is not None
    return row[0], *(int(x or 0) & MASK for x in row[1:])


def duckdb_bucket(folder: Path, _: Any) -> Digest:
    """Equality on buckets of time as wide as the band; B in its own and both neighbours."""
    import duckdb

    a, b = (
        DUCK_SIDE.format(folder / f"{side}.parquet").replace(" FROM", f", {bucket} AS k FROM")
        for side, bucket in (
            ("a", f"(t_min + t_max) // {BAND_US}"),
            ("b", f"unnest([(t_min + t_max) // {BAND_US} + n FOR n IN [-1, 0, 1]])"),
        )
    )
    on = f"x.k = y.k AND {MIDDLES}"
    query = DUCK_PAIRS.format(a=a, b=b, on=on, terms=TERMS, what=DUCK_DIGEST, exact=EXACT)
    row = duckdb.connect().execute(query).fetchone()
    assert row is not None
    return row[0], *(int(x or 0) & MASK for x in row[1:])


def duckdb_fetched(folder: Path, on: str) -> Digest:
    import duckdb

    a, b = (DUCK_SIDE.format(folder / f"{side}.parquet") for side in "ab")
    query = DUCK_PAIRS.format(a=a, b=b, on=on, terms=TERMS, what="i, j", exact=EXACT)
    pairs = duckdb.connect().execute(query).fetchnumpy()
    return digest_of(iter([(pairs["i"], pairs["j"])]))


def polars_join(folder: Path, engine: str) -> Digest:
    import polars as pl

    a, b = (
        pl.scan_parquet(folder / f"{side}.parquet").select(
            pl.col("i").alias(side),
            (pl.col("t_max") - pl.col("t_min")).alias(f"w{side}"),
            (pl.col("t_min") + pl.col("t_max")).alias(f"m{side}"),
        )
        for side in "ab"
    )
    a = a.with_columns(low=pl.col("ma") - BAND_US, high=pl.col("ma") + BAND_US)
    w1, w2 = pl.col("wa"), pl.col("wb")
    s = (D_US + (w1 + w2 - (pl.col("mb") - pl.col("ma")).abs()) // 2).clip(lower_bound=0)
    s = pl.min_horizontal(s, w1 + w2)
    over = [(s - w).clip(lower_bound=0) for w in (w1, w2)]
    exact = (s * s - over[0] * over[0] - over[1] * over[1]) * 5 >= 8 * w1 * w2
    row = (
        a.join_where(b, pl.col("mb") >= pl.col("low"), pl.col("mb") <= pl.col("high"))
        .filter(exact)
        .select(n=pl.len(), i=pl.col("a").sum(), j=pl.col("b").sum(), ij=(pl.col("a") * pl.col("b")).sum())
        .collect(engine=engine)  # type: ignore[call-overload]
        .row(0)
    )
    return row[0], row[1] & MASK, row[2] & MASK, row[3] & MASK


# name -> (function, its second argument)
WAYS: dict[str, tuple[Callable[[Path, Any], Digest], Any]] = {
    "numba, files in blocks": (files_in_blocks, "numba"),
    "numba, arrays in chunks": (arrays_in_chunks, "numba"),
    "numba, rows shuffled": (shuffled_in_chunks, "numba"),
    "numba, pairs kept, sorted": (pairs_kept, "numba"),
    "numba, ranges": (ranges, "numba"),
    "numba, count": (counted, "numba"),
    "numpy, files in blocks": (files_in_blocks, "numpy"),
    "numpy, pairs kept, sorted": (pairs_kept, "numpy"),
    "DuckDB, range join on middles": (duckdb_join, MIDDLES),
    "DuckDB, overlap of [a-d, b+d]": (duckdb_join, OVERLAP),
    "DuckDB, overlap, pairs fetched": (duckdb_fetched, OVERLAP),
    "DuckDB, middles, pairs fetched": (duckdb_fetched, MIDDLES),
    "DuckDB, equality on buckets": (duckdb_bucket, None),
    "Polars, join_where, streaming": (polars_join, "streaming"),
    "Polars, join_where, in memory": (polars_join, "in-memory"),
}
STREAMED, KEPT, NUMPY = "numba, files in blocks", "numba, pairs kept, sorted", "numpy, files in blocks"
DUCK, DUCK_KEPT, POLARS = (
    "DuckDB, range join on middles",
    "DuckDB, middles, pairs fetched",
    "Polars, join_where, streaming",
)


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(way: str, folder: Path) -> None:
    """Run one way in this process, after a small input; prints the measurement as JSON."""
    function, argument = WAYS[way]
    function(folder.parent / "small", argument)
    rss = psutil.Process().memory_info().rss
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak of memory
    cpu, wall = cpu_s(), time.perf_counter()
    digest = function(folder, argument)
    took = getattr(function, "cpu_s", None) or cpu_s() - cpu
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    mb = (int(peak.split()[1]) * 1024 - rss) / 1e6
    print(json.dumps({"cpu_s": took, "wall_s": time.perf_counter() - wall, "mb": mb, "digest": digest}))


def rounds(ways: list[str], folder: Path, number: int) -> dict[str, dict[str, float]]:
    """Medians of every way; the digests must agree."""
    measured: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    for _ in range(number):
        for way in ways:
            me = [sys.executable, __file__, "--way", way, "--folder", str(folder)]
            measured[way].append(json.loads(subprocess.run(me, check=True, capture_output=True, text=True).stdout))
    digests = {tuple(run["digest"]) for way in ways for run in measured[way] if run["digest"][1] >= 0}
    counts = {run["digest"][0] for way in ways for run in measured[way]}
    if len(digests) != 1 or len(counts) != 1:
        sys.exit(f"{folder.name}: the ways differ: " + "; ".join(f"{way} {measured[way][0]['digest']}" for way in ways))
    return {
        way: {name: statistics.median(run[name] for run in runs) for name in ("cpu_s", "wall_s", "mb")}
        | {"pairs": runs[0]["digest"][0]}
        for way, runs in measured.items()
    }


def table(title: str, rows: int, medians: dict[str, dict[str, float]]) -> None:
    pairs = int(medians[STREAMED]["pairs"])
    print(f"\n{title}: {rows:.0e} a side, {pairs} pairs, {pairs / rows:.1f} an interval; same digest from all")
    print(f"{'':34}{'CPU s':>9}{'ratio':>8}{'wall s':>9}{'MB':>8}")
    for way, run in medians.items():
        ratio = run["cpu_s"] / medians[STREAMED]["cpu_s"]
        print(f"{way:34}{run['cpu_s']:9.3f}{ratio:8.1f}{run['wall_s']:9.3f}{run['mb']:8.0f}", flush=True)


def probes(rows: int) -> list[tuple[str, float, float]]:
    """(threshold, evaluations in mid order, and beside max order) of the workload; exact counters."""
    a, b = (workload("long", rows, seed) for seed in (1, 2))
    a_min, a_max, b_min, b_max = (side[name].to_numpy() for side in (a, b) for name in ("t_min", "t_max"))
    ends = np.sort(b_max)
    sizes = []
    for written in ("0.8", "0.5"):
        counts: Counter[str] = Counter()
        condition = Condition("within", d=D_US, confidence=written)
        count_pairs(a_min, a_max, b_min, b_max, condition, engine="numpy", counts=counts)
        least = [quantile_of(a_max - a_min, length, float(written)) for length in (RHO_US, PI_US)]
        # The probe regions of the papers' order by maxima: [L_H, L_L) and (R_L, R_H], in the notation of 2010.
        left = [np.searchsorted(ends, a_min - D_US + s, "left") for s in least]
        right = [
            np.searchsorted(ends, a_max + D_US + length - s, "right")
            for s, length in zip(least, (RHO_US, PI_US), strict=True)
        ]
        by_max = int((left[1] - left[0]).sum() + (right[1] - right[0]).sum())
        sizes.append((written, counts["probes"], by_max))
    return sizes


def quantile_of(w_a: Any, w_b: int, ct: float) -> Any:
    """The least s with C(s) >= ct."""
    low, high = np.minimum(w_a, w_b), np.maximum(w_a, w_b)
    edge = low / (2 * high)
    rest = low + high - np.sqrt(2 * (1 - ct) * low * high)
    return np.where(ct <= edge, np.sqrt(2 * ct * low * high), np.where(ct >= 1 - edge, rest, ct * high + low / 2))


def verdict(name: str, measured: float, target: float, at_least: bool) -> None:
    met = measured >= target if at_least else measured <= target
    print(f"{name:66}{'>=' if at_least else '<='} {target:<6g}{measured:9.3f}  {'met' if met else 'NOT MET'}")


def compile_s() -> tuple[float, float]:
    """Wall seconds of the first use of numba in a process: without machine code kept, and with it."""
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from whenabouts_cloud.correlation import Condition, correlate; import time; t = list(range(9)); s = time.time()\n"
        "correlate(t, t, t, t, Condition('within', d=1, confidence=1), engine='numba'); print(time.time() - s)"
    )
    with tempfile.TemporaryDirectory() as empty:
        took = [
            float(
                subprocess.run(
                    [sys.executable, "-c", code, str(ROOT / "protocol"), str(ROOT / "cloud")],
                    env={"NUMBA_CACHE_DIR": empty, "PATH": ""}, check=True, capture_output=True, text=True,
                ).stdout
            )
            for _ in range(2)
        ]  # fmt: skip
    return took[0], took[1]


def write(folder: Path, kind: str, rows: int) -> Path:
    folder.mkdir()  # plain files, so that the join is measured and not the codec
    for seed, side in enumerate("ab", 1):
        pq.write_table(workload(kind, rows, seed), folder / f"{side}.parquet", row_group_size=ROWS_OF_A_BLOCK,
                       use_dictionary=False, compression="none")  # fmt: skip
    return folder


def main() -> None:
    """Measure all in turn and hold the figures against the targets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each way, 3 by default")
    parser.add_argument("--large", action="store_true", help="10 million a side in every way too (87 M pairs, minutes)")
    for hidden in ("--way", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        return measure(given.way, Path(given.folder))
    every = list(WAYS)
    few = [way for way in every if not way.endswith(("in memory", "fetched"))]
    results: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        base = Path(name)
        write(base / "small", "long", 1000)
        cold, warm = compile_s()
        print(f"numba: first use {cold:.1f} s when it has to compile, {warm:.1f} s with the machine code kept")
        plan = [("long", 10_000, every), ("long", 100_000, every), ("long", 1_000_000, every),
                ("dense", 100_000, every), ("skewed", 300_000, few)]  # fmt: skip
        huge = ("long", 10_000_000)
        large = [way for way in few if way.startswith("num") or way in (DUCK, POLARS)] if given.large else [STREAMED]
        plan.append((*huge, [way for way in large if way != "numpy, pairs kept, sorted"]))
        for kind, rows, ways in plan:
            folder = write(base / f"{kind}-{rows}", kind, rows)
            results[kind, rows] = rounds(ways, folder, 1 if len(ways) > 1 and rows > 1_000_000 else given.rounds)
            table(kind, rows, results[kind, rows])
    print(f"\n{'probabilities evaluated, 100 000 a side':34}{'mid order':>12}{'max order':>12}{'share':>9}")
    shares = {}
    for written, ours, theirs in probes(100_000):
        shares[written] = ours / theirs
        print(f"{'at ' + written:34}{ours:12.0f}{theirs:12.0f}{shares[written]:9.4f}")

    def cpu(kind: str, rows: int, way: str) -> float:
        return results[kind, rows][way]["cpu_s"]

    print(f"\n{'target':66}{'':9}{'measured':>9}")
    million, dense = ("long", 1_000_000), ("dense", 100_000)
    verdict("10^6, streamed: DuckDB's range join over numba", cpu(*million, DUCK) / cpu(*million, STREAMED), 6, True)
    verdict("10^6, streamed: Polars over numba", cpu(*million, POLARS) / cpu(*million, STREAMED), 8, True)
    verdict("dense, streamed: DuckDB over numba", cpu(*dense, DUCK) / cpu(*dense, STREAMED), 10, True)
    verdict("dense, streamed: Polars over numba", cpu(*dense, POLARS) / cpu(*dense, STREAMED), 10, True)
    verdict(
        "10^6, pairs kept: DuckDB's pairs fetched over numba", cpu(*million, DUCK_KEPT) / cpu(*million, KEPT), 4, True
    )
    verdict("10^6, pairs kept: DuckDB's digest over numba", cpu(*million, DUCK) / cpu(*million, KEPT), 2.5, True)
    verdict("10^6, streamed: DuckDB over numpy", cpu(*million, DUCK) / cpu(*million, NUMPY), 2, True)
    verdict("growth 10^5 to 10^6, numba streamed", cpu(*million, STREAMED) / cpu("long", 100_000, STREAMED), 11, False)
    verdict("growth 10^6 to 10^7, numba streamed", cpu(*huge, STREAMED) / cpu(*million, STREAMED), 12, False)
    memory = results[huge][STREAMED]["mb"] / results[million][STREAMED]["mb"]
    verdict("peak memory at 10^7 over that at 10^6, numba streamed", memory, 1.2, False)
    if given.large:
        for way in ("numba, arrays in chunks", "numba, rows shuffled"):
            verdict(f"growth 10^6 to 10^7, {way}", cpu(*huge, way) / cpu(*million, way), 12, False)
    verdict("evaluations over those in max order, at 0.8", shares["0.8"], 0.36, False)
    verdict("evaluations over those in max order, at 0.5", shares["0.5"], 0.01, False)
    return None


if __name__ == "__main__":
    main()
