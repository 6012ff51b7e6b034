"""Consistent global states straight from the definitions, over random computations of known true time. Slow and obvious.

A computation is a list of events of n processes: begins of reported states, sends, receives. Happened-before is the closure
of "earlier on the same process" and "sent, received", kept as sets of events. Every event has a true time and a stamp
[lo, hi] that holds it; stamps order events too (hi(a) < lo(b)), if both events are known. After Lamport (1978), Cooper and
Marzullo (1991), Yang et al., Design of a Sliding Window over Asynchronous Event Streams (2011), sections 2 to 4.

States of a process are numbered from 0. A clock is dense: its entry i is the number of the latest state of process i whose
begin is known, own entry the state's own number. So state k of i precedes state l of j if V_j^l[i] >= k + 1, and a global
state G is consistent if V_{j,G[j]}[i] <= G[i] for all i != j.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

Global = tuple[int, ...]  # state numbers, one per process
Clock = tuple[int, ...]
Clocks = Mapping[tuple[int, int], Clock]  # (process, state) to its clock
ABSENT = -1  # the number of the state of a process that has not joined yet


class Event(NamedTuple):
    """`state`: the process's state after the event; `past`: the event itself and all events before it, as bits."""

    process: int
    t: int
    lo: int
    hi: int
    state: int
    begins: bool
    clock: Clock
    holds: bool
    past: int


@dataclass(frozen=True)
class Computation:
    """Events in an order that extends the causal one, and which of them reach the checker one after the other.

    `arrivals` are indices of events: begins of states, and receives that are reported without beginning a state. They may
    come in any order and more than once.
    """

    processes: int
    events: tuple[Event, ...]
    arrivals: tuple[int, ...]

    def begin(self, process: int, state: int) -> int | None:
        """Index of the event that begins a state, None without one."""
        for index, event in enumerate(self.events):
            if event.begins and (event.process, event.state) == (process, state):
                return index
        return None

    def begins(self) -> list[int]:
        """Indices of all begins."""
        return [index for index, event in enumerate(self.events) if event.begins]

    def late_joiners(self) -> frozenset[int]:
        """Processes whose first state knows of others: they joined after the group began."""
        return frozenset(e.process for e in self.events if e.begins and e.state == 0 and any(e.clock))

    def runs(self, process: int) -> list[tuple[int, int]]:
        """First and last state of each maximal block of states in which the local predicate holds."""
        return blocks({e.state for e in self.events if e.process == process and e.begins and e.holds})

    def lasted(self, process: int, first: int, last: int) -> tuple[float, float]:
        """True times from the begin of one state to the end of another; infinity for a state that never ended."""
        begun, ended = self.begin(process, first), self.begin(process, last + 1)
        assert begun is not None
        return self.events[begun].t, self.events[ended].t if ended is not None else float("inf")


@dataclass
class _Process:
    clock: list[int]
    joined: bool
    state: int = -1
    holds: bool = False
    last_t: int = -1
    past: int = 0


def simulate(
    random: Random,
    processes: int,
    steps: int,
    *,
    error: int = 3,
    receives: str = "mixed",
    joins_late: bool = False,
    delay: int = 5,
    duplicates: bool = True,
) -> Computation:
    """A random computation.

    Local changes, sends and receives at integer times; processes share moments. Messages overtake each other. `receives`
    is the kind of a receive: a reported "state", a clock heartbeat ("heartbeat"), "silent", or "mixed". With `joins_late`
    some processes begin with the receipt of a message that knows of a change; a process whose first state knows of none
    counts as present from the beginning, so all others begin at time 0. `error` bounds each end of the stamps, `delay` the
    time that a report is under way (0: reports arrive in true order).
    """
    late = [joins_late and p > 0 and random.random() < 0.5 for p in range(processes)]
    every = [_Process([0] * processes, not late[p]) for p in range(processes)]
    events: list[Event] = []
    reported: list[int] = []
    under_way: list[tuple[int, int, list[int], int]] = []  # time of sending, receiver, clock, past
    now = 0

    def happens(p: int, begins: bool, reports: bool) -> None:
        one = every[p]
        if begins:
            one.state += 1
            one.clock[p] = one.state
        one.past |= 1 << len(events)
        one.last_t = now
        lo, hi = now - random.randint(0, error), now + random.randint(0, error)
        if reports:
            reported.append(len(events))
        events.append(Event(p, now, lo, hi, one.state, begins, tuple(one.clock), one.holds, one.past))

    for p, one in enumerate(every):
        if one.joined:
            one.holds = random.random() < 0.5
            happens(p, True, True)
    while len(events) < steps:
        now += random.choice([0, 1, 1, 2, 5])
        ready = [m for m in under_way if m[0] < now and (every[m[1]].joined or any(m[2]))]
        there = [p for p, one in enumerate(every) if one.joined]
        action = random.choice(["change", "send", "receive", "receive"])
        p = random.choice(there)
        if action == "receive" and ready:
            message = random.choice(ready)
            under_way.remove(message)
            _, p, clock, past = message
            one = every[p]
            now = max(now, one.last_t + 1)
            one.clock = [max(a, b) for a, b in zip(one.clock, clock, strict=True)]
            one.past |= past
            kind = random.choice(["state", "heartbeat", "silent"]) if receives == "mixed" else receives
            if not one.joined:
                one.joined, one.holds, kind = True, random.random() < 0.5, "state"
            happens(p, kind == "state", kind != "silent")
        elif action == "send" and processes > 1:
            one = every[p]
            now = max(now, one.last_t + 1)
            happens(p, False, False)
            absent = [q for q in range(processes) if not every[q].joined]
            target = random.choice(absent or [q for q in range(processes) if q != p])
            under_way.append((now, target, list(one.clock), one.past))
        else:
            now = max(now, every[p].last_t + 1)
            every[p].holds = not every[p].holds if random.random() < 0.8 else every[p].holds
            happens(p, True, True)
    if duplicates:
        reported += random.sample(reported, min(3, len(reported)))
    lags = {place: random.randint(0, delay) for place in range(len(reported))}
    order = sorted(
        range(len(reported)), key=lambda place: (events[reported[place]].t + lags[place], lags[place], place)
    )
    return Computation(processes, tuple(events), tuple(reported[place] for place in order))


