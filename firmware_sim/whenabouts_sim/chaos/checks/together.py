"""Verdicts of DEFINITELY: none contradicts the world, each is certain, and none that stamps alone make certain is missing.

A state begins somewhere in its stamp. When the last of a verdict's states begins, all the others have begun and none has
ended, so at some moment of the latest begin all badges truly lay at their readers, as they have since their states began. A
badge has left when it certainly was not read for LEAVE_MS: a pause that stamps leave open is none. A gateway that misses
reads sees less, never more.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations, product

from whenabouts_cloud.rules.model import LatwinRule
from whenabouts_protocol.group_state import HEARTBEAT, KIND, PROCESS, VIEW
from whenabouts_sim.chaos.checks.landed import Id, Landed, LandedReading
from whenabouts_sim.chaos.checks.results import Told
from whenabouts_sim.chaos.parts.gateway_part import LEAVE_MS, badge_of
from whenabouts_sim.chaos.parts.job_rules import STATE
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting

UNSEEN_US = 3_000_000  # how far a stamp may reach that did not land
LONG_US = 60_000_000  # of DELAY: no state comes as late

Presence = tuple[int, int]
"""Begin and end, us since 1970 UTC."""


def presences(gateways: Iterable[str], sightings: Sequence[Sighting], landed: Landed) -> dict[str, list[Presence]]:
    """When the badge of each gateway was there: from its first read to LEAVE_MS after its last, in us since 1970 UTC.

    Reads whose stamps do not surely lie further apart belong together; one that did not land may have had any stamp.
    """
    found: dict[str, list[Presence]] = {}
    for gateway in gateways:
        stream = f"{badge_of(gateway)}/tags"
        stamps = [(one.t_min, one.t_max) for one in landed.readings if one.stream == stream]
        times = sorted(EPOCH_US + one.true_us for one in sightings if one.reader == badge_of(gateway))
        found[gateway], latest_us = [], 0
        for at_us in times:
            own = [(begin, end) for begin, end in stamps if begin <= at_us <= end]
            earliest_us = min((begin for begin, _ in own), default=at_us - UNSEEN_US)
            belongs = found[gateway] and earliest_us <= latest_us + LEAVE_MS * 1000
            begin_us = found[gateway].pop()[0] if belongs else at_us
            found[gateway].append((begin_us, at_us + LEAVE_MS * 1000))
            latest_us = max([latest_us, *(end for _, end in own)] if own else [latest_us, at_us + UNSEEN_US])
    return found


def broken_verdicts(
    rule: LatwinRule,
    gateways: Sequence[str],
    told: Told,
    landed: Landed,
    truth: Mapping[str, Sequence[Presence]],
    complete_us: int,
) -> Iterator[str]:
    """Verdicts that contradict the world, and certain ones that are missing. complete_us: before it, all was told.

    States that come later than DELAY are counted, not told: only with a long one must nothing be missing. A state that was
    lost is waited for as long.
    """
    of = {one.identity: one for one in landed.readings if one.kind == KIND}
    for verdict in told.results:
        states = [of[one] for one in verdict]
        begin_us, end_us = max(one.t_min for one in states), max(one.t_max for one in states)
        own = [[span for span in truth[one.gateway] if _overlap((one.t_min, one.t_max), [span])] for one in states]
        if not any(_overlap((begin_us, end_us), choice) for choice in product(*own)):
            yield f"{rule.name}: {verdict} was told, and the badges were not there at once in [{begin_us}, {end_us}]"
        for one, other in permutations(states, 2):
            end = _end_of_run(other, of.values())
            if end is not None and one.t_max > end.t_min and not _knew(end, one):
                yield f"{rule.name}: {verdict} was told, and {one.identity} may have begun after {end.identity}"
    if all(stream.delay_us >= LONG_US for stream in rule.streams) and not some_lost(of.values()):
        for verdict in certain_choices(gateways, list(of.values()), complete_us) - set(told.results):
            yield f"{rule.name}: {verdict} is certain by its stamps alone, and was not told"


def end_of(state: LandedReading, states: Iterable[LandedReading]) -> LandedReading | None:
    """The state that ended this one, if it has landed."""
    return next((one for one in states if _place(one)[:2] == _place(state)[:2] and _is_next(state, one)), None)


def _end_of_run(state: LandedReading, states: Iterable[LandedReading]) -> LandedReading | None:
    """The first state after this one in which its badge was not there, if all between have landed."""
    end = end_of(state, states)
    while end is not None and json.loads(end.attrs or "{}").get(STATE) is True:
        end = end_of(end, states)
    return end


def _is_next(state: LandedReading, one: LandedReading) -> bool:
    (*_, process), attrs = _place(state), json.loads(one.attrs or "{}")
    return not attrs.get(HEARTBEAT) and (one.vclock or ())[process] == (state.vclock or ())[process] + 1


def _knew(end: LandedReading, state: LandedReading) -> bool:
    """True if it was known at this end that the state of another gateway had begun."""
    *_, process = _place(state)
    return (end.vclock or ())[process] >= (state.vclock or ())[process]


def _place(one: LandedReading) -> tuple[str, int, int]:
    """Gateway, view, and the gateway's number in it."""
    attrs = json.loads(one.attrs or "{}")
    return one.gateway, attrs[VIEW], attrs[PROCESS]


