"""The law of rules that gateways run themselves: its pairs are those of the definition on the readings of a start."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from whenabouts_protocol.messages.compiled_rule import DERIVED_PREFIX
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.checks.well import Spans
from whenabouts_sim.chaos.parts.gateway_part import GatewayPlan
from whenabouts_sim.chaos.parts.job_rules import near_rule
from whenabouts_sim.chaos.parts.rule_form import Near
from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan
from whenabouts_sim.world.clocks import EPOCH_US

PPM = US = 1_000_000
NEVER_US = 1 << 62
LOOK_US = 1_100_000  # the longest until an agent that looks once a second knows that UTC is known
BEFORE_US, AFTER_US = 500_000, 2_000_000  # a pair is told if its agent has run and runs for so long
Pair = tuple[int, int]
"""Numbers of both readings."""
Said = tuple[int, int, int]
"""Probability in millionths, and the stamp of the pair."""


def broken_derived(
    gateways: Sequence[GatewayPlan],
    landed: Landed,
    lives: Mapping[str, Spans],
    rotten: Collection[tuple[str, ...]],
    ran: Mapping[str, Mapping[Near, Spans]],
    clock_s: float = 0.0,
) -> Iterator[str]:
    """Pairs of gateways that are none, or are told wrongly or twice, and those that are missing. lives: by reader, when its
    agent surely could store. rotten: gateways that may have forgotten what they sent. ran: by site/name, when rules ran.
    clock_s: from one look at a clock to the next; 0: the usual second.
    """
    look_us = max(LOOK_US, int(clock_s * US) + LOOK_US // 10)
    for plan in gateways:
        own = [one for one in landed.readings if (one.site, one.gateway) == (plan.site, plan.name)]
        rules = ran[f"{plan.site}/{plan.name}"]
        if (plan.site, plan.name) in rotten:
            continue
        streams = {near.stream for near in rules}
        refuses = any(one.kind == "gap" and one.stream in streams for one in own)
        for boot in {one.boot for one in own}:
            of_boot = [one for one in own if one.boot == boot]
            named = f"{plan.name}: of {boot}"
            yield from (f"{named} {text}" for text in _wrong_clocks(of_boot))
            for stream in {one.stream for one in of_boot if one.stream.startswith(DERIVED_PREFIX)}:
                yield from (f"{named} {text}" for text in _wrong(stream, of_boot, rules))
            for near in () if refuses else rules:
                told = {pair for pair, _ in _told_in(near.stream, of_boot)}
                well = [both for one in lives[plan.readers[0][0]] for both in _within(one, rules[near])]
                for pair in _sure(near, of_boot, well, plan.clock, look_us) - told:
                    yield f"{named} the pair {pair} was not told in {near.stream}, though its agent was well"


def _within(span: Sequence[int], spans: Spans) -> Iterator[tuple[int, int]]:
    """What of a span is in others."""
    for since, until in spans:
        yield max(since, span[0]), min(until, span[1])


def _wrong(stream: str, of_boot: Sequence[LandedReading], rules: Mapping[Near, Spans]) -> Iterator[str]:
    """Pairs that were told twice, or not as by a rule of that name that ran."""
    wanted = [_wanted(near, of_boot) for near in rules if near.stream == stream]
    for (pair, said), count in Counter(_told_in(stream, of_boot)).items():
        if count > 1:
            yield f"the pair {pair} was told {count} times in {stream}"
        expected = [one.get(pair) for one in wanted]
        if said not in expected:
            yield f"the pair {pair} was told as {said} in {stream}, expected one of {expected}"


def _told_in(stream: str, of_boot: Sequence[LandedReading]) -> list[tuple[Pair, Said]]:
    found = (_told(one) for one in of_boot if one.stream == stream)
    return [(pair, said) for pair, said in found if pair is not None]


def _wanted(near: Near, readings: Sequence[LandedReading]) -> dict[Pair, Said]:
    """The pairs of the definition."""
    rule = near_rule(near)
    a, b = ([one for one in readings if one.stream == side.pattern and one.is_seen] for side in (rule.a, rule.b))
    found = {}
    for x in a:
        for y in b:
            ends = x.t_min, x.t_max, y.t_min, y.t_max
            if x.key == y.key and rule.condition.holds(*ends):
                num, den = rule.condition.ratio(*ends)
                found[x.seq, y.seq] = num * PPM // den, max(x.t_min, y.t_min), max(x.t_max, y.t_max)
    return found


def _wrong_clocks(readings: Sequence[LandedReading]) -> Iterator[str]:
    """Pairs whose clock is neither that of both sources together nor, if they are of different views, that of one."""
    of = {one.seq: one for one in readings}
    for one in readings:
        pair, _ = _told(one)
        if pair is None or not of.keys() >= set(pair):
            continue
        a, b = (list(of[seq].vclock or ()) for seq in pair)
        possible = [a, b, [max(counts) for counts in zip(a, b, strict=True)]] if len(a) == len(b) else [a, b]
        if list(one.vclock or ()) not in possible:
            yield f"the pair {pair} was told with the clock {one.vclock}, expected one of {possible}"


def _told(one: LandedReading) -> tuple[Pair | None, Said]:
    """What a derived reading says; no pair if it is another reading, or if one of its sources was refused."""
    is_pair = one.stream.startswith(DERIVED_PREFIX) and one.kind == "measure"
    attrs = json.loads(one.attrs or "{}") if is_pair else {}
    pair = (attrs["a_seq"], attrs["b_seq"]) if "a_seq" in attrs and "b_seq" in attrs else None
    return pair, (int(one.value or 0) if pair else 0, one.t_min, one.t_max)


def _sure(near: Near, readings: Sequence[LandedReading], spans: Spans, clock: ClockPlan, look_us: int) -> set[Pair]:
    """The pairs of which no agent has an excuse; a stamp that is longer than declared may have missed its partner."""
    wanted = _wanted(near, readings)
    usual = [one for one in readings if one.t_max - one.t_min <= 1000 * near.length_ms]
    sure = set[Pair]()
    for since, until in spans:
        well = {
            one.seq
            for one in usual
            if since + BEFORE_US <= one.t_min and _dated_us(one, clock, look_us) <= until - AFTER_US
        }
        sure |= {pair for pair in wanted if well.issuperset(pair)}
    return sure


def _dated_us(one: LandedReading, clock: ClockPlan, look_us: int) -> int:
    """When a reading got its stamp: at once, or when UTC was known and the agent had looked at its clock."""
    at_us = one.t_max - EPOCH_US
    dated = ((max(begin_us + look_us, at_us), end_us) for begin_us, end_us, _ in clock.known)
    return EPOCH_US + min((us for us, end_us in dated if us < end_us), default=NEVER_US)
