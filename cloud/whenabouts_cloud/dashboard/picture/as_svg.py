"""A picture as SVG. Texts may be anybody's: they never become markup, and what XML does not allow is replaced."""

import re
from xml.etree import ElementTree as ET

from whenabouts_cloud.dashboard.picture.picture_shapes import Curve, Line, Picture, Rect, Shape, Text

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_svg(picture: Picture) -> bytes:
    """The bytes of an SVG file; the same for the same picture."""
    size = {"width": str(picture.width), "height": str(picture.height)}
    box = f"0 0 {picture.width} {picture.height}"
    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "viewBox": box, **size})
    ET.SubElement(root, "title").text = _allowed(picture.title)
    ET.SubElement(root, "rect", {**size, "fill": picture.ground})
    group = ET.SubElement(root, "g", {"font-family": "system-ui, sans-serif"})
    for shape in picture.shapes:
        _add(group, shape)
    return ET.tostring(root, encoding="unicode").encode() + b"\n"


def _add(group: ET.Element, shape: Shape) -> None:
    match shape:
        case Rect():
            place = {"x": _n(shape.x), "y": _n(shape.y), "width": _n(shape.width), "height": _n(shape.height)}
            ET.SubElement(group, "rect", {**place, "fill": shape.fill, "opacity": _n(shape.opacity)})
        case Line():
            place = {"x1": _n(shape.x0), "y1": _n(shape.y0), "x2": _n(shape.x1), "y2": _n(shape.y1)}
            dash = {"stroke-dasharray": _n(shape.dash)} if shape.dash else {}
            ET.SubElement(group, "line", {**place, "stroke": shape.colour, "stroke-width": _n(shape.width), **dash})
        case Curve():
            begin, *rest = (f"{_n(x)} {_n(y)}" for x, y in shape.points)
            style = {
                "stroke": shape.colour,
                "stroke-width": _n(shape.width),
                "opacity": _n(shape.opacity),
                "fill": "none",
            }
            ET.SubElement(group, "path", {"d": f"M{begin}C{', '.join(rest)}", **style})
        case Text():
            style = {"text-anchor": "end"} if shape.end else {}
            style |= {"font-weight": "bold"} if shape.bold else {}
            place = {"x": _n(shape.x), "y": _n(shape.y), "font-size": _n(shape.size), "fill": shape.fill}
            ET.SubElement(group, "text", {**place, **style}).text = _allowed(shape.text)


def _n(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _allowed(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
