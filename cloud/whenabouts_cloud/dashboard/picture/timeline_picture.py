"""The timeline as a picture: lanes with bars or counts, arcs with their probability as opacity, frontiers, late readings.

Pure: from the answer to /api/timeline (`answers.timeline_answer`) and a size to shapes.
"""

import math
from collections.abc import Mapping
from typing import Any

from whenabouts_cloud.dashboard.picture.axis_ticks import label, ticks
from whenabouts_cloud.dashboard.picture.picture_shapes import Curve, Line, Picture, Rect, Shape, Text
from whenabouts_cloud.display_time import headline, shown

LEFT, TOP, RIGHT, BOTTOM = 210, 46, 12, 30
ROWS = 6  # of bars that overlap, within a lane
TICK_PX = 110
LEAST_ARC = 0.15
# Okabe and Ito, Color Universal Design (2008): told apart by people with any colour vision.
RULES = ("#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#d55e00", "#0072b2")
THEMES = {
    "light": {"ground": "#ffffff", "text": "#1b1f24", "soft": "#5b6470", "line": "#e2e5e9", "bar": "#0072b2",
              "late": "#d55e00", "true": "#111111"},
    "dark": {"ground": "#16191d", "text": "#e6e9ed", "soft": "#9aa4b0", "line": "#2c3238", "bar": "#56b4e9",
             "late": "#e69f00", "true": "#ffffff"},
}  # fmt: skip


def timeline_picture(answer: Mapping[str, Any], width: int = 1200, height: int = 0, theme: str = "light") -> Picture:
    """The picture of an answer; height 0: as high as its lanes need."""
    colours, lanes = THEMES[theme], answer["lanes"]
    height = height or TOP + BOTTOM + 52 * max(1, len(lanes))
    plot = _Plot(answer, width, height)
    shapes: list[Shape] = [*_axis(plot, colours), *_lanes(plot, lanes, colours)]
    shapes += _bars(plot, answer["bars"], colours) if answer["bars"] is not None else _counts(plot, answer, colours)
    shapes += _arcs(plot, answer["arcs"])
    shapes += _legend(plot, answer["arcs"], colours)
    title = f"{headline(answer['from_us'])} to {headline(answer['to_us'])}: {len(lanes)} lanes"
    return Picture(width, height, colours["ground"], title, tuple(shapes))


class _Plot:
    """Where times and lanes are."""

    def __init__(self, answer: Mapping[str, Any], width: int, height: int) -> None:
        self.from_us, self.to_us = answer["from_us"], answer["to_us"]
        self.right, self.bottom = width - RIGHT, height - BOTTOM
        self.lane_height = (self.bottom - TOP) / max(1, len(answer["lanes"]))
        self.scale = (self.right - LEFT) / (self.to_us - self.from_us)

    def x(self, us: int) -> float:
        """The place of a time, cut to the plot."""
        return float(min(max(LEFT + (us - self.from_us) * self.scale, LEFT), self.right))

    def top(self, lane: int) -> float:
        """The upper edge of a lane."""
        return TOP + lane * self.lane_height

    def middle(self, lane: int) -> float:
        """The middle of a lane."""
        return self.top(lane) + self.lane_height / 2


def _axis(plot: _Plot, colours: Mapping[str, str]) -> list[Shape]:
    step, places = ticks(plot.from_us, plot.to_us, max(2, int((plot.right - LEFT) / TICK_PX)))
    shapes: list[Shape] = [Text(LEFT, 16, f"{headline(plot.from_us)} to {headline(plot.to_us)}, UTC", colours["soft"])]
    for us in places:
        x = plot.x(us)
        shapes.append(Line(x, TOP, x, plot.bottom, colours["line"]))
        text = label(us, step)
        if LEFT + 4 * len(text) < x < plot.right - 4 * len(text):
            shapes.append(Text(x + 3.2 * len(text), 36, text, colours["text"], 11, end=True))
    return shapes


def _lanes(plot: _Plot, lanes: list[Mapping[str, Any]], colours: Mapping[str, str]) -> list[Shape]:
    shapes: list[Shape] = []
    for number, lane in enumerate(lanes):
        y = plot.middle(number)
        shapes.append(Line(0, plot.top(number), plot.right, plot.top(number), colours["line"]))
        place = "" if lane["site"] is None else f"{shown(lane['site'])} / {shown(lane['gateway'])}"
        shapes.append(Text(8, y - 1 if place else y + 4, shown(lane["label"])[:28], colours["text"], 12, bold=True))
        if place:
            shapes.append(Text(8, y + 13, place[:34], colours["soft"], 10))
        shapes.append(Text(LEFT - 8, y + 4, str(lane["readings"]), colours["soft"], 11, end=True))
        frontier = lane["frontier_us"]
        if frontier is not None and plot.from_us < frontier < plot.to_us:
            x = plot.x(frontier)
            shapes.append(Line(x, plot.top(number), x, plot.top(number) + plot.lane_height, colours["text"], 1, 3))
    shapes.append(Line(LEFT, TOP, LEFT, plot.bottom, colours["soft"]))
    shapes.append(Line(0, plot.bottom, plot.right, plot.bottom, colours["line"]))
    return shapes


