"""Applies a rule about events to all events at once; gives the results that a stream of them would give at its end."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts_cloud.cep.methods import detected
from whenabouts_cloud.cep.shard.events import Ints, beyond_time, columns_of
from whenabouts_cloud.cep.shard.identities import Identities
from whenabouts_cloud.cep.shard.results import match_rows
from whenabouts_cloud.cep.shard.views import Views
from whenabouts_cloud.frontier.times import INT64_MAX
from whenabouts_cloud.rules.model import CepRule


class Whole(NamedTuple):
    """Matches among all events.

    `matches` are rows of RESULT. `within` masks the events whose stamps are valid
    times, `once` has the rows of these without repeats, `ungrouped` the rows in `once` that have no place in a group's
    clocks (CAUSAL only).
    """

    matches: pa.Table
    within: npt.NDArray[np.bool_]
    once: Ints
    ungrouped: Ints


def matches_of(
    rule: CepRule, events: pa.Table, views: Views | None = None, begin_us: tuple[int, int] | None = None
) -> Whole:
    """Return all matches among events (`events.schema_of`), which may contain repeats; CAUSAL needs the views.

    begin_us: only matches whose least moved t_min is in [low, high).
    """
    plan, within = rule.plan(), ~beyond_time(events)
    at = np.flatnonzero(within)
    rows, keys = Identities(rule).add(events if len(at) == events.num_rows else events.take(pa.array(at)))
    once = at[rows]
    if len(once) < events.num_rows:
        events = events.take(pa.array(once))
    types, t, t_max, attributes = columns_of(rule, plan, events)
    clocks = (views or Views()).clocks_of(events) if plan.mode == "causal" else None
    matches, probability = detected(plan, rule.type_names, types, keys, t, t_max, attributes, clocks)
    if begin_us is not None:
        # One more, the latest of all, for places that are not filled.
        begins = np.append(t, INT64_MAX)[matches].min(axis=1, initial=INT64_MAX)
        mine = (begins >= begin_us[0]) & (begins < begin_us[1])
        matches, probability = matches[mine], probability[mine]
    ungrouped = once[:0] if clocks is None else once[clocks.process < 0]
    return Whole(match_rows(rule, matches, events, "match", probability), within, once, ungrouped)
