"""Judges a run in which processes were killed: what must have landed, and the exact results of the rules on what landed.

Pure. A reading may be lost only while its gateway's agent was dead, or in the time before a kill that a commit takes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any

from whenabouts_sim.judge.placement import Landed, ReadingId, SightingId, place
from whenabouts_sim.judge.thefts import TheftRule, TheftSummary, summarise_thefts
from whenabouts_sim.judge.truth import rule_pairs
from whenabouts_sim.soak.memory import Sample, grows
from whenabouts_sim.world.clocks import GatewayClock
from whenabouts_sim.world.emitted import EmittedFrame
from whenabouts_sim.world.world import SimReader

Span = tuple[int, int]
"""Begin and end, us of true time."""

MIB = 1 << 20
EXCUSED = "its agent was dead"


@dataclass(frozen=True)
class Truth:
    """What truly happened. dead: for each gateway the spans in which its agent may have lost readings."""

    readers: Sequence[SimReader]
    clocks: Mapping[str, GatewayClock]
    emitted: Sequence[EmittedFrame]
    dead: Mapping[str, Sequence[Span]]

    def must_land(self) -> list[EmittedFrame]:
        """The sightings that no kill excuses."""
        gateway = {reader.name: reader.gateway for reader in self.readers}
        return [
            one
            for one in self.emitted
            if not one.damaged
            and not any(begin <= one.last_byte_us <= end for begin, end in self.dead.get(gateway[one.reader], ()))
        ]


@dataclass(frozen=True)
class Found:
    """What the run has left: rows of the landing, in the order of arrival; results of both rules, repeats included."""

    landed: Sequence[Landed]
    pairs: Sequence[tuple[ReadingId, ReadingId]]
    matches: Sequence[tuple[ReadingId, ReadingId]]


@dataclass(frozen=True)
class PairRule:
    """`|@a - @b| <= d_us OVER ct AND a.key = b.key` between the streams of two readers."""

    a: SimReader
    b: SimReader
    d_us: int
    ct: Fraction


@dataclass(frozen=True)
class Verdict:
    """Numbers of a run. excused: sightings that an agent may have lost, as it was dead; lost: those that it may not.

    wrong_stamps: rows of the landing that report no sighting, or one outside their stamp. memory: of each part, over
    time. faults: what went wrong in words, such as a part that ended by itself.
    """

    made: int
    excused: int
    landed: int
    lost: tuple[SightingId, ...]
    repeated: int
    wrong_stamps: int
    pairs: int
    pairs_repeated: int
    pairs_unexpected: int
    pairs_absent: int
    thefts: TheftSummary
    kills: Mapping[str, int] = field(default_factory=dict)
    memory: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    faults: Sequence[str] = ()

    @property
    def growing(self) -> tuple[str, ...]:
        """The parts whose memory grows."""
        return tuple(name for name, samples in self.memory.items() if grows(samples))

    @property
    def complete(self) -> bool:
        """True if nothing is missing that must come."""
        return not (self.lost or self.pairs_absent or self.thefts.absent)

    @property
    def sound(self) -> bool:
        """True if every guarantee held."""
        wrong = self.repeated + self.wrong_stamps + self.pairs_repeated + self.pairs_unexpected
        return self.complete and self.thefts.exact and not (wrong or self.growing or self.faults)

    @property
    def most_bytes(self) -> dict[str, int]:
        """The most that each part has used."""
        return {name: max(one.size_bytes for one in samples) for name, samples in self.memory.items()}

    def as_dict(self) -> dict[str, Any]:
        """Plain values; memory as the most that each part has used."""
        return {**asdict(self), "memory": self.most_bytes, "growing": self.growing, "sound": self.sound}

    def text(self) -> str:
        """The numbers for people."""
        kills = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items())) or "none"
        memory = ", ".join(f"{name} {size / MIB:.0f} MiB" for name, size in sorted(self.most_bytes.items()))
        lines = [
            f"killed: {kills}",
            f"{self.made} sightings left the readers; {self.excused} of them while an agent was dead",
            f"{self.landed} readings landed: {len(self.lost)} lost, {self.repeated} twice, {self.wrong_stamps} wrong stamps",
            f"pairs: {self.pairs} by the rule's definition; {self.pairs_absent} missing, {self.pairs_unexpected} wrong, "
            f"{self.pairs_repeated} twice",
            f"unpaid: {self.thefts.expected_matches} by the rule's definition; {self.thefts.absent} missing, "
            f"{self.thefts.unexpected} wrong, {self.thefts.matches_repeated} twice, "
            f"{self.thefts.job.false} goods accused wrongly",
            f"most memory: {memory}",
            *(f"memory of {name} grows" for name in self.growing),
            *self.faults,
            "all guarantees held" if self.sound else "NOT all guarantees held",
        ]
        return "\n".join(lines)


def judged(
    pair_rule: PairRule, theft_rule: TheftRule, truth: Truth, found: Found, *, kills: Mapping[str, int] = {},
    memory: Mapping[str, Sequence[Sample]] = {}, faults: Iterable[str] = (),
) -> Verdict:  # fmt: skip
    """Compare what was found with what truly happened. Cost: quadratic in the sightings of one key at one reader."""
    must_land = truth.must_land()
    surely = {one.id for one in must_land}
    # Reads of one badge follow each other quickly: which of them a reading reports is open; those that must land go first.
    emitted = [one if one.damaged or one.id in surely else replace(one, damaged=EXCUSED) for one in truth.emitted]
    placement = place(found.landed, emitted, truth.readers, truth.clocks)
    arrived = set(placement.sighting_of.values())
    expected = rule_pairs(_of(pair_rule.a, found), _of(pair_rule.b, found), pair_rule.d_us, pair_rule.ct)
    pairs = set(found.pairs)
    return Verdict(
        made=len(truth.emitted),
        excused=sum(not one.damaged for one in truth.emitted) - len(must_land),
        landed=len(found.landed) - placement.repeated,
        lost=tuple(one.id for one in must_land if one.id not in arrived),
        repeated=placement.repeated,
        wrong_stamps=len(placement.violations) + len(placement.surplus) + len(placement.invented),
        pairs=len(expected),
        pairs_repeated=len(found.pairs) - len(pairs),
        pairs_unexpected=len(pairs - expected),
        pairs_absent=len(expected - pairs),
        thefts=summarise_thefts(theft_rule, truth.emitted, found.landed, found.matches, placement),
        kills=dict(kills),
        memory=dict(memory),
        faults=tuple(faults),
    )


def _of(reader: SimReader, found: Found) -> list[Landed]:
    return [row for row in found.landed if (row.gateway, row.stream) == (reader.gateway, reader.stream)]
