"""One method over one stream of events: emitted matches and their times, state, cost.

Waits are in the stream's own time: a match is emitted with the event or heartbeat on which the method emits
it, so waits do not depend on the machine. Cost is CPU over the whole stream. Memory is the state, sampled regularly in a
separate run that is not timed.
"""

import time
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.cep import Pattern, engine
from whenabouts_cloud.research.experiments.cep_workload import TYPES, UNIT, Stream

METHODS = ("infa_hts", "kslack", "conservative", "aggressive")
LOOKS = 40  # samples of the state in a run
POG_EVERY = 5  # events a punctuation: 20 %, Table 1

Rows = npt.NDArray[np.int64]
Emit = Literal["sure", "arrival"]
Order = Literal["kbound", "source"]


@dataclass(frozen=True)
class Run:
    """Matches in the order of emission, with the wait of each in units: from the arrival of its last event.
    The wait is nan if only the end of the stream emits the match. `must_wait`: matches not emitted at that arrival.
    """

    emitted: Rows
    wait_units: npt.NDArray[np.float64]
    must_wait: npt.NDArray[np.bool_]
    retracted: Rows
    late: int

    @property
    def mean_wait_units(self) -> float:
        """Mean over the matches emitted before the end of the stream; 0 without any."""
        return float(np.nanmean(self.wait_units)) if np.isfinite(self.wait_units).any() else 0.0


def begin(text: str, method: str, *, k: int | None = None, emit: Emit = "sure", order: Order = "kbound") -> Any:
    """Make a method for the pattern, whose windows are in units, with the types A .. J."""
    pattern = Pattern.parse(text, unit_us=UNIT)
    return engine(pattern, list(TYPES), emit, method, k=k, order=order, pog_every=POG_EVERY)


def columns(stream: Stream, first: int, last: int) -> tuple[Any, Any, Any, Any]:
    """Type codes, keys, times and sources of the events [first, last)."""
    return stream.type_code[first:last], stream.key[first:last], stream.t[first:last], stream.source[first:last]


def run(text: str, method: str, stream: Stream, *, k: int | None = None, emit: Emit = "sure") -> Run:
    """Run with a K-bound of k, or, if k is None, with the order of each source and its heartbeats."""
    one = begin(text, method, k=k, emit=emit, order="kbound" if k is not None else "source")
    outs, clocks = [], []
    now, first = 0, 0
    heartbeat_rows = [] if k is not None else [tuple(map(int, heartbeat)) for heartbeat in stream.heartbeats]
    for before, group in groupby(heartbeat_rows, key=lambda heartbeat: heartbeat[0]):
        outs.append(one.feed(*columns(stream, first, before)))
        reached = {source: until for _, source, until in group}
        now = max(now, int(stream.arrival[before - 1]) if before else 0, *reached.values())
        clocks.append(now)
        outs.append(one.advance(reached))
        clocks.append(now)
        first = before
    outs.append(one.feed(*columns(stream, first, len(stream.t))))
    clocks.append(int(stream.arrival[-1]))
    outs.append(one.finish())
    emitted = np.concatenate([out.matches for out in outs])
    at = np.concatenate([out.emitted_at for out in outs])
    by_call = np.repeat(np.array([*clocks, np.nan]), [len(out.matches) for out in outs])
    clock = np.where(at >= 0, stream.arrival[at], by_call)
    complete = emitted.max(axis=1, initial=0)
    return Run(
        emitted, (clock - stream.arrival[complete]) / UNIT, at != complete,
        np.concatenate([out.retractions for out in outs]), sum(len(out.late) for out in outs),
    )  # fmt: skip


def cpu_s(text: str, methods: tuple[str, ...], stream: Stream, repeats: int) -> list[float]:
    """CPU seconds of each method for all events and the end: the fastest of several rounds in turn."""
    best = [float("inf")] * len(methods)
    for _ in range(repeats):
        for n, method in enumerate(methods):
            one = begin(text, method, k=stream.k)
            began = time.process_time()
            one.feed(*columns(stream, 0, len(stream.t)))
            one.finish()
            best[n] = min(best[n], time.process_time() - began)
    return best


def held_bytes(text: str, method: str, stream: Stream) -> float:
    """Mean size of the state over the run, room for growth included."""
    one = begin(text, method, k=stream.k)
    step = max(1, len(stream.t) // LOOKS)
    sizes = []
    for first in range(0, len(stream.t), step):
        one.feed(*columns(stream, first, first + step))
        sizes.append(one.counters["state_bytes"] if method == "infa_hts" else one.state_bytes)
    return float(np.mean(sizes))


def in_order(text: str, stream: Stream) -> set[tuple[int, ...]]:
    """The true matches, as indices of arrival: those of an engine that gets all events in the order of time."""
    order = np.argsort(stream.t, kind="stable")
    one = begin(text, "kslack", k=0)
    out = one.feed(stream.type_code[order], stream.key[order], stream.t[order])
    return {tuple(row) for row in order[np.concatenate([out.matches, one.finish().matches])].tolist()}


def rows_of(rows: Rows) -> list[tuple[int, ...]]:
    """The rows as tuples, which sets can hold."""
    return [tuple(row) for row in rows.tolist()]
