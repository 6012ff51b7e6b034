"""The automaton of a pattern as a picture: states by number of types present, from left to right.

Up to MAX_DRAWN states each is a box with the types that it holds, and each transition a line in the colour of its type; of
more, one box for each number of types present says how many there are. Complete states have a double border.
"""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from whenabouts_cloud.pattern.automaton import MAX_STATES, Automaton

MAX_DRAWN = 32  # boxes and, at most, 80 lines: what can still be followed by eye
LETTER, LINE, PAD = 8, 18, 12  # width of a letter and height of a line of text at 13 px, space inside a box
GAP_X, GAP_Y, MARGIN = 130, 26, 24
MAX_NAME = 24  # letters of a type that are shown; the rest is in the title that appears on pointing at it
# Okabe and Ito, Color Universal Design (2008), without black and yellow; repeated for more types, with dashes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES = ("", "7 4", "2 3")
STYLE = (
    "text{font:13px monospace;fill:#222}.state{fill:#fff;stroke:#444}.complete{fill:#e8f4ea;stroke:#444}"
    ".inner{fill:none;stroke:#444}.title{font-weight:bold}.move{fill:none;stroke-width:1.6}"
)


def svg(automaton: Automaton, title: str, notes: Sequence[str] = ()) -> str:
    """The picture as the text of an SVG file, with lines of notes below it."""
    if automaton.states is not None and len(automaton.states) <= MAX_DRAWN:
        return _Picture(title, automaton, notes).with_states()
    return _Picture(title, automaton, notes).with_layers()


