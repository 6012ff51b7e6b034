"""The state of gateways and ingests, from the health records of a landing, with the history of each.

Kept: MAX_GATEWAYS gateways, of each the last heartbeat, birth and status, and HISTORY points of a history that thins out
when it is full: every second point of the older half goes. An unknown record changes nothing.
"""

import threading
from typing import Any, Protocol

from whenabouts_cloud.health.reader import Follower
from whenabouts_cloud.health.records import Record
from whenabouts_cloud.landing.store import Store

MAX_GATEWAYS = 20_000
MAX_INGESTS = 200
HISTORY = 600  # points of a gateway or an ingest
SERIES = ("bound_us", "clock_source", "clock_state", "spool_readings", "refused", "invalid")


class Gateway:
    """A gateway: its last records, and its history."""

    def __init__(self) -> None:
        self.last: dict[str, Record] = {}  # by type
        self.history: list[tuple[Any, ...]] = []  # at_us, then SERIES

    @property
    def heard_us(self) -> int:
        """When the ingest heard it last."""
        return max((int(record["at_us"]) for record in self.last.values()), default=0)

    def take(self, record: Record) -> None:
        """Take a record; one that is older than what is known changes only the history."""
        kind = record["type"]
        if kind not in self.last or record["at_us"] >= self.last[kind]["at_us"]:
            self.last[kind] = record
        if kind == "heartbeat":
            self.history.append((record["at_us"], *(record[name] for name in SERIES)))
            thin(self.history)


class Reports(Protocol):
    """What returns the records since its last call."""

    def new(self) -> list[Record]: ...


class HealthState:
    """What the gateways and ingests of a landing have reported. `follow` belongs to one thread, all else to any."""

    def __init__(self, landing: Store, reports: Reports | None = None) -> None:
        self._follower = Follower(landing) if reports is None else reports
        self._lock = threading.RLock()
        self._gateways: dict[tuple[str, str], Gateway] = {}
        self._ingests: dict[str, tuple[Record, list[tuple[int, int]]]] = {}
        self.refused = 0  # gateways and ingests beyond the limit
        self.version = 0

    def follow(self, budget_s: float) -> bool:
        """Take what is new; True if there is more to do at once.

        Raises:
            OSError: the landing cannot be read.
        """
        records = self._follower.new()
        with self._lock:
            for record in records:
                self._take(record)
            self.version += bool(records)
        return bool(records)

    def gateways(self) -> dict[tuple[str, str], dict[str, Record]]:
        """The last records of each gateway (site, gateway), by type."""
        with self._lock:
            return {name: dict(one.last) for name, one in self._gateways.items()}

    def history(self, site: str, gateway: str, from_us: int, to_us: int) -> list[tuple[Any, ...]]:
        """The points of a gateway in a time: at_us, then SERIES."""
        with self._lock:
            one = self._gateways.get((site, gateway))
            return (
                [] if one is None else [point for point in sorted(one.history, key=_at) if from_us <= point[0] <= to_us]
            )

    def stream(self, site: str, gateway: str, name: str) -> Record | None:
        """A stream of a gateway as its last birth tells it."""
        with self._lock:
            one = self._gateways.get((site, gateway))
            streams = one.last.get("birth", {}).get("streams", []) if one is not None else []
            return next((stream for stream in streams if stream["name"] == name), None)

    def ingests(self) -> dict[str, tuple[Record, list[tuple[int, int]]]]:
        """Of each ingest its last record and its history: at_us, readings landed since its start."""
        with self._lock:
            return {name: (record, list(history)) for name, (record, history) in self._ingests.items()}

    def _take(self, record: Record) -> None:
        if record["type"] == "ingest":
            name = str(record["ingest"] or "")
            if name not in self._ingests and len(self._ingests) >= MAX_INGESTS:
                self.refused += 1
                return
            last, history = self._ingests.get(name, (record, []))
            history.append((record["at_us"], record["counters"].get("landed", 0)))
            thin(history)
            self._ingests[name] = (record if record["at_us"] >= last["at_us"] else last, history)
            return
        gateway = (record["site"], record["gateway"])
        if gateway not in self._gateways and len(self._gateways) >= MAX_GATEWAYS:
            self.refused += 1
            return
        self._gateways.setdefault(gateway, Gateway()).take(record)


def thin(points: list[Any], most: int = HISTORY) -> None:
    """Keep at most so many points: of the older half every second one goes."""
    if len(points) > most:
        half = len(points) // 2
        points[:half] = points[:half:2]


def _at(point: tuple[Any, ...]) -> Any:
    return point[0]
