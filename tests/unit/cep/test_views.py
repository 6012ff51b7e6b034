"""The view whose states a vector clock counts: state readings give it for the readings after them."""

import json

import numpy as np
import pyarrow as pa
import pytest

from support.cep.landing import CAUSAL, events_table, rule
from support.cloud.landing import EPOCH_US, reading, table
from whenabouts_cloud.blobs import joined, of_bytes, parted, to_bytes
from whenabouts_cloud.cep.shard.views import PER_BOOT, PER_GATEWAY, STATE, Views, runs_of
from whenabouts_cloud.cep.uncertain.causal import Clocks


def state(gateway, seq, view, process, vclock, boot=1):
    """A state reading that names a view."""
    row = reading(gateway, seq, "state", None, EPOCH_US, EPOCH_US, boot=boot, kind="state")
    return row | {"attrs": json.dumps({"$group": "g", "$view": view, "$process": process}), "vclock": vclock}


def tag(gateway, seq, vclock, boot=1):
    return reading(gateway, seq, "shelf/1", "x", EPOCH_US, EPOCH_US, boot=boot) | {"vclock": vclock}


def views(*rows):
    known = Views()
    known.add(runs_of(table(rows).select(STATE)))
    return known


def clocks(known, *rows):
    return known.clocks_of(events_table(rule(CAUSAL), rows))


def test_a_view_holds_from_the_reading_that_names_it_to_the_next():
    """Number 3 is in the view of number 2, number 7 in that of 5, number 1 in none.

    seq      1   2     3   5     7
             x   view  x   view  x
    """
    known = views(state("g0", 2, 71, 0, [0, 0]), state("g0", 4, 71, 0, [1, 0]), state("g0", 5, 72, 1, [0, 0, 0]))
    result = clocks(known, tag("g0", 1, [0, 0]), tag("g0", 3, [4, 0]), tag("g0", 7, [0, 3, 0]))
    assert result.process.tolist() == [-1, 0, 1]
    assert len(set(result.view.tolist()[1:])) == 2
    assert result.vectors.tolist() == [[0, 0, 0], [4, 0, 0], [0, 3, 0]]


@pytest.mark.parametrize("vclock", [[], [0], [0, 0, 0]])
def test_a_clock_of_another_length_has_no_place(vclock):
    """No entry, only the gateway's own entry, or the length of another view."""
    result = clocks(views(state("g0", 0, 71, 0, [0, 0])), tag("g0", 1, vclock))
    assert result.process.tolist() == [-1]


def test_another_boot_or_gateway_has_its_own_view():
    """Equal numbers of another boot or gateway name no view."""
    result = clocks(views(state("g0", 0, 71, 0, [0, 0])), tag("g0", 1, [0, 0], boot=2), tag("g1", 1, [0, 0]))
    assert result.process.tolist() == [-1, -1]


def test_a_view_that_returns_in_a_boot_gives_no_place():
    """Its counts restarted: 0 there is not the earlier 0."""
    known = views(*(state("g0", n, view, 0, [0, 0]) for n, view in enumerate([71, 72, 71])))
    result = clocks(known, *(tag("g0", n, [0, 0]) for n in range(3)))
    assert result.process.tolist() == [0, 0, -1]


def test_readings_with_a_known_view_or_without_a_group_are_known():
    """A reading with a group's clock waits for its view; order and repetition of the state readings do not matter."""
    rows = [state("g0", n, 71 + n // 2, 0, [n, 0]) for n in range(4)]
    whole, bit_by_bit = views(*rows), Views()
    for n in (2, 0, 3, 1, 2):
        bit_by_bit.add(runs_of(table([rows[n]]).select(STATE)))
    assert bit_by_bit.table().equals(whole.table())
    assert whole.table().num_rows == 2
    events = events_table(rule(CAUSAL), [tag("g0", 1, [0, 0]), tag("g1", 1, [0, 0]), tag("g1", 2, [0])])
    assert whole.known(events).tolist() == [True, False, True]


def test_only_the_newest_views_are_known():
    """Of a boot, and of a gateway's boots."""
    many = views(*(state("g0", n, n, 0, [0, 0]) for n in range(PER_BOOT + 1)))
    assert many.table()["seq"].to_pylist() == list(range(1, PER_BOOT + 1))
    boots = views(*(state("g0", 0, 7, 0, [0, 0], boot=n) for n in range(PER_GATEWAY + 1)))
    assert boots.table()["boot"].to_pylist() == list(range(1, PER_GATEWAY + 1))


@pytest.mark.parametrize("attrs", [None, "{", "[]", '{"$view": 1}', '{"$group": "g", "$view": "1", "$process": 0}'])
def test_state_readings_that_name_no_view_are_skipped(attrs):
    """Damaged, or not about a group."""
    assert runs_of(table([state("g0", 0, 1, 0, [0, 0]) | {"attrs": attrs}]).select(STATE)).num_rows == 0


def test_clocks_of_different_views_or_none_prove_nothing_between_gateways():
    """0 and 1 are in one view; 2 and 4 in the next, 4 on the gateway of 0 in a later boot; 3 is in none."""
    one = Clocks(
        np.array([[0, 0], [1, 0], [9, 0], [9, 9], [0, 0]]), np.array([0, 1, 1, -1, 0]), np.arange(5),
        np.array([0, 1, 1, 3, 0]), np.array([1, 1, 1, 1, 2]), np.array([71, 71, 72, 71, 72]),
    )  # fmt: skip
    known = [[bool(one.before(np.array([x]), np.array([y]))[0]) for y in range(5)] for x in range(5)]
    wanted = {(0, 1), (0, 4), (1, 2), (4, 2)}
    assert {(x, y) for x in range(5) for y in range(5) if known[x][y]} == wanted


def test_vectors_grow_when_a_larger_view_comes():
    """Shorter vectors are filled up with 0."""
    short, long = (Clocks(np.ones((2, n), np.int64), np.zeros(2, np.int64), np.arange(2)) for n in (1, 3))
    assert short.joined(long).vectors.tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 1], [1, 1, 1]]


def test_bytes_come_back_as_tables_and_parts():
    """Empty ones too."""
    one = pa.table({"x": [1, 2]})
    assert of_bytes(to_bytes(one)).equals(one)
    assert parted(joined([b"", b"\n{", to_bytes(one)]))[:2] == [b"", b"\n{"]
