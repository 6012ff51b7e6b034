"""The frontier of a rule: the least of its streams', each moved by its stream's OFFSET."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.cep.shard.events import FURTHEST_US
from whenabouts_cloud.frontier.stream import StreamFrontier
from whenabouts_cloud.rules.model import CepRule

Promise = tuple[str, int]
"""A gateway as "site/gateway", and the time before which all its readings have landed."""


class RuleFrontier:
    """What the gateways' promises say of the streams of a rule (`StreamFrontier`)."""

    def __init__(self, rule: CepRule) -> None:
        self._streams = rule.streams
        self._frontiers = tuple(StreamFrontier(stream.delay_us) for stream in rule.streams)

    @property
    def value_us(self) -> int | None:
        """Everything of the rule's streams with a moved t_max before this has come."""
        ends = [
            None if one.value is None else one.value + stream.offset_us
            for one, stream in zip(self._frontiers, self._streams, strict=True)
        ]
        known = [end for end in ends if end is not None]
        return max(min(*known, FURTHEST_US), -FURTHEST_US) if len(known) == len(ends) else None

    def promised(self, events: pa.Table, promises: Sequence[Iterable[Promise]]) -> None:
        """Promises of the step before take effect, those of this one, by stream, are noted; events say who is there."""
        for number, (frontier, some) in enumerate(zip(self._frontiers, promises, strict=True)):
            frontier.seen(gateways_of(events.filter(pc.equal(events["type"], number))))
            frontier.take_effect()
            for gateway, frontier_us in some:
                frontier.promise(gateway, frontier_us)

    def state(self) -> dict[str, Any]:
        """How it stands, as JSON values."""
        return {
            "frontier_us": self.value_us,
            "silent": sorted({name for one in self._frontiers for name in one.silent}),
            "unheard": [s.name for s, one in zip(self._streams, self._frontiers, strict=True) if one.value is None],
        }

    def snapshot(self) -> bytes:
        """As JSON."""
        return json.dumps([frontier.snapshot() for frontier in self._frontiers]).encode()

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same rule."""
        for frontier, state in zip(self._frontiers, json.loads(snapshot), strict=True):
            frontier.restore(state)


def gateways_of(events: pa.Table) -> list[str]:
    """The gateways of events, as "site/gateway", each once."""
    plain = pa.table({name: events[name].cast(pa.string()) for name in ("site", "gateway")})
    distinct = plain.group_by(["site", "gateway"]).aggregate([])
    names: list[str] = pc.binary_join_element_wise(distinct["site"], distinct["gateway"], "/").to_pylist()
    return names
