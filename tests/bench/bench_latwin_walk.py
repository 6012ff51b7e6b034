"""Walks over the consistent global states (CGSs) of windows, beside plain ways to do the same. Prints a table.

    python tests/bench/bench_latwin_walk.py [--rounds 5] [--seconds 1]

Million CGSs a second of CPU time of this process, best and median of the rounds, ways taken in turn. Windows: `office`,
where as in the smart office each change is sent to all and each receipt is a state, and `dense`, where no process hears
of another. Handed out means that the places of every CGS stand in a block that the caller reads. Peers: filtering the whole
box with numpy, with itertools, and the walk by levels of Cooper and Marzullo in plain Python. That all find the same number
is checked.
"""

import argparse
import itertools
import statistics
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "cloud")]

from whenabouts_cloud.latwin.model.frame import frame, least  # noqa: E402
from whenabouts_cloud.latwin.windows import walk  # noqa: E402

SLOW = 60_000  # more CGSs are not given to plain Python
BOX = 1 << 19  # larger boxes are not filtered


def office(n, w, seed, changes=60):
    """One process after the other changes and informs all, and each receipt is a state: messages overtake each other."""
    random = np.random.default_rng(seed)
    clocks = [[np.zeros(n, int)] for _ in range(n)]
    for _ in range(changes):
        sender = int(random.integers(n))
        emitted = clocks[sender][-1].copy()
        emitted[sender] += 1
        clocks[sender].append(emitted)
        for j in random.permutation(n):
            if j != sender:
                own = np.maximum(clocks[j][-1], emitted)
                own[j] += 1
                clocks[j].append(own)
    return frame([max(0, len(own) - w) for own in clocks], [own[-w:] for own in clocks])


def dense(n, w):
    """No process hears of another."""
    return frame([5] * n, [[[0] * n] * w] * n)


def handed_out(window):
    """Number of rows in all blocks."""
    return sum(len(rows) for rows in walk.blocks(window))


def filtered_by_numpy(window):
    """Every choice of states, without those that are not consistent."""
    n = len(window.first)
    box = np.stack(np.meshgrid(*map(np.arange, window.count), indexing="ij"), -1).reshape(-1, n)
    keep = np.ones(len(box), bool)
    for j in range(n):
        known = window.clocks[j][box[:, j]] - window.first
        known[:, j] = 0
        keep &= (known <= box).all(axis=1)
    return int(keep.sum())


def filtered_by_itertools(window):
    """Every choice of states, filtered one at a time."""
    n, first, clocks = len(window.first), window.first.tolist(), window.clocks.tolist()
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    box = itertools.product(*map(range, window.count))
    return sum(all(clocks[j][g[j]][i] <= first[i] + g[i] for i, j in pairs) for g in box)


def by_levels(window):
    """Number of CGSs, level by level from the least one."""
    n, first, clocks, size = len(window.first), window.first.tolist(), window.clocks.tolist(), window.count.tolist()
    level, states = {tuple(a - b for a, b in zip(least(window), first, strict=True))}, 0
    while level:
        states += len(level)
        following = set()
        for g in level:
            for j in range(n):
                after = g[j] + 1
                if after < size[j] and all(i == j or clocks[j][after][i] <= first[i] + g[i] for i in range(n)):
                    following.add((*g[:j], after, *g[j + 1 :]))
        level = following
    return states


def definitely(window):
    """Number of CGSs; the predicate holds in none, so every CGS is reached."""
    walk.definitely_in_window(window, lambda rows: np.zeros(len(rows), bool))
    return walk.count(window)


def rate(way, window, size, seconds):
    """Million CGSs a CPU second."""
    began, runs = time.process_time(), 0
    while runs == 0 or time.process_time() - began < seconds:
        if (count := way(window)) != size:
            sys.exit(f"{way.__name__}: found {count} global states, expected {size}")
        runs += 1
    return runs * size / (time.process_time() - began) / 1e6


def main():
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=1.0)
    options = arguments.parse_args()
    windows = {"office n=6 w=4": office(6, 4, 1), "office n=9 w=4": office(9, 4, 1), "dense n=8 w=4": dense(8, 4)}
    windows |= {"dense n=12 w=4": dense(12, 4), "dense n=3 w=100": dense(3, 100)}
    print(f"{'window':<16} {'CGSs':>9} {'way':<22} {'best M/s':>9} {'median M/s':>10}")
    for name, window in windows.items():
        size, box = walk.count(window), int(np.prod(window.count))
        ways = [walk.count, handed_out] + [definitely] * (size <= BOX)
        ways += [filtered_by_numpy] * (box <= BOX) + [filtered_by_itertools, by_levels] * (size <= SLOW)
        for way in ways:
            way(window)  # compiles
        rates = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way in ways:
                rates[way].append(rate(way, window, size, options.seconds))
        for way, speeds in rates.items():
            emitted = f"{max(speeds):>9.2f} {statistics.median(speeds):>10.2f}"
            print(f"{name:<16} {size:>9} {way.__name__:<22} {emitted}", flush=True)


if __name__ == "__main__":
    main()
