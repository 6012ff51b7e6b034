"""Draws the pictures of docs/time.md: `python docs/pictures/make.py` writes them; a test compares them with this script.

Colours are middle tones, which can be seen on a light and on a dark page. Texts are in the page's own size and face.
"""

from collections.abc import Callable
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
INK, BLUE, ORANGE, GREEN = "#808080", "#4a7fb5", "#c77d2e", "#4f9a5b"


class Picture:
    """A drawing of given size; later marks lie above earlier ones."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._marks: list[str] = []
        self._head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" font-family="sans-serif" font-size="13" fill="{INK}"><title>{escape(title)}</title>'
        )

    def bar(self, x: float, y: float, width: float, height: float, colour: str, strength: float = 0.55) -> None:
        """A filled rectangle with an outline."""
        self._marks.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{colour}" '
            f'fill-opacity="{strength:g}" stroke="{colour}"/>'
        )

    def shape(self, points: list[tuple[float, float]], colour: str, strength: float = 0.55) -> None:
        """A filled polygon."""
        text = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._marks.append(f'<polygon points="{text}" fill="{colour}" fill-opacity="{strength:g}" stroke="{colour}"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str = INK, dashed: bool = False) -> None:
        """A straight line."""
        dashes = ' stroke-dasharray="4 4"' if dashed else ""
        self._marks.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}"{dashes}/>')

    def text(self, x: float, y: float, words: str, anchor: str = "start", colour: str = INK) -> None:
        """Words whose base line begins, is centred or ends at a point."""
        self._marks.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>')

    def svg(self) -> str:
        """The file."""
        return "\n".join([self._head, *self._marks, "</svg>"]) + "\n"


def stamp() -> Picture:
    """What a stamp is made of, on the host's clock and in UTC."""
    picture = Picture(640, 190, "What widens a stamp")
    x = 120.0
    parts = [("reader", 150.0, BLUE), ("wire", 60.0, GREEN), ("adapter", 80.0, BLUE), ("read", 40.0, GREEN)]
    picture.text(10, 55, "host's clock")
    for name, width, colour in parts:
        picture.bar(x, 40, width, 24, colour)
        picture.text(x + width / 2, 30, name, "middle", colour)
        x += width
    picture.line(x, 20, x, 150, dashed=True)
    picture.text(x + 6, 30, "bytes are here")
    picture.text(10, 125, "UTC")
    picture.bar(120, 110, x - 120, 24, BLUE, 0.25)
    for left in (70.0, x):
        picture.bar(left, 110, 50, 24, ORANGE)
        picture.text(left + 25, 103, "clock", "middle", ORANGE)
    picture.line(70, 150, x + 50, 150)
    picture.text(70, 170, "t_min", "middle")
    picture.text(x + 50, 170, "t_max", "middle")
    picture.text((120 + x) / 2, 170, "the true moment is somewhere in here", "middle")
    return picture


def pair() -> Picture:
    """The probability that two stamps are at most 4 apart, as an area: a in [0, 10], b in [5, 15]."""
    picture = Picture(560, 300, "The probability of a pair as an area")
    left, base, unit = 70.0, 250.0, 20.0

    def at(a: float, b: float) -> tuple[float, float]:
        return left + a * unit, base - (b - 5) * unit

    picture.bar(left, base - 10 * unit, 10 * unit, 10 * unit, INK, 0.12)
    picture.shape([at(1, 5), at(9, 5), at(10, 6), at(10, 14)], ORANGE)
    picture.line(*at(1, 5), *at(10, 14), ORANGE)
    picture.line(*at(9, 5), *at(10, 6), ORANGE)
    for value in (0, 5, 10):
        picture.text(left + value * unit, base + 18, str(value), "middle")
        picture.text(left - 8, base - value * unit + 4, str(value + 5), "end")
    picture.text(left + 5 * unit, base + 38, "true time of a, stamp [0, 10]", "middle")
    picture.text(left - 8, base - 10 * unit - 14, "true time of b, stamp [5, 15]")
    picture.text(300, 110, "|@a - @b| <= 4", colour=ORANGE)
    picture.text(300, 132, "orange area / square = 40 / 100")
    picture.text(300, 154, "probability 0.4")
    return picture


def watermark() -> Picture:
    """Three gateways: the slowest one decides how far a stream is complete."""
    picture = Picture(640, 190, "Watermarks of three gateways and the frontier")
    for row, (name, until, late) in enumerate([("dock-1", 430, 0), ("dock-2", 520, 0), ("door-1", 340, 1)]):
        y = 30 + row * 42
        picture.text(10, y + 16, name)
        picture.bar(90, y, until - 90, 22, BLUE, 0.3)
        for n in range(5):
            picture.bar(110 + n * 48 + row * 9, y + 4, 22, 14, BLUE)
        picture.line(until, y - 4, until, y + 26, ORANGE)
        picture.text(until + 6, y + 16, "watermark" + (" of the slowest" if late else ""), colour=ORANGE)
    picture.line(340, 16, 340, 160, GREEN, dashed=True)
    picture.text(334, 178, "complete: results are final", "end", GREEN)
    picture.text(346, 178, "may still come", colour=GREEN)
    return picture


def states() -> Picture:
    """A certain and a possible overlap of two gateways' states: dark is surely on, light perhaps."""
    picture = Picture(640, 180, "Overlaps of states: one certain, one possible")
    for y, name in ((40, "guard"), (100, "cashier")):
        picture.text(10, y + 17, name)
    for y, begin, sure, end, last in ((40, 100, 130, 270, 300), (100, 180, 210, 330, 360)):
        picture.bar(begin, y, last - begin, 24, BLUE, 0.2)
        picture.bar(sure, y, end - sure, 24, BLUE, 0.6)
    for y, begin, sure, end, last in ((40, 400, 420, 480, 520), (100, 500, 540, 600, 620)):
        picture.bar(begin, y, last - begin, 24, BLUE, 0.2)
        picture.bar(sure, y, end - sure, 24, BLUE, 0.6)
    for left, right, colour, words in ((210, 270, GREEN, "DEFINITELY"), (500, 520, ORANGE, "POSSIBLY")):
        picture.line(left, 28, left, 136, colour, dashed=True)
        picture.line(right, 28, right, 136, colour, dashed=True)
        picture.text((left + right) / 2, 154, words, "middle", colour)
    picture.text(100, 20, "light: may be on; dark: surely on")
    return picture


PICTURES: dict[str, Callable[[], Picture]] = {"stamp": stamp, "pair": pair, "watermark": watermark, "states": states}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (HERE / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")
