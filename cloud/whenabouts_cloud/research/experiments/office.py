"""The smart office of the Lat-Win paper (Yang et al. 2011, section 6) in virtual time, as arrays from a seed.

Each process watches one thing that is on for 25 and off for 5 minutes on average (a phone in the meeting room, a speaker
before the RFID reader, a running projector) and samples it once a minute. A sample that differs from the one before
begins a local state. When the predicate becomes true the process sends a control message with its clock to all others;
when it becomes false it sends none. The paper does not define the effect of a receipt; its window sizes are reproduced
only if each receipt begins a reported state with an unchanged predicate, so this is one option here (`Receipt`), beside
others that keep windows small. Each report reaches the checker after a random delay.

Clocks are dense: the own entry is the number of the current reported state. Stamps [lo, hi] hold the true time: the error
of a clock wanders between plus and minus the claimed error, and the stamp is the shown time plus or minus the claimed
error.

No side effects; cost O(m n) for m rows of n processes, about 0.2 s for nine processes and 100 hours.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from whenabouts_cloud.arrays import Array

SECOND = 1_000_000  # microseconds, as all times here
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
SAMPLE = MINUTE
LOG2 = 1 / np.log(2)  # the authors' generator takes logarithms to base 2: all its means are longer by this factor

STATE, REPORT, HEARTBEAT = range(3)  # kinds of rows

Receipt = Literal["state", "silent", "report", "no messages"]


@dataclass(frozen=True)
class Workload:
    """Parameters of the simulation. Delays are means of exponential distributions; 0 is none.

    `receipt`: a control message that arrives begins a state, or is only merged into the clock, or is also reported by a
    clock heartbeat; or there are no control messages. `aligned`: all sample at the same moments, else each at separate
    moments. `heartbeat_us`: period of each process's heartbeats; 0 is never. `in_order`: reports of a process arrive in
    the order in which they were sent (ensured by the checker or the connection).
    """

    processes: int = 3
    duration_us: int = 100 * HOUR
    receipt: Receipt = "state"
    aligned: bool = False
    on_us: float = 25 * MINUTE
    off_us: float = 5 * MINUTE
    control_delay_us: float = SECOND / 2
    report_delay_us: float = SECOND / 2
    clock_error_us: int = 100_000
    heartbeat_us: int = 0
    in_order: bool = True


@dataclass(frozen=True)
class Office:
    """All rows that reach the checker, in the order of arrival, with the true times.

    One entry a row: `kind` STATE, REPORT (clock only) or HEARTBEAT; `process`; `state`, the number of the state begun, or
    of the state that lasts; `clock` (rows, processes); `holds`, the local predicate; `lo`, `hi` around `true_us`, the
    begin of the state or the moment of the report; `arrival_us`. State 0 of each process begins and arrives at time 0.
    """

    workload: Workload
    kind: Array
    process: Array
    state: Array
    clock: Array
    holds: Array
    lo: Array
    hi: Array
    true_us: Array
    arrival_us: Array

    def begins(self, process: int) -> tuple[Array, Array]:
        """True begin of each state of a process, by its number, and True if the predicate held in it."""
        rows = self.states(process)
        return self.true_us[rows], self.holds[rows]

    def states(self, process: int) -> Array:
        """The rows of the states of a process, by their number."""
        rows = np.flatnonzero((self.process == process) & (self.kind == STATE))
        return rows[np.argsort(self.state[rows], kind="stable")]

    def occurrences(self) -> Array:
        """True stretches [begin, end) in which every local predicate held, in order: (stretches, 2)."""
        return self.together(self.true_us)[0]

    def together(self, at_us: Array) -> tuple[Array, Array]:
        """The stretches in which every predicate held if each row's state began at `at_us`, and the runs that held.
        A run of true states of a process is given by the number of its first state: (stretches, processes). The runs
        identify a stretch, since each process has only one run in it. Times of a process must not fall.
        """
        n = self.workload.processes
        states = [self.states(p) for p in range(n)]
        begins, holds = [at_us[rows] for rows in states], [self.holds[rows] for rows in states]
        steps = np.concatenate([np.diff(truth.astype(np.int64), prepend=0) for truth in holds])
        moments, which = np.unique(np.concatenate(begins), return_inverse=True)
        holding = np.cumsum(np.bincount(which, steps, len(moments))) == n
        change = np.flatnonzero(np.diff(holding, prepend=False))
        edges = moments[change].tolist() + [self.workload.duration_us] * (len(change) % 2)
        stretches = np.array(edges, np.int64).reshape(-1, 2)
        runs = [
            run_first(truth)[np.searchsorted(begin, stretches[:, 0], side="right") - 1]
            for begin, truth in zip(begins, holds, strict=True)
        ]
        return stretches, np.stack(runs, axis=1)


def run_first(holds: Array) -> Array:
    """For each state, the number of the first state of its run of equal truth."""
    numbers = np.arange(len(holds))
    return np.maximum.accumulate(np.where(np.diff(holds, prepend=~holds[:1]), numbers, 0))


def simulate(workload: Workload, seed: int) -> Office:
    """Return the rows of one run.

    Raises:
        ValueError: fewer than two processes, or no time.
    """
    w = workload
    if w.processes < 2 or w.duration_us <= 0:
        raise ValueError(f"office: {w.processes} processes for {w.duration_us} us, expected at least 2 and some time")
    rng = np.random.default_rng([seed, w.processes])
    at, who, sent, received = _events(w, rng)
    state, clock, holds = _run(w, who.tolist(), sent.tolist(), received.tolist())
    begins = (received < 0) | (w.receipt == "state")
    kind = np.where(begins, STATE, REPORT)
    emitted = begins if w.receipt == "silent" else np.ones(len(at), bool)
    columns = [kind[emitted], who[emitted], state[emitted], clock[emitted], holds[emitted], at[emitted]]
    if w.heartbeat_us:
        heartbeat_rows = _heartbeats(w, rng, at, who, state, clock, holds)
        columns = [np.concatenate(pair) for pair in zip(columns, heartbeat_rows, strict=True)]
    return _arrived(w, rng, columns)


def _changes(w: Workload, rng: np.random.Generator) -> Array:
    """Moments at which the samples of one process change, the first to true."""
    pairs = int(1.5 * w.duration_us / (w.on_us + w.off_us)) + 20
    while True:
        toggles = np.cumsum(rng.exponential(np.tile([w.off_us, w.on_us], pairs)))
        if toggles[-1] > w.duration_us:
            break
        pairs *= 2
    phase = 0 if w.aligned else int(rng.integers(SAMPLE))
    samples = np.ceil((toggles - phase) / SAMPLE).astype(np.int64) * SAMPLE + phase
    moments, times = np.unique(samples, return_counts=True)
    # A change that is reversed between two samples is not seen.
    seen: Array = moments[(times % 2 == 1) & (moments < w.duration_us)]
    return seen


def _events(w: Workload, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """For each event, by time and the initial states first: time, process, number of the control message that it sends to
    all others, number of the message that it receives; -1 for none."""
    n = w.processes
    changes = [_changes(w, rng) for _ in range(n)]
    at: Array = np.concatenate([np.zeros(n, np.int64), *changes])
    who: Array = np.concatenate([np.arange(n), *(np.full(len(c), p) for p, c in enumerate(changes))])
    onset = np.concatenate([np.zeros(n, bool), *(np.arange(len(c)) % 2 == 0 for c in changes)])
    message = np.where(onset, np.cumsum(onset) - 1, -1)
    receipt: Array = np.full(len(at), -1)
    if w.receipt != "no messages":
        sends = np.flatnonzero(message >= 0)
        send, receiver = (a.ravel() for a in np.meshgrid(sends, np.arange(n), indexing="ij"))
        other = who[send] != receiver
        send, receiver = send[other], receiver[other]
        moment = at[send] + _delays(rng, w.control_delay_us, len(send))
        within = moment < w.duration_us
        at = np.concatenate([at, moment[within]])
        who = np.concatenate([who, receiver[within]])
        receipt = np.concatenate([receipt, message[send[within]]])
        message = np.concatenate([message, np.full(int(within.sum()), -1)])
    order = np.lexsort((receipt >= 0, at))  # a message without delay is received after all messages sent at that time
    return at[order], who[order], message[order], receipt[order]


def _run(w: Workload, who: list[int], sent: list[int], received: list[int]) -> tuple[Array, Array, Array]:
    """State number, clock and truth after each event."""
    n = w.processes
    clocks = [[-1 if p == q else 0 for q in range(n)] for p in range(n)]  # the first state of each makes it 0
    holds = [True] * n  # and its first change false
    carried: dict[int, list[int]] = {}
    numbers, after, truths = [], [], []
    for p, sends, receives in zip(who, sent, received, strict=True):
        clock = clocks[p]
        if receives >= 0:
            clock = list(map(max, clock, carried[receives]))
        else:
            clock = clock.copy()
            holds[p] = not holds[p]
        if receives < 0 or w.receipt == "state":
            clock[p] += 1
        clocks[p] = clock
        if sends >= 0:
            carried[sends] = clock
        numbers.append(clock[p])
        after.append(clock)
        truths.append(holds[p])
    return np.array(numbers), np.array(after), np.array(truths)


def _heartbeats(
    w: Workload, rng: np.random.Generator, at: Array, who: Array, state: Array, clock: Array, holds: Array
) -> list[Array]:
    """Kind, process, state, clock, truth and time of each heartbeat."""
    parts = []
    for p in range(w.processes):
        own = np.flatnonzero(who == p)
        times = np.arange(int(rng.integers(1, w.heartbeat_us + 1)), w.duration_us, w.heartbeat_us)
        last = own[np.searchsorted(at[own], times, side="right") - 1]
        parts.append([np.full(len(times), HEARTBEAT), who[last], state[last], clock[last], holds[last], times])
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _arrived(w: Workload, rng: np.random.Generator, columns: list[Array]) -> Office:
    """The rows stamped, delayed, and in the order of arrival."""
    sent = np.lexsort((columns[0] == HEARTBEAT, columns[5]))
    kind, process, state, clock, holds, at = (column[sent] for column in columns)
    shown = at + np.round(_clock_errors(w, rng, process, at)).astype(np.int64)
    arrival = at + np.where((state == 0) & (kind == STATE), 0, _delays(rng, w.report_delay_us, len(at)))
    if w.in_order:
        for p in range(w.processes):
            own = np.flatnonzero(process == p)
            arrival[own] = np.maximum.accumulate(arrival[own])
    order = np.argsort(arrival, kind="stable")
    lo, hi = shown - w.clock_error_us, shown + w.clock_error_us
    return Office(w, *(column[order] for column in (kind, process, state, clock, holds, lo, hi, at, arrival)))


def _delays(rng: np.random.Generator, mean_us: float, count: int) -> Array:
    return np.round(rng.exponential(mean_us, count)).astype(np.int64) if mean_us else np.zeros(count, np.int64)


def _clock_errors(w: Workload, rng: np.random.Generator, process: Array, at: Array) -> Array:
    """Clock errors: each clock has a new error within its claim every hour, and moves linearly from one to the next."""
    hours = np.arange(0, w.duration_us + 2 * HOUR, HOUR)
    errors = np.zeros(len(at))
    for p in range(w.processes):
        own = process == p
        errors[own] = np.interp(at[own], hours, rng.uniform(-w.clock_error_us, w.clock_error_us, len(hours)))
    return errors
