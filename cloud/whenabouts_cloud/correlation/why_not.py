"""Explains why a rule CORRELATE has no pair with a reading: which partners come nearest, and what each of them lacks.

For true times X, uniform in the stamp of a, and Y, uniform in that of b, the density of @b - @a is a trapezoid: it rises
from b_min - a_max for the length of the shorter stamp, and falls likewise to b_max - a_min. The probability of the pair is
the part of its area within the limits of the rule; it is computed and compared exactly, in integers.

Stamps in here are moved by the OFFSET of their streams. Cost: some array operations on all readings that are given, and
exact arithmetic for at most MAX_CANDIDATES + MAX_OTHER_KEYS partners.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.cep.explain.explanation import duration
from whenabouts_cloud.correlation.pairs import correlate, matches, unmatchable
from whenabouts_cloud.epc.rule_words import word_of
from whenabouts_cloud.landing.schema import IDENTITY, plain_text
from whenabouts_cloud.rules.coverage import tagged
from whenabouts_cloud.rules.model import CorrelateRule

MAX_CANDIDATES = 20  # partners, those nearest to the middle of the condition
MAX_OTHER_KEYS = 5  # of another key, which would be partners if keys were not compared
MAX_RANKED = 100  # readings of a among whose partners the reading of b is ranked

# From nearest to farthest: a pair; probable enough, but a has better partners (TOP); not probable enough; probable enough,
# but of another key, or one that does not satisfy the rule's conditions on it; a stamp that is longer than any in a pair;
# impossible; no reading of the other stream at all; no reading to ask about.
PairVerdict = Literal["pair", "beaten", "improbable", "keys", "tags", "long", "beyond", "missing", "nothing"]
ORDER: tuple[PairVerdict, ...] = (
    "pair", "beaten", "improbable", "keys", "tags", "long", "beyond", "missing", "nothing",
)  # fmt: skip
HEADLINES: dict[PairVerdict, str] = {
    "pair": "a pair",
    "beaten": "probable enough, but not among the best partners",
    "improbable": "no pair: not probable enough",
    "keys": "no pair: what lies within reach has another key",
    "tags": "no pair: a key does not satisfy the conditions on it",
    "long": "no pair: a stamp is longer than any in a pair",
    "beyond": "no pair: no partner within reach",
    "missing": "no pair: no reading of the other stream around that time",
    "nothing": "no reading around that time could be in a pair",
}


@dataclass(frozen=True)
class Distribution:
    """The density of @b - @a: it rises from the first corner to the second, stays `height_per_us`, and falls to the last.

    Times in us. Corners may coincide; if all do, the difference is exactly that, and there is no height.
    """

    corners_us: tuple[int, int, int, int]
    height_per_us: float | None


@dataclass(frozen=True)
class Candidate:
    """A partner (row of the landing) and what became of it; `distribution` is None for a stamp that is no interval.

    `late_us`: by how much more than DELAY after the end of its stamp it landed, if it did and that is known.
    """

    row: dict[str, Any]
    verdict: PairVerdict
    reason: str
    probability: float | None
    distribution: Distribution | None
    late_us: int | None


@dataclass(frozen=True)
class PairsExplanation:
    """What became of the focus, a reading of stream a (side 0) or b (side 1); the nearest candidate first.

    `examined` is the number of readings of the other stream that were given. `lacks`: which condition on its key the focus
    does not satisfy; it takes no part in the rule then, and there are no candidates.
    """

    verdict: PairVerdict
    side: int
    focus: dict[str, Any]
    late_us: int | None
    candidates: tuple[Candidate, ...]
    examined: int
    lacks: str | None = None


def distribution(a_min: int, a_max: int, b_min: int, b_max: int) -> Distribution:
    """The distribution of b - a for times uniform in two intervals, us.

    >>> distribution(0, 10, 100, 104)
    Distribution(corners_us=(90, 94, 100, 104), height_per_us=0.1)
    """
    shorter, longer = sorted((a_max - a_min, b_max - b_min))
    first = b_min - a_max
    corners = first, first + shorter, first + longer, first + shorter + longer
    return Distribution(corners, 1 / longer if longer else None)


def why_not_pair(rule: CorrelateRule, side: int, focus: dict[str, Any], a: pa.Table, b: pa.Table) -> PairsExplanation:
    """Explain a reading of side 0 (a) or 1 (b), among readings of both streams without repeats, with the columns of READING.

    For TOP the tables need all partners of each reading of a that can be in a pair with the focus.
    """
    others = (b, a)[side]
    asked = _Question(rule, side, focus, a, b)
    lacks = asked.unmet(side, focus)
    if lacks is not None:
        return PairsExplanation("tags", side, focus, asked.late_us(side, focus), (), others.num_rows, lacks)
    candidates = sorted(asked.candidates(others), key=lambda one: (ORDER.index(one.verdict), -(one.probability or 0)))
    verdict = candidates[0].verdict if candidates else "missing"
    return PairsExplanation(verdict, side, focus, asked.late_us(side, focus), tuple(candidates), others.num_rows)


class _Question:
    """A rule and a focus, the partners that make a pair with it, and those of them that stay with TOP."""

    def __init__(self, rule: CorrelateRule, side: int, focus: dict[str, Any], a: pa.Table, b: pa.Table) -> None:
        self.rule, self.side, self.focus = rule, side, focus
        self.streams = rule.a, rule.b
        a, b = (x.filter(pa.array(tagged(tags, x["key"]))) for x, tags in zip((a, b), rule.tags, strict=True))
        one = pa.Table.from_pylist([{name: focus.get(name) for name in a.schema.names}], schema=a.schema)
        sides = [one, b] if side == 0 else [a, one]
        sides = [x.filter(pa.array(~unmatchable(rule, x))) for x in sides]
        i, j, _ = matches(rule, *sides)
        self.partners = _identities(sides[1 - side], (j, i)[side])
        self.stay = self.partners
        if rule.top_k is not None and self.partners:
            asking = sides[0].take(pa.array(np.unique(i)[:MAX_RANKED]))
            usable = b.filter(pa.array(~unmatchable(rule, b)))
            best = correlate(replace(rule, kind="inner"), asking, usable).to_pylist()
            mine, own = "ab"[side], _identity(focus)
            pairs = [tuple(_identity(row, x) for x in (mine, "ab"[1 - side])) for row in best]
            self.stay = {partner for one_of, partner in pairs if one_of == own}

    def candidates(self, others: pa.Table) -> list[Candidate]:
        """The partners that come nearest."""
        same, distance = self._same_key(others), self._distance(others)
        order = np.argsort(distance, kind="stable")
        chosen = order[same[order]][: MAX_CANDIDATES + 1]
        found = [self.candidate(row) for row in _rows(others, chosen) if _identity(row) != _identity(self.focus)]
        foreign = order[~same[order]][:MAX_CANDIDATES]
        other_keys = [one for one in map(self.candidate, _rows(others, foreign)) if one.verdict == "keys"]
        return found[:MAX_CANDIDATES] + other_keys[:MAX_OTHER_KEYS]

    def candidate(self, row: dict[str, Any]) -> Candidate:
        """What became of a partner."""
        late_us = self.late_us(1 - self.side, row)
        stamps = [self.moved(side, one) for side, one in self._both(row)]
        for side, (first, last) in enumerate(stamps):
            if last < first:
                text = f"the stamp of {self._alias(side)} ends before it begins"
                return Candidate(row, "long", text, None, None, late_us)
        (a_min, a_max), (b_min, b_max) = stamps
        num, den = self.rule.condition.ratio(a_min, a_max, b_min, b_max)
        verdict, reason = self._verdict(row, num, den, stamps)
        shape = distribution(a_min, a_max, b_min, b_max)
        return Candidate(row, verdict, reason, num / den, shape, late_us)

    def moved(self, side: int, row: dict[str, Any]) -> tuple[int, int]:
        """The stamp of a reading, moved by the OFFSET of its stream."""
        offset_us = self.streams[side].offset_us
        return row["t_min"] + offset_us, row["t_max"] + offset_us

    def unmet(self, side: int, row: dict[str, Any]) -> str | None:
        """The first condition on the key of a reading that does not hold; None if all do."""
        for tag in self.rule.tags[side]:
            meant = word_of(row["key"], tag.word)
            wanted = f"{tag.said(self._alias(side))} does not hold"
            if meant is None:
                return f"{wanted}: {'it has no key' if row['key'] is None else f'its key holds no {tag.word}'}"
            if (meant == tag.text) != tag.equal:
                return f'{wanted}: it is "{meant}"'
        return None

    def late_us(self, side: int, row: dict[str, Any]) -> int | None:
        """How long after the end of its stamp and DELAY a reading landed; None if not later, or not known."""
        landed_us = row.get("landed_us")
        late_us = 0 if landed_us is None else landed_us - row["t_max"] - self.streams[side].delay_us
        return late_us if late_us > 0 else None

    def _verdict(
        self, row: dict[str, Any], num: int, den: int, stamps: list[tuple[int, int]]
    ) -> tuple[PairVerdict, str]:
        rule, condition, probability = self.rule, self.rule.condition, _shown(num, den)
        needs = f"{_shown(condition.ct.numerator, condition.ct.denominator)} is needed"
        for side, (first, last) in enumerate(stamps):
            if last - first > condition.longest_us:
                length, most = duration(last - first), duration(condition.longest_us)
                return "long", f"the stamp of {self._alias(side)} is {length} long, at most {most} can be in a pair"
        if not condition.is_met(num, den):
            if num:
                return "improbable", f"probability {probability}, {needs}"
            (a_min, a_max), (b_min, b_max) = stamps
            after, before = b_min - a_max - condition.hi_us, condition.lo_us - (b_max - a_min)
            where = f"{duration(max(after, before))} {'above' if after > before else 'below'} the limits"
            return "beyond", f"@{rule.b_alias} - @{rule.a_alias} is at least {where}"
        if rule.key_equal and (row["key"] is None or row["key"] != self.focus["key"]):
            return "keys", f"probability {probability}, but of another key" if row["key"] else "it has no key"
        if (lacks := self.unmet(1 - self.side, row)) is not None:
            return "tags", f"probability {probability}, but {lacks}"
        if _identity(row) not in self.stay:
            return "beaten", f"probability {probability}, but {rule.a_alias} has {rule.top_k} better partners"
        return "pair", f"probability {probability}, {needs}"

    def _same_key(self, others: pa.Table) -> npt.NDArray[np.bool_]:
        if not self.rule.key_equal:
            return np.ones(others.num_rows, bool)
        key = self.focus["key"]
        if key is None:
            return np.zeros(others.num_rows, bool)
        same: npt.NDArray[np.bool_] = pc.fill_null(pc.equal(plain_text(others["key"]), key), False).to_numpy()
        return same

    def _distance(self, others: pa.Table) -> npt.NDArray[np.float64]:
        """How far the middles of the focus and of each partner are from the middle of the condition."""
        own = sum(self.moved(self.side, self.focus))
        centre = self.rule.condition.doubled_centre * (1 if self.side == 0 else -1)
        first, last = (others[name].to_numpy().astype(np.float64) for name in ("t_min", "t_max"))
        distance: npt.NDArray[np.float64] = np.abs(
            first + last + (2.0 * self.streams[1 - self.side].offset_us - own - centre)
        )
        return distance

    def _both(self, row: dict[str, Any]) -> Iterable[tuple[int, dict[str, Any]]]:
        return enumerate((self.focus, row) if self.side == 0 else (row, self.focus))

    def _alias(self, side: int) -> str:
        return (self.rule.a_alias, self.rule.b_alias)[side]


def _identity(row: dict[str, Any], prefix: str = "") -> tuple[Any, ...]:
    return tuple(row[f"{prefix}_{name}" if prefix else name] for name in IDENTITY)


def _identities(table: pa.Table, rows: npt.NDArray[np.int64]) -> set[tuple[Any, ...]]:
    chosen = table.select(IDENTITY).take(pa.array(np.unique(rows)))
    return {tuple(row.values()) for row in chosen.to_pylist()}


def _rows(table: pa.Table, at: npt.NDArray[np.int64]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.take(pa.array(at)).to_pylist()
    return rows


def _shown(num: int, den: int) -> str:
    """A probability with as many decimals as tell it from 1."""
    return f"{num / den:.6g}" if num == den or num / den < 0.9999995 else "a little less than 1"
