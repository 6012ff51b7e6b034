"""The latest watermark of each gateway, noted in one step and in effect from the next one on."""

from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.landing.files import DamagedFileError
from whenabouts_cloud.landing.history import everything, frontiers_of
from whenabouts_cloud.landing.scan import frontiers_in
from whenabouts_cloud.landing.schema import NO_BOOT
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol.logs import Log

log = Log(__name__)


class Watermark(NamedTuple):
    """All readings of a gateway, "site/gateway", with t_max below `us` have landed, us since 1970 UTC.

    boot: the start of the gateway's agent that said so. What an earlier start had not stored when it was killed never lands;
    so only a watermark of the same start shows that nothing else happened before it.
    """

    gateway: str
    us: int
    boot: int = NO_BOOT


class Watermarks:
    """Watermarks by gateway; a watermark never falls, whatever the order of messages."""

    def __init__(self) -> None:
        self.in_effect: dict[str, int] = {}
        self._noted: dict[str, int] = {}

    def note(self, gateway: str, us: int) -> None:
        """Note a watermark of this step; the next `take_effect` makes it effective."""
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
    """The latest watermark of each boot of each gateway in a landing.

    Damaged files are left out: others say as much, or less.
    """
    latest: dict[tuple[str, int], int] = {}
    for piece in frontiers_of(everything(landing)):
        try:
            said = list(frontiers_in(landing, [piece]))
        except DamagedFileError as error:
            log.warning("landing.damaged", "its watermarks are left out", error=error)
            continue
        for one in said:
            name = f"{one['site']}/{one['gateway']}", one["boot"]
            latest[name] = max(one["frontier_us"], latest.get(name, one["frontier_us"]))
    return [Watermark(gateway, us, boot) for (gateway, boot), us in latest.items()]


def gateways_of(rows: pa.Table) -> list[str]:
    """Return the distinct gateways of rows with columns site and gateway, as "site/gateway"."""
    plain = pa.table({name: rows[name].cast(pa.string()) for name in ("site", "gateway")})
    distinct = plain.group_by(["site", "gateway"], use_threads=False).aggregate([])
    names: list[str] = pc.binary_join_element_wise(distinct["site"], distinct["gateway"], "/").to_pylist()
    return names
