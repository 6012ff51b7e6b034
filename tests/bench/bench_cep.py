"""CPU time of the detection of event patterns, beside the usual alternatives. Prints tables and targets.

    python tests/bench/bench_cep.py [--rounds 5] [--no-flink]

Workload: Table 1 of the INFA-HTS paper, SEQ(A, B, !C, D, E, F, G) within 40 units, one event a key and unit, ten
types, 0.4 matches an event, up to half of the events late by up to 10 units. Columns in, indices of every match out,
in blocks as they would arrive. All exact ways must give the same digest of the same matches.

Peers: our K-slack, conservative and aggressive; DuckDB's self-join over the complete batch; Flink's MATCH_RECOGNIZE,
which cannot give every combination: one match for a start row, compared with NEXT, the same set, and its rate with
that of all combinations too. Flink runs in `.venv-flink` (made by `make bench-cep`), its rate is the difference of
two sizes, without the start of Java.

CPU seconds of one core, all threads added; of several rounds the fastest of each way, since other programs only ever
add.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "cloud", "tests", "tests/bench")]

from cep_patterns import checked, measured, thousand  # noqa: E402
from peers import duckdb_joins  # noqa: E402

from whenabouts_cloud.cep import Pattern, engine  # noqa: E402
from whenabouts_cloud.research.experiments.cep_run import METHODS, begin, columns  # noqa: E402
from whenabouts_cloud.research.experiments.cep_workload import TABLE_1, TYPES, UNIT, Stream, table_1  # noqa: E402

EVENTS = 1_000_000
KEYS = (1, 1024)
LATE = (0.0, 0.2, 0.5)
PAIRS = 25  # measurements of the cost of disorder
BLOCK = 65_536  # events a feed
FLINK = ROOT / ".venv-flink" / "bin" / "python"
FLINK_EVENTS = (100_000, 400_000)
WINDOW = 40 * UNIT  # ticks; a tick is a millisecond for Flink
Digest = tuple[int, int]


def digest(rows: Any) -> Digest:
    """Number of rows, and a sum over them that depends on every index in its column, not on the order of the rows."""
    mixed = np.full(len(rows), 7, np.uint64)
    for column in np.asarray(rows, np.int64).T:
        mixed = (mixed + column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return len(rows), int(mixed.sum(dtype=np.uint64))


def fed(one: Any, stream: Stream) -> tuple[float, Digest]:
    """CPU seconds of feeding all in blocks and finishing, and the digest of the matches emitted, less those retracted.

    Each block of results is digested and freed at once, between the measured parts, as a program does that acts on its
    results. Memory for all of them would be allocated afresh in some runs and not in others, depending on earlier runs.
    """
    took, count, total = 0.0, 0, 0
    for first in [*range(0, len(stream.t), BLOCK), None]:
        given = () if first is None else columns(stream, first, first + BLOCK)
        began = time.process_time()
        out = one.finish() if first is None else one.feed(*given)
        took += time.process_time() - began
        for rows, sign in ((out.matches, 1), (out.retractions, -1)):
            block = digest(rows)
            count, total = count + sign * block[0], (total + sign * block[1]) % (1 << 64)
    return took, (count, total)


def joined(way: str, stream: Stream) -> tuple[float, Digest]:
    """CPU seconds of DuckDB's join and the digest of its matches."""
    began = time.process_time()
    rows = duckdb_joins.matches(way, stream.type_code, stream.key, stream.t, WINDOW)
    return time.process_time() - began, digest(rows)


