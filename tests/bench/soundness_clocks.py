"""Stamps against true time over thousands of simulated gateways: none may miss it. Prints widths and their parts.

    python tests/bench/soundness_clocks.py [--seeds 1000] [--first 0]

A seed is one gateway of each clock source for 150 s: a crystal (linear, periodic, step, noisy) within 50 ppm, a network
(symmetric, asymmetric, jittery), a time service that jumps and slews, a reader with its latency and adapter. Widths in
microseconds, the middle one of all stamps that have a bound. Ends with an error and the seed if one stamp misses the truth.
"""

import argparse
import sys
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "hardware", "edge", "tests")]

from support.clock.watch import SOURCES, Watch  # noqa: E402
from support.clock.world import CRYSTALS, NETWORKS  # noqa: E402

COLUMNS = ("stamps", "no bound", "width", "p95", "latency+adapter", "wire+look", "source", "pushed", "drift", "excess")


def widths(source, seeds):
    """The row of one source; `excess`: how much wider a stamp is than latency, adapter and what the source admits."""
    stamps, unbounded = [], 0
    for seed in seeds:
        crystal, network = CRYSTALS[seed % len(CRYSTALS)], NETWORKS[seed // len(CRYSTALS) % len(NETWORKS)]
        for stamp in Watch(seed, crystal, network, source).run():
            if not stamp.holds:
                sys.exit(
                    f"seed {seed}, {source}, {crystal} crystal, {network} network: found the truth outside of {stamp}"
                )
            if stamp.state == "unbounded":
                unbounded += 1
            else:
                stamps.append(stamp)
    width = [s.t_max - s.t_min for s in stamps]
    excess = [w / max(1, s.promised_us + s.source_us) - 1 for w, s in zip(width, stamps, strict=True)]
    parts = [
        median(width), quantiles(width, n=20)[-1], median(s.promised_us for s in stamps),
        median(s.window_us - s.promised_us for s in stamps), median(s.source_us for s in stamps),
        median(s.pushed_us for s in stamps), median(s.drift_us for s in stamps),
    ]  # fmt: skip
    return [len(stamps), unbounded, *(round(part) for part in parts), f"{median(excess):.1%}"]


def main():
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seeds", type=int, default=1000)
    arguments.add_argument("--first", type=int, default=0)
    options = arguments.parse_args()
    print(f"{options.seeds} gateways of each source; every stamp beside the truth")
    print(f"{'':<11}" + "".join(f"{name:>{max(10, len(name) + 2)}}" for name in COLUMNS))
    for source in SOURCES:
        row = widths(source, range(options.first, options.first + options.seeds))
        cells = (f"{cell:>{max(10, len(name) + 2)}}" for name, cell in zip(COLUMNS, row, strict=True))
        print(f"{source:<11}" + "".join(cells), flush=True)
    print("every stamp holds the truth")


if __name__ == "__main__":
    main()
