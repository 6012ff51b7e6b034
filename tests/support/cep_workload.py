"""The workload of Table 1 (Wang et al. 2016), made definite: one event per key and unit, types uniform over A .. J.

A unit is 1000 ticks; a share of the events is delayed by 1 to 10 units, uniformly. So a window of 40 units holds 40 events
of a key, with 0.4 matches of SEQ(A, B, !C, D, E, F, G) to an event for every number of keys.
"""

from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep.plan import EventClass, Negation, Plan, Variant

UNIT = 1000
TYPES = 10
NAMES = [chr(ord("A") + code) for code in range(TYPES)]
SLACK = 10 * UNIT


class Workload(NamedTuple):
    """Columns in order of arrival."""

    type_code: np.ndarray
    key: np.ndarray
    t: np.ndarray


def workload(events: int, keys: int, late: float, seed: int = 1) -> Workload:
    """About so many events, a share of them late."""
    random = np.random.default_rng(seed)
    rounds = events // keys
    count = rounds * keys
    t = np.repeat(np.arange(rounds), keys) * UNIT + random.integers(0, UNIT, count)
    key = np.tile(np.arange(keys), rounds)
    delay = np.where(random.random(count) < late, random.integers(UNIT, SLACK + 1, count), 0)
    arrival = np.argsort(t + delay, kind="stable")
    return Workload(random.integers(0, TYPES, count)[arrival], key[arrival], t[arrival])


def sequence(text: str, window_units: int = 40) -> Plan:
    """A chain written as its letters, `!` before a negated one: "AB!CDEFG" is the query of Table 1."""
    kinds = tuple(EventClass(frozenset({code})) for code in range(TYPES))
    positives: list[int] = []
    negated: list[tuple[int, int]] = []
    for place, letter in enumerate(text):
        code = ord(letter) - ord("A")
        if letter == "!":
            continue
        if place and text[place - 1] == "!":
            negated.append((code, len(positives)))
        else:
            positives.append(code)
    count = len(positives)
    negations = tuple(
        Negation(code, (1 << before) - 1, ((1 << count) - 1) >> before << before) for code, before in negated
    )
    chain = tuple((1 << i) - 1 for i in range(count))
    variant = Variant(tuple(positives), tuple(range(count)), chain, negations)
    return Plan(kinds, (variant,), count, window_units * UNIT)


TABLE_1 = sequence("AB!CDEFG")
