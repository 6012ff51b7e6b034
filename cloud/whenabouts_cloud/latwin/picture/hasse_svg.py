"""The lattice of a window as a picture: consistent global states (CGSs) from C_min at the foot to C_max at the top.

Up to NODES_MAX of them each is a box with the numbers of its states, and each step a line in the colour of the process that
goes on; those that hold are filled. Of more, one bar for each level says how many there are and how many of them hold.
"""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from whenabouts_cloud.latwin.model.frame import Frame, Ints, greatest, least
from whenabouts_cloud.latwin.picture.hasse import NODES_MAX, Hasse, hasse
from whenabouts_cloud.latwin.windows.walk import Truth, count, levels

LETTER, LINE, PAD = 8, 18, 9  # width of a letter and height of a line of text at 13 px, space inside a box
GAP_X, GAP_Y, MARGIN = 26, 44, 24
SLOPE = 7  # more height between wide levels, a node: lines stay apart
MAX_LABEL = 18  # letters of a box; if the numbers need more, boxes count from C_min
MAX_NAME = 40  # letters of a process's name in the legend
MAX_ROWS = 60  # bars; of more levels, neighbouring ones share one
BAR = 420  # px of the longest bar
# Okabe and Ito, Color Universal Design (2008), without black and yellow; repeated for more processes, with dashes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES = ("", "7 4", "2 3")
STYLE = (
    "text{font:13px monospace;fill:#222}.state{fill:#fff;stroke:#444}.holds{fill:#bfe3c6;stroke:#1b6b34;stroke-width:2}"
    ".title{font-weight:bold}.end{fill:#666}.step{fill:none;stroke-width:1.6}.bar{fill:#c9ced6}.bar-holds{fill:#5fae74}"
)


def svg(window: Frame, truth: Truth, title: str, names: Sequence[str] = (), notes: Sequence[str] = ()) -> str:
    """The picture as the text of an SVG file; `names` are those of the processes, `notes` lines below it."""
    names = names or [f"P{j}" for j in range(len(window.first))]
    picture = _Picture(title, names, notes)
    if count(window) <= NODES_MAX:
        return picture.with_nodes(hasse(window, truth))
    return picture.with_levels(levels(window), levels(window, truth), least(window), greatest(window))


