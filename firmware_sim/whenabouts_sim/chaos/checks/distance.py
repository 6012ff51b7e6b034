"""What a rule of pairs says of the distance of two landed stamps, and when a reading of one side is forgotten.

OFFSETs would move both stamps before they are compared. Here they move the limits instead, so stamps stay as they landed.
"""

from collections.abc import Mapping
from fractions import Fraction

from whenabouts_cloud.rules.model import CorrelateRule, Stream
from whenabouts_sim.chaos.checks.landed import LandedReading
from whenabouts_sim.judge.truth import within_probability


def limits_us(rule: CorrelateRule) -> tuple[int, int]:
    """The least and the greatest distance of b after a."""
    moved_us = rule.b.offset_us - rule.a.offset_us
    return rule.condition.lo_us - moved_us, rule.condition.hi_us - moved_us


def probability(rule: CorrelateRule, a: LandedReading, b: LandedReading) -> Fraction:
    """That the distance is within the limits, exactly; in half microseconds, so that the middle of the limits is whole."""
    lo, hi = limits_us(rule)
    middle = lo + hi
    return within_probability(2 * a.t_min + middle, 2 * a.t_max + middle, 2 * b.t_min, 2 * b.t_max, hi - lo)


def in_order_probability(a: LandedReading, b: LandedReading, window_us: int) -> Fraction:
    """That b is after a and at most the window later, each true time uniform in its stamp and independent of the other."""
    return within_probability(2 * a.t_min + window_us, 2 * a.t_max + window_us, 2 * b.t_min, 2 * b.t_max, window_us)


def useful_us(rule: CorrelateRule) -> int:
    """The longest stamp that can be in a pair: of a longer one the limits cover a smaller share than is asked for."""
    lo, hi = limits_us(rule)
    return int((hi - lo) / rule.condition.ct)


def longest_us(rule: CorrelateRule, stream: Stream) -> int:
    """The longest stamp of a stream that is waited for: as declared, and no longer than any that can be in a pair."""
    return useful_us(rule) if stream.length_us is None else min(useful_us(rule), stream.length_us[1])


def horizons(rule: CorrelateRule, frontiers: Mapping[str, int | None]) -> tuple[int, int] | None:
    """For a and b the end before which readings are forgotten: neither future ones of the other side need them, nor late
    ones of their own side could pair with what is left. None while a frontier is unknown.
    """
    a_us, b_us = frontiers.get(rule.a.name), frontiers.get(rule.b.name)
    if a_us is None or b_us is None:
        return None
    lo, hi = limits_us(rule)
    a_longest, b_longest = longest_us(rule, rule.a), longest_us(rule, rule.b)
    grace = hi - lo + a_longest + b_longest
    return min(b_us - hi - b_longest, a_us - grace), min(a_us + lo - a_longest, b_us - grace)
