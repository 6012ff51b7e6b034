"""The laws of further values of a local state: each change happened in its stamp, none that surely happened is missing, and
no state begins with two changes of which one may have come first.

A presence begins with the reads-th read without a pause and ends leave_ms after the last one. A measure changes when it has
been beyond a threshold for hold_ms. Where stamps leave open whether there was a change, there was none.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from whenabouts_sim.chaos.checks.gateways.states import states_of
from whenabouts_sim.chaos.checks.gateways.visits import pauses
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.parts.gateway_part import GatewayPlan, badge_key, badge_of
from whenabouts_sim.chaos.parts.job_rules import STATE
from whenabouts_sim.chaos.parts.state_form import Stays, Warm
from whenabouts_sim.readers.line import temperature
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting

UNSEEN_US = 3_000_000  # how far a stamp may reach that did not land


class _State(NamedTuple):
    view: int
    number: int
    reading: LandedReading
    values: Mapping[str, bool]

    def is_next_to(self, before: "_State") -> bool:
        return (before.view, before.number + 1) == (self.view, self.number)


class _Read(NamedTuple):
    """A true time, the bounds of its stamps, and which threshold it is beyond."""

    at_us: int
    earliest_us: int
    latest_us: int
    side: bool | None = None


def broken_further_states(
    gateways: Sequence[GatewayPlan],
    reported: Sequence[Sighting],
    landed: Landed,
    rotten: Collection[tuple[str, ...]],
    seed: int,
) -> Iterator[str]:
    """Changes of further values that are told and did not happen, or happened and are not told. reported: what readers
    could tell. rotten: gateways that may have forgotten what they sent. seed: of what sensors measure.
    """
    for plan in gateways:
        if not plan.further or (plan.site, plan.name) in rotten:
            continue
        found = sorted(_states_of(landed, plan), key=lambda one: one[:2])
        pairs = [(one, following) for one, following in pairwise(found) if following.is_next_to(one)]
        for before, after in pairs:
            changed = [x for x in after.values if before.values.get(x, after.values[x]) is not after.values[x]]
            if len(changed) > 1:
                yield f"{plan.name}: {after.reading.identity} begins with {changed}, of which one may have changed first"
        for form in plan.further:
            law: _Presence | _Measure
            if isinstance(form, Stays):
                law = _Presence(form, plan, reported, landed)
            else:
                law = _Measure(form, plan, reported, landed, seed)
            for before, after in pairs:
                was, value = before.values.get(form.name), after.values.get(form.name)
                if None not in (was, value) and was is not value and not law.may_change(bool(value), after.reading):
                    stamp = f"[{after.reading.t_min}, {after.reading.t_max}]"
                    yield f"{plan.name}: {form.name} is {value} from {stamp} on, and did not change then"
                if was is not None and (text := law.changed(was, before.reading.t_max, after.reading.t_min)):
                    yield f"{plan.name}: {form.name} is {was} in {before.reading.identity}, and {text}"


class _Presence:
    def __init__(self, form: Stays, plan: GatewayPlan, reported: Sequence[Sighting], landed: Landed) -> None:
        reader = badge_of(plan.name)
        self._form, self._leave_us = form, form.leave_ms * 1000
        self._slack_us = self._leave_us // 5  # a gateway's clock may be slewed by a twelfth
        reads = [one for one in landed.readings if one.stream == f"{reader}/tags"]
        self._reads = list(_reads(reported, reader, badge_key(plan.name), reads))
        self._ends = [
            one.at_us
            for one, following in pairwise(self._reads)
            if following.at_us - one.at_us > self._leave_us - self._slack_us
        ] + [one.at_us for one in self._reads[-1:]]
        is_told = not any(one.kind == "gap" for one in reads)  # else the stamps of some reads are not known
        surely_us, times = self._leave_us + self._slack_us, [one.at_us for one in self._reads]
        self._left = [one + surely_us for one, _ in pauses(times, reads, (), surely_us)] if is_told else []

    def may_change(self, value: bool, one: LandedReading) -> bool:
        if value:
            return any(one.t_min <= at_us <= one.t_max for at_us in self._arrivals())
        moments = (end_us + self._leave_us for end_us in self._ends)
        return any(one.t_min - self._slack_us <= at_us <= one.t_max + self._slack_us for at_us in moments)

    def changed(self, was: bool, since_us: int, until_us: int) -> str:
        """The change that surely happened in a time in which the value is told to be the same."""
        if was:
            found = [at_us for at_us in self._left if since_us < at_us < until_us]
            return f"its badge had left by {found[0]}" if found else ""
        run, before_us = 0, since_us - self._leave_us
        for at_us in (x.at_us for x in self._reads if since_us < x.at_us < until_us):
            run = run + 1 if at_us - before_us < self._leave_us - self._slack_us else 1
            before_us = at_us
            if run >= self._form.reads:
                return f"its badge had been read {run} times by {at_us}"
        return ""

    def _arrivals(self) -> Iterator[int]:
        """Reads with which a presence can begin: enough came before without a pause that is certain."""
        count, latest_us = 0, 0
        for one in self._reads:
            count = count + 1 if one.earliest_us <= latest_us + self._leave_us + self._slack_us else 1
            latest_us = max(latest_us, one.latest_us)
            if count >= self._form.reads:
                yield one.at_us


class _Measure:
    def __init__(self, form: Warm, plan: GatewayPlan, reported: Sequence[Sighting], landed: Landed, seed: int) -> None:
        self._hold_us = form.hold_ms * 1000
        self._slack_us = self._hold_us // 5
        own = [one for one in landed.readings if (one.site, one.gateway) == (plan.site, plan.name)]
        stamps = [one for one in own if one.stream == form.stream]
        readers = {reader for reader, stream in plan.readers if stream == form.stream}
        self._reads = [
            read._replace(side=form.side(temperature(seed, one.reader, one.number, EPOCH_US + one.true_us)))
            for one in sorted(reported)
            if one.reader in readers
            for read in _reads([one], one.reader, one.key, stamps)
        ]

    def may_change(self, value: bool, one: LandedReading) -> bool:
        return any(
            one.t_min - self._slack_us <= x.at_us + self._hold_us <= one.t_max + self._slack_us and self._lasts(x)
            for x in self._reads
            if x.side is value
        )

    def changed(self, was: bool, since_us: int, until_us: int) -> str:
        """The change that surely happened in a time in which the value is told to be the same."""
        longest_us = self._hold_us + self._slack_us
        for x in self._reads:
            is_within = since_us < x.earliest_us and x.latest_us + longest_us < until_us
            if is_within and x.side is (not was) and self._surely_lasts(x, longest_us):
                return f"what it measured of {x.at_us} on says the other for {self._hold_us} us"
        return ""

    def _lasts(self, first: _Read) -> bool:
        end_us = first.at_us + self._hold_us - self._slack_us
        return all(x.side is first.side for x in self._reads if first.at_us < x.at_us < end_us)

    def _surely_lasts(self, first: _Read, longest_us: int) -> bool:
        others = (x for x in self._reads if x.side is not first.side)
        return all(x.latest_us < first.earliest_us or x.earliest_us > first.latest_us + longest_us for x in others)


def _reads(reported: Iterable[Sighting], reader: str, key: str, stamps: Sequence[LandedReading]) -> Iterator[_Read]:
    """What a reader has told of a key; a stamp that did not land may reach far."""
    for at_us in sorted(EPOCH_US + one.true_us for one in reported if one.reader == reader and one.key == key):
        own = [one for one in stamps if one.key == key and one.t_min <= at_us <= one.t_max]
        yield _Read(
            at_us,
            min((one.t_min for one in own), default=at_us - UNSEEN_US),
            max((one.t_max for one in own), default=at_us + UNSEEN_US),
        )


def _states_of(landed: Landed, plan: GatewayPlan) -> Iterator[_State]:
    names = {STATE, *(form.name for form in plan.further)}
    for view, number, one, _ in states_of(landed, plan.site, plan.name):
        attrs = json.loads(one.attrs or "{}")
        yield _State(view, number, one, {name: attrs[name] for name in names & attrs.keys()})
