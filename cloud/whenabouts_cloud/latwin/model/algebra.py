"""A predicate for all cells of a lattice at once: word algebra on a stack of sets of cells.

A leaf depends on few processes. What it says of the packed ones is a word for each choice of places of its leading ones; it
is laid out over the box. The box is worked off in pieces that stay in the cache; what lies outside of a piece is constant
in it. A count of true parts is kept as bits of numbers, one set of cells for each binary digit.

    leaves  (leaves, LEAF + 3 p)  where its words begin; how many leading processes; of each stride, width, stride in words
    steps   (steps, 2)            what to do, with what
"""

from typing import Any, NamedTuple

from whenabouts_cloud.jit import Array, bare

PIECE = 4096  # words
LEAF = 2
PUSH, AND_LEAF, OR_LEAF, AND, OR, NOT, COUNT, ADD, AT_LEAST, NOTHING, EVERYTHING = range(11)


class Code(NamedTuple):
    """A predicate as steps for a stack: leaves, steps, words of all leaves, and the stack."""

    leaves: Array
    steps: Array
    words: Array
    stack: Array


@bare
def leaf_word(code: Code, leaf: int, index: int) -> Any:
    """The word of a leaf where the word `index` of the box is."""
    leaves = code.leaves
    place = leaves[leaf, 0]
    for i in range(leaves[leaf, 1]):
        at = LEAF + 3 * i
        place += index // leaves[leaf, at] % leaves[leaf, at + 1] * leaves[leaf, at + 2]
    return code.words[place]


@bare
def lay(code: Code, leaf: int, how: int, begin: int, count: int, top: int) -> None:
    """Lays a leaf out over a piece: in place of a level of the stack, or met or joined with it."""
    run, row = count, code.stack[top]
    for i in range(code.leaves[leaf, 1]):
        run = min(run, code.leaves[leaf, LEAF + 3 * i])
    for at in range(0, count, run):
        word = leaf_word(code, leaf, begin + at)
        if how == AND_LEAF:
            if word == 0:
                row[at : at + run] = 0
            elif word != -1:
                for i in range(at, at + run):
                    row[i] &= word
        elif how == OR_LEAF:
            if word != 0:
                for i in range(at, at + run):
                    row[i] |= word
        else:
            row[at : at + run] = word


@bare
def combine(code: Code, step: int, top: int, count: int) -> Any:
    """A step that needs no leaf, on a piece; the new top of the stack."""
    stack = code.stack
    kind, many = code.steps[step, 0], code.steps[step, 1]
    if kind == NOT:
        for i in range(count):
            stack[top, i] = ~stack[top, i]
    elif kind == AND:
        for i in range(count):
            stack[top - 1, i] &= stack[top, i]
        return top - 1
    elif kind == OR:
        for i in range(count):
            stack[top - 1, i] |= stack[top, i]
        return top - 1
    elif kind in (NOTHING, EVERYTHING):
        stack[top + 1, :count] = -1 if kind == EVERYTHING else 0
        return top + 1
    elif kind == COUNT:
        for digit in range(many):
            stack[top + 1 + digit, :count] = 0
        return top + many
    elif kind == ADD:
        for digit in range(many):
            at = top - many + digit
            for i in range(count):
                carry = stack[at, i] & stack[top, i]
                stack[at, i] ^= stack[top, i]
                stack[top, i] = carry
        return top - 1
    return top


@bare
def at_least(code: Code, least: int, digits: int, top: int, count: int) -> Any:
    """Where a count of so many digits is at least a number; in place of its digits."""
    stack = code.stack
    for i in range(count):
        equal, more = -1, 0
        for digit in range(digits - 1, -1, -1):
            bit = stack[top - digits + 1 + digit, i]
            if (least >> digit) & 1:
                equal &= bit
            else:
                more |= equal & bit
                equal &= ~bit
        stack[top - digits + 1, i] = more | equal
    return top - digits + 1


@bare
def evaluate(code: Code, axes: Array, words: Array, true: Array) -> bool:
    """Sets the bits of `true` where the predicate holds; whether in a CGS of the lattice. Bits outside mean nothing.

    axes, words: of the box.
    """
    total, common = len(words), 0
    piece = total
    for i in range(len(axes)):
        stride = axes[i, 2]
        if piece > PIECE and stride > 0:
            piece = stride
    for begin in range(0, total, piece):
        top = -1
        for step in range(len(code.steps)):
            kind, which = code.steps[step, 0], code.steps[step, 1]
            if kind <= OR_LEAF:
                if kind == PUSH:
                    top += 1
                lay(code, which, kind, begin, piece, top)
            elif kind == AT_LEAST:
                top = at_least(code, which >> 8, which & 255, top, piece)
            else:
                top = combine(code, step, top, piece)
        for i in range(piece):
            true[begin + i] = code.stack[0, i]
            common |= code.stack[0, i] & words[begin + i]
    return common != 0
