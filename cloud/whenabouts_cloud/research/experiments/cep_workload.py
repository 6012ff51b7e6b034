"""The event streams of the comparison of complex event engines, as arrays from a seed.

Table 1 of the INFA-HTS paper (KSII TIIS 10(9), 2016) names SEQ(A, B, !C, D, E, F, G), a window of 40, ten event types,
10^5 events, up to half of them late by at most 10 units, and does not define the unit and the number of keys. Here a unit
is 1000 ticks and each key has one event in each unit, so that a window holds 40 events of a key for any number of keys:
about 0.4 matches an event. With one event a unit over all keys, the matches would fall with the fifth power of the number
of keys.

Table 1 hardly tests negation, since four events have to follow the forbidden one. The harder patterns put it just before the
last; `by_source` adds real gateways: each delivers in its own order, with heartbeats and outages.
"""

from dataclasses import dataclass

import numpy as np

from whenabouts_cloud.arrays import Array

UNIT = 1000  # ticks
TYPES = "ABCDEFGHIJ"
TABLE_1 = "SEQ(A, B, !C, D, E, F, G) WITHIN 40"
HARD_SHORT = "SEQ(A, B, !C, D) WITHIN 40"
HARD_LONG = "SEQ(A, B, D, E, F, !C, G) WITHIN 40"
TRAILING = "SEQ(A, B, !C) WITHIN 40"
PATTERNS = (TABLE_1, HARD_SHORT, HARD_LONG, TRAILING)
K_UNITS = 10
K_UNITS_LONG = 40  # the other slack: as long as the window
KEYS = (1, 4, 16, 64, 256, 1024)


@dataclass(frozen=True)
class Stream:
    """Events in the order of arrival; times in ticks. `arrival` is when each came, never before its time t.

    `heartbeats` (n, 3) are (events that came before it, source, time): no later event of the source is before the time.
    `k` is the largest delay, so that a K-bound of k holds.
    """

    type_code: Array
    key: Array
    t: Array
    source: Array
    arrival: Array
    heartbeats: Array
    k: int

    @property
    def out_of_order(self) -> float:
        """The share of events that come after one with a later time."""
        return float(np.mean(self.t < np.maximum.accumulate(self.t))) if len(self.t) else 0.0


def table_1(events: int, keys: int = 1, late: float = 0.0, *, seed: int, k_units: int = K_UNITS) -> Stream:
    """The paper's stream: a share `late` comes 1 to `k_units` units after its time, uniformly by tick; all others at once.

    Types are uniform over the ten A .. J, of which the pattern has seven; keys take turns, evenly spread over the unit.
    """
    rng = np.random.default_rng([seed, events, keys])
    type_code, key, t = _readings(rng, events, keys)
    delay = rng.integers(UNIT, k_units * UNIT + 1, events)
    delayed = rng.random(events) < late
    arrival = t + np.where(delayed, delay, 0)
    return _arrived(type_code, key, t, np.zeros(events, np.int64), arrival, np.empty((0, 3), np.int64), k_units * UNIT)


def by_source(events: int, sources: int, outage: float, keys: int = 1, *, seed: int, k_units: int = K_UNITS) -> Stream:
    """Events of several sources, each in its own order, each with a heartbeat at the end of every unit.

    A source is off line for a share `outage` of the time, in stretches of 1 to `k_units` units; its events
    arrive in order when it is back, so no delay exceeds k_units.
    """
    rng = np.random.default_rng([seed, events, keys, sources])
    type_code, key, t = _readings(rng, events, keys)
    source = rng.integers(0, sources, events)
    units = -(-events // keys) + 1
    ready = np.stack([_back_on_line(rng, units, outage, k_units) for _ in range(sources)])
    arrival = np.maximum(t, ready[source, t // UNIT] * UNIT)
    heartbeat_source, heartbeat_unit = (a.ravel() for a in np.indices((sources, units)))
    heartbeat_t = (heartbeat_unit + 1) * UNIT
    heartbeat_arrival = np.maximum(
        heartbeat_t, ready[heartbeat_source, np.minimum(heartbeat_unit + 1, units - 1)] * UNIT
    )
    in_time = np.lexsort((heartbeat_t, heartbeat_arrival))
    arrived = np.sort(arrival)
    # A heartbeat at the end of a unit comes after all events that have arrived by then, including those of its source.
    before = np.searchsorted(arrived, heartbeat_arrival[in_time], side="right")
    heartbeats = np.column_stack([before, heartbeat_source[in_time], heartbeat_t[in_time]]).astype(np.int64)
    return _arrived(type_code, key, t, source, arrival, heartbeats, k_units * UNIT)


def _readings(rng: np.random.Generator, events: int, keys: int) -> tuple[Array, Array, Array]:
    """One event for each key and unit, in the order of time."""
    n = np.arange(events)
    return rng.integers(0, len(TYPES), events), n % keys, n * UNIT // keys


def _back_on_line(rng: np.random.Generator, units: int, outage: float, k_units: int) -> Array:
    """For each unit the one in which its events come: itself, or the first one on line again."""
    ready, unit = np.arange(units), 0
    mean_off = (k_units + 1) / 2
    while outage > 0 and unit < units:
        unit += int(rng.geometric(min(1.0, outage / ((1 - outage) * mean_off))))
        end = unit + int(rng.integers(1, k_units + 1))
        ready[unit:end] = end
        unit = end
    return ready


def _arrived(
    type_code: Array, key: Array, t: Array, source: Array, arrival: Array, heartbeats: Array, k: int
) -> Stream:
    """The stream in the order of arrival, equal arrivals in the order of time."""
    order = np.lexsort((t, arrival))
    whole = [np.ascontiguousarray(c[order], np.int64) for c in (type_code, key, t, source, arrival)]
    return Stream(whole[0], whole[1], whole[2], whole[3], whole[4], heartbeats, k)
