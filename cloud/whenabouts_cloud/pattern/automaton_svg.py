"""Draws the automaton of a pattern: states by number of types present, from left to right.

Up to MAX_DRAWN states, each state is a box with its types, and each transition a line in the colour of its type. With more
states, one box for each number of types present shows the number of states. Complete states have a double border.
"""

from collections.abc import Sequence

from whenabouts_cloud.pattern.automaton import MAX_STATES, Automaton
from whenabouts_cloud.svg import COLOURS, GREY, LETTER, LINE, MARGIN, Box, Page, short

MAX_DRAWN = 32  # boxes and, at most, 80 lines: as much as the eye can follow
PAD = 12  # space inside a box, px
GAP_X, GAP_Y = 130, 26
MAX_NAME = 24  # letters of a type that are shown; its tooltip shows the rest
STYLE = (
    ".state{fill:#fff;stroke:#444}.complete{fill:#e8f4ea;stroke:#444}"
    ".inner{fill:none;stroke:#444}.move{fill:none;stroke-width:1.6}"
)
DARK = ".state{fill:#25282c;stroke:#aaa}.complete{fill:#1c3a27;stroke:#aaa}.inner{stroke:#aaa}"
COMPLETE = "double border: all types of an alternative are present, so the engine searches for matches"


def svg(automaton: Automaton, title: str, notes: Sequence[str] = ()) -> str:
    """Draw the picture as the text of an SVG file, with lines of notes below it."""
    picture = _Picture(title, automaton)
    if automaton.states is not None and len(automaton.states) <= MAX_DRAWN:
        picture.draw_states(automaton.states)
    else:
        picture.draw_layers()
    return picture.finish([COMPLETE, *notes])


class _Picture:
    def __init__(self, title: str, automaton: Automaton) -> None:
        self._automaton = automaton
        self._types = list(automaton.moves)
        self._page = Page(title, STYLE, DARK)
        self._top = MARGIN + 2 * LINE

    def draw_states(self, states: Sequence[int]) -> None:
        """Draw one box for each state."""
        columns: dict[int, list[int]] = {}
        for state in states:
            columns.setdefault(state.bit_count(), []).append(state)
        tallest = max(len(column) * (_height(n) + GAP_Y) for n, column in columns.items())
        boxes: dict[int, Box] = {}
        x = MARGIN
        for n, column in columns.items():
            width = max(max(len(line) for line in self._lines(state)) for state in column) * LETTER + 2 * PAD
            step = tallest // len(column)
            for row, state in enumerate(column):
                y = self._top + row * step + (step - _height(n)) // 2
                boxes[state] = (x, y, width, _height(n))
            x += width + GAP_X
        for state in states:
            for name, after in self._automaton.transitions(state):
                number = self._types.index(name)
                self._arrow(boxes[state], boxes[after], COLOURS[number % len(COLOURS)], number, name)
        for state, box in boxes.items():
            self._box(
                box, self._lines(state), self._automaton.is_complete(state), ", ".join(self._automaton.names(state))
            )
        self._end(x - GAP_X, self._top + tallest)

    def draw_layers(self) -> None:
        """Draw one box for each number of types present."""
        total, layers = len(self._automaton.letters), self._automaton.layers()
        if layers:
            lines = {
                n: [f"{n} of {total} types", f"{count} state{'s' * (count > 1)}", f"{complete} complete"]
                for n, (count, complete) in layers.items()
            }
        else:
            layers, lines = {0: (1, 0)}, {0: [f"more than {MAX_STATES} states of {total} types"]}
        x, previous = MARGIN, None
        for n, (_, complete) in layers.items():
            box = (x, self._top, max(map(len, lines[n])) * LETTER + 2 * PAD, len(lines[n]) * LINE + PAD)
            if previous is not None:
                self._arrow(previous, box, GREY)
            self._box(box, lines[n], complete > 0)
            previous, x = box, x + box[2] + GAP_X // 3
        self._end(x - GAP_X // 3, self._top + 3 * LINE + PAD)

    def finish(self, notes: Sequence[str]) -> str:
        """Add legend, notes and size; return the SVG text."""
        for number, name in enumerate(self._types):
            self._page.legend("move", number, f"{name} arrives")
        for note in notes:
            self._page.line(note)
        return self._page.finish()

    def _lines(self, state: int) -> list[str]:
        return [short(name, MAX_NAME) for name in self._automaton.names(state)] or ["nothing yet"]

    def _box(self, box: Box, lines: list[str], complete: bool, title: str = "") -> None:
        x, y, width, height = box
        group = self._page.group(title)
        self._page.box(group, box, "complete" if complete else "state", 6)
        if complete:
            self._page.box(group, (x + 3, y + 3, width - 6, height - 6), "inner", 4)
        for n, line in enumerate(lines):
            self._page.text(x + PAD, y + PAD // 2 + n * LINE + 13, line, "", group)

    def _arrow(self, start: Box, end: Box, colour: str, number: int = 0, title: str = "") -> None:
        x1, y1 = start[0] + start[2], start[1] + start[3] // 2
        x2, y2 = end[0], end[1] + end[3] // 2
        bend = (x2 - x1) // 2
        drawn = f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2 - 7} {y2}"
        self._page.path("move", drawn, colour, number, title)
        self._page.arrow(x2, y2, colour)

    def _end(self, right: int, bottom: int) -> None:
        self._page.reach(right)
        self._page.bottom = bottom


def _height(letters: int) -> int:
    return max(1, letters) * LINE + PAD
