"""The latest watermark of each gateway, noted in one step and in effect from the next one on."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.landing.files import DamagedFileError
from whenabouts_cloud.landing.history import everything, frontiers_of
from whenabouts_cloud.landing.scan import frontiers_in
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol.logs import Log

log = Log(__name__)

Watermark = tuple[str, int]
"""A gateway as "site/gateway", and the time before which all its readings have landed, us since 1970 UTC."""


class Watermarks:
    """Watermarks by gateway; a watermark never falls, whatever the order of messages."""

    def __init__(self) -> None:
        self.in_effect: dict[str, int] = {}
        self._noted: dict[str, int] = {}

    def note(self, watermarks: Iterable[Watermark]) -> None:
        """Note watermarks of this step; the next `take_effect` makes them effective."""
        for gateway, us in watermarks:
            self._noted[gateway] = max(us, self._noted.get(gateway, us))

    def take_effect(self) -> None:
        """Make the noted watermarks effective."""
        for gateway, us in self._noted.items():
            self.in_effect[gateway] = max(us, self.in_effect.get(gateway, us))
        self._noted = {}

    def snapshot(self) -> list[dict[str, int]]:
        """Return the state as JSON values."""
        return [self.in_effect, self._noted]

    def restore(self, snapshot: Any) -> None:
        """Continue from a snapshot."""
        self.in_effect, self._noted = (dict(part) for part in snapshot)


def latest_watermarks(landing: Store) -> list[Watermark]:
    """The latest watermark of each gateway in a landing. Damaged files are left out: others say as much, or less."""
    latest: dict[str, int] = {}
    for piece in frontiers_of(everything(landing)):
        try:
            said = list(frontiers_in(landing, [piece]))
        except DamagedFileError as error:
            log.warning("landing.damaged", "its watermarks are left out", error=error)
            continue
        for one in said:
            name = f"{one['site']}/{one['gateway']}"
            latest[name] = max(one["frontier_us"], latest.get(name, one["frontier_us"]))
    return list(latest.items())


def gateways_of(rows: pa.Table) -> list[str]:
    """Return the distinct gateways of rows with columns site and gateway, as "site/gateway"."""
    plain = pa.table({name: rows[name].cast(pa.string()) for name in ("site", "gateway")})
    distinct = plain.group_by(["site", "gateway"]).aggregate([])
    names: list[str] = pc.binary_join_element_wise(distinct["site"], distinct["gateway"], "/").to_pylist()
    return names