def _bars(plot: _Plot, bars: Mapping[str, Any], colours: Mapping[str, str]) -> list[Shape]:
    shapes: list[Shape] = []
    free: dict[int, list[int]] = {}  # by lane: when each row is free again
    height = (plot.lane_height - 10) / ROWS
    for index in sorted(range(len(bars["lane"])), key=lambda n: (bars["t_min"][n], bars["t_max"][n])):
        lane, t_min, t_max = (bars[name][index] for name in ("lane", "t_min", "t_max"))
        rows = free.setdefault(lane, [])
        row = next((n for n, end in enumerate(rows) if end < t_min), None)
        if row is None:
            row = len(rows) if len(rows) < ROWS else rows.index(min(rows))
        rows[row : row + 1] = [t_max]
        x, y = plot.x(t_min), plot.top(lane) + 5 + row * height
        colour = colours["late" if bars["late"][index] else "bar"]
        shapes.append(Rect(x, y, max(1.5, plot.x(t_max) - x), max(1.5, height - 1), colour, 0.7))
        true_us = None if bars["true_us"] is None else bars["true_us"][index]
        if true_us is not None and plot.from_us <= true_us <= plot.to_us:
            at = plot.x(true_us)
            shapes.append(Line(at, y - 1, at, y + height, colours["true"], 1.5))
    return shapes


def _counts(plot: _Plot, answer: Mapping[str, Any], colours: Mapping[str, str]) -> list[Shape]:
    """A column for each count, as high as its logarithm."""
    shapes: list[Shape] = []
    column_us, top = (answer["to_us"] - answer["from_us"]) / answer["px"], math.log1p(max(1, answer["most"]))
    for lane, cells in enumerate(answer["cells"] or []):
        for column, count in zip(cells[::2], cells[1::2], strict=True):
            x = plot.x(answer["from_us"] + int(column * column_us))
            height = (plot.lane_height - 12) * math.log1p(count) / top
            shapes.append(
                Rect(x, plot.middle(lane) - height / 2, max(1.0, column_us * plot.scale), height, colours["bar"], 0.8)
            )
    return shapes


def _arcs(plot: _Plot, arcs: Mapping[str, Any]) -> list[Shape]:
    shapes: list[Shape] = []
    names = sorted(set(arcs["rule"]))
    for index, rule in enumerate(arcs["rule"]):
        lanes = arcs["lane_a"][index], arcs["lane_b"][index]
        if min(lanes) < 0:
            continue
        x0, x1 = plot.x(arcs["a_us"][index]), plot.x(arcs["b_us"][index])
        y0, y1 = plot.middle(lanes[0]), plot.middle(lanes[1])
        bow = 14 + abs(y1 - y0) * 0.12
        rise = bow if y0 == y1 else 0
        probability = arcs["probability"][index]
        opacity = 1.0 if probability is None else min(1.0, max(LEAST_ARC, probability))
        curve = ((x0, y0), (x0 + bow, y0 + (y1 - y0) * 0.35 - rise), (x1 + bow, y1 - (y1 - y0) * 0.35 - rise), (x1, y1))
        shapes.append(Curve(curve, RULES[names.index(rule) % len(RULES)], 1.5, opacity))
    return shapes


def _legend(plot: _Plot, arcs: Mapping[str, Any], colours: Mapping[str, str]) -> list[Shape]:
    x, y = 8.0, plot.bottom + 20
    shapes: list[Shape] = [Rect(x, y - 8, 16, 8, colours["bar"], 0.7)]
    shapes.append(Text(x + 22, y, "reading, as wide as its uncertainty", colours["soft"], 11))
    x = LEFT + 30
    for number, rule in enumerate(sorted(set(arcs["rule"]))):
        text = f"{shown(rule)[:40]} ({arcs['rule'].count(rule)})"
        shapes.append(Line(x, y - 4, x + 18, y - 4, RULES[number % len(RULES)], 2))
        shapes.append(Text(x + 24, y, text, colours["soft"], 11))
        x += 40 + 6.5 * len(text)
    return shapes
