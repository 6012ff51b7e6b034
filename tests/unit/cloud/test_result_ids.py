"""The ids of results equal their definition, and differ where results do."""

import hashlib

import numpy as np

from whenabouts_cloud.result_ids import digests, result_ids

TEXTS = ["", "hall g0 1 7", "hall g0 1 8", "é"]
WORD = (1 << 64) - 1


def mixed(x):
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x ^= x >> 33
        x = x * factor & WORD
    return x ^ x >> 33


def halves(text):
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")


def defined(rule, places):
    """The definition, one result at a time."""
    high, low = halves(rule)
    for place in places:
        more = (0, 0) if place == -1 else halves(TEXTS[place])
        high = mixed(high ^ more[0]) + 3 * low & WORD
        low = mixed(low ^ more[1]) + 5 * high & WORD
    return f"{high:016x}{low:016x}"


def test_ids_are_those_of_the_definition():
    """Any places, empty ones, none, no results."""
    at = np.array([[0, 1, -1], [3, 3, 3], [-1, -1, -1], [2, 1, 0]])
    for rule in ("near", "r2"):
        for rows in (at, at[:, :1], at[:, :0], at[:0]):
            assert result_ids(rule, digests(TEXTS), rows).to_pylist() == [
                defined(rule, places) for places in rows.tolist()
            ]
    assert result_ids("near", digests([]), at[:0]).to_pylist() == []


def test_a_change_of_rule_reading_or_place_changes_the_id():
    """The order of places counts, and an empty place is not the place of a text without characters."""
    at = np.array([[0, 1], [1, 0], [1, 1], [-1, 1], [1, -1], [2, 1]])
    found = [*result_ids("near", digests(TEXTS), at).to_pylist(), *result_ids("far", digests(TEXTS), at).to_pylist()]
    assert len(set(found)) == 12
