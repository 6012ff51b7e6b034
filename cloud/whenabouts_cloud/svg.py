"""A page of an SVG picture: title, texts, boxes and numbered coloured lines; the page grows with its content.

It is light or dark as its reader prefers. Texts may be anybody's: they never become markup, and characters that XML does
not allow are replaced.
"""

import re
from xml.etree import ElementTree as ET

LETTER, LINE, MARGIN = 8, 18, 24  # px: width of a letter and height of a line of text at 13 px, border of the page
# Okabe and Ito, Color Universal Design (2008), without black and yellow; higher numbers repeat them with dashes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES = ("", "7 4", "2 3")
LIGHT = "text{font:13px monospace;fill:#222}.title{font-weight:bold}.page{fill:#fff}.end{fill:#666}"
DARK = "text{fill:#ddd}.page{fill:#181a1d}.end{fill:#999}"
GREY = "#777"  # of lines that have no style: visible on light and dark
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Box = tuple[int, int, int, int]
"""x, y, width, height in px."""


class Page:
    """`bottom` is the y of the last line of text; the page grows to the right with its content.

    `dark` are the rules that replace those of `style` for readers who prefer a dark page.
    """

    def __init__(self, title: str, style: str, dark: str = "") -> None:
        self._root = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", role="img")
        ET.SubElement(self._root, "title").text = _allowed(title)
        rules = f"{LIGHT}{style}@media (prefers-color-scheme:dark){{{DARK}{dark}}}"
        ET.SubElement(self._root, "style").text = rules
        ET.SubElement(self._root, "rect", {"width": "100%", "height": "100%", "class": "page"})
        self._right, self.bottom = 0, MARGIN - LINE // 2
        self.line(title, "title")

    def group(self, title: str = "") -> ET.Element:
        """Add a group; its title is shown as a tooltip."""
        group = ET.SubElement(self._root, "g")
        if title:
            ET.SubElement(group, "title").text = _allowed(title)
        return group

    def box(self, group: ET.Element, box: Box, kind: str, radius: int = 0) -> None:
        """Add a rectangle with a class of the style."""
        sizes = dict(zip(("x", "y", "width", "height"), map(str, box), strict=True))
        ET.SubElement(group, "rect", sizes | ({"rx": str(radius)} if radius else {}) | {"class": kind})

    def text(self, x: int, y: int, text: str, kind: str = "", group: ET.Element | None = None) -> None:
        """Add a text that begins at x; the page becomes wide enough for it."""
        place = {"x": str(x), "y": str(y)} | ({"class": kind} if kind else {})
        ET.SubElement(self._root if group is None else group, "text", place).text = _allowed(text)
        self.reach(x + len(text) * LETTER)

    def line(self, text: str, kind: str = "", indent: int = 0) -> None:
        """Add a line of text below all earlier lines."""
        self.bottom += LINE
        self.text(MARGIN + indent, self.bottom, text, kind)

    def path(self, kind: str, drawn: str, colour: str, number: int = 0, title: str = "") -> None:
        """Add a path; it is dashed if `number` is higher than the number of colours."""
        line = {"class": kind, "stroke": colour, "d": drawn}
        if dashes := DASHES[number // len(COLOURS) % len(DASHES)]:
            line["stroke-dasharray"] = dashes
        path = ET.SubElement(self._root, "path", line)
        if title:
            ET.SubElement(path, "title").text = _allowed(title)

    def numbered(self, kind: str, drawn: str, number: int, title: str = "") -> None:
        """Add a path in the colour and dashes of a number."""
        self.path(kind, drawn, COLOURS[number % len(COLOURS)], number, title)

    def arrow(self, x: int, y: int, colour: str) -> None:
        """Add an arrowhead that points to the right, its tip at (x, y)."""
        ET.SubElement(self._root, "path", {"fill": colour, "d": f"M{x} {y}l-9 -4v8z"})

    def legend(self, kind: str, number: int, text: str) -> None:
        """Add a line of text behind a sample of a numbered path."""
        self.numbered(kind, f"M{MARGIN} {self.bottom + LINE - 4}h28", number)
        self.line(text, indent=36)

    def reach(self, right: int) -> None:
        """Make the page at least this wide, not counting its border."""
        self._right = max(self._right, right)

    def finish(self) -> str:
        """Return the text of the SVG file."""
        width, height = self._right + MARGIN, self.bottom + MARGIN
        for name, value in (("viewBox", f"0 0 {width} {height}"), ("width", str(width)), ("height", str(height))):
            self._root.set(name, value)
        ET.indent(self._root)
        return ET.tostring(self._root, encoding="unicode") + "\n"


def short(name: str, most: int) -> str:
    """The name, cut to at most `most` letters."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _allowed(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
