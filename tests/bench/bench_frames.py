"""CPU time of `wa.correlate` on frames of each kind, beside the array kernel on the same rows. Prints a table.

    python tests/bench/bench_frames.py [--rows 1000000] [--rounds 9]

Workload of `bench_correlation`, without a key, and with a key of a thousand values. The kernel gets arrays of whole
numbers, and numbers for the key; frames have t_min, t_max and a number, with a key that as text, and give all columns of
both. Every way must find the same number of pairs. Ratios compare medians over rounds in which every way runs once.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "cloud", "library", "tests")]

from bench_correlation import CONDITION, workload  # noqa: E402

import whenabouts as wa  # noqa: E402
from support.library.kinds import KINDS  # noqa: E402
from whenabouts_cloud.correlation import correlate  # noqa: E402

KEYS = 1000


def keys_of(rows: int, seed: int) -> Any:
    """A number for each row."""
    return np.random.default_rng(seed).integers(0, KEYS, rows)


def side(rows: int, seed: int, keyed: bool) -> pa.Table:
    """Rows with a key as text, or without."""
    names = pa.array([f"tag {n:04}" for n in range(KEYS)])
    table = workload("plain", rows, seed)
    return table.append_column("key", names.take(pa.array(keys_of(rows, seed)))) if keyed else table


def rows_of(frame: Any) -> int:
    """Number of rows, of lazy frames after they have been computed."""
    if hasattr(frame, "collect"):
        return len(frame.collect())
    return len(frame)


def kernel(a: pa.Table, b: pa.Table, keyed: bool) -> int:
    """The array kernel with probabilities."""
    stamps = [x[name].to_numpy() for x in (a, b) for name in ("t_min", "t_max")]
    keys = [keys_of(len(x), seed) for x, seed in ((a, 1), (b, 2))] if keyed else [None, None]
    return len(correlate(*stamps, CONDITION, *keys, probability=True)[0])


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=lambda text: int(float(text)), default=1_000_000)
    options.add_argument("--rounds", type=int, default=9)
    given = options.parse_args()
    for keyed in (False, True):
        a, b = side(given.rows, 1, keyed), side(given.rows, 2, keyed)
        frames = {name: (made(a), made(b)) for name, made in KINDS.items()}
        ways: dict[str, Callable[[], int]] = {"array kernel": lambda a=a, b=b, keyed=keyed: kernel(a, b, keyed)}
        for name, (left, right) in frames.items():
            on = "key" if keyed else None
            ways[name] = lambda left=left, right=right, on=on: rows_of(wa.correlate(left, right, CONDITION, on=on))
        kernel(a.slice(0, 1000), b.slice(0, 1000), keyed)
        took: dict[str, list[float]] = {name: [] for name in ways}
        found = set()
        for _ in range(given.rounds):
            for name, run in ways.items():
                began = time.process_time()
                found.add(run())
                took[name].append(time.process_time() - began)
        assert len(found) == 1, f"found {sorted(found)} pairs, expected the same in every way"
        base = statistics.median(took["array kernel"])
        print(f"\n{given.rows} rows a side, {'by key' if keyed else 'no key'}, {found.pop()} pairs")
        print("| way | CPU ms | ratio |\n|---|---|---|")
        for name, times in took.items():
            print(f"| {name} | {1000 * statistics.median(times):.0f} | {statistics.median(times) / base:.2f} |")


if __name__ == "__main__":
    main()
