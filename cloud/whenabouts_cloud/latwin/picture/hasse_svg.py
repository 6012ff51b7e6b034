"""Draws the lattice of a window: consistent global states (CGSs) from C_min at the bottom to C_max at the top.

Up to NODES_MAX CGSs, each is a box with the numbers of its states, and each step a line in the colour of the process
that advances; boxes of CGSs in which the predicate holds are filled. Beyond, one bar per level shows how many CGSs
there are and in how many of them it holds.
"""

from collections.abc import Sequence

from whenabouts_cloud.latwin.model.frame import Frame, Ints, greatest, least
from whenabouts_cloud.latwin.picture.hasse import NODES_MAX, Hasse, hasse
from whenabouts_cloud.latwin.windows.walk import Truth, count, levels
from whenabouts_cloud.svg import LETTER, LINE, MARGIN, Box, Page, short

PAD = 9  # space inside a box, px
GAP_X, GAP_Y = 26, 44
SLOPE = 7  # extra height between levels per node of the widest one: lines stay apart
MAX_LABEL = 18  # letters in a box; if the state numbers need more, boxes count from C_min
MAX_NAME = 40  # letters of a process's name in the legend
MAX_ROWS = 60  # bars; if there are more levels, neighbouring ones share a bar
BAR = 420  # px of the longest bar
STYLE = (
    ".state{fill:#fff;stroke:#444}.holds{fill:#bfe3c6;stroke:#1b6b34;stroke-width:2}"
    ".step{fill:none;stroke-width:1.6}.bar{fill:#c9ced6}.bar-holds{fill:#5fae74}"
)
DARK = ".state{fill:#25282c;stroke:#aaa}.holds{fill:#1c4a2b;stroke:#6fc48a}.bar{fill:#4a5058}.bar-holds{fill:#3f8f57}"


def svg(window: Frame, truth: Truth, title: str, names: Sequence[str] = (), notes: Sequence[str] = ()) -> str:
    """The picture as the text of an SVG file; `names` are those of the processes, `notes` are lines below it."""
    picture = _Picture(title, names or [f"P{j}" for j in range(len(window.first))])
    if count(window) <= NODES_MAX:
        picture.draw_nodes(hasse(window, truth))
    else:
        picture.draw_levels(levels(window), levels(window, truth), least(window), greatest(window))
    return picture.finish(notes)


class _Picture:
    def __init__(self, title: str, names: Sequence[str]) -> None:
        self._names = names
        self._notes: list[str] = []
        self._page = Page(title, STYLE, DARK)

    def draw_nodes(self, diagram: Hasse) -> None:
        """Draws a box for each CGS."""
        page = self._page
        if not diagram.levels:
            page.line("no consistent global state in this window")
            return
        labels = self._labels(diagram.states)
        boxes = _places(diagram, page.bottom + LINE // 2, max(map(len, labels)) * LETTER + 2 * PAD)
        for low, high, process in diagram.steps:
            (x1, y1, width, height), (x2, y2, _, _) = boxes[low], boxes[high]
            drawn = f"M{x1 + width // 2} {y1}L{x2 + width // 2} {y2 + height}"
            page.numbered("step", drawn, process, f"{self._names[process]} advances")
        for node, box in boxes.items():
            self._box(diagram, node, box, labels[node])
            page.reach(box[0] + box[2])
        page.bottom = max(y + height for _, y, _, height in boxes.values()) + LINE
        for process, name in enumerate(self._names):
            page.legend("step", process, f"{short(name, MAX_NAME)} advances")
        page.line("filled: the predicate holds" if diagram.holds.any() else "the predicate holds in none of them")

    def draw_levels(
        self, sizes: Ints, holding: Ints, low: tuple[int, ...] | None, high: tuple[int, ...] | None
    ) -> None:
        """Draws a bar for each level, or for several neighbouring ones."""
        page = self._page
        page.line(
            f"{sizes.sum()} consistent global states, {holding.sum()} of them hold; by number of steps from C_min"
        )
        together = -(-len(sizes) // MAX_ROWS)
        starts = range(0, len(sizes), together)
        bars = [(a, int(sizes[a : a + together].sum()), int(holding[a : a + together].sum())) for a in starts]
        longest = max(size for _, size, _ in bars)
        left = MARGIN + (2 * len(str(len(sizes))) + 3) * LETTER
        page.line(f"C_max {_joined(high)}", "end")
        page.bottom += PAD
        for start, size, good in reversed(bars):
            last, group = min(start + together, len(sizes)) - 1, page.group()
            for kind, part in (("bar", size), ("bar-holds", good)):
                page.box(group, (left, page.bottom + 4, part * BAR // longest, LINE - 4), kind)
            page.bottom += LINE
            page.text(MARGIN, page.bottom - 4, f"{start}" if last == start else f"{start}-{last}", "", group)
            page.text(left + BAR + PAD, page.bottom - 4, f"{size}, {good} hold" if good else f"{size}", "", group)
        page.line(f"C_min {_joined(low)}", "end")
        page.line(f"processes: {self._all_names()}")

    def finish(self, notes: Sequence[str]) -> str:
        """Adds the notes and returns the text of the file."""
        for note in (*notes, *self._notes):
            self._page.line(note)
        return self._page.finish()

    def _all_names(self) -> str:
        return ", ".join(short(name, MAX_NAME) for name in self._names)

    def _labels(self, numbers: Ints) -> list[str]:
        labels = [" ".join(map(str, state)) for state in numbers.tolist()]
        if max(map(len, labels)) <= MAX_LABEL:
            self._notes.append(f"in the boxes: numbers of the states of {self._all_names()}")
            return labels
        self._notes.append(f"in the boxes: states of {self._all_names()}, counted from C_min")
        self._notes.append(f"C_min = {_joined(tuple(numbers[0].tolist()))}")
        return ["".join(map(str, state)) if max(state) < 10 else " ".join(map(str, state))
                for state in (numbers - numbers[0]).tolist()]  # fmt: skip

    def _box(self, diagram: Hasse, node: int, box: Box, label: str) -> None:
        x, y, width, _ = box
        holds = bool(diagram.holds[node])
        state = ", ".join(f"{name} {k}" for name, k in zip(self._names, diagram.states[node].tolist(), strict=True))
        group = self._page.group(f"{state}{': holds' if holds else ''}")
        self._page.box(group, box, "holds" if holds else "state", 5)
        self._page.text(x + (width - len(label) * LETTER) // 2, y + PAD // 2 + 14, label, "", group)
        ends = [name for name, which in (("C_min", 0), ("C_max", len(diagram.holds) - 1)) if node == which]
        if ends:
            self._page.text(x + width + PAD, y + PAD // 2 + 14, ", ".join(ends), "end")


def _places(diagram: Hasse, top: int, width: int) -> dict[int, Box]:
    """The box of each node: levels above each other, each centred."""
    height, widest = LINE + PAD, max(map(len, diagram.levels))
    rise = height + GAP_Y + SLOPE * widest
    span = widest * (width + GAP_X) - GAP_X
    boxes = {}
    for level, nodes in enumerate(reversed(diagram.levels)):
        indent = (span - len(nodes) * (width + GAP_X) + GAP_X) // 2
        for place, node in enumerate(nodes):
            boxes[node] = (MARGIN + indent + place * (width + GAP_X), top + level * rise, width, height)
    return boxes


def _joined(state: tuple[int, ...] | None) -> str:
    return " ".join(map(str, state or ()))
