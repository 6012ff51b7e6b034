"""What a rule of SEQ has told are the matches of its definition, on what landed in time; retractions follow results."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from whenabouts_cloud.rules.model import CepRule
from whenabouts_sim.chaos.checks.landed import Id, LandedReading
from whenabouts_sim.chaos.checks.lateness import longest_event_us, moved
from whenabouts_sim.chaos.checks.results import Told
from whenabouts_sim.chaos.checks.rules.causal_order import Places
from whenabouts_sim.chaos.checks.rules.gaps import has_gap_at_end, has_gaps
from whenabouts_sim.chaos.checks.rules.matches import matches


def broken_matches(
    rule: CepRule, told: Told, readings: Sequence[LandedReading], complete_us: int, places: Places | None = None
) -> Iterator[str]:
    """Matches that are none, and missing ones. complete_us: before it, all was told. What is late has no effect. places:
    those of the readings in a group.
    """
    aside = told.late | told.too_long
    in_time = [moved(rule, one) for one in readings if one.identity not in aside]
    of = {one.identity: one for one in readings}
    certain = {tuple(one.identity for one in chosen): chosen for chosen in matches(rule, in_time, places or {})}
    yield from _broken_retractions(rule, told)
    mine = set(told.results) - {row.readings for row in told.retracted}
    for result in mine - certain.keys():
        if _is_forgotten(rule, [of[one] for one in result if one in of], in_time):
            continue
        yield f"{rule.name}: {_shown(result, of)} was told, and is no result"
    decided_us = complete_us + min(stream.offset_us for stream in rule.streams) - wait_us(rule)
    for result in certain.keys() - mine:
        if all(one.t_max < decided_us for one in certain[result]) and not _is_forgotten(rule, certain[result], in_time):
            yield f"{rule.name}: {_shown(result, of)} is a result, and was not told"


def _is_forgotten(rule: CepRule, match: Sequence[LandedReading], readings: Sequence[LandedReading]) -> bool:
    """True if a rule may have forgotten events before it decided on a match: one that waits for others, or for clocks, waits
    as long as LENGTH declares, and a stamp is longer, or OFFSET sets streams further apart. With SKIP that may be one of
    another match, which has its place.
    """
    concerned = match
    if rule.pattern.skip != "none":
        keys = {one.key for one in match}
        concerned = [one for one in readings if one.key in keys or not rule.pattern.per_key]
    elif rule.pattern.mode != "causal":
        return False
    offsets = [stream.offset_us for stream in rule.streams]
    if rule.pattern.mode == "causal" and max(offsets) - min(offsets) > longest_event_us(rule):
        return True
    return any(one.t_max - one.t_min > longest_event_us(rule) for one in concerned)


def _broken_retractions(rule: CepRule, told: Told) -> Iterator[str]:
    """A match is retracted once, after it was told; one that is not told on arrival never is."""
    batches = {row.readings: row.batch for row in told.rows}
    for result, count in Counter(row.readings for row in told.retracted).items():
        if count > 1:
            yield f"{rule.name}: {result} was retracted {count} times"
    for row in told.retracted:
        if rule.pattern.emit == "sure" or row.batch < batches.get(row.readings, row.batch + 1):
            yield f"{rule.name}: {row.readings} was retracted, and had not been told before"


def wait_us(rule: CepRule) -> int:
    """How long after its end a match is told at the latest. A forbidden event may be as long as the longest, and so come
    that much later; one behind the last element may lie as far as the window. SKIP waits for matches that begin earlier.
    """
    window_us, longest_us = rule.pattern.window_us, longest_event_us(rule)
    if rule.pattern.skip != "none":
        return window_us + longest_us * skip_lengths(rule)
    return (window_us if has_gap_at_end(rule) else 0) + (longest_us if has_gaps(rule) else 0)


def skip_lengths(rule: CepRule) -> int:
    """How many of the longest stamps SKIP waits behind the begin of a match and its window, until all before it are known.

    One for what may lie in a gap, one for the end of the first event, from which a gap at the end is counted. If the window
    is only possible, the last event may be outside it for some times: one for its own end, and one for that of the first.
    """
    if rule.pattern.mode == "certain":
        return 2 if has_gap_at_end(rule) else 1
    return 3 if has_gaps(rule) else 2


def _shown(result: tuple[Id, ...], of: Mapping[Id, LandedReading]) -> str:
    readings = [of[one] for one in result if one in of]
    return " with ".join(f"{one.stream} {one.key} [{one.t_min}, {one.t_max}]" for one in readings)
