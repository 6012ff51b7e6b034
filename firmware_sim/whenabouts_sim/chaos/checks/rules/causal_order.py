"""Order by vector clocks: on one gateway readings are in the order of their numbers; between two, one knew of the other.

A clock counts the members of a view, which the state readings of its gateway tell: each holds for the readings after it in
the same start, until the next. x was before y if y knew of a state of x's gateway that began after x, in the same view.
"""

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from whenabouts_protocol.group_state import PROCESS, VIEW
from whenabouts_sim.chaos.checks.landed import Id, LandedReading


class Place(NamedTuple):
    """The view of a reading's clock, and the number of its gateway in it."""

    view: int
    process: int


Places = Mapping[Id, Place]
"""Of the readings that have a place in a group."""


def places_of(readings: Iterable[LandedReading]) -> Places:
    """The places of readings, of which all that have landed are given."""
    found = dict[Id, Place]()
    start, told, left = None, None, set[int]()
    for one in sorted(readings, key=lambda one: one.identity):
        if one.identity[:3] != start:
            start, told, left = one.identity[:3], None, set()
        says = _told_by(one)
        if says is not None and says != told:
            left |= {told[0].view} if told else set()
            told = says
        if told is None:
            continue
        place, size = told
        if place.view not in left and size == len(one.vclock or ()) > 1:
            found[one.identity] = place
    return found


def _told_by(one: LandedReading) -> tuple[Place, int] | None:
    """The place that a state reading tells, and the size of its view."""
    attrs = json.loads(one.attrs) if one.attrs and VIEW in one.attrs else {}
    return (Place(attrs[VIEW], attrs[PROCESS]), len(one.vclock or ())) if PROCESS in attrs else None


def happened_before(places: Places, x: LandedReading, y: LandedReading) -> bool:
    """True if the clocks prove that x was before y."""
    if (x.site, x.gateway) == (y.site, y.gateway):
        return (x.boot, x.seq) < (y.boot, y.seq)
    mine, its = places.get(x.identity), places.get(y.identity)
    if mine is None or its is None or mine.view != its.view:
        return False
    knew, was = (y.vclock or ())[mine.process], (x.vclock or ())[mine.process]
    return knew > was
