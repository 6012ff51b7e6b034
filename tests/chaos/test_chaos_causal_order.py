"""Order by landed clocks: what a reading knew, in the view that the states of its gateway have told."""

import json

import pytest

from support.landed_readings import landed
from whenabouts_sim.chaos.checks.rules.causal_order import Place, happened_before, places_of


def of(gateway, seq, clock, view=None, boot=1):
    """A reading; with a view a state that tells it, (its number, the gateway's number in it)."""
    one = landed("shelf/tags", seq, 100 + seq, 100 + seq)._replace(gateway=gateway, boot=boot, vclock=clock)
    if view is None:
        return one
    return one._replace(kind="state", attrs=json.dumps({"$group": "staff", "$view": view[0], "$process": view[1]}))


TOLD = [of("gw-1", 0, [0, 0], (7, 0)), of("gw-2", 0, [0, 0], (7, 1))]


@pytest.mark.parametrize(
    ("x", "y", "is_before"),
    [
        (of("gw-1", 1, [3, 0]), of("gw-2", 1, [4, 0]), True),
        (of("gw-1", 1, [3, 0]), of("gw-2", 1, [3, 0]), False),
        (of("gw-2", 1, [0, 5]), of("gw-1", 1, [0, 6]), True),
        (of("gw-1", 1, [3, 0]), of("gw-1", 2, [3, 0]), True),
        (of("gw-1", 2, [3, 0]), of("gw-1", 1, [3, 0]), False),
        (of("gw-1", 9, [3, 0]), of("gw-1", 1, [0, 0], boot=2), True),
        (of("gw-1", 1, [3, 0], boot=2), of("gw-2", 1, [9, 0]), False),
        (of("gw-1", 1, [3]), of("gw-2", 1, [9]), False),
        (of("gw-1", 1, [3, 0, 0]), of("gw-2", 1, [9, 0, 0]), False),
    ],
    ids=[
        "it knew of a later state", "of this state only", "the other way round", "one gateway", "one gateway, later",
        "a later start", "a start whose view is not told", "no group", "clocks of another size",
    ],
)  # fmt: skip
def test_a_reading_was_before_another_if_that_knew_of_a_later_state(x, y, is_before):
    assert happened_before(places_of([*TOLD, x, y]), x, y) is is_before


def test_a_view_holds_until_the_next_and_not_once_more():
    """Views 7, 8 and 7 again, in any order of landing: counts of the third would be taken for those of the first."""
    told = [of("gw-1", seq, [0, 0], (view, 0)) for seq, view in ((0, 7), (2, 8), (4, 7))]
    read = [of("gw-1", seq, [1, 1]) for seq in (1, 3, 5)]
    places = places_of([*read, *told[::-1]])
    assert [places.get(one.identity) for one in read] == [Place(7, 0), Place(8, 0), None]


def test_a_state_that_repeats_the_view_begins_none():
    told = [of("gw-1", seq, [seq, 0], (7, 0)) for seq in (0, 1, 2)]
    assert len(places_of(told)) == 3
