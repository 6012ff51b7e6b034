"""The smart office in virtual time: when everybody truly was at the lecture, and what each way of judging makes of it.

Phones in the meeting room, an RFID reader that sees the speaker, a projector: Yang et al. (2011), section 6. What they
report is judged in four ways: by the detector of "definitely" as the cloud runs it, by the paper's own verdict over
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
    """A run in numbers. A stretch is one in which all predicates held; `true_stretches` counts those that happened.

    `definitely`, `by_stamp`, `by_arrival`: stretches told by the detector, by plain timestamps, by the order of arrival.
    `wait_s_median`, `wait_s_p99`: from the true begin of a stretch to its verdict; None when none was told.
    `windows_emitted`, `windows_wrong`: windows for which the paper's Def is told, and in which no true stretch lies; with
    the same events, receipts as states and clocks alone, as published.
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
        """Whether nothing was told to hold definitely that did not."""
        return not self.definitely.false


def names(processes: int) -> tuple[str, ...]:
    """What each process watches: the last two the speaker's tag and the projector, all others a phone."""
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
    found = emitted(office, window, "hybrid")
    waits = [(at - begin_of[run]) / SECOND for run, at in found.items() if run in begin_of]
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
        definitely=PairScore.of(set(found), true),
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
        f"{', '.join(s.watched)} for {s.hours} h; clocks wrong by up to {s.clock_error_s:g} s, which they say",
        f"{s.states} states, {s.reports} clock-only reports, {s.heartbeats} heartbeats",
        "",
        "all at once                  true     found     false    missed",
    ]
    rows = (
        ("DEFINITELY, sound", s.definitely),
        ("plain timestamps", s.by_stamp),
        ("in the order of arrival", s.by_arrival),
    )
    lines += [f"{name:<26} {s.true_stretches:>6} {x.found:>9} {x.false:>9} {x.missed:>9}" for name, x in rows]
    lines.append("")
    if s.wait_s_median is not None:
        lines.append(f"Told {s.wait_s_median:.1f} s after it truly began (median; 99 %: {s.wait_s_p99:.1f} s).")
    lines += [
        f"DEFINITELY was wrong {s.definitely.false} times. Plain timestamps would have been wrong {_wrong(s.by_stamp)}, "
        f"the order of arrival {_wrong(s.by_arrival)}.",
        f"Judged over windows as published in 2011, {s.windows_wrong} of {s.windows_emitted} windows would tell what never "
        "happened.",
    ]
    return "\n".join(lines)


def _wrong(score: PairScore) -> str:
    return f"{score.false + score.missed} times ({score.false} told that never were, {score.missed} not seen)"
