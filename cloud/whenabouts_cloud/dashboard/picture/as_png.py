"""A picture as PNG, by Pillow with its own font, at twice the size and smoothed."""

import io
from itertools import pairwise

from PIL import Image, ImageColor, ImageDraw, ImageFont

from whenabouts_cloud.dashboard.picture.picture_shapes import Curve, Line, Picture, Rect, Shape, Text

SCALE = 2  # dots a pixel: sharp on screens of today and in print
STEPS = 24  # straight pieces of a curve
MAX_DOTS = 64_000_000


def as_png(picture: Picture) -> bytes:
    """The bytes of a PNG file.

    Raises:
        ValueError: the picture is too large.
    """
    width, height = picture.width * SCALE, picture.height * SCALE
    if width * height > MAX_DOTS:
        raise ValueError(f"found a picture of {width} x {height} dots, expected at most {MAX_DOTS} in all")
    image = Image.new("RGB", (width, height), picture.ground)
    draw = ImageDraw.Draw(image, "RGBA")
    for shape in picture.shapes:
        _draw(draw, shape)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _draw(draw: ImageDraw.ImageDraw, shape: Shape) -> None:
    match shape:
        case Rect():
            x, y = shape.x * SCALE, shape.y * SCALE
            right, bottom = x + max(1.0, shape.width * SCALE) - 1, y + max(1.0, shape.height * SCALE) - 1
            draw.rectangle((x, y, right, bottom), fill=_colour(shape.fill, shape.opacity))
        case Line():
            for begin, end in _dashes(shape):
                draw.line((*begin, *end), fill=shape.colour, width=max(1, round(shape.width * SCALE)))
        case Curve():
            points = [_on(shape.points, n / STEPS) for n in range(STEPS + 1)]
            draw.line(
                points, fill=_colour(shape.colour, shape.opacity), width=round(shape.width * SCALE), joint="curve"
            )
        case Text():
            font = ImageFont.load_default(shape.size * SCALE)
            text = "".join(letter if letter.isprintable() else "\ufffd" for letter in shape.text)
            stroke = 1 if shape.bold else 0
            place = (shape.x * SCALE, shape.y * SCALE)
            draw.text(place, text, shape.fill, font, anchor="rs" if shape.end else "ls", stroke_width=stroke * 0.4)


def _dashes(line: Line) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    begin, end = (line.x0 * SCALE, line.y0 * SCALE), (line.x1 * SCALE, line.y1 * SCALE)
    if not line.dash:
        return [(begin, end)]
    length = max(1.0, ((end[0] - begin[0]) ** 2 + (end[1] - begin[1]) ** 2) ** 0.5)
    step = line.dash * SCALE / length
    return [
        (_between(begin, end, n * step), _between(begin, end, min(1.0, (n + 1) * step)))
        for n in range(0, int(1 / step) + 1, 2)
    ]


def _between(a: tuple[float, float], b: tuple[float, float], t: float) -> tuple[float, float]:
    return a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t


def _on(points: tuple[tuple[float, float], ...], t: float) -> tuple[float, float]:
    """A point of a Bézier curve, by de Casteljau."""
    while len(points) > 1:
        points = tuple(_between(a, b, t) for a, b in pairwise(points))
    return points[0][0] * SCALE, points[0][1] * SCALE


def _colour(text: str, opacity: float) -> tuple[int, ...]:
    return (*ImageColor.getrgb(text)[:3], round(255 * opacity))