class _Picture:
    def __init__(self, title: str, names: Sequence[str], notes: Sequence[str]) -> None:
        self._names, self._notes = names, list(notes)
        self._root = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", role="img")
        ET.SubElement(self._root, "title").text = title
        ET.SubElement(self._root, "style").text = STYLE
        ET.SubElement(self._root, "rect", width="100%", height="100%", fill="#fff")
        self._right = 0
        self._bottom = MARGIN + LINE // 2
        self._line(title, "title")

    def with_nodes(self, diagram: Hasse) -> str:
        """A box for each CGS."""
        if not diagram.levels:
            self._line("no consistent global state in this window")
            return self._finish()
        labels = self._labels(diagram.states)
        width = max(map(len, labels)) * LETTER + 2 * PAD
        height, widest = LINE + PAD, max(map(len, diagram.levels))
        rise = height + GAP_Y + SLOPE * widest
        span = widest * (width + GAP_X) - GAP_X
        top = self._bottom + LINE // 2
        boxes = {}
        for level, nodes in enumerate(reversed(diagram.levels)):
            indent = (span - len(nodes) * (width + GAP_X) + GAP_X) // 2
            for place, node in enumerate(nodes):
                boxes[node] = (MARGIN + indent + place * (width + GAP_X), top + level * rise)
        for low, high, process in diagram.steps:
            (x1, y1), (x2, y2) = boxes[low], boxes[high]
            path = self._path(f"M{x1 + width // 2} {y1}L{x2 + width // 2} {y2 + height}", process)
            ET.SubElement(path, "title").text = f"{self._names[process]} goes on"
        for node, (x, y) in boxes.items():
            self._box(diagram, node, (x, y, width, height), labels[node])
        self._right = max(self._right, MARGIN + span)
        self._bottom = top + (len(diagram.levels) - 1) * rise + height + LINE
        for process, name in enumerate(self._names):
            self._path(f"M{MARGIN} {self._bottom + LINE - 4}h28", process)
            self._line(f"{_short(name)} goes on", indent=36)
        if diagram.holds.any():
            self._line("filled: the predicate holds")
        else:
            self._line("the predicate holds in none of them")
        return self._finish()

    def with_levels(
        self, sizes: Ints, holding: Ints, low: tuple[int, ...] | None, high: tuple[int, ...] | None
    ) -> str:  # fmt: skip
        """A bar for each level, or for some neighbouring ones."""
        self._line(
            f"{sizes.sum()} consistent global states, {holding.sum()} of them hold; by number of steps from C_min"
        )
        together = -(-len(sizes) // MAX_ROWS)
        starts = range(0, len(sizes), together)
        bars = [(a, int(sizes[a : a + together].sum()), int(holding[a : a + together].sum())) for a in starts]
        longest = max(size for _, size, _ in bars)
        left = MARGIN + (2 * len(str(len(sizes))) + 3) * LETTER
        self._line(f"C_max {_joined(high)}", "end")
        self._bottom += PAD
        for start, size, good in reversed(bars):
            last = min(start + together, len(sizes)) - 1
            y = self._bottom
            group = ET.SubElement(self._root, "g")
            for kind, part in (("bar", size), ("bar-holds", good)):
                long = {"x": str(left), "y": str(y + 4), "width": str(part * BAR // longest), "height": str(LINE - 4)}
                ET.SubElement(group, "rect", long | {"class": kind})
            level = f"{start}" if last == start else f"{start}-{last}"
            self._text(MARGIN, y + LINE - 4, level, "", group)
            told = f"{size}, {good} hold" if good else f"{size}"
            self._text(left + BAR + PAD, y + LINE - 4, told, "", group)
            self._right = max(self._right, left + BAR + PAD + len(told) * LETTER)
            self._bottom += LINE
        self._line(f"C_min {_joined(low)}", "end")
        self._line(f"processes: {', '.join(map(_short, self._names))}")
        return self._finish()

    def _labels(self, numbers: Ints) -> list[str]:
        labels = [" ".join(map(str, state)) for state in numbers.tolist()]
        if max(map(len, labels)) <= MAX_LABEL:
            self._notes.append(f"in the boxes: numbers of the states of {', '.join(map(_short, self._names))}")
            return labels
        self._notes.append(f"in the boxes: states of {', '.join(map(_short, self._names))}, counted from C_min")
        self._notes.append(f"C_min = {_joined(tuple(numbers[0].tolist()))}")
        return ["".join(map(str, state)) if max(state) < 10 else " ".join(map(str, state))
                for state in (numbers - numbers[0]).tolist()]  # fmt: skip

    def _box(self, diagram: Hasse, node: int, box: tuple[int, int, int, int], label: str) -> None:
        x, y, width, height = box
        group = ET.SubElement(self._root, "g")
        holds, ends = bool(diagram.holds[node]), []
        state = ", ".join(f"{name} {k}" for name, k in zip(self._names, diagram.states[node].tolist(), strict=True))
        ET.SubElement(group, "title").text = f"{state}{': holds' if holds else ''}"
        sizes = {"x": str(x), "y": str(y), "width": str(width), "height": str(height), "rx": "5"}
        ET.SubElement(group, "rect", sizes | {"class": "holds" if holds else "state"})
        self._text(x + (width - len(label) * LETTER) // 2, y + PAD // 2 + 14, label, "", group)
        for name, which in (("C_min", 0), ("C_max", len(diagram.holds) - 1)):
            if node == which:
                ends.append(name)
        if ends:
            told = ", ".join(ends)
            self._text(x + width + PAD, y + PAD // 2 + 14, told, "end")
            self._right = max(self._right, x + width + PAD + len(told) * LETTER)

    def _path(self, line: str, process: int) -> ET.Element:
        drawn = {"class": "step", "stroke": COLOURS[process % len(COLOURS)], "d": line}
        if dashes := DASHES[process // len(COLOURS) % len(DASHES)]:
            drawn["stroke-dasharray"] = dashes
        return ET.SubElement(self._root, "path", drawn)

    def _line(self, text: str, kind: str = "", indent: int = 0) -> None:
        self._bottom += LINE
        self._text(MARGIN + indent, self._bottom, text, kind)
        self._right = max(self._right, MARGIN + indent + len(text) * LETTER)

    def _text(self, x: int, y: int, text: str, kind: str, parent: ET.Element | None = None) -> None:
        place = {"x": str(x), "y": str(y)} | ({"class": kind} if kind else {})
        ET.SubElement(self._root if parent is None else parent, "text", place).text = text

    def _finish(self) -> str:
        for note in self._notes:
            self._line(note)
        width, height = self._right + MARGIN, self._bottom + MARGIN
        self._root.set("viewBox", f"0 0 {width} {height}")
        self._root.set("width", str(width))
        self._root.set("height", str(height))
        ET.indent(self._root)
        return ET.tostring(self._root, encoding="unicode") + "\n"


def _joined(state: tuple[int, ...] | None) -> str:
    return " ".join(map(str, state or ()))


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
