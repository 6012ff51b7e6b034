"""A predicate bound to one lattice: compiled to steps, its leaves filled in as states arrive.

Each leaf is called for a state, or combination of states, when it is new in the windows.
"""

from itertools import product

import numpy as np

from whenabouts_cloud.jit import Array, entry
from whenabouts_cloud.latwin.model import algebra
from whenabouts_cloud.latwin.model.algebra import LEAD, LEADS, LEAF, Code
from whenabouts_cloud.latwin.model.layout import HEAD, Ring
from whenabouts_cloud.latwin.model.predicate import All, Any, AtLeast, Not, Predicate, Related
from whenabouts_cloud.latwin.windows.box import AXIS, FACTS, Box

LEAF_WORDS = 1 << 20  # at most for a comparison over several processes: 8 MiB
ALL = -1  # every bit of a word


class BoundPredicate:
    """The leaves of a predicate for the windows of one lattice, a ring and its box.

    Raises:
        ValueError: a leaf refers to a process that does not exist, or to a product of too many states.
    """

    def __init__(self, predicate: Predicate, ring: Ring, box: Box) -> None:
        self._ring, self._box, self._leaves = ring, box, list[_Leaf]()
        self._first, self._next = ring.heads[:, HEAD.first], ring.heads[:, HEAD.next]
        self._seen = [0] * len(box.axes)
        steps: list[tuple[int, int]] = []
        depth = self._compile(predicate, steps, 0)
        most = max((len(leaf.leading) for leaf in self._leaves), default=0)
        table = np.zeros((len(self._leaves), LEADS + most * len(LEAD)), np.int64)
        total = 0
        for row, leaf in zip(table, self._leaves, strict=True):
            row[LEAF.begin], row[LEAF.leading] = total, len(leaf.leading)
            for i, (process, step) in enumerate(zip(leaf.leading, leaf.steps, strict=True)):
                lead = LEADS + i * len(LEAD)
                row[lead : lead + len(LEAD)] = box.axes[process, AXIS.stride], box.axes[process, AXIS.width], step
            total += leaf.size
        words = np.zeros(total, np.int64)
        for row, leaf in zip(table, self._leaves, strict=True):
            leaf.words = words[row[LEAF.begin] : row[LEAF.begin] + leaf.size].data
        stack = np.zeros((depth, min(len(box.words), algebra.PIECE)), np.int64)
        self._of = [[leaf for leaf in self._leaves if p in leaf.processes] for p in range(len(box.axes))]
        self.code = Code(table, np.array(steps, np.int64).reshape(-1, len(algebra.STEP)), words, stack)
        self._piece = _piece(box)
        self._evaluate = entry(algebra.evaluate, self.code, self._piece, box.words, box.words)

    def holds(self, true: Array) -> bool:
        """Sets the bits of `true` where the predicate holds in the current windows; returns True if it does in a CGS."""
        following = self._next.tolist()
        if following != self._seen:
            self._refresh(following)
        return bool(self._evaluate(self.code, self._piece, self._box.words, true))

    def _refresh(self, following: list[int]) -> None:
        for process, end in enumerate(following):
            seen = self._seen[process]
            if seen != end:
                new = range(max(seen, int(self._first[process])), end)
                for leaf in self._of[process]:
                    leaf.refresh(self._ring, process, new)
        self._seen = following

    def _compile(self, node: Predicate, steps: list[tuple[int, int]], level: int) -> int:
        """Appends the steps that leave the node's cells at a level of the stack; returns how many levels they need."""
        parts = list(node.parts())
        if isinstance(node, Related):
            steps.append((algebra.PUSH, self._leaf(node)))
            return level + 1
        if isinstance(node, Not):
            depth = self._compile(parts[0], steps, level)
            steps.append((algebra.NOT, 0))
            return depth
        if isinstance(node, AtLeast):
            return self._count(node, parts, steps, level)
        if not isinstance(node, All | Any):
            raise ValueError(f"predicate: found {node!r}, expected Local, Related, All, Any, Not or AtLeast")
        whole = isinstance(node, All)
        if not parts:
            steps.append((algebra.EVERYTHING if whole else algebra.NOTHING, 0))
            return level + 1
        parts.sort(key=lambda part: isinstance(part, Related))  # leaves last: they are combined with the level in place
        depth = self._compile(parts[0], steps, level)
        for part in parts[1:]:
            if isinstance(part, Related):
                steps.append((algebra.AND_LEAF if whole else algebra.OR_LEAF, self._leaf(part)))
            else:
                depth = max(depth, self._compile(part, steps, level + 1))
                steps.append((algebra.AND if whole else algebra.OR, 0))
        return depth

    def _count(self, node: AtLeast, parts: list[Predicate], steps: list[tuple[int, int]], level: int) -> int:
        if node.least <= 0 or node.least > len(parts):
            steps.append((algebra.EVERYTHING if node.least <= 0 else algebra.NOTHING, 0))
            return level + 1
        digits = len(parts).bit_length()
        steps.append((algebra.COUNT, digits))
        depth = level + digits + 1
        for part in parts:
            depth = max(depth, self._compile(part, steps, level + digits))
            steps.append((algebra.ADD, digits))
        steps.append((algebra.AT_LEAST, node.least << 8 | digits))
        return depth

    def _leaf(self, node: Related) -> int:
        self._leaves.append(_Leaf(node, self._box))
        return len(self._leaves) - 1


