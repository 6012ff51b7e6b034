"""The conditions of schedules by their meaning: on the events of a match, and on what a forbidden element selects.

A condition that names a repeated element holds if it does for each of its events. One that names a forbidden element selects
what is forbidden. One that names an element that a match lacks says nothing of this match.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from whenabouts_cloud.rules.model import CepRule
from whenabouts_sim.chaos.checks.landed import LandedReading

Named = Mapping[str, Sequence[LandedReading]]
"""The events of a match by the names of their elements."""

_Meaning = Callable[..., bool]  # of an event for each of its names

HOLDS: dict[str, tuple[str, _Meaning]] = {
    "(a.t_max - a.t_min) < 400000": ("a", lambda a: a.t_max - a.t_min < 400_000),
    "(e.t_min - a.t_max) < 600000": ("ae", lambda a, e: e.t_min - a.t_max < 600_000),
    "a.gateway = e.gateway": ("ae", lambda a, e: a.gateway == e.gateway),
    'e.site != "hall"': ("e", lambda e: e.site != "hall"),
    "c.gateway = a.gateway": ("ac", lambda a, c: c.gateway == a.gateway),
    "(c.t_max - c.t_min) > 20000": ("c", lambda c: c.t_max - c.t_min > 20_000),
    "(c.t_min - a.t_min) < 700000": ("ac", lambda a, c: c.t_min - a.t_min < 700_000),
}
"""By the text of a condition, as `Expression.text` gives it: the names in it, and its meaning."""


def hold(rule: CepRule, named: Named) -> bool:
    """True if the conditions on events hold for these."""
    return all(_is_true(meaning, names, named) for names, meaning in _conditions(rule) if named.keys() >= set(names))


def selects(rule: CepRule, name: str, one: LandedReading, named: Named) -> bool:
    """True if the conditions on a forbidden element, as which no other is named, do not leave this event out."""
    with_it = {**named, name: [one]}
    return all(_is_true(meaning, names, with_it) for names, meaning in _conditions(rule) if name in names)


def _conditions(rule: CepRule) -> Iterator[tuple[str, _Meaning]]:
    return (HOLDS[one.text()] for one in rule.pattern.where)


def _is_true(meaning: _Meaning, names: str, named: Named) -> bool:
    return all(meaning(*chosen) for chosen in product(*(named[name] for name in names)))
