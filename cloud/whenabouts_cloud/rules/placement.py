"""Decides where each rule runs, and compiles rules for gateways.

Pure: from the rules and the streams of each gateway (from births), every rule gets its place. A rule whose streams are all
on one gateway runs there, immediately and without the network; AT EDGE and AT CLOUD force the place. Only announced streams
count: when a birth adds a stream that a pattern covers, plan again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from whenabouts_cloud.rules.model import CorrelateRule, Rule, Stream
from whenabouts_protocol import Birth
from whenabouts_protocol.messages.compiled_rule import (
    DERIVED_PREFIX,
    MAX_RULE_STREAMS,
    MAX_RULES,
    MAX_SPAN_US,
    CompiledRule,
    RuleSide,
)

EDGE_READINGS = 20_000  # kept for one rule at most, 7 MB on CPython; a board sets its own lower limit


@dataclass(frozen=True)
class GatewayStream:
    """A stream of a gateway; site None means any site, length_us_max None stamps of unknown length."""

    stream: str
    gateway: str
    site: str | None = None
    length_us_max: int | None = None

    @property
    def place(self) -> str:
        """The gateway with its site, as SITE/GATEWAY."""
        return self.gateway if self.site is None else f"{self.site}/{self.gateway}"


@dataclass(frozen=True)
class Placement:
    """The place where a rule runs, and why; at the edge with the streams of both sides, all of one gateway."""

    rule: Rule
    where: Literal["edge", "cloud"]
    reason: str
    a: tuple[GatewayStream, ...] = ()
    b: tuple[GatewayStream, ...] = ()

    @property
    def gateway(self) -> tuple[str | None, str] | None:
        """(site, gateway) of a rule at the edge."""
        return (self.a[0].site, self.a[0].gateway) if self.where == "edge" else None


class PlanError(ValueError):
    """Rules that cannot run where AT EDGE puts them, one line each."""

    def __init__(self, mistakes: list[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(mistakes))


def announced(births: Iterable[Birth]) -> list[GatewayStream]:
    """Streams of readers that gateways announced in their births, without streams derived by rules."""
    announcements = []
    for birth in births:
        for row in birth.streams:
            name, length_us_max = str(row[0]), row[4]
            if not name.startswith(DERIVED_PREFIX):
                announcements.append(GatewayStream(name, birth.gateway, birth.site, int(length_us_max or 0)))
    return announcements


def place(rules: Sequence[Rule], streams: Sequence[GatewayStream]) -> list[Placement]:
    """Place each rule; returns placements in the order of the rules.

    Raises:
        PlanError: AT EDGE is impossible; all such rules at once.
    """
    placements, mistakes = [], []
    busy: dict[tuple[str | None, str], int] = {}
    for rule in rules:
        placement = _place(rule, streams)
        if placement.gateway is not None:
            busy[placement.gateway] = busy.get(placement.gateway, 0) + 1
            if busy[placement.gateway] > MAX_RULES:
                placement = Placement(rule, "cloud", f"{placement.a[0].place} runs {MAX_RULES} rules already")
        if rule.place == "edge" and placement.where == "cloud":
            mistakes.append(f"rule {rule.name}: found AT EDGE, but {placement.reason}; expected AT CLOUD or nothing")
        placements.append(placement)
    if mistakes:
        raise PlanError(mistakes)
    return placements


def compile_rules(placements: Iterable[Placement], site: str | None, gateway: str) -> list[CompiledRule]:
    """Rules that a gateway must run, for `whenabouts_protocol.messages.compiled_rule.encode_rules`."""
    return [_compiled(p) for p in placements if p.gateway == (site, gateway)]


def lengths_us(stream: Stream, streams: Sequence[GatewayStream], longest_us: int) -> tuple[int, int]:
    """(shortest, longest) stamp to expect of a stream: as declared, as announced, and at most the longest that can match."""
    shortest, longest = stream.length_us or (0, longest_us)
    known = [s.length_us_max for s in streams]
    if known and None not in known:
        longest = min(longest, max(x for x in known if x is not None))
    longest = min(longest, longest_us, MAX_SPAN_US)
    return min(shortest, longest), longest


def _place(rule: Rule, streams: Sequence[GatewayStream]) -> Placement:
    if rule.place == "cloud":
        return Placement(rule, "cloud", "AT CLOUD says so")
    if not isinstance(rule, CorrelateRule):
        return Placement(rule, "cloud", "a gateway runs CORRELATE rules only")
    if rule.kind != "inner" or rule.top_k is not None:
        return Placement(rule, "cloud", "a gateway finds all pairs, nothing else")
    if rule.tag_texts:
        return Placement(
            rule, "cloud", "a gateway compares keys with each other only, and does not know the names in them"
        )
    sides = [tuple(s for s in streams if _covers(stream, s)) for stream in (rule.a, rule.b)]
    for stream, covered in zip((rule.a, rule.b), sides, strict=True):
        if not covered:
            return Placement(rule, "cloud", f"no gateway has announced a stream that {stream.name} covers")
        if len(covered) > MAX_RULE_STREAMS:
            return Placement(
                rule,
                "cloud",
                f"{stream.name} covers {len(covered)} streams, and a gateway takes at most {MAX_RULE_STREAMS} a side",
            )
    places = sorted({s.place for side in sides for s in side})
    if len(places) > 1:
        return Placement(rule, "cloud", f"its streams are on {len(places)} gateways: {', '.join(places)}")
    why = f"all its streams are on {places[0]}"
    return Placement(rule, "edge", f"AT EDGE says so, and {why}" if rule.place == "edge" else why, *sides)


def _covers(stream: Stream, candidate: GatewayStream) -> bool:
    site = stream.site or "" if candidate.site is None else candidate.site
    return not candidate.stream.startswith(DERIVED_PREFIX) and stream.matches(site, candidate.gateway, candidate.stream)


def _compiled(placement: Placement) -> CompiledRule:
    rule = placement.rule
    assert isinstance(rule, CorrelateRule)  # only these are placed on a gateway
    ct, longest_us = rule.condition.ct, rule.condition.longest_us
    # (@b + offset_b) - (@a + offset_a) between lo and hi, rewritten for stamps without offsets.
    shift = rule.b.offset_us - rule.a.offset_us
    sides = [
        RuleSide(sorted(s.stream for s in streams), *lengths_us(stream, streams, longest_us))
        for stream, streams in ((rule.a, placement.a), (rule.b, placement.b))
    ]
    return CompiledRule(
        DERIVED_PREFIX + rule.name,
        rule.condition.lo_us - shift,
        rule.condition.hi_us - shift,
        ct.numerator,
        ct.denominator,
        rule.key_equal,
        EDGE_READINGS,
        *sides,
    )
