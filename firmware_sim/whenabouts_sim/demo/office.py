"""The smart office in virtual time: when everybody truly was at the lecture, and the results of four ways of judging.

Phones in the meeting room, an RFID reader that sees the speaker, a projector: Yang et al. (2011), section 6. Their
reports are judged in four ways: by the detector of "definitely" as the cloud runs it, by the paper's own verdict over
windows, by plain timestamps, and by the order of arrival. Pure; a hundred hours take seconds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from whenabouts_cloud.research.experiments.latwin_run import emitted, verdicts
from whenabouts_cloud.research.experiments.latwin_truth import held_in_window
from whenabouts_cloud.research.experiments.office import HEARTBEAT, HOUR, REPORT, SECOND, STATE, Workload, simulate
from whenabouts_sim.judge.truth import PairScore

HEARTBEAT_US = 10 * SECOND
WINDOW = 4


@dataclass(frozen=True)
class OfficeSummary:
    """Numbers of a run. In a stretch all predicates held; `true_stretches` counts those that truly happened.

    `definitely`, `by_stamp`, `by_arrival`: stretches given by the detector, by plain timestamps, by the order of arrival.
    `wait_s_median`, `wait_s_p99`: from the true begin of a stretch to its verdict; None without a verdict.
    `windows_emitted`: windows in which the paper's Def holds; `windows_wrong`: those of them without a true stretch. Both
    are of the same events with receipts as states and only vector clocks, as published.
    """

    watched: tuple[str, ...]
    hours: int
    clock_error_s: float
    states: int
    reports: int
    heartbeats: int
    true_stretches: int
    definitely: PairScore
    by_stamp: PairScore
    by_arrival: PairScore
    wait_s_median: float | None
    wait_s_p99: float | None
    windows_emitted: int
    windows_wrong: int

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and dictionaries."""
        return asdict(self)

    @property
    def sound(self) -> bool:
        """True if every stretch that the detector emitted truly happened."""
        return not self.definitely.false


def names(processes: int) -> tuple[str, ...]:
    """Names of what the processes watch: the last two the speaker's tag and the projector, all others a phone."""
    phones = processes - 2
    return (*(("phone",) if phones == 1 else tuple(f"phone-{k + 1}" for k in range(phones))), "speaker", "projector")


def run_office(seed: int, processes: int, hours: int, clock_error_s: float, window: int = WINDOW) -> OfficeSummary:
    """Simulate and judge.

    Raises:
        ValueError: fewer than two processes, or no time.
    """
    workload = Workload(
        processes,
        hours * HOUR,
        "report",
        aligned=True,
        clock_error_us=round(clock_error_s * SECOND),
        heartbeat_us=HEARTBEAT_US,
    )
    office = simulate(workload, seed)
    stretches, runs = office.together(office.true_us)
    begin_of = {tuple(run): begin for run, begin in zip(runs.tolist(), stretches[:, 0].tolist(), strict=True)}
    true = set(begin_of)
    detected = emitted(office, window, "hybrid")
    waits = [(at - begin_of[run]) / SECOND for run, at in detected.items() if run in begin_of]
    plain = [office.together(at)[1] for at in ((office.lo + office.hi) // 2, office.arrival_us)]
    by_stamp, by_arrival = ({tuple(run) for run in runs.tolist()} for runs in plain)
    published = simulate(replace(workload, receipt="state", heartbeat_us=0), seed)
    in_window = verdicts(published, window).in_window
    kinds = np.bincount(office.kind, minlength=3)
    return OfficeSummary(
        watched=names(processes),
        hours=hours,
        clock_error_s=clock_error_s,
        states=int(kinds[STATE]),
        reports=int(kinds[REPORT]),
        heartbeats=int(kinds[HEARTBEAT]),
        true_stretches=len(true),
        definitely=PairScore.of(set(detected), true),
        by_stamp=PairScore.of(by_stamp, true),
        by_arrival=PairScore.of(by_arrival, true),
        wait_s_median=float(np.median(waits)) if waits else None,
        wait_s_p99=float(np.percentile(waits, 99)) if waits else None,
        windows_emitted=int(in_window.sum()),
        windows_wrong=int((in_window & ~held_in_window(published, window).truly).sum()),
    )


def office_table(s: OfficeSummary) -> str:
    """The summary for a person."""
    lines = [
        f"{', '.join(s.watched)} for {s.hours} h; clocks wrong by up to {s.clock_error_s:g} s, which is their bound",
        f"{s.states} states, {s.reports} clock heartbeats at receipts, {s.heartbeats} periodic ones",
        "",
        "all at once                  true     found     false    missed",
    ]
    rows = (
        ("DEFINITELY, sound", s.definitely),
        ("plain timestamps", s.by_stamp),
        ("in the order of arrival", s.by_arrival),
    )
    lines += [f"{name:<26} {s.true_stretches:>6} {x.true_reported:>9} {x.false:>9} {x.missed:>9}" for name, x in rows]
    lines.append("")
    if s.wait_s_median is not None:
        lines.append(f"EmittedFrame {s.wait_s_median:.1f} s after the true begin (median; 99 %: {s.wait_s_p99:.1f} s).")
    lines += [
        f"DEFINITELY was wrong {s.definitely.false} times. Plain timestamps would have been wrong {_wrong(s.by_stamp)}, "
        f"the order of arrival {_wrong(s.by_arrival)}.",
        f"Judged over windows as published in 2011, the verdict would be wrong in {s.windows_wrong} of "
        f"{s.windows_emitted} windows.",
    ]
    return "\n".join(lines)


def _wrong(score: PairScore) -> str:
    return f"{score.false + score.missed} times ({score.false} that never happened, {score.missed} missed)"