def _overlap(span: Presence, others: Iterable[Presence]) -> bool:
    """True if some moment is in all of them."""
    spans = [span, *others]
    return max(begin for begin, _ in spans) <= min(end for _, end in spans)


def certain_choices(gateways: Sequence[str], states: Sequence[LandedReading], complete_us: int) -> set[tuple[Id, ...]]:
    """Choices of one run of each gateway, all of one view, that overlap wherever begins and ends lie in their stamps."""
    choices: list[tuple[tuple[LandedReading, LandedReading], ...]] = [()]
    for gateway in gateways:
        runs = list(_runs([one for one in states if one.gateway == gateway], complete_us))
        choices = [(*choice, run) for choice in choices for run in runs if all(_surely(run, other) for other in choice)]
    return {tuple(begin.identity for begin, _ in choice) for choice in choices}


def _surely(one: tuple[LandedReading, LandedReading], other: tuple[LandedReading, LandedReading]) -> bool:
    """True if each began before the other ended, in the same view."""
    (a, a_end), (b, b_end) = one, other
    return view_of(a) == view_of(b) and a.t_max < b_end.t_min and b.t_max < a_end.t_min


def _runs(states: Sequence[LandedReading], complete_us: int) -> Iterator[tuple[LandedReading, LandedReading]]:
    """State readings of a gateway with which its badge came, and went; in one view and with all that lies between."""
    begin: LandedReading | None = None
    for one in sorted(states, key=lambda one: (one.boot, one.seq)):
        attrs = json.loads(one.attrs or "{}")
        if attrs.get(HEARTBEAT):
            continue
        if begin is not None and view_of(one) != view_of(begin):
            begin = None
        present = attrs.get(STATE, one.value)
        if present in (True, "true") and begin is None:
            begin = one
        elif present not in (True, "true") and begin is not None:
            if one.t_max < complete_us:
                yield begin, one
            begin = None


def some_lost(states: Iterable[LandedReading]) -> bool:
    """True if a state of some gateway is missing, by the numbers of the others and of clock heartbeats."""
    numbers: dict[tuple[str, int], set[int]] = {}
    newest: dict[tuple[str, int], int] = {}
    for one in states:
        attrs = json.loads(one.attrs or "{}")
        place, number = (one.gateway, attrs[VIEW]), (one.vclock or ())[attrs[PROCESS]]
        newest[place] = max(number, newest.get(place, 0))
        if not attrs.get(HEARTBEAT):
            numbers.setdefault(place, set()).add(number)
    return any(number >= len(numbers.get(place, ())) for place, number in newest.items())


def view_of(one: LandedReading) -> int:
    return int(json.loads(one.attrs or "{}").get(VIEW, -1))
