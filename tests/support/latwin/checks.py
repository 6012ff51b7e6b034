"""Feeds a detector or lattice of a group with the reports of a simulated computation, beside the reference checker."""

from reference.latwin import Checker


def report(watcher, event):
    """Push one event as a report; return the verdict after it."""
    if event.begins:
        return watcher.push(event.process, event.state, event.clock, event.holds, event.lo, event.hi)
    watcher.evidence(event.process, event.clock, event.lo)
    return watcher.verdict


def watch(case):
    """For each arrival: its index, the checker after it, and all windows that it made, the present ones if none."""
    checker = Checker(case.computation, case.window)
    windows = [list(w) for w in checker.windows()]
    for index in case.computation.arrivals:
        made = []
        for taken in checker.push(index):
            event = case.computation.events[taken]
            windows[event.process] = [*windows[event.process], event.state][-case.window[event.process] :]
            made.append([list(w) for w in windows])
        yield index, checker, made or [[list(w) for w in windows]]


def runs_overlapped(computation, firsts):
    """True if the runs that begin with these states, one of each process, had a moment in common in true time."""
    spans = []
    for p, first in enumerate(firsts):
        run = next(run for run in computation.runs(p) if run[0] <= first <= run[1])
        spans.append(computation.lasted(p, *run))
    return max(begin for begin, _ in spans) < min(end for _, end in spans)
