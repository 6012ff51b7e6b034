"""The frontier of a rule: the least frontier of its streams, each shifted by its stream's OFFSET."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.frontier.gateways import Watermark, gateways_of
from whenabouts_cloud.frontier.stream import StreamFrontier
from whenabouts_cloud.frontier.times import FURTHEST_US
from whenabouts_cloud.rules.model import CepRule, Stream


def frontiers_by_name(streams: Sequence[Stream], frontiers_us: Sequence[int | None]) -> dict[str, int]:
    """Return the known frontiers by the names of their streams."""
    pairs = zip(streams, frontiers_us, strict=True)
    return {stream.name: frontier_us for stream, frontier_us in pairs if frontier_us is not None}


class RuleFrontier:
    """The frontiers of a rule's streams, and the frontier of the rule."""

    def __init__(self, rule: CepRule) -> None:
        self._streams = rule.streams
        self._frontiers = tuple(StreamFrontier(stream.delay_us) for stream in rule.streams)

    @property
    def value_us(self) -> int | None:
        """The time before which everything of the rule's streams has landed, shifted by OFFSET; None: not yet known."""
        ends = [
            None if one.value is None else one.value + stream.offset_us
            for one, stream in zip(self._frontiers, self._streams, strict=True)
        ]
        known = [end for end in ends if end is not None]
        return max(min(*known, FURTHEST_US), -FURTHEST_US) if len(known) == len(ends) else None

    def note_watermarks(self, events: pa.Table, watermarks: Sequence[Iterable[Watermark]]) -> None:
        """Take a step's events, where `type` n is stream n, and its watermarks by stream.

        Watermarks of the previous step take effect, those of this one are noted.
        """
        for number, (frontier, some) in enumerate(zip(self._frontiers, watermarks, strict=True)):
            frontier.seen(gateways_of(events.filter(pc.equal(events["type"], number))))
            frontier.take_effect()
            for watermark in some:
                frontier.note_watermark(watermark.gateway, watermark.us)

    def state(self) -> dict[str, Any]:
        """Return the current state as JSON values."""
        return {
            "frontier_us": self.value_us,
            "streams_us": frontiers_by_name(self._streams, [one.value for one in self._frontiers]),
            "silent": sorted({name for one in self._frontiers for name in one.silent}),
            "unheard": [s.name for s, one in zip(self._streams, self._frontiers, strict=True) if one.value is None],
        }

    def snapshot(self) -> bytes:
        """Return the state as JSON."""
        return json.dumps([frontier.snapshot() for frontier in self._frontiers]).encode()

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot of the same rule."""
        for frontier, state in zip(self._frontiers, json.loads(snapshot), strict=True):
            frontier.restore(state)