def rates(rounds: int) -> dict[tuple[str, int, float], float]:
    """Events a CPU second of every way that runs here, by keys and share of late events; the digests must agree."""
    best: dict[tuple[str, int, float], float] = {}
    for keys in KEYS:
        streams = {late: table_1(EVENTS, keys, late, seed=1) for late in LATE}
        expected: dict[float, Digest] = {}
        # Round by round, and the shares of late events one after the other, so that slow moments hit all alike.
        for number in range(rounds):
            ways: list[tuple[str, float, Callable[[], tuple[float, Digest]]]] = [
                (method, late, lambda m=method, s=stream: fed(begin(TABLE_1, m, k=s.k), s))  # type: ignore[misc]
                for method in METHODS
                for late, stream in streams.items()
            ]
            if keys > 1 and number < 2:
                ways += [(f"DuckDB, {x}", 0.2, lambda x=x, s=streams[0.2]: joined(x, s)) for x in ("plain", "buckets")]  # type: ignore[misc]
            for name, share, way in ways:
                took, total = way()
                if total != expected.setdefault(share, total):
                    sys.exit(f"{keys} keys, {share:.0%} late: {name} found {total}, expected {expected[share]}")
                best[name, keys, share] = max(best.get((name, keys, share), 0.0), EVENTS / took)
        for late, stream in streams.items():
            line = f"{expected[late][0] / EVENTS:.2f} matches an event, {stream.out_of_order:.1%} out of order"
            print(f"{said(keys)}, {late:.0%} late: {line}; same digest from all", flush=True)
    return best


def said(keys: int) -> str:
    return f"{keys} key{'s' if keys > 1 else ''}"


def table(best: dict[tuple[str, int, float], float]) -> None:
    cases = [(keys, late) for keys in KEYS for late in LATE]
    print(
        f"\n{'million events a CPU second':28}" + "".join(f"{f'{said(keys)} {late:.0%}':>15}" for keys, late in cases)
    )
    for name in dict.fromkeys(name for name, _, _ in best):
        cells = (best.get((name, *case)) for case in cases)
        print(f"{name:28}" + "".join(f"{'' if x is None else format(x / 1e6, '.2f'):>15}" for x in cells))


def flink(keys: int, folder: Path) -> dict[str, float]:
    """Flink's steady rate and both counts; its matches must be ours with NEXT, and among ours of every "
    "combination."""
    cpu = []
    for events in FLINK_EVENTS:
        stream = table_1(events, keys, 0.2, seed=1)
        path = folder / f"{events}-{keys}.csv"
        names = np.array(list(TYPES))[stream.type_code]
        rows = pa.table({"id": np.arange(events), "key": stream.key, "kind": names, "ms": stream.t})
        pyarrow.csv.write_csv(rows, path, pyarrow.csv.WriteOptions(include_header=False, quoting_style="none"))
        me = [str(FLINK), str(ROOT / "tests/bench/peers/flink_match.py"), str(path), "--window-ms", str(WINDOW)]
        run = subprocess.run([*me, "--slack-ms", str(stream.k)], capture_output=True, text=True, check=False)
        if run.returncode:
            sys.exit(f"Flink: ended with {run.returncode}; its last words:\n{run.stderr[-2000:]}")
        emitted = json.loads(run.stdout.splitlines()[-1])
        theirs = np.array(emitted["matches"], np.int64).reshape(-1, 6)
        took, ours = fed(begin(f"{TABLE_1} NEXT", "infa_hts", k=stream.k), stream)
        if digest(theirs) != ours:
            sys.exit(f"Flink, {keys} keys, {events} events: found {digest(theirs)}, expected {ours} of NEXT")
        took_all, every = fed(begin(TABLE_1, "infa_hts", k=stream.k), stream)
        cpu.append(emitted["cpu_s"])
    rate = (FLINK_EVENTS[1] - FLINK_EVENTS[0]) / (cpu[1] - cpu[0])
    speeds = {"flink": rate, "next": FLINK_EVENTS[1] / took, "every": FLINK_EVENTS[1] / took_all}
    print(
        f"{said(keys)}: Flink {cpu[0]:.1f} s for {FLINK_EVENTS[0]}, {cpu[1]:.1f} s for {FLINK_EVENTS[1]}: {rate:,.0f} "
        f"events/s; its {ours[0]} matches are those of NEXT (same digest, ours {speeds['next'] / 1e6:.1f} M/s), of "
        f"{every[0]} combinations",
        flush=True,
    )  # fmt: skip
    return speeds