class _Leaf:
    """The words of one leaf: for each choice of places of its leading processes the bits where it is true."""

    words: memoryview  # of its part of the array: single words are read and written faster than through numpy

    def __init__(self, node: Related, box: Box) -> None:
        n, first_packed = len(box.axes), int(box.facts[FACTS.leading])
        if not all(0 <= process < n for process in node.processes):
            raise ValueError(f"predicate: found one of processes {list(node.processes)}, expected 0 to {n - 1}")
        self.processes, self._function = node.processes, node.function
        self._widths = [int(box.axes[p, AXIS.width]) for p in node.processes]
        self.leading = [p for p in node.processes if p < first_packed]
        widths = [int(box.axes[p, AXIS.width]) for p in self.leading]
        self.size = int(np.prod(np.array(widths, object)))
        if self.size > LEAF_WORDS:
            raise ValueError(
                f"comparison: found one over {self.size} choices of processes {list(node.processes)}, "
                f"expected at most {LEAF_WORDS}"
            )
        self.steps = [int(np.prod(widths[i + 1 :])) for i in range(len(widths))]
        steps = iter(self.steps)
        # For each place along each of its processes: its offset in the words, and the bits that it leaves.
        self._places = [
            [(place * step, ALL) for place in range(width)]
            if p < first_packed and (step := next(steps))
            else [(0, _cylinder(box, p, place)) for place in range(width)]
            for p, width in zip(node.processes, self._widths, strict=True)
        ]

    def refresh(self, ring: Ring, process: int, new: range) -> None:
        """Calls the leaf for every combination that has a new state of a process."""
        if len(self.processes) == 1:
            (places,) = self._places
            for number in new:
                self._put(*places[number % len(places)], self._function(number))
            return
        windows = [
            new if p == process else range(*ring.heads[p, HEAD.first : HEAD.next + 1].tolist()) for p in self.processes
        ]
        for numbers in product(*windows):
            self._set(numbers)

    def _set(self, numbers: tuple[int, ...]) -> None:
        word, cells = 0, ALL
        for number, width, places in zip(numbers, self._widths, self._places, strict=True):
            step, left = places[number % width]
            word += step
            cells &= left
        self._put(word, cells, self._function(*numbers))

    def _put(self, word: int, cells: int, true: object) -> None:
        was = self.words[word]
        self.words[word] = was | cells if true else was & ~cells


def _piece(box: Box) -> int:
    """Number of words that are evaluated at a time: they fit the cache, and the leading processes before are constant."""
    piece = len(box.words)
    for stride in box.axes[:, AXIS.stride].tolist():
        if piece > algebra.PIECE and stride > 0:
            piece = stride
    return piece


def _cylinder(box: Box, process: int, place: int) -> int:
    """The bits of a word at one place along a packed process."""
    packed = box.axes[int(box.facts[FACTS.leading]) :]
    cells = int(np.prod(packed[:, AXIS.width]))
    within, width = int(box.axes[process, AXIS.within]), int(box.axes[process, AXIS.width])
    bits = sum(1 << cell for cell in range(cells) if cell // within % width == place)
    return bits - (1 << 64) if bits >> 63 else bits
