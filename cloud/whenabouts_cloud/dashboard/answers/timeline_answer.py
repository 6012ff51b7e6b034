"""The timeline's answer: lanes with counts a column, single readings where they can be seen, results as arcs, lateness.

Columns are whole microseconds; a view whose width is no multiple of its columns ends a little later. Cost: that of
`LandedIndex.counts`, and of reading the blocks of the time where single readings can be shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.dashboard.data.landed import LandedIndex, TooManyError
from whenabouts_cloud.dashboard.data.readings_in import middles_of

MOST_BARS = 2000
MOST_ARCS = 500
MOST_LATE = 2000
ARC = ("rule", "kind", "id", "probability", "lane_a", "lane_b", "a_us", "b_us", "t_min", "t_max", "status")
NO_ARCS: dict[str, Any] = {name: [] for name in ARC} | {"total": 0}

Reader = tuple[str, str, str]


class Found(Protocol):
    """What the timeline asks of the results."""

    def arcs(
        self, from_us: int, to_us: int, most: int, rules: Sequence[str] | None
    ) -> tuple[list[dict[str, Any]], int]:
        """The most probable results of a time, with a and b, their first and last reading; and how many there are."""
        ...

    def late(self, from_us: int, to_us: int, most: int) -> list[dict[str, Any]]:
        """Readings of the side output that overlap a time."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A view. by: "reader" or "tag"; rules: None for all."""

    from_us: int
    to_us: int
    px: int
    by: str = "reader"
    search: str = ""
    offset: int = 0
    limit: int = 50
    rules: Sequence[str] | None = None

    @property
    def column_us(self) -> int:
        """The width of a column."""
        return max(1, -(-(self.to_us - self.from_us) // self.px))

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return -(-(self.to_us - self.from_us) // self.column_us)

    @property
    def end_us(self) -> int:
        """The end of the last column."""
        return self.from_us + self.columns * self.column_us


def timeline(landed: LandedIndex, results: Found | None, asked: Asked) -> dict[str, Any]:
    """The answer to /api/timeline."""
    late = [] if results is None else results.late(asked.from_us, asked.end_us, MOST_LATE)
    shown = _by_tag(landed, asked, late) if asked.by == "tag" else _by_reader(landed, asked, late)
    summary = landed.summary()
    arcs = NO_ARCS if results is None else _arcs(results, asked, shown.pop("place"))
    shown.pop("place", None)
    return {
        "from_us": asked.from_us, "to_us": asked.end_us, "px": asked.columns, "by": asked.by, "counted": summary.counted,
        "refused": None, **shown, "arcs": arcs,
    }  # fmt: skip


def _by_reader(landed: LandedIndex, asked: Asked, late: list[dict[str, Any]]) -> dict[str, Any]:
    lanes, total = landed.lanes(asked.search, asked.offset, asked.limit)
    cells, exact = landed.counts([lane.number for lane in lanes], asked.from_us, asked.column_us, asked.columns)
    place = {(lane.site, lane.gateway, lane.stream): number for number, lane in enumerate(lanes)}
    bars = None
    if int(cells.sum()) <= MOST_BARS and (exact or landed.summary().counted < 1):
        bars = _bars_by_reader(landed, asked, place, late)
    readings = [int(n) for n in cells.sum(axis=1)] if bars is None else _lengths(bars["lane"], len(lanes))
    return {
        "exact": exact, "lanes_total": total, "place": lambda one: place.get(reader_of(one), -1),
        "lanes": [
            {"id": "/".join(name), "label": lane.stream, "site": lane.site, "gateway": lane.gateway, "stream": lane.stream,
             "key": None, "readings": count, "frontier_us": lane.frontier_us, "last_us": lane.last_us}
            for (name, lane), count in zip(zip(place, lanes, strict=True), readings, strict=True)
        ],
        **_counted(cells, bars), "bars": bars,
        "late": _late_cells(late, lambda one: place.get(reader_of(one), -1), len(lanes), asked),
    }  # fmt: skip


def _bars_by_reader(
    landed: LandedIndex, asked: Asked, place: Mapping[Reader, int], late: list[dict[str, Any]]
) -> dict[str, Any] | None:
    try:
        rows = landed.rows(asked.from_us, asked.end_us)
    except TooManyError:
        return None
    lane = np.array([place.get(name, -1) for name in _readers(rows)], np.int64)
    rows, lane = rows.filter(pa.array(lane >= 0)), lane[lane >= 0]
    return None if len(lane) > MOST_BARS else _bars(landed, rows, lane, late)


def _by_tag(landed: LandedIndex, asked: Asked, late: list[dict[str, Any]]) -> dict[str, Any]:
    none: dict[str, Any] = {
        "exact": True, "lanes_total": 0, "lanes": [], "cells": [], "most": 0, "bars": None, "place": lambda one: -1,
        "late": {"total": len(late), "cells": []},
    }  # fmt: skip
    try:
        rows = landed.rows(asked.from_us, asked.end_us)
    except TooManyError as error:
        return {**none, "refused": f"By tag: {error}."}
    keys = pc.fill_null(rows["key"].cast(pa.string()), "")
    search = asked.search.lower()
    distinct = sorted(key for key in pc.unique(keys).to_pylist() if key and search in key.lower())
    page = distinct[asked.offset : asked.offset + asked.limit]
    place = {key: number for number, key in enumerate(page)}
    lane = np.asarray(pc.fill_null(pc.index_in(keys, pa.array(page, pa.string())), -1), np.int64)
    rows, lane = rows.filter(pa.array(lane >= 0)), lane[lane >= 0]
    at = (middles_of(rows) - asked.from_us) // asked.column_us
    inside = (at >= 0) & (at < asked.columns)
    cells = np.bincount(lane[inside] * asked.columns + at[inside], minlength=len(page) * asked.columns)
    cells = cells.reshape(len(page), asked.columns)
    bars = None if len(lane) > MOST_BARS else _bars(landed, rows, lane, late)
    last = [int(max(np.asarray(rows["t_max"])[lane == number], default=0)) for number in range(len(page))]
    counts = [int(n) for n in cells.sum(axis=1)] if bars is None else _lengths(bars["lane"], len(page))
    return {
        "exact": landed.summary().exact, "lanes_total": len(distinct),
        "place": lambda one: place.get(one.get("key") or "", -1),
        "lanes": [
            {"id": key, "label": key, "site": None, "gateway": None, "stream": None, "key": key, "readings": count,
             "frontier_us": None, "last_us": us}
            for key, count, us in zip(page, counts, last, strict=True)
        ],
        **_counted(cells, bars), "bars": bars,
        "late": _late_cells(late, lambda one: place.get(one.get("key") or "", -1), len(page), asked),
    }  # fmt: skip


def _bars(landed: LandedIndex, rows: pa.Table, lane: Any, late: list[dict[str, Any]]) -> dict[str, Any]:
    columns = {
        name: rows[name].to_pylist() for name in ("t_min", "t_max", "key", "site", "gateway", "stream", "boot", "seq")
    }
    identities = list(zip(*(columns[name] for name in ("site", "gateway", "boot", "seq")), strict=True))
    too_late = {identity_of(one) for one in late}
    true_us = [landed.true_us(*one) for one in identities] if landed.has_truth else None
    return {
        "lane": lane.tolist(), **columns, "boot": [str(x) for x in columns["boot"]], "seq": [str(x) for x in columns["seq"]],
        "late": [one in too_late for one in identities], "true_us": true_us,
    }  # fmt: skip


def _counted(cells: Any, bars: Any) -> dict[str, Any]:
    if bars is not None:
        return {"cells": None, "most": 1}
    return {"cells": [sparse(row) for row in cells], "most": int(cells.max(initial=0))}


def sparse(row: Any) -> list[int]:
    """The columns of a lane that are not empty, each followed by its count.

    >>> sparse(np.array([0, 3, 0, 1]))
    [1, 3, 3, 1]
    """
    at = np.flatnonzero(row)
    return np.stack((at, row[at]), axis=1).ravel().tolist()


def _late_cells(late: list[dict[str, Any]], place: Any, lanes: int, asked: Asked) -> dict[str, Any]:
    cells = np.zeros((lanes, asked.columns), np.int64)
    for one in late:
        lane, at = place(one), ((one["t_min"] + one["t_max"]) // 2 - asked.from_us) // asked.column_us
        if lane >= 0 and 0 <= at < asked.columns:
            cells[lane, at] += 1
    return {"total": len(late), "cells": [sparse(row) for row in cells]}


def _arcs(results: Found, asked: Asked, place: Any) -> dict[str, Any]:
    found, total = results.arcs(asked.from_us, asked.end_us, MOST_ARCS, asked.rules)
    columns: dict[str, Any] = {name: [] for name in NO_ARCS if name != "total"}
    for one in found:
        ends = {
            "lane_a": place(one["a"]),
            "lane_b": place(one["b"]),
            "a_us": middle(one["a"]),
            "b_us": middle(one["b"]),
        }
        for name, values in columns.items():
            values.append(ends[name] if name in ends else one[name])
    return {**columns, "total": total}


def middle(reading: Mapping[str, Any]) -> int:
    """The middle of a stamp, us."""
    return int(reading["t_min"] + reading["t_max"]) // 2


def reader_of(reading: Mapping[str, Any]) -> Reader:
    """Site, gateway and stream of a reading."""
    return reading["site"], reading["gateway"], reading["stream"]


def identity_of(reading: Mapping[str, Any]) -> tuple[Any, ...]:
    """Site, gateway, boot and number of a reading."""
    return reading["site"], reading["gateway"], reading["boot"], reading["seq"]


def _readers(rows: pa.Table) -> list[Reader]:
    return list(zip(*(rows[name].to_pylist() for name in ("site", "gateway", "stream")), strict=True))


def _lengths(lane: list[int], lanes: int) -> list[int]:
    return [int(n) for n in np.bincount(np.array(lane, np.int64), minlength=lanes)[:lanes]]