class _Picture:
    def __init__(self, title: str, automaton: Automaton, notes: Sequence[str]) -> None:
        self._automaton = automaton
        self._notes = [
            "double border: all types of a variant are there, so matches that the event completes are searched for",
            *notes,
        ]
        self._types = list(automaton.moves)
        self._root = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", role="img")
        ET.SubElement(self._root, "title").text = title
        ET.SubElement(self._root, "style").text = STYLE
        ET.SubElement(self._root, "rect", width="100%", height="100%", fill="#fff")
        self._text(MARGIN, MARGIN + LINE // 2, title, "title")
        self._right = MARGIN * 2 + len(title) * LETTER

    def with_states(self) -> str:
        """One box for each state."""
        states = self._automaton.states or ()
        columns: dict[int, list[int]] = {}
        for state in states:
            columns.setdefault(state.bit_count(), []).append(state)
        boxes: dict[int, tuple[int, int, int, int]] = {}
        heights = {n: self._height(n) for n in columns}
        tallest = max(len(column) * (heights[n] + GAP_Y) for n, column in columns.items())
        top, x = MARGIN + 2 * LINE, MARGIN
        for n, column in columns.items():
            width = max(max(len(line) for line in self._lines(state)) for state in column) * LETTER + 2 * PAD
            step = tallest // len(column)
            for row, state in enumerate(column):
                y = top + row * step + (step - heights[n]) // 2
                boxes[state] = (x, y, width, heights[n])
            x += width + GAP_X
        for state in states:
            for name, after in self._automaton.transitions(state):
                self._move(boxes[state], boxes[after], name)
        for state, box in boxes.items():
            self._box(box, self._lines(state), self._automaton.is_complete(state), self._automaton.names(state))
        return self._finish(x - GAP_X, top + tallest)

    def with_layers(self) -> str:
        """One box for each number of types present."""
        layers = self._automaton.layers()
        total = len(self._automaton.letters)
        if not layers:
            layers = {0: (1, 0)}
            lines = {0: [f"more than {MAX_STATES} states of {total} types"]}
        else:
            lines = {
                n: [f"{n} of {total} types", f"{count} state{'s' * (count > 1)}", f"{complete} complete"]
                for n, (count, complete) in layers.items()
            }
        top, x = MARGIN + 2 * LINE, MARGIN
        previous = None
        for n, (_, complete) in layers.items():
            box = (x, top, max(map(len, lines[n])) * LETTER + 2 * PAD, len(lines[n]) * LINE + PAD)
            if previous is not None:
                self._line(previous, box, "#444", "")
            self._box(box, lines[n], complete > 0, ())
            previous, x = box, x + box[2] + GAP_X // 3
        return self._finish(x - GAP_X // 3, top + 3 * LINE + PAD)

    def _lines(self, state: int) -> list[str]:
        return [_short(name) for name in self._automaton.names(state)] or ["nothing yet"]

    def _height(self, letters: int) -> int:
        return max(1, letters) * LINE + PAD

    def _box(self, box: tuple[int, int, int, int], lines: list[str], complete: bool, full: tuple[str, ...]) -> None:
        x, y, width, height = box
        group = ET.SubElement(self._root, "g")
        if full:
            ET.SubElement(group, "title").text = ", ".join(full)
        kind = "complete" if complete else "state"
        sizes = {"x": str(x), "y": str(y), "width": str(width), "height": str(height), "rx": "6"}
        ET.SubElement(group, "rect", sizes | {"class": kind})
        if complete:
            inner = {"x": str(x + 3), "y": str(y + 3), "width": str(width - 6), "height": str(height - 6), "rx": "4"}
            ET.SubElement(group, "rect", inner | {"class": "inner"})
        for n, line in enumerate(lines):
            self._text(x + PAD, y + PAD // 2 + n * LINE + 13, line, "", group)

    def _move(self, start: tuple[int, int, int, int], end: tuple[int, int, int, int], name: str) -> None:
        n = self._types.index(name)
        self._line(start, end, COLOURS[n % len(COLOURS)], DASHES[n // len(COLOURS) % len(DASHES)], name)

    def _line(
        self, start: tuple[int, int, int, int], end: tuple[int, int, int, int], colour: str, dashes: str, name: str = ""
    ) -> None:
        x1, y1 = start[0] + start[2], start[1] + start[3] // 2
        x2, y2 = end[0], end[1] + end[3] // 2
        bend = (x2 - x1) // 2
        line = {"class": "move", "stroke": colour, "d": f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2 - 7} {y2}"}
        if dashes:
            line["stroke-dasharray"] = dashes
        path = ET.SubElement(self._root, "path", line)
        if name:
            ET.SubElement(path, "title").text = name
        ET.SubElement(self._root, "path", {"fill": colour, "d": f"M{x2} {y2}l-9 -4v8z"})

    def _text(self, x: int, y: int, text: str, kind: str, parent: ET.Element | None = None) -> None:
        place = {"x": str(x), "y": str(y)} | ({"class": kind} if kind else {})
        ET.SubElement(self._root if parent is None else parent, "text", place).text = text

    def _finish(self, right: int, bottom: int) -> str:
        """Legend and size."""
        y = bottom + LINE
        for n, name in enumerate(self._types):
            line = {"class": "move", "stroke": COLOURS[n % len(COLOURS)], "d": f"M{MARGIN} {y - 4}h28"}
            dashes = DASHES[n // len(COLOURS) % len(DASHES)]
            ET.SubElement(self._root, "path", line | ({"stroke-dasharray": dashes} if dashes else {}))
            self._text(MARGIN + 36, y, f"{name} arrives", "")
            self._right = max(self._right, MARGIN * 2 + 36 + (len(name) + 8) * LETTER)
            y += LINE
        for note in self._notes:
            self._text(MARGIN, y, note, "")
            self._right = max(self._right, MARGIN * 2 + len(note) * LETTER)
            y += LINE
        width, height = max(right + MARGIN, self._right), y + MARGIN
        self._root.set("viewBox", f"0 0 {width} {height}")
        self._root.set("width", str(width))
        self._root.set("height", str(height))
        ET.indent(self._root)
        return ET.tostring(self._root, encoding="unicode") + "\n"


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
