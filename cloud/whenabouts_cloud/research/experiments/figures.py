"""Figures as markdown, JSON and PNG. A missing point of a series is nan: "-" in tables, null in JSON."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Series = dict[str, list[float]]


@dataclass(frozen=True)
class Figure:
    """One figure of a paper, measured again: one line per series over `x`, and a remark on the differences."""

    key: str  # file name
    source: str
    title: str
    x_label: str
    y_label: str
    x: Sequence[float | str]
    series: Series
    remark: str
    log_y: bool = False


def as_json(figure: Figure) -> dict[str, Any]:
    """Return the figure as plain values."""
    series = {name: [None if math.isnan(y) else y for y in values] for name, values in figure.series.items()}
    return asdict(figure) | {"x": list(figure.x), "series": series}


def markdown(figures: list[Figure], preface: str, title: str = "The papers' experiments, run here") -> str:
    """Return all tables with their remarks."""
    parts = [f"# {title}", preface]
    for figure in figures:
        names = list(figure.series)
        parts.append(f"## {figure.source}: {figure.title}")
        parts.append(
            "\n".join(
                [
                    f"| {figure.x_label} | " + " | ".join(names) + " |",
                    "|---" * (len(names) + 1) + "|",
                    *(
                        f"| {x} | " + " | ".join(_number(figure.series[name][n]) for name in names) + " |"
                        for n, x in enumerate(figure.x)
                    ),
                ]
            )
        )
        parts.append(f"({figure.y_label})")
        parts.append(figure.remark)
    return "\n\n".join(parts) + "\n"


def plot(figure: Figure, folder: Path) -> Path:
    """Draw it as a PNG.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib import figure as drawings  # not pyplot, which looks for screens and keeps its figures
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    drawing = drawings.Figure(figsize=(6.4, 4.2), dpi=110)
    canvas = FigureCanvasAgg(drawing)
    axes = drawing.subplots()
    places = range(len(figure.x))
    for name, values in figure.series.items():
        axes.plot(places, values, marker="o", label=name)
    axes.set_xticks(list(places), [str(x) for x in figure.x])
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    axes.set_title(f"{figure.source}: {figure.title}", fontsize=9)
    if figure.log_y:
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    drawing.tight_layout()
    path = folder / f"{figure.key}.png"
    canvas.print_png(path)  # type: ignore[no-untyped-call]  # savefig would draw everything twice
    return path


def grouped(value: float) -> str:
    """A whole number with its thousands separated by spaces."""
    return f"{value:,.0f}".replace(",", " ")


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    if value == 0:
        return "0"
    return f"{value:.3g}" if abs(value) < 1000 else grouped(value)
