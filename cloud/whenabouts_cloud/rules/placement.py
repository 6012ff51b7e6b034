"""Where each rule runs, and the form in which a gateway gets it.

Pure: given the rules and which gateway has which streams (from births), every rule gets its place. A rule whose streams are
all on one gateway runs there, at once and without the network; AT EDGE and AT CLOUD force it. Only streams that are
announced count: when a birth brings a new one that a pattern covers, plan again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from whenabouts_cloud.rules.model import CorrelateRule, Rule, Stream
from whenabouts_protocol import Birth
from whenabouts_protocol.compiled_rule import (
    DERIVED_PREFIX,
    MAX_RULE_STREAMS,
    MAX_RULES,
    MAX_SPAN_US,
    CompiledRule,
    RuleSide,
)

EDGE_READINGS = 20_000  # that one rule may make a gateway keep, 7 MB on CPython; a board sets its own lower limit


@dataclass(frozen=True)
class GatewayStream:
    """A stream that a gateway has; site None stands for any site, length_us_max None for stamps of unknown length."""

    stream: str
    gateway: str
    site: str | None = None
    length_us_max: int | None = None

    @property
    def place(self) -> str:
        """The gateway with its site, as people write it."""
        return self.gateway if self.site is None else f"{self.site}/{self.gateway}"


@dataclass(frozen=True)
class Placement:
    """Where a rule runs and why; for the edge with its gateway (of both sides) and the streams it takes there."""

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
    """The streams of readers that gateways told of in their births; what rules derive there is none of them."""
    found = []
    for birth in births:
        for row in birth.streams:
            name, length_us_max = str(row[0]), row[4]
            if not name.startswith(DERIVED_PREFIX):
                found.append(GatewayStream(name, birth.gateway, birth.site, int(length_us_max or 0)))
    return found


def place(rules: Sequence[Rule], streams: Sequence[GatewayStream]) -> list[Placement]:
    """The placement of each rule, in their order.

    Raises:
        PlanError: AT EDGE is impossible; all such rules at once.
    """
    placements, mistakes = [], []
    busy: dict[tuple[str | None, str], int] = {}
    for rule in rules:
        found = _place(rule, streams)
        if found.gateway is not None:
            busy[found.gateway] = busy.get(found.gateway, 0) + 1
            if busy[found.gateway] > MAX_RULES:
                found = Placement(rule, "cloud", f"{found.a[0].place} runs {MAX_RULES} rules already")
        if rule.place == "edge" and found.where == "cloud":
            mistakes.append(f"rule {rule.name}: found AT EDGE, but {found.reason}; expected AT CLOUD or nothing")
        placements.append(found)
    if mistakes:
        raise PlanError(mistakes)
    return placements


def compile_rules(placements: Iterable[Placement], site: str | None, gateway: str) -> list[CompiledRule]:
    """What a gateway must run, for `whenabouts_protocol.compiled_rule.encode_rules`."""
    return [_compiled(p) for p in placements if p.gateway == (site, gateway)]


def lengths_us(stream: Stream, streams: Sequence[GatewayStream], longest_us: int) -> tuple[int, int]:
    """(rho, pi) to expect of a stream: as promised in the rules, as announced, and not longer than can ever match."""
    rho, pi = stream.length_us or (0, longest_us)
    known = [s.length_us_max for s in streams]
    if known and None not in known:
        pi = min(pi, max(x for x in known if x is not None))
    pi = min(pi, longest_us, MAX_SPAN_US)
    return min(rho, pi), pi


def _place(rule: Rule, streams: Sequence[GatewayStream]) -> Placement:
    if rule.place == "cloud":
        return Placement(rule, "cloud", "AT CLOUD says so")
    if not isinstance(rule, CorrelateRule):
        return Placement(rule, "cloud", "a gateway runs CORRELATE rules only")
    if rule.kind != "inner" or rule.top_k is not None:
        return Placement(rule, "cloud", "a gateway finds all pairs, nothing else")
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


def _covers(stream: Stream, found: GatewayStream) -> bool:
    site = stream.site or "" if found.site is None else found.site
    return not found.stream.startswith(DERIVED_PREFIX) and stream.matches(site, found.stream)


def _compiled(placement: Placement) -> CompiledRule:
    rule = placement.rule
    assert isinstance(rule, CorrelateRule)  # no other is ever placed on a gateway
    ct, longest_us = rule.condition.ct, rule.condition.longest_us
    # (@b + offset_b) - (@a + offset_a) between lo and hi, said about the stamps as they are.
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