def pasts(computation: Computation, known: Iterable[int] = (), later: Iterable[int] = ()) -> list[int]:
    """The past of every event: causal, and by stamps, which order known events and put them before the `later` ones."""
    return _closed(computation, [event.past for event in computation.events], list(known), list(later))


def _closed(computation: Computation, masks: list[int], known: list[int], later: list[int]) -> list[int]:
    events = computation.events
    for a, b in itertools.product(known, [*known, *later]):
        if events[a].hi < events[b].lo:
            masks[b] |= 1 << a
    changed = True
    while changed:
        changed = False
        for index, past in enumerate(masks):
            wider = past
            for other in _bits(past):
                wider |= masks[other]
            if wider != past:
                masks[index], changed = wider, True
    return masks


def emitted_pasts(computation: Computation) -> list[int]:
    """Causal pasts as far as clocks show them: an entry of 0 does not show that the first state of a process has begun."""
    masks = []
    for event in computation.events:
        past = event.past
        for other in _bits(past):
            i = computation.events[other].process
            if i != event.process and event.clock[i] == 0:
                past &= ~(1 << other)
        masks.append(past)
    return masks


def _bits(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def clock_of(computation: Computation, past: int) -> Clock:
    """The dense clock of a past: per process the latest state begun in it; 0 also if nothing of a process is known."""
    clock = [0] * computation.processes
    for index in _bits(past):
        event = computation.events[index]
        if event.begins:
            clock[event.process] = max(clock[event.process], event.state)
    return tuple(clock)


def clocks_of(computation: Computation, known: Iterable[int] = ()) -> dict[tuple[int, int], Clock]:
    """Clocks of all states from the closure of the events themselves, with the stamps of the known ones."""
    masks = pasts(computation, known)
    return {
        (event.process, event.state): clock_of(computation, masks[index])
        for index, event in enumerate(computation.events)
        if event.begins
    }


def precedes(clocks: Clocks, i: int, k: int, j: int, l: int) -> bool:  # noqa: E741
    """True if state k of i had ended when state l of j began."""
    return clocks[j, l][i] >= k + 1


def consistent(clocks: Clocks, state: Global) -> bool:
    """True if no constituent precedes another."""
    n = len(state)
    return not any(precedes(clocks, i, state[i], j, state[j]) for i in range(n) for j in range(n) if i != j)


def by_brute_force(clocks: Clocks, windows: Sequence[Sequence[int]]) -> set[Global]:
    """All consistent global states of the windows, by testing every tuple."""
    return {state for state in itertools.product(*windows) if consistent(clocks, state)}


def advanced(state: Global, process: int, by: int = 1) -> Global:
    """The global state with one process moved forward, or back."""
    return (*state[:process], state[process] + by, *state[process + 1 :])


def meet(states: Iterable[Global]) -> Global:
    """Componentwise minimum."""
    return tuple(map(min, zip(*states, strict=True)))


def join(states: Iterable[Global]) -> Global:
    """Componentwise maximum."""
    return tuple(map(max, zip(*states, strict=True)))


class FullLattice:
    """LAT: the consistent global states of all states pushed, never pruned; found by single steps from the least.

    States of a process must come without a gap.
    """

    def __init__(self, processes: int) -> None:
        self.clocks: dict[tuple[int, int], Clock] = {}
        self.latest: list[int | None] = [None] * processes
        self.first: list[int] = [0] * processes

    def push(self, process: int, state: int, clock: Clock) -> None:
        """Adds a state; the first of a process may have any number."""
        if self.latest[process] is None:
            self.first[process] = state
        self.latest[process] = state
        self.clocks[process, state] = clock

    def states(self) -> set[Global]:
        """All consistent global states, empty as long as a process has no state."""
        if None in self.latest:
            return set()
        least = self._least()
        if least is None:
            return set()
        reached, edge = {least}, [least]
        while edge:
            state = edge.pop()
            for p in range(len(state)):
                after = advanced(state, p)
                if after not in reached and (p, after[p]) in self.clocks and consistent(self.clocks, after):
                    reached.add(after)
                    edge.append(after)
        return reached

    def _least(self) -> Global | None:
        state = list(self.first)
        while True:
            for i, j in itertools.permutations(range(len(state)), 2):
                needed = self.clocks[j, state[j]][i]
                if needed > state[i]:
                    if (i, needed) not in self.clocks:
                        return None
                    state[i] = needed
                    break
            else:
                return tuple(state)

    def within(self, windows: Sequence[Sequence[int]]) -> set[Global]:
        """The consistent global states whose constituents all lie in the windows."""
        return {s for s in self.states() if all(x in w for x, w in zip(s, windows, strict=True))}


def possibly(states: Iterable[Global], predicate: Callable[[Global], bool]) -> bool:
    """Pos: True if the predicate holds in some consistent global state."""
    return any(predicate(state) for state in states)


def definitely(states: set[Global], predicate: Callable[[Global], bool]) -> bool:
    """Def: True if every way from the least to the greatest by single steps meets a state in which the predicate holds."""
    if not states:
        return False
    least, greatest = meet(states), join(states)
    edge = [] if predicate(least) else [least]
    seen = set(edge)
    while edge:
        state = edge.pop()
        if state == greatest:
            return False
        for p in range(len(state)):
            after = advanced(state, p)
            if after in states and after not in seen and not predicate(after):
                seen.add(after)
                edge.append(after)
    return True


def blocks(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Maximal blocks of consecutive numbers, first and last of each."""
    merged: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if merged and merged[-1][1] == number - 1:
            merged[-1] = (merged[-1][0], number)
        else:
            merged.append((number, number))
    return merged


@dataclass
class Checker:
    """A checker: the last `window` states of each process without a gap, the states that wait for a missing one, heartbeats.

    A clock heartbeat is an event of a process which shows that its state has not ended. It counts if the state is
    the latest accepted one. Of heartbeats for states not accepted yet, only those for the highest state are kept, until this
    state is accepted.
    """

    computation: Computation
    window: Sequence[int]
    accepted: list[int] = field(default_factory=list)
    waiting: set[int] = field(default_factory=set)
    heartbeats: list[int] = field(default_factory=list)
    early: dict[int, list[int]] = field(default_factory=dict)

    def push(self, index: int) -> list[int]:
        """Takes an arrival; returns the begins that are accepted now, in order."""
        p, state = self._of(index)
        if not self.computation.events[index].begins:
            self._note(index, p, state)
            return []
        if index not in self.accepted:
            self.waiting.add(index)
        taken = []
        while True:
            ready = [i for i in self.waiting if self._of(i) == (p, self.latest(p) + 1)]
            if not ready:
                return taken
            self.waiting.discard(ready[0])
            self.accepted.append(ready[0])
            taken.append(ready[0])
            if self._of(ready[0])[1] == self._early_state(p):
                self.heartbeats += self.early.pop(p)

    def _note(self, index: int, p: int, state: int) -> None:
        if state == self.latest(p):
            self.heartbeats.append(index)
        elif state > max(self.latest(p), self._early_state(p)):
            self.early[p] = [index]
        elif state == self._early_state(p):
            self.early[p].append(index)

    def _early_state(self, p: int) -> int:
        return self._of(self.early[p][0])[1] if p in self.early else -1

    def _of(self, index: int) -> tuple[int, int]:
        event = self.computation.events[index]
        return event.process, event.state

    def latest(self, process: int) -> int:
        """Number of the latest state accepted, -1 before the first."""
        return max((self._of(i)[1] for i in self.accepted if self._of(i)[0] == process), default=-1)

    def windows(self) -> list[range]:
        """Numbers of the states held, per process."""
        ends = [self.latest(p) + 1 for p in range(self.computation.processes)]
        return [range(max(0, end - w), end) for end, w in zip(ends, self.window, strict=True)]

    def clocks(self, hybrid: bool = False) -> dict[tuple[int, int], Clock]:
        """Clocks of the accepted states; if hybrid, with the order by the stamps of all accepted states."""
        every = clocks_of(self.computation, self.accepted if hybrid else ())
        return {self._of(i): every[self._of(i)] for i in self.accepted}

    def holds(self, process: int, state: int) -> bool:
        """True if the local predicate holds in an accepted state."""
        return any(self._of(i) == (process, state) and self.computation.events[i].holds for i in self.accepted)

    def runs(self, process: int) -> list[tuple[int, int]]:
        """Runs of true states among the accepted that have a state in the window."""
        true = [s for s in range(self.latest(process) + 1) if self.holds(process, s)]
        return [run for run in blocks(true) if run[1] in self.windows()[process]]

    def certain_lattice(self, hybrid: bool = False) -> set[Global]:
        """The whole lattice of all that is known, with the worst possible continuation.

        After the latest accepted state of each process come those that others have heard of and one more; they know only
        what the process is known to have known. A process that joined late begins in an extra state, ABSENT.
        """
        known, noted = (self.accepted, self.heartbeats) if hybrid else ([], [])
        past = _closed(self.computation, emitted_pasts(self.computation), known, noted)
        n = self.computation.processes
        late = self.computation.late_joiners()
        firsts = [self.computation.begin(i, 0) for i in range(n)]

        def clock(index: int) -> Clock:
            entries = clock_of(self.computation, past[index])
            there = [i not in late or any(past[index] >> x & 1 for x in [firsts[i]] if x is not None) for i in range(n)]
            return tuple(entries[i] if there[i] else ABSENT for i in range(n))

        clocks = {self._of(index): clock(index) for index in self.accepted}
        sure = [list(clocks.get((p, self.latest(p)), [ABSENT if i in late else 0 for i in range(n)])) for p in range(n)]
        for index in self.heartbeats:
            p, state = self._of(index)
            if state == self.latest(p):
                sure[p] = [max(a, b) for a, b in zip(sure[p], clock(index), strict=True)]
        lattice = FullLattice(n)
        for p in range(n):
            if p in late:
                lattice.push(p, ABSENT, tuple(ABSENT if i in late else 0 for i in range(n)))
            for state in range(self.latest(p) + 1):
                lattice.push(p, state, clocks[p, state])
            heard = max(c[p] for c in [*clocks.values(), *map(tuple, sure)])
            for state in range(self.latest(p) + 1, max(heard, self.latest(p)) + 2):
                lattice.push(p, state, (*sure[p][:p], state, *sure[p][p + 1 :]))
        return lattice.states()

    def definitely(self, hybrid: bool = False) -> bool:
        """Def over `certain_lattice` of the predicate: every process is in a run that has a state in the window."""
        runs = [self.runs(p) for p in range(self.computation.processes)]
        return all(runs) and definitely(self.certain_lattice(hybrid), _inside(runs))

    def overlaps(self, hybrid: bool = False) -> set[Global]:
        """Choices of such runs, one of each process, each by its first state, for which Def holds."""
        runs = [self.runs(p) for p in range(self.computation.processes)]
        lattice = self.certain_lattice(hybrid) if all(runs) else set()
        return {
            tuple(first for first, _ in chosen)
            for chosen in itertools.product(*runs)
            if definitely(lattice, _inside([[run] for run in chosen]))
        }

    def truly(self) -> bool:
        """True if some true moment lay in a run of every process; only runs with a state in the window count.

        The end of a run is its true end, even if the checker does not know it yet.
        """
        spans = []
        for p in range(self.computation.processes):
            known = self.runs(p)
            whole = [run for run in self.computation.runs(p) if any(run[0] == first for first, _ in known)]
            spans.append([self.computation.lasted(p, *run) for run in whole])
        return any(
            max(begin for begin, _ in chosen) < min(end for _, end in chosen) for chosen in itertools.product(*spans)
        )


def _inside(runs: Sequence[Sequence[tuple[int, int]]]) -> Callable[[Global], bool]:
    """The predicate that the state of every process lies in one of its runs."""
    return lambda state: all(any(a <= s <= b for a, b in own) for s, own in zip(state, runs, strict=True))


def known_moves(
    computation: Computation, window: Sequence[int], arrivals: Sequence[int] | None = None
) -> Iterator[tuple[int, Checker]]:
    """The index of each arrival, and the checker after it."""
    checker = Checker(computation, window)
    for index in computation.arrivals if arrivals is None else arrivals:
        checker.push(index)
        yield index, checker
