"""A predicate bound to one lattice: compiled to steps, its leaves filled in as states come.

Each leaf is asked once about a state (or combination of states) that is new in the windows, never about one again.
"""

from itertools import product

import numpy as np

from whenabouts_cloud.compiled import Array
from whenabouts_cloud.latwin import algebra as of
from whenabouts_cloud.latwin import layout as at
from whenabouts_cloud.latwin.algebra import Code
from whenabouts_cloud.latwin.box import LEADING, STRIDE, WIDTH, WITHIN, Box
from whenabouts_cloud.latwin.layout import Ring
from whenabouts_cloud.latwin.predicate import All, Any, AtLeast, Not, Predicate, Related

LEAF_WORDS = 1 << 20  # of a comparison over several processes: 8 MiB


class Bound:
    """A predicate's leaves for the windows of one lattice.

    Raises:
        ValueError: a leaf looks at a process that there is not, or at the product of too many.
    """

    def __init__(self, predicate: Predicate, box: Box) -> None:
        self._box, self._leaves = box, list[_Leaf]()
        self._seen = [0] * len(box.axes)
        steps: list[tuple[int, int]] = []
        depth = self._compile(predicate, steps, 0)
        table = np.zeros(
            (len(self._leaves), of.LEAF + 3 * max((len(x.leading) for x in self._leaves), default=0)), np.int64
        )
        total = 0
        for row, leaf in zip(table, self._leaves, strict=True):
            row[:2] = total, len(leaf.leading)
            for i, (process, step) in enumerate(zip(leaf.leading, leaf.steps, strict=True)):
                row[of.LEAF + 3 * i :][:3] = box.axes[process, STRIDE], box.axes[process, WIDTH], step
            total += leaf.size
        words = np.zeros(total, np.int64)
        for row, leaf in zip(table, self._leaves, strict=True):
            leaf.words = words[row[0] : row[0] + leaf.size].view(np.uint64)
        stack = np.zeros((depth, min(len(box.words), of.PIECE)), np.int64)
        self.code = Code(table, np.array(steps, np.int64).reshape(-1, 2), words, stack)

    def refresh(self, ring: Ring) -> Code:
        """The code with the leaves filled in for the windows as they are."""
        following = ring.heads[:, at.NEXT].tolist()
        if following != self._seen:
            windows = [range(*pair) for pair in ring.heads[:, : at.NEXT + 1].tolist()]
            new = [range(max(seen, w.start), w.stop) for seen, w in zip(self._seen, windows, strict=True)]
            for leaf in self._leaves:
                leaf.refresh(windows, new)
            self._seen = following
        return self.code

    def _compile(self, node: Predicate, steps: list[tuple[int, int]], level: int) -> int:
        """Appends the steps that leave the node's cells at a level of the stack; how many levels they need."""
        parts = list(node.parts())
        if isinstance(node, Related):
            steps.append((of.PUSH, self._leaf(node)))
            return level + 1
        if isinstance(node, Not):
            depth = self._compile(parts[0], steps, level)
            steps.append((of.NOT, 0))
            return depth
        if isinstance(node, AtLeast):
            return self._count(node, parts, steps, level)
        if not isinstance(node, All | Any):
            raise ValueError(f"predicate: found {node!r}, expected Local, Related, All, Any, Not or AtLeast")
        whole = isinstance(node, All)
        if not parts:
            steps.append((of.EVERYTHING if whole else of.NOTHING, 0))
            return level + 1
        parts.sort(key=lambda part: isinstance(part, Related))  # leaves last: they are met with what is there
        depth = self._compile(parts[0], steps, level)
        for part in parts[1:]:
            if isinstance(part, Related):
                steps.append((of.AND_LEAF if whole else of.OR_LEAF, self._leaf(part)))
            else:
                depth = max(depth, self._compile(part, steps, level + 1))
                steps.append((of.AND if whole else of.OR, 0))
        return depth

    def _count(self, node: AtLeast, parts: list[Predicate], steps: list[tuple[int, int]], level: int) -> int:
        if node.least <= 0 or node.least > len(parts):
            steps.append((of.EVERYTHING if node.least <= 0 else of.NOTHING, 0))
            return level + 1
        digits = len(parts).bit_length()
        steps.append((of.COUNT, digits))
        depth = level + digits + 1
        for part in parts:
            depth = max(depth, self._compile(part, steps, level + digits))
            steps.append((of.ADD, digits))
        steps.append((of.AT_LEAST, node.least << 8 | digits))
        return depth

    def _leaf(self, node: Related) -> int:
        self._leaves.append(_Leaf(node, self._box))
        return len(self._leaves) - 1


class _Leaf:
    """The words of one leaf: for each choice of places of its leading processes the bits of a word where it is true."""

    words: Array

    def __init__(self, node: Related, box: Box) -> None:
        n, first_packed = len(box.axes), int(box.facts[LEADING])
        if not all(0 <= process < n for process in node.processes):
            raise ValueError(f"predicate: found one of processes {list(node.processes)}, expected 0 to {n - 1}")
        self._node, self._box = node, box
        self.leading = [p for p in node.processes if p < first_packed]
        widths = [int(box.axes[p, WIDTH]) for p in self.leading]
        self.size = int(np.prod(np.array(widths, object)))
        if self.size > LEAF_WORDS:
            raise ValueError(
                f"comparison: found one of {len(node.processes)} processes, expected windows of {LEAF_WORDS} choices"
            )
        self.steps = [int(np.prod(widths[i + 1 :])) for i in range(len(widths))]
        self._cylinders = {
            p: [_cylinder(box, p, place) for place in range(int(box.axes[p, WIDTH]))]
            for p in node.processes
            if p >= first_packed
        }

    def refresh(self, windows: list[range], new: list[range]) -> None:
        """Asks about every combination with a state that is new."""
        processes = self._node.processes
        for i, changed in enumerate(processes):
            if not new[changed]:
                continue
            ranges = [windows[p] for p in processes]
            for j in range(i):  # those with a new state of an earlier process have been asked
                ranges[j] = range(windows[processes[j]].start, min(windows[processes[j]].stop, new[processes[j]].start))
            ranges[i] = new[changed]
            for numbers in product(*ranges):
                self._set(numbers)

    def _set(self, numbers: tuple[int, ...]) -> None:
        place, cells = 0, (1 << 64) - 1
        steps = iter(self.steps)
        for process, number in zip(self._node.processes, numbers, strict=True):
            along = number % int(self._box.axes[process, WIDTH])
            if process in self._cylinders:
                cells &= self._cylinders[process][along]
            else:
                place += along * next(steps)
        if self._node.function(*numbers):
            self.words[place] |= np.uint64(cells)
        else:
            self.words[place] &= np.uint64(~cells & (1 << 64) - 1)


def _cylinder(box: Box, process: int, place: int) -> int:
    """The bits of a word at one place along a packed process."""
    packed = box.axes[int(box.facts[LEADING]) :]
    cells = int(np.prod(packed[:, WIDTH]))
    within, width = int(box.axes[process, WITHIN]), int(box.axes[process, WIDTH])
    return sum(1 << cell for cell in range(cells) if cell // within % width == place)
