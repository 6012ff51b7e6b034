"""Detectors of conjunctions against true time over thousands of random computations: every emitted overlap must be true.

    python tests/bench/soundness_latwin.py [--seeds 5000] [--first 0]

Two to eight processes, windows of one to eight, both orders, patient or not, late joiners, doubled and overtaken reports,
receipts as states, as clock heartbeats or silent, clock errors from none to wide. Ends with an error and the seed if one
emitted overlap is contradicted.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "cloud", "tests")]

from reference.latwin import simulate  # noqa: E402
from support.latwin.checks import report, runs_overlapped  # noqa: E402
from whenabouts_cloud.latwin.conjunction.detector import ConjunctionDetector  # noqa: E402


def watch(seed):
    """Mode of one computation, and the numbers of reports, emitted overlaps and retracted possible verdicts."""
    random = Random(seed)
    computation = simulate(
        random,
        random.choice([2, 2, 3, 3, 4, 5, 8]),
        random.choice([40, 80, 160]),
        error=random.choice([0, 1, 5, 50, 500]),
        receives=random.choice(["state", "heartbeat", "silent", "mixed"]),
        joins_late=random.random() < 0.5,
        delay=random.choice([0, 5, 40, 200]),
    )
    mode = random.choice(["causal", "eager", "patient"])
    window = random.choice([1, 2, 4, 8])
    detector = ConjunctionDetector(
        computation.processes, window, "causal" if mode == "causal" else "hybrid", mode == "patient"
    )
    reports = emitted = retracted = 0
    for index in computation.arrivals:
        retracted += report(detector, computation.events[index]).retracted
        reports += 1
        emitted += len(detector.overlaps)
        for firsts in detector.overlaps:
            if not runs_overlapped(computation, firsts):
                sys.exit(f"seed {seed}: found runs {firsts} of a {mode} detector, expected some that overlapped")
    return mode, reports, emitted, retracted


def main():
    """Print what was checked."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seeds", type=int, default=5000)
    arguments.add_argument("--first", type=int, default=0)
    options = arguments.parse_args()
    total = Counter()
    for seed in range(options.first, options.first + options.seeds):
        mode, reports, emitted, retracted = watch(seed)
        total += Counter(
            {(mode, "runs"): 1, (mode, "reports"): reports, (mode, "emitted"): emitted, (mode, "retracted"): retracted}
        )
    print(f"{'':<8} {'computations':>13} {'reports':>9} {'emitted':>7} {'possible, retracted':>20}")
    for mode in ("causal", "eager", "patient"):
        runs, reports, emitted, retracted = (total[mode, name] for name in ("runs", "reports", "emitted", "retracted"))
        print(f"{mode:<8} {runs:>13} {reports:>9} {emitted:>7} {retracted:>20}")
    print("every emitted overlap is true")


if __name__ == "__main__":
    main()
