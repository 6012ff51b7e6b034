"""Truth of the conjunction of an office within a window, by true time.

The paper's probability of detection (2011, section 6.2) is a quotient of two counts of windows, windows in which the
property holds "when global time is available" and windows in which it is detected. Its figures are reproduced only if an
open run of true states counts up to the begin of its last state in the window, and if touching counts as overlapping.
That interpretation is `as_paper`. In `truly`, the last state lasts until the next one begins.
"""

from typing import NamedTuple

import numpy as np

from whenabouts_cloud.arrays import Array
from whenabouts_cloud.research.experiments.office import STATE, Office

Stretch = tuple[int, int]


class TruthOfWindow(NamedTuple):
    """For each arrived state, in the order of arrival: True if all held at one instant within the window after it."""

    as_paper: Array
    truly: Array


def held_in_window(office: Office, window: int) -> TruthOfWindow:
    """Return both interpretations after each arrival, for the latest `window` states of a process. 20 us an arrival."""
    n = office.workload.processes
    processes = [_Process.of(office, p) for p in range(n)]
    cut: list[list[Stretch]] = [[] for _ in range(n)]
    whole: list[list[Stretch]] = [[] for _ in range(n)]
    as_paper, truly = [], []
    rows = np.flatnonzero(office.kind == STATE)
    for p, number in zip(office.process[rows].tolist(), office.state[rows].tolist(), strict=True):
        first = max(0, number - window + 1)
        cut[p] = processes[p].stretches(first, number, cut=True)
        whole[p] = processes[p].stretches(first, number, cut=False)
        as_paper.append(_meet(cut, touching=True))
        truly.append(_meet(whole, touching=False))
    return TruthOfWindow(np.array(as_paper, bool), np.array(truly, bool))


class _Process(NamedTuple):
    begins: list[int]
    holds: list[bool]
    end_us: int

    @classmethod
    def of(cls, office: Office, process: int) -> "_Process":
        begins, holds = office.begins(process)
        return cls(begins.tolist(), holds.tolist(), office.workload.duration_us)

    def stretches(self, first: int, last: int, cut: bool) -> list[Stretch]:
        """Times in which the states first .. last were true, from the begin of a run to its end."""
        spans = []
        number = first
        while number <= last:
            begin = self.begins[number]
            holds = self.holds[number]
            while number < last and self.holds[number + 1] == holds:
                number += 1
            if holds:
                spans.append((begin, self.begins[number] if cut and number == last else self._end(number)))
            number += 1
        return spans

    def _end(self, number: int) -> int:
        return self.begins[number + 1] if number + 1 < len(self.begins) else self.end_us


def _meet(of_process: list[list[Stretch]], touching: bool) -> bool:
    """True if one instant lies in a stretch of each; without `touching`, more than an instant."""
    common = of_process[0]
    for stretches in of_process[1:]:
        both = ((max(a, c), min(b, d)) for a, b in common for c, d in stretches)
        common = [(begin, end) for begin, end in both if (begin <= end if touching else begin < end)]
    return bool(common)
