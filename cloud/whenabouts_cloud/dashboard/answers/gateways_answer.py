"""The answers about gateways: all of them with what they reported last, and the history of one."""

from typing import Any

from whenabouts_cloud.dashboard.data.landed import LandedIndex
from whenabouts_cloud.dashboard.data.lane_table import Lane
from whenabouts_cloud.dashboard.results.health_state import SERIES, HealthState
from whenabouts_cloud.health.records import PARTS, Record

MOST = 2000
STALE_US = 60_000_000  # without a heartbeat; gateways send one every ten seconds or more often
HEARTBEAT = (
    "clock_state",
    "clock_source",
    "bound_us",
    "spool_readings",
    "spool_bytes",
    "refused",
    "invalid",
    "certificate_ends_s",
)


def gateways(health: HealthState, landed: LandedIndex | None, now_us: int) -> dict[str, Any]:
    """The answer to /api/gateways: at most MOST gateways, those in trouble first."""
    lanes: dict[tuple[str, str], list[Lane]] = {}
    for lane in [] if landed is None else landed.lanes("", 0, 20_000)[0]:
        lanes.setdefault((lane.site, lane.gateway), []).append(lane)
    known = health.gateways()
    rows = [_gateway(name, known.get(name, {}), lanes.get(name, []), now_us) for name in {**known, **lanes}]
    rows.sort(key=lambda one: (-one["trouble"], one["site"], one["gateway"]))
    return {"now_us": now_us, "total": len(rows), "gateways": rows[:MOST]}


def gateway(health: HealthState, site: str, name: str, from_us: int, to_us: int) -> dict[str, Any]:
    """The answer to /api/gateway: columns of the points of a time."""
    points = health.history(site, name, from_us, to_us)
    columns: list[list[Any]] = [list(column) for column in zip(*points, strict=True)] or [
        [] for _ in range(len(SERIES) + 1)
    ]
    return dict(zip(("at_us", *SERIES), columns, strict=True))


def _gateway(name: tuple[str, str], last: dict[str, Record], lanes: list[Lane], now_us: int) -> dict[str, Any]:
    beat, birth = last.get("heartbeat", {}), last.get("birth", {})
    heard_us = max((record["at_us"] for record in last.values()), default=None)
    condition = last.get("status", {}).get("condition") or ("unknown" if heard_us is None else "online")
    age_us = None if heard_us is None else now_us - heard_us
    stale = age_us is None or age_us > STALE_US
    frontiers = [lane.frontier_us for lane in lanes if lane.frontier_us is not None]
    return {
        "site": name[0], "gateway": name[1], "condition": condition, "heard_us": heard_us, "age_us": age_us, "stale": stale,
        **{field: beat.get(field) for field in HEARTBEAT},
        "frontier_us": max(frontiers, default=beat.get("frontier_us")),
        "boot": None if birth.get("boot") is None else str(birth["boot"]), "build": birth.get("build"),
        "group": birth.get("group"),
        "streams": _streams(birth.get("streams", []), lanes),
        "trouble": 2 if condition != "online" or stale else 1 if beat.get("refused") or beat.get("invalid") else 0,
    }  # fmt: skip


def _streams(told: list[Record], lanes: list[Lane]) -> list[dict[str, Any]]:
    """The readers of a gateway: those that its birth names, and those whose readings have landed."""
    landed = {lane.stream: lane for lane in lanes}
    names = {stream["name"]: stream for stream in told if stream["name"] is not None}
    rows = []
    for name in sorted({**names, **landed}):
        stream, lane = names.get(name, {}), landed.get(name)
        rows.append(
            {
                "name": name, "kind": stream.get("kind"), "unit": stream.get("unit"),
                "last_us": None if lane is None else lane.last_us, "readings": 0 if lane is None else lane.readings,
                **{part: stream.get(part) for part in (*PARTS, "delay_us")},
            }
        )  # fmt: skip
    return rows