def disorder(keys: int) -> float:
    """Time of infa_hts at the largest share of late events over that at none: both in turn, the median of the ratios.

    A slow moment of the machine slows both of a pair alike.
    """
    in_order, late = (table_1(EVENTS, keys, share, seed=1) for share in (LATE[0], LATE[-1]))
    ratios = []
    for _ in range(PAIRS):
        base, took = (fed(begin(TABLE_1, "infa_hts", k=stream.k), stream)[0] for stream in (in_order, late))
        ratios.append(took / base)
    low, median, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    emitted = f"{median:.2f}, half of {PAIRS} pairs {low:.2f} to {high:.2f}"
    print(f"{said(keys)}: time at {LATE[-1]:.0%} late over that at 0%: {emitted}", flush=True)
    return float(median)


def state() -> dict[int, float]:
    """Bytes of the engine's arrays by stored event, room for growth included, by number of keys."""
    sizes = {}
    print("\nstate, 20% late")
    for keys, events in ((1024, EVENTS), (16_384, 2 * EVENTS)):
        stream = table_1(events, keys, 0.2, seed=1)
        one = engine(Pattern.parse(TABLE_1, unit_us=UNIT), list(TYPES), k=stream.k)
        for first in range(0, events, BLOCK):
            one.feed(*columns(stream, first, first + BLOCK))
        held = one.counters
        sizes[keys] = held["state_bytes"] / held["stored_events"]
        print(
            f"{keys} keys: {held['stored_events']} events stored, {held['state_bytes']} bytes, {sizes[keys]:.1f} each"
        )
    return sizes


def target(name: str, value: float, bound: float, at_least: bool = True) -> None:
    met = value >= bound if at_least else value <= bound
    print(f"{name:70}{'>=' if at_least else '<='} {bound:<7g}{value:10.2f}  {'met' if met else 'NOT MET'}")


def main() -> None:
    """Measure all in turn and hold the figures against the targets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each of our ways, 5 by default")
    parser.add_argument("--no-flink", action="store_true", help="leave out Flink, which takes some minutes")
    given = parser.parse_args()
    if not given.no_flink and not FLINK.exists():
        sys.exit(f"Flink: found no {FLINK}; `make bench-cep` makes it, --no-flink does without")
    for method in METHODS:  # machine code is made or loaded outside the measurement
        fed(begin(TABLE_1, method, k=10 * UNIT), table_1(2000, 4, 0.2, seed=9))
    best = rates(given.rounds)
    table(best)
    print()
    slower = {keys: disorder(keys) for keys in KEYS}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        print()
        beside = {} if given.no_flink else {keys: flink(keys, Path(name)) for keys in KEYS}
    bytes_each = state()
    print(f"\n{'20% late, 64 keys; matches on short streams as by the definition':84}{'an event':>10}{'M/s':>8}")
    slowest, slowest_name = float("inf"), ""
    for text, intervals, matches, rate in measured():
        compared = checked(text, intervals)
        name = f"{text}{' (intervals)' if intervals else ''}{'' if compared else ' (not compared)'}"
        print(f"{name:84}{matches:10.3f}{rate / 1e6:8.2f}", flush=True)
        if rate < slowest:
            slowest, slowest_name = rate, text
    many = thousand()

    print(f"\n{'target':70}{'':10}{'measured':>10}")
    ours = {(keys, late): best["infa_hts", keys, late] for keys in KEYS for late in LATE}
    for keys, bound in ((1, 9.5), (1024, 7.5)):
        worst = min(ours[keys, late] for late in LATE)
        target(f"{said(keys)}, slowest of 0, 20, 50 % late: million events/s", worst / 1e6, bound)
    for keys in KEYS:
        target(f"{said(keys)}: time at 50 % late over that at 0 %", slower[keys], 1.15, False)
    for keys, speeds in beside.items():
        target(
            f"{said(keys)}: every combination here over one a start row in Flink",
            ours[keys, 0.2] / speeds["flink"],
            200,
        )
    for way in ("plain", "buckets"):
        ratio = ours[1024, 0.2] / best[f"DuckDB, {way}", 1024, 0.2]
        target(f"1024 keys: over DuckDB's join of the batch, {way}", ratio, 3.5)
    target(f"slowest pattern, million events/s: {slowest_name[:34]}", slowest / 1e6, 1)
    target("state, bytes a stored event", max(bytes_each.values()), 40, False)
    for said_of, share in many.items():
        target(f"a thousand patterns, {said_of}, over Table 1 by itself, events/s", share, 0.5)


if __name__ == "__main__":
    main()
