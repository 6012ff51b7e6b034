"""When a choice of events is a match: wherever in their stamps they lie, for some times, by probability, or by clocks."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import permutations, product
from typing import NamedTuple

from whenabouts_cloud.rules.model import CepRule
from whenabouts_sim.chaos.checks.distance import in_order_probability
from whenabouts_sim.chaos.checks.landed import LandedReading
from whenabouts_sim.chaos.checks.rules.causal_order import Places, happened_before
from whenabouts_sim.chaos.checks.rules.gaps import Gap

Before = Callable[[LandedReading, LandedReading], bool]
"""For CERTAIN and CAUSAL: the one is before the other; for POSSIBLE and OVER: it may be."""


class Case(NamedTuple):
    """A choice of events, each before the next, and for each gap the events that it forbids. window_us: the longest time
    from the first to the last event; is_below: it must be shorter than that.
    """

    events: tuple[LandedReading, ...]
    gaps: Sequence[tuple[Gap, Sequence[LandedReading]]]
    window_us: int
    is_below: bool
    is_before: Before

    @property
    def longest_us(self) -> int:
        """The longest time in whole microseconds that the window allows."""
        return self.window_us - self.is_below


def order_of(rule: CepRule, places: Places) -> Before:
    """The order of two events that a rule asks for. places: those of readings in a group."""
    orders: dict[str, Before] = {
        "certain": lambda x, y: x.t_max < y.t_min,
        "possible": lambda x, y: x.t_min < y.t_max,
        "over": lambda x, y: x.t_min < y.t_max,
        "causal": partial(happened_before, places),
    }
    return orders[rule.pattern.mode]


def is_match(rule: CepRule, case: Case) -> bool:
    """True if the events keep window and gaps, as the rule asks for it."""
    holds: dict[str, Callable[[Case], bool]] = {
        "certain": _is_certain,
        "possible": _is_possible,
        "over": partial(_is_over, rule.pattern.probability),
        "causal": _is_causal,
    }
    return holds[rule.pattern.mode](case)


def _is_certain(case: Case) -> bool:
    """True if window and gaps are kept wherever in their stamps all events lie."""
    longest_us = max(x.t_max - y.t_min for x, y in permutations(case.events, 2))
    return longest_us <= case.longest_us and not any(_may_lie(case, gap, x) for gap, some in case.gaps for x in some)


def _may_lie(case: Case, gap: Gap, x: LandedReading) -> bool:
    """True if for some choice of times x lies in the gap."""
    first, last = case.events[0], case.events[-1]
    begins = x.t_max >= last.t_min - case.longest_us if gap.before is None else x.t_max > case.events[gap.before].t_min
    ends = x.t_min <= first.t_max + case.longest_us if gap.behind is None else x.t_min < case.events[gap.behind].t_max
    return begins and ends


def _is_over(least: Fraction, case: Case) -> bool:
    """True if two events are in order and within the window with at least this probability."""
    assert not case.gaps
    assert not case.is_below
    a, b = case.events
    return in_order_probability(a, b, case.window_us) >= least


def _is_causal(case: Case) -> bool:
    """True if the window is possible, and no forbidden event is known to lie in a gap."""
    apart_us = max(one.t_min for one in case.events) - min(one.t_max for one in case.events)
    return apart_us <= case.longest_us and not any(_lies(case, gap, x) for gap, some in case.gaps for x in some)


def _lies(case: Case, gap: Gap, x: LandedReading) -> bool:
    """True if x is known to be behind the event before a gap and before the one behind it; at an edge: in the window."""
    if gap.before is None:
        begins = x.t_max >= max(one.t_min for one in case.events) - case.longest_us
    else:
        begins = case.is_before(case.events[gap.before], x)
    if gap.behind is None:
        ends = x.t_min <= min(one.t_max for one in case.events) + case.longest_us
    else:
        ends = case.is_before(x, case.events[gap.behind])
    return begins and ends


def _is_possible(case: Case) -> bool:
    """True if for some choice of times order, window and gaps are kept.

    A forbidden event leaves its gap on one side or on the other. Either way a single event is held early or late enough; all
    combinations are tried. Times are real numbers: one place in many between two microseconds is enough for `before`.
    """
    count = len(case.events)
    fine = 4 * count  # ticks of a microsecond
    begins, ends = [one.t_min * fine for one in case.events], [one.t_max * fine for one in case.events]
    window = case.window_us * fine - case.is_below
    sides = [_leaves(case, gap, x, fine, window) for gap, some in case.gaps for x in some]
    for chosen in product(*sides):
        earliest, latest = list(begins), list(ends)
        for place, low, high in chosen:
            earliest[place], latest[place] = max(earliest[place], low), min(latest[place], high)
        if _fits(earliest, latest, window):
            return True
    return False


_NEVER, _FOREVER = -(1 << 80), 1 << 80


def _leaves(case: Case, gap: Gap, x: LandedReading, fine: int, window: int) -> tuple[tuple[int, int, int], ...]:
    """The two ways in which x is outside a gap: (number of an event, the least and the greatest time it may have then)."""
    last = len(case.events) - 1
    low, high = x.t_min * fine, x.t_max * fine
    if gap.before is None:  # before the window of the last event
        is_before = (last, low + window + 1, _FOREVER)
    else:
        is_before = (gap.before, low, _FOREVER)
    if gap.behind is None:
        is_behind = (0, _NEVER, high - window - 1)
    else:
        is_behind = (gap.behind, _NEVER, high)
    return is_before, is_behind


def _fits(earliest: Sequence[int], latest: Sequence[int], window: int) -> bool:
    """True if there are times in these bounds, each after the one before, the last at most a window after the first."""
    time = earliest[0] - 1
    for low, high in zip(earliest, latest, strict=True):
        time = max(low, time + 1)
        if time > high:
            return False
    end = begin = time  # the last is as early as can be; the others are as late as that allows
    for high in reversed(latest[:-1]):
        begin = min(high, begin - 1)
    return end - begin <= window
