"""The latest watermark of each gateway, noted in one step and in effect from the next on."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Watermark = tuple[str, int]
"""A gateway as "site/gateway", and the time before which all its readings have landed, us since 1970 UTC."""


class Watermarks:
    """Watermarks by gateway; one never falls, in whatever order messages come."""

    def __init__(self) -> None:
        self.in_effect: dict[str, int] = {}
        self._noted: dict[str, int] = {}

    def note(self, watermarks: Iterable[Watermark]) -> None:
        """Watermarks of this step: they count from the next `take_effect` on."""
        for gateway, us in watermarks:
            self._noted[gateway] = max(us, self._noted.get(gateway, us))

    def take_effect(self) -> None:
        """Let the noted ones count."""
        for gateway, us in self._noted.items():
            self.in_effect[gateway] = max(us, self.in_effect.get(gateway, us))
        self._noted = {}

    def snapshot(self) -> list[dict[str, int]]:
        """All of it as JSON values."""
        return [self.in_effect, self._noted]

    def restore(self, snapshot: Any) -> None:
        """Go on from a snapshot."""
        self.in_effect, self._noted = (dict(part) for part in snapshot)


def gateways_of(rows: pa.Table) -> list[str]:
    """The gateways of rows with columns site and gateway, as "site/gateway", each once."""
    plain = pa.table({name: rows[name].cast(pa.string()) for name in ("site", "gateway")})
    distinct = plain.group_by(["site", "gateway"]).aggregate([])
    names: list[str] = pc.binary_join_element_wise(distinct["site"], distinct["gateway"], "/").to_pylist()
    return names
