"""The Lat-Win paper's office with bounded clocks and clock heartbeats: sizes, emitted verdicts and their waits.

Not in the paper, which leaves "partial asynchrony" to its future work. Sizes are taken as states arrive; a group that waits
until no earlier state can arrive has the same sizes within a few percent.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from whenabouts_cloud.research.experiments.figures import Figure, Series, grouped
from whenabouts_cloud.research.experiments.latwin_run import Order, emitted, windows
from whenabouts_cloud.research.experiments.office import HOUR, SECOND, Office, Workload, simulate

WINDOW = 4
NAN = float("nan")  # for missing values
ERRORS_US = {"1 ms": 1000, "10 ms": 10_000, "100 ms": 100_000, "1 s": SECOND, "10 s": 10 * SECOND}

# How receipts are reported, the error of the clocks, the period of heartbeats.
WAYS: dict[str, Workload] = {
    "states": Workload(receipt="state"),
    "silent": Workload(receipt="silent"),
    "reports": Workload(receipt="report"),
    "no messages, 100 ms, 1 s": Workload(receipt="no messages", heartbeat_us=SECOND),
    "no messages, 100 ms, 10 s": Workload(receipt="no messages", heartbeat_us=10 * SECOND),
    "no messages, 10 s, 10 s": Workload(receipt="no messages", clock_error_us=10 * SECOND, heartbeat_us=10 * SECOND),
    "reports, 100 ms, 1 s": Workload(receipt="report", heartbeat_us=SECOND),
}

Say = Callable[[str], None]


def hybrid_sizes(processes: tuple[int, ...], hours: int, seed: int, say: Say) -> Figure:
    """Figure of the mean size by number of processes and error of clocks."""
    lines: Series = {"clocks alone": []}
    for n in processes:
        say(f"sizes with bounded clocks, {n} processes")
        base = Workload(n, hours * HOUR)
        lines["clocks alone"].append(_mean_size(simulate(base, seed), "causal"))
        for name, error in ERRORS_US.items():
            lines.setdefault(name, []).append(_mean_size(simulate(replace(base, clock_error_us=error), seed)))
        for name in ("100 ms", "10 s"):
            silent = replace(base, receipt="no messages", clock_error_us=ERRORS_US[name])
            lines.setdefault(f"no messages, {name}", []).append(_mean_size(simulate(silent, seed)))
        reports = replace(base, receipt="report")
        lines.setdefault("reports, clocks alone", []).append(_mean_size(simulate(reports, seed), "causal"))
        lines.setdefault("reports, 100 ms", []).append(_mean_size(simulate(reports, seed)))
    alone, n = lines["clocks alone"][-1], processes[-1]
    factors = ", ".join(f"{grouped(alone / lines[name][-1])} at {name}" for name in ERRORS_US)
    return Figure(
        "latwin-hybrid", "not in the paper", f"mean |Lat-Win| when stamps order states too, W = {WINDOW}",
        "processes", "consistent global states", processes, lines,
        f"At {n} processes the lattice becomes smaller by a factor of {factors}. With receipts as clock heartbeats "
        f"instead of states it has {lines['reports, clocks alone'][-1]:.0f} elements by vector clocks only and "
        f"{lines['reports, 100 ms'][-1]:.0f} with clocks known to 100 ms.",
        log_y=True,
    )  # fmt: skip


def _mean_size(office: Office, order: Order = "hybrid") -> float:
    return float(windows(office, WINDOW, order).sizes.mean())


def emitted_figures(processes: tuple[int, ...], hours: int, seed: int, say: Say) -> list[Figure]:
    """Figures of the share of true stretches that the sound Def emits, and of its waits, by the processes' reports."""
    recalls: Series = {}
    waits: Series = {}
    wrong = stretches = 0
    for n in processes:
        for name, way in WAYS.items():
            say(f"verdicts, {n} processes, {name}")
            office = simulate(replace(way, processes=n, duration_us=hours * HOUR), seed)
            truth, runs = office.together(office.true_us)
            begin_of = dict(zip(map(tuple, runs.tolist()), truth[:, 0].tolist(), strict=True))
            says = emitted(office, WINDOW, "causal" if name in ("states", "silent", "reports") else "hybrid")
            wrong += len(set(says) - set(begin_of))
            stretches += len(begin_of)
            late = [(at - begin_of[run]) / SECOND for run, at in says.items() if run in begin_of]
            recalls.setdefault(f"{n} processes", []).append(100 * len(late) / len(begin_of) if begin_of else NAN)
            for what, share in (("median", 50), ("99 %", 99)):
                waits.setdefault(f"{n} processes, {what}", []).append(
                    float(np.percentile(late, share)) if late else NAN
                )
    x = list(WAYS)
    label = "receipts, clock error, heartbeat"
    reports, best = x.index("reports"), x.index("reports, 100 ms, 1 s")
    last = f"{processes[-1]} processes"
    recall = Figure(
        "latwin-emitted", "not in the paper", f"true stretches that the sound Def emits, W = {WINDOW}", label, "percent", x,
        recalls,
        f"{wrong} of all verdicts are contradicted by true time, over {stretches} stretches. Heartbeats, also those "
        "with only a clock, begin no state; they report that a state still lasts. A stretch too short for the clocks is not "
        "emitted; with silent receipts the runs have to end first, and many have left the window by then.",
    )  # fmt: skip
    wait = Figure(
        "latwin-emitted-wait", "not in the paper", f"begin of a stretch to its verdict, W = {WINDOW}", label, "s", x,
        waits,
        f"With clock heartbeats the median is {waits[f'{last}, median'][reports]:.1f} s at {last}, as fast as with "
        f"receipts as states ({waits[f'{last}, median'][0]:.1f} s); silent receipts delay it to the next change "
        f"({waits[f'{last}, median'][1] / 60:.0f} min). Without any message between processes, heartbeats are enough: "
        f"the wait is the clocks' error and the heartbeat's period. Both together: "
        f"{waits[f'{last}, median'][best]:.1f} s.",
        log_y=True,
    )  # fmt: skip
    return [recall, wait]
