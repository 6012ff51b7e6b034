"""What a picture is made of: shapes in pixels, in the order in which they are drawn, whatever draws them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rect:
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line; dash: lengths of a dash and of a gap, 0 for none."""

    x0: float
    y0: float
    x1: float
    y1: float
    colour: str
    width: float = 1.0
    dash: float = 0.0


@dataclass(frozen=True, slots=True)
class Curve:
    """A cubic Bézier curve: begin, two control points, end."""

    points: tuple[tuple[float, float], tuple[float, float], tuple[float, float], tuple[float, float]]
    colour: str
    width: float = 1.5
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Text:
    """A text whose baseline begins at x, or with `end` ends there."""

    x: float
    y: float
    text: str
    fill: str
    size: float = 12.0
    end: bool = False
    bold: bool = False


Shape = Rect | Line | Curve | Text


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture; title: for readers who cannot see it."""

    width: int
    height: int
    ground: str
    title: str
    shapes: tuple[Shape, ...]
