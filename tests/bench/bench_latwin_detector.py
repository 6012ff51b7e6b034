"""The detector of conjunctions beside the paper's algorithm, on the smart office. Prints tables; checks only equal answers.

    python tests/bench/bench_latwin_detector.py [--states 100000] [--rounds 3]

CPU microseconds a state that arrives, of this process, medians of the rounds; windows of 4, receipts as states, which makes
the windows largest. "fed" are batches of columns, "pushed" one call from Python each, hybrid by stamps too (clock error
100 ms). The paper's way keeps the lattice by Algorithms 1 to 3 (in Python, the tests' reference) and asks Def of it.

The same run prints how good the verdicts are: the share of the windows in which the conjunction truly held that Def finds
(the sound Def and the paper's), the number of overlaps that the sound Def emits, and how many of these never were.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "cloud", "tests")]

import numpy as np  # noqa: E402

from reference.latwin import definitely  # noqa: E402
from reference.latwin_paper import PaperLatWin  # noqa: E402
from whenabouts_cloud.latwin.conjunction.detector import ConjunctionDetector  # noqa: E402
from whenabouts_cloud.research.experiments.latwin_truth import held_in_window  # noqa: E402
from whenabouts_cloud.research.experiments.office import HOUR, STATE, Workload, simulate  # noqa: E402

WINDOW = 4
BATCH = 4096
BY_PAPER = {2: 20_000, 3: 10_000, 4: 4_000, 5: 1_500, 6: 500}  # states: seconds each


def office(n, states):
    """The smart office, long enough for so many states."""
    hours = 20 + int(states / (n * n * 1.9))  # about 2 n changes an hour send n - 1 messages each
    return simulate(Workload(n, hours * HOUR), seed=n)


def columns(rows, states):
    """Arguments of `feed` for the first states."""
    keep = np.flatnonzero(rows.kind == STATE)[:states]
    given = (rows.process, rows.state, rows.clock, rows.holds, rows.lo, rows.hi)
    return [np.ascontiguousarray(column[keep]) for column in given]


def feed(n, given, order):
    """Verdicts and CPU seconds."""
    detector, parts = ConjunctionDetector(n, WINDOW, order), []
    began = time.process_time()
    for at in range(0, len(given[0]), BATCH):
        parts.append(detector.feed(*(column[at : at + BATCH] for column in given)))
    took = time.process_time() - began
    verdicts = np.concatenate([np.stack(part[:4]) for part in parts], axis=1)
    return verdicts, np.concatenate([part.overlaps for part in parts]), took


def push(n, given, order):
    """CPU seconds of one call each, arguments as plain Python values."""
    detector = ConjunctionDetector(n, WINDOW, order)
    process, state, clock, holds, lo, hi = (column.tolist() for column in given)
    rows = list(zip(process, state, map(tuple, clock), holds, lo, hi, strict=True))
    began = time.process_time()
    for row in rows:
        detector.push(*row)
    return time.process_time() - began


def by_paper(n, given, states):
    """Def over the lattice after each of the first states, and CPU seconds."""
    process, state, clock, holds = (column[:states].tolist() for column in given[:4])
    true = {(p, s) for p, s, h in zip(process, state, holds, strict=True) if h}
    lattice, verdicts = PaperLatWin(n, (WINDOW,) * n), []
    began = time.process_time()
    for p, s, c in zip(process, state, clock, strict=True):
        lattice.push(p, s, tuple(c))
        verdicts.append(definitely(lattice.states, lambda g: all((p, x) in true for p, x in enumerate(g))))
    return np.array(verdicts), time.process_time() - began


def speed(options):
    """Microseconds a state."""
    names = ("states", "fed", "hybrid", "pushed", "hybrid", "calls/s", "paper", "ratio")
    print(f"{'n':>3}", *(f"{name:>8}" for name in names))
    for n in (2, 3, 4, 5, 6, 9, 12, 16):
        given = columns(office(n, options.states), options.states)
        many = len(given[0])
        us = {}
        for order in ("causal", "hybrid"):
            feed(n, [column[:2000] for column in given], order)
            rounds = [feed(n, given, order) for _ in range(options.rounds)]
            us["fed", order] = 1e6 * statistics.median(r[2] for r in rounds) / many
            calls = [push(n, given, order) for _ in range(options.rounds)]
            us["pushed", order] = 1e6 * statistics.median(calls) / many
            if order == "causal":
                verdicts = rounds[0][0]
        paper = ratio = ""
        if n in BY_PAPER:
            first = min(many, BY_PAPER[n])
            of_paper, took = by_paper(n, given, first)
            if (of_paper != verdicts[2, :first]).any():
                sys.exit(f"n = {n}: found other verdicts by the paper's algorithm, expected the same")
            paper, ratio = f"{1e6 * took / first:.1f}", f"{1e6 * took / first / us['fed', 'causal']:.0f}"
        print(
            f"{n:>3} {many:>8} {us['fed', 'causal']:>8.2f} {us['fed', 'hybrid']:>8.2f} {us['pushed', 'causal']:>8.2f} "
            f"{us['pushed', 'hybrid']:>8.2f} {1e6 / us['pushed', 'causal']:>8.0f} {paper:>8} {ratio:>8}"
        )


def worth(options):
    """Shares of windows, and of overlaps."""
    above = ("", "truly", "sound", "paper", "paper", "overlaps", "sound", "sound")
    names = ("windows", "held", "found %", "found %", "wrong %", "in truth", "emitted", "wrong")
    print(f"\n{'':>3}", *(f"{name:>8}" for name in above))
    print(f"{'n':>3}", *(f"{name:>8}" for name in names))
    for n in (2, 3, 6, 9):
        rows = office(n, options.states)
        truly = held_in_window(rows, WINDOW).truly
        verdicts, overlaps, _ = feed(n, columns(rows, len(truly)), "causal")
        sound, paper = verdicts[1], verdicts[2]
        true = set(map(tuple, rows.together(rows.true_us)[1].tolist()))
        emitted = set(map(tuple, overlaps.tolist()))
        kept, by_paper, wrong = (sound & truly).sum(), (paper & truly).sum(), (paper & ~truly).sum()
        shares = (100 * kept / truly.sum(), 100 * by_paper / truly.sum(), 100 * wrong / paper.sum())
        print(f"{n:>3} {len(truly):>8} {truly.sum():>8}", *(f"{share:>8.2f}" for share in shares), end="")
        print(f" {len(true):>8} {len(emitted & true):>8} {len(emitted - true):>8}")


def main():
    """Print the tables."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--states", type=int, default=100_000)
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    speed(options)
    worth(options)


if __name__ == "__main__":
    main()
