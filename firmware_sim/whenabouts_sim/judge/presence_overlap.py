"""Times when all posts were taken at once: by the job, by plain timestamps, by order of arrival, and in truth.

Pure. A stretch is a choice of one presence of each post; it is true if they overlapped. State readings mark the begin and
end of presences; each presence that landed is tied to the true one that began inside its stamp.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from whenabouts_sim.judge.placement import ReadingId
from whenabouts_sim.judge.truth import PairScore
from whenabouts_sim.world.emitted import EmittedFrame
from whenabouts_sim.world.posts import Post, Presence, together, true_presences

Detected = tuple[ReadingId, ...]
"""For each post the state reading with which its presence began."""


@dataclass(frozen=True, order=True)
class LandedState:
    """A state reading as it landed; `present` is None when the gateway did not know."""

    gateway: str
    boot: int
    seq: int
    t_min: int
    t_max: int
    landed_us: int
    present: bool | None

    @property
    def id(self) -> ReadingId:
        """The identity of a reading."""
        return self.gateway, self.boot, self.seq

    @property
    def plain_us(self) -> int:
        """The middle of the stamp, as a plain timestamp."""
        return (self.t_min + self.t_max) // 2


Run = tuple[LandedState, LandedState | None]
"""The states with which a presence began and ended."""


@dataclass(frozen=True)
class FalseStretch:
    """Plain timestamps show all present at `at_us` for `seems_us`; in truth one had left `apart_us` before another came."""

    at_us: int
    seems_us: int
    apart_us: int


@dataclass(frozen=True)
class OverlapSummary:
    """Numbers of stretches in a run. `states`: state readings that landed, without repeats.

    `violations`: presences that landed with a stamp that holds no true begin. `job`, `by_stamp`, `by_arrival`: stretches
    given by the job, by plain timestamps, and by the order of arrival. `repeated`: repeats of verdicts. `absent`: stretches
    that the job did not emit, though they are certain by just the stamps of the landed states. `misjudged`: stretches given
    by plain timestamps that never happened.
    """

    states: int
    true_stretches: int
    violations: int
    repeated: int
    absent: int
    job: PairScore
    by_stamp: PairScore
    by_arrival: PairScore
    misjudged: tuple[FalseStretch, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and dictionaries."""
        return asdict(self)

    @property
    def sound(self) -> bool:
        """True if no verdict was false or repeated, no certain stretch is absent, and no stamp was wrong."""
        return not (self.job.false or self.repeated or self.absent or self.violations)


def summarise_together(
    posts: Sequence[Post], reads: Iterable[EmittedFrame], landed: Iterable[LandedState], detected: Sequence[Detected]
) -> OverlapSummary:
    """Judges a run: `reads` are those that reached the agents, `landed` all state readings, `detected` all verdicts."""
    seen = list(reads)
    truth = [true_presences(post, seen) for post in posts]
    true = together(truth)
    states = {state.id: state for state in sorted(landed, key=lambda state: state.landed_us, reverse=True)}
    place: dict[ReadingId, int | None] = {}
    runs_of: list[list[Run]] = []
    by_stamp: list[list[Presence]] = []
    by_arrival: list[list[Presence]] = []
    for post, presences in zip(posts, truth, strict=True):
        own = sorted((s for s in states.values() if s.gateway == post.reader.gateway), key=lambda s: (s.boot, s.seq))
        runs = _runs(own)
        runs_of.append(runs)
        place |= {begin.id: _true_one(begin, presences) for begin, _ in runs}
        known = [(place[begin.id], begin, end) for begin, end in runs]
        for plain, of in ((by_stamp, _stamped), (by_arrival, _arrived)):
            shown = dict.fromkeys(range(len(presences)), Presence(0, 0))
            shown |= {n: of(begin, end) for n, begin, end in known if n is not None}
            plain.append([shown[n] for n in range(len(presences))])
    unknown = -1  # not the index of a true presence
    choices = {tuple(unknown if (n := place.get(one)) is None else n for one in choice) for choice in detected}
    seeming = together(by_stamp)
    return OverlapSummary(
        states=len(states),
        true_stretches=len(true),
        violations=sum(n is None for n in place.values()),
        repeated=len(detected) - len(set(detected)),
        absent=len(_certain(runs_of) - set(detected)),
        job=PairScore.of(choices, set(true)),
        by_stamp=PairScore.of(set(seeming), set(true)),
        by_arrival=PairScore.of(set(together(by_arrival)), set(true)),
        misjudged=tuple(
            _misjudged(stretch, [truth[p][n] for p, n in enumerate(choice)])
            for choice, stretch in sorted(seeming.items())
            if choice not in true
        ),
    )


def _certain(runs_of: Sequence[Sequence[Run]]) -> set[Detected]:
    """Choices of one run of each post that overlap for every choice of begins and ends in the stamps."""
    choices: list[tuple[Run, ...]] = [()]
    for runs in runs_of:
        choices = [
            (*choice, run) for choice in choices for run in runs if all(_overlap(run, other) for other in choice)
        ]
    return {tuple(begin.id for begin, _ in choice) for choice in choices}


def _overlap(one: Run, other: Run) -> bool:
    """True if each certainly began before the other ended; False if one has not ended."""
    (a, a_end), (b, b_end) = one, other
    return a_end is not None and b_end is not None and a.t_max < b_end.t_min and b.t_max < a_end.t_min


def _runs(states: Sequence[LandedState]) -> list[Run]:
    """The states with which each presence began and ended, from states in order; None if it did not end."""
    runs: list[Run] = []
    begin: LandedState | None = None
    for state in states:
        if state.present and begin is None:
            begin = state
        elif not state.present and begin is not None:
            runs.append((begin, state))
            begin = None
    return [*runs, (begin, None)] if begin is not None else runs


def _true_one(begin: LandedState, presences: Sequence[Presence]) -> int | None:
    """The presence that began inside the stamp; None if there is none."""
    inside = [n for n, one in enumerate(presences) if begin.t_min <= one.begin_us <= begin.t_max]
    return inside[0] if inside else None


def _stamped(begin: LandedState, end: LandedState | None) -> Presence:
    return Presence(begin.plain_us, end.plain_us if end else 1 << 62)


def _arrived(begin: LandedState, end: LandedState | None) -> Presence:
    return Presence(begin.landed_us, end.landed_us if end else 1 << 62)


def _misjudged(stretch: Presence, presences: Sequence[Presence]) -> FalseStretch:
    gap_us = max(one.begin_us for one in presences) - min(one.end_us for one in presences)
    return FalseStretch(stretch.begin_us, stretch.end_us - stretch.begin_us, gap_us)
