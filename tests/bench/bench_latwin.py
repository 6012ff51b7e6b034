"""Cost of the lattice of a sliding window per arriving event, beside the paper's algorithm. Prints a table.

    python tests/bench/bench_latwin.py [--hours 20] [--rounds 3] [--processes 6 9 12]

Workload: the smart office of the Lat-Win paper, W = 4, each receipt a reported state (the hardest mode), reports in the
order of each process. Per event: push, Pos and Def of "all local predicates hold", which visits no global state; the lattice
by itself; Pos and Def of "all but one hold" (one round), evaluated over all global states; and the first in the hybrid order
at a clock error of 0.1 s. The paper's Algorithms 1 to 3 are the reference class of the tests, on as many of the
same events as it gets through in `--paper-seconds`; there sizes and verdicts must be equal.

CPU seconds of the thread, of several rounds the fastest, since other programs only ever add.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "cloud", "tests")]

from reference.latwin import definitely  # noqa: E402
from reference.latwin_paper import PaperLatWin  # noqa: E402
from whenabouts_cloud.latwin import All, AtLeast, LatWin, Local  # noqa: E402
from whenabouts_cloud.research.experiments.office import HOUR, Office, Workload, simulate  # noqa: E402

WINDOW = 4
TARGET_US = {6: 6.0, 9: 70.0, 12: 10_000.0}
Report = tuple[int, int, Any, int, int]


def reports(office: Office) -> list[Report]:
    """Process, state, clock, t_min, t_max, as they arrive."""
    columns = (office.process.tolist(), office.state.tolist(), office.clock, office.lo.tolist(), office.hi.tolist())
    return list(zip(*columns, strict=True))


def everywhere(office: Office) -> All:
    """All local predicates hold."""
    truth = [office.holds[office.states(p)] for p in range(office.workload.processes)]
    return All(*(Local(p, true.__getitem__) for p, true in enumerate(truth)))


def run(lattice: LatWin, rows: list[Report], predicate: Any = None) -> tuple[float, np.ndarray[Any, Any], int]:
    """CPU seconds, size after each event, number of events after which the predicate was unavoidable."""
    sizes, emitted = np.zeros(len(rows), np.int64), 0
    begin = time.thread_time()
    for i, row in enumerate(rows):
        lattice.push(*row)
        if predicate is not None:
            lattice.possibly(predicate)
            emitted += lattice.definitely_in_window(predicate)
        sizes[i] = lattice.size
    return time.thread_time() - begin, sizes, emitted


def paper(rows: list[Report], n: int, predicate: Any, seconds: float) -> Iterator[tuple[float, int, bool]]:
    """CPU seconds, size and Def of the paper's algorithm after each event, until it has taken so long."""
    lattice, spent = PaperLatWin(n, [WINDOW] * n), 0.0
    for process, state, clock, _, _ in rows:
        begin = time.thread_time()
        lattice.push(process, state, tuple(clock.tolist()))
        emitted = definitely(lattice.states, predicate)
        spent += time.thread_time() - begin
        yield spent, len(lattice.states), emitted
        if spent > seconds:
            return


def table(n: int, hours: float, rounds: int, seconds: float) -> bool:
    """The row of a number of processes; whether it keeps its target."""
    office = simulate(Workload(processes=n, duration_us=int(hours * HOUR)), seed=1)
    rows, predicate = reports(office), everywhere(office)
    whole = [run(LatWin(n, WINDOW), rows, predicate) for _ in range(rounds)]
    all_but_one = AtLeast(n - 1, predicate.parts())
    other = run(LatWin(n, WINDOW), rows, all_but_one)[0] / len(rows) * 1e6
    alone = min(run(LatWin(n, WINDOW), rows)[0] for _ in range(rounds))
    hybrid = [run(LatWin(n, WINDOW, "hybrid"), rows, predicate) for _ in range(rounds)]
    peer = list(paper(rows, n, predicate, seconds))
    lattice = LatWin(n, WINDOW)
    for row, (_, size, emitted) in zip(rows, peer, strict=False):
        lattice.push(*row)
        if (lattice.size, lattice.definitely_in_window(predicate)) != (size, emitted):
            raise SystemExit(f"n = {n}: the paper's algorithm has {size}, {emitted}; LatWin {lattice.size}")
    ours = run(LatWin(n, WINDOW), rows[: len(peer)], predicate)[0]
    each = min(spent for spent, _, _ in whole) / len(rows) * 1e6
    mixed = min(spent for spent, _, _ in hybrid) / len(rows) * 1e6
    print(
        f"{n:3} {len(rows):7} {whole[0][1].mean():10.1f} {alone / len(rows) * 1e6:9.1f} {each:11.1f} {other:11.1f} "
        f"{hybrid[0][1].mean():11.1f} {mixed:9.1f} | {len(peer):7} {peer[-1][0] / len(peer) * 1e6:12.0f} "
        f"{peer[-1][0] / ours:8.0f}x | target {TARGET_US.get(n, float('nan')):8.0f} us"
    )
    return each <= TARGET_US.get(n, float("inf"))


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, nargs="*", default=[6, 9, 12])
    parser.add_argument("--paper-seconds", type=float, default=5)
    args = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; us per event, W = {WINDOW}")
    print(
        "  n  events  mean size   lattice  + Pos, Def all but one  hybrid size  + Pos, Def "
        "|  paper's: events    us/event    ratio"
    )
    kept = [table(n, args.hours, args.rounds, args.paper_seconds) for n in args.processes]
    print("targets kept" if all(kept) else "a target is missed")


if __name__ == "__main__":
    main()
