"""The ids of results equal their definition, and differ where results do."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from whenabouts_cloud.result_ids import digests, result_ids

READINGS = [
    ("hall", "g0", 1, 7),
    ("hall", "g0", 1, 8),
    ("hall", "é", 1, 7),
    ("hall", "g0", 2, 7),
    ("hall", "g0", 1, 2**62),
]
WORD = (1 << 64) - 1


def mixed(x):
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x ^= x >> 33
        x = x * factor & WORD
    return x ^ x >> 33


def hashed(text):
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def halves(block):
    return int.from_bytes(block[:8], "big"), int.from_bytes(block[8:], "big")


def digest(site, gateway, boot, seq):
    """The definition, one reading at a time."""
    block = seq.to_bytes(16, "big")
    cipher = Cipher(algorithms.AES(hashed(f"{site} {gateway} {boot}")), modes.ECB()).encryptor()
    return halves(bytes(x ^ y for x, y in zip(cipher.update(block), block, strict=True)))


def defined(rule, places):
    """The definition, one result at a time."""
    high, low = halves(hashed(rule))
    for place in places:
        more = (0, 0) if place == -1 else digest(*READINGS[place])
        high = mixed(high ^ more[0]) + 3 * low & WORD
        low = mixed(low ^ more[1]) + 5 * high & WORD
    return f"{high:016x}{low:016x}"


def of(readings):
    site, gateway, boot, seq = zip(*readings, strict=True) if readings else ([], [], [], [])
    names = [pa.array(list(x), pa.string()).dictionary_encode() for x in (site, gateway)]
    return digests(names, np.array(boot, np.int64), np.array(seq, np.int64))


def test_ids_are_those_of_the_definition():
    """Any places, empty ones, none, no results."""
    at = np.array([[0, 1, -1], [3, 3, 3], [-1, -1, -1], [2, 4, 0]])
    for rule in ("near", "r2"):
        for rows in (at, at[:, :1], at[:, :0], at[:0]):
            assert result_ids(rule, of(READINGS), rows).to_pylist() == [
                defined(rule, places) for places in rows.tolist()
            ]
    assert result_ids("near", of([]), at[:0]).to_pylist() == []


def test_a_change_of_rule_reading_or_place_changes_the_id():
    """The order of places counts, and an empty place is not that of any reading."""
    at = np.array([[0, 1], [1, 0], [1, 1], [-1, 1], [1, -1], [2, 1], [3, 1], [4, 1]])
    found = [*result_ids("near", of(READINGS), at).to_pylist(), *result_ids("far", of(READINGS), at).to_pylist()]
    assert len(set(found)) == 16


@pytest.mark.parametrize("rows", [[4, 2, 0, 3, 1], [1, 1, 3], []])
def test_a_digest_does_not_depend_on_the_other_readings(rows):
    """Readings of several sources in any order, some of them twice."""
    assert of([READINGS[n] for n in rows]).tolist() == of(READINGS)[rows].tolist()
